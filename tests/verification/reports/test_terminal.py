"""The text at a terminal says everything, and nothing that was not checked looks green."""

from __future__ import annotations

import copy
import json
import shlex
from typing import Any, Final

import attrs

from turnlock.verification.reports.report import fingerprint
from turnlock.verification.reports.terminal import SEEN, SHOWN, to_text

from .samples import (
    HELD,
    HOSTILE,
    NOT_DONE,
    SKIPPED,
    STOP,
    broken,
    double_start,
    report,
    wrong_result,
)

REFUSED: Final[dict[str, Any]] = {"accepted": False, "facts": [], "effects": []}


def test_a_verdict_that_holds_says_what_it_guarantees() -> None:
    text = to_text(report(HELD, SKIPPED))
    assert HELD.guarantee in text
    assert "states 3,266, transitions 444,000" in text
    assert "reasons never reached: lease_lost" in text
    assert SKIPPED.why in text
    assert "Says nothing about what these would have checked: recovery (skipped)." in text
    assert text.startswith("HOLDS: ")
    assert text.splitlines()[-1].startswith("HOLDS after 12.3 s. Again: turnlock verify")


def test_a_violation_is_told_step_by_step() -> None:
    """Words, JSON, the rule with its sentence, both answers, the place that differs."""
    finding = double_start()
    text = to_text(report(broken(finding)))
    assert "VIOLATED K-33 claim before start" in text
    assert "K-33: An accepted claim of the owed attempt" in text
    assert "5 steps, the shortest that shows it" in text
    assert " 3. at 2 s: executor: claim a (turn T1), attempt 1, worker w1" in text
    assert '"worker": "w2"' in text
    assert '  >   "accepted": false' in text
    assert '  >   "accepted": true' in text
    assert "differs at accepted: expected false, got true" in text
    assert "guarantees" not in text


def test_what_was_not_done_or_stopped_is_named_and_not_green() -> None:
    text = to_text(report(HELD, NOT_DONE, stops=(STOP,)))
    assert "NOT DONE" in text
    assert NOT_DONE.why in text
    assert STOP.message in text
    assert "HOLDS after" not in text


def test_known_findings_and_passing_entries_are_told_in_a_line() -> None:
    finding = double_start()
    text = to_text(
        report(HELD, broken(finding), known=(fingerprint(finding),), now_passing=("K-9: old",))
    )
    assert "known, in the baseline: K-33" in text
    assert "PASSES NOW, take it out of the baseline: K-9: old" in text
    assert "expected:" not in text


def test_no_more_violations_are_told_whole_than_people_read() -> None:
    reasons = ["late", "duplicate", "lease_lost", "turn_busy", "not_started"][: SHOWN + 2]
    many = [
        double_start(rule=f"K-{number}", got={**REFUSED, "reason": reason})
        for number, reason in enumerate(reasons, start=30)
    ]
    text = to_text(report(broken(*many, wrong_result())))
    assert text.count("differs at ") == SHOWN
    assert text.count("VIOLATED: K-") == 3


def test_findings_of_one_cause_are_one_story() -> None:
    """The shortest is told whole, the other below it in a line; what is worst in both is alike."""
    claims = double_start(rule="K-99", message="another claim")
    text = to_text(report(broken(double_start()), broken(claims, technique="guided")))
    assert text.count("differs at ") == 1
    assert "also seen as: K-99 in guided: another claim (fingerprint " in text


def test_a_story_names_no_more_findings_than_people_read() -> None:
    """The others are counted; the other reports have them all."""
    same = [double_start(rule=f"K-{number}") for number in range(100, 100 + SEEN + 2)]
    text = to_text(report(broken(*same)))
    assert text.count("also seen as: ") == SEEN
    assert "and as 1 more" in text


def test_findings_of_two_causes_are_two_stories() -> None:
    """The negative control: another rule, and nothing wrong in both answers."""
    text = to_text(report(broken(double_start()), broken(wrong_result(), technique="guided")))
    assert text.count("differs at ") == 2
    assert "also seen as" not in text


def test_a_finding_has_its_lines_to_paste() -> None:
    """A shell gives the line to the system under test, or to ours, and to the judge."""
    finding = double_start("it's")
    ours = to_text(report(broken(finding)))
    theirs = to_text(report(broken(finding), stdio="node shim.js"))

    (request,) = {shlex.split(line)[2] for line in ours.splitlines() if " printf " in f" {line} "}
    assert json.loads(request)["scripts"] == [list(finding.script)]
    assert "| turnlock stdio\n" in ours
    assert "| turnlock verify --replay -\n" in ours
    assert "| node shim.js\n" in theirs
    assert "| turnlock verify --replay - --sut 'node shim.js'\n" in theirs


def test_all_that_differs_is_marked_each_where_it_stands() -> None:
    """What is missing in the expected answer, what is too many in the other."""
    finding = wrong_result()
    got = copy.deepcopy(finding.got)
    got["facts"].pop()
    got["effects"].append({"type": "execute", "effect_id": "e", "invocation_id": "a"})
    lines = to_text(report(broken(attrs.evolve(finding, got=got)))).splitlines()
    expected, told = (lines.index(f"  {label}:") for label in ("expected", "got"))

    marks = [line for line in lines[expected:told] if line.startswith("  >")]
    assert ["TURN_SETTLED" in line for line in marks] == [True, False]
    assert ['"continue"' in line for line in marks] == [False, True]
    assert sum(line.startswith("  >") for line in lines[told:]) == 2
    assert any(line.startswith("  differs at effects[1]: expected nothing") for line in lines)


def test_a_hostile_name_steers_no_terminal() -> None:
    text = to_text(report(broken(double_start(HOSTILE))))
    assert "\x1b" not in text
    assert "\x00" not in text
    text.encode()

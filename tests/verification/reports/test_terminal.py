"""The text at a terminal says everything, and nothing that was not checked looks green."""

from __future__ import annotations

from turnlock.verification.reports.report import fingerprint
from turnlock.verification.reports.terminal import SHOWN, to_text

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
    many = [double_start(rule=f"K-{number}") for number in range(30, 30 + SHOWN + 2)]
    text = to_text(report(broken(*many, wrong_result())))
    assert text.count("differs at ") == SHOWN
    assert text.count("VIOLATED: K-") == 3


def test_a_hostile_name_steers_no_terminal() -> None:
    text = to_text(report(broken(double_start(HOSTILE))))
    assert "\x1b" not in text
    assert "\x00" not in text
    text.encode()

"""What was judged is counted, rule by rule; what was not is never green."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

import attrs
import pytest

from turnlock.verification.alphabet.slices import DEV
from turnlock.verification.conformance import technique as conformance
from turnlock.verification.findings import Profile, Status
from turnlock.verification.judging import VISIBLE, in_short
from turnlock.verification.reports.headline import headline
from turnlock.verification.reports.html import to_html
from turnlock.verification.reports.json_report import to_json
from turnlock.verification.reports.junit import to_junit
from turnlock.verification.reports.report import Report, Verdict
from turnlock.verification.reports.terminal import to_text
from turnlock.verification.rulebook import accused
from turnlock.verification.subjects.in_process import InProcess
from turnlock.verification.subjects.subject import Raw
from turnlock.verification.techniques import NAMES, verify

from .depth import DEEP
from .reports.samples import report
from .wrong_kernels import (
    AcceptsEverything,
    AnswersOnce,
    RefusesClaims,
    RefusesEverything,
    RefusesPlausibly,
    Right,
    TellsWrongFacts,
)

WHOLLY = (Right, RefusesEverything)
"""Those that the gate asks by every technique; the others by half of that which plays most."""

_VERIFIED: dict[str, Report] = {}


def verified(kind: type[Right]) -> Report:
    """What the techniques say of a system; asked once."""
    name = kind.__name__
    if name not in _VERIFIED:
        whole = DEEP or kind in WHOLLY
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(conformance, "DEV", DEV if whole else DEV[:3])
            results, stops = verify(
                InProcess(kind, name=name),
                profile=Profile.DEV,
                seed=0,
                progress=lambda _: None,
                only=NAMES if whole else ("conformance",),
            )
        _VERIFIED[name] = report(*results, stops=stops)
    return _VERIFIED[name]


ALMOST_NOTHING: list[tuple[type[Right], str]] = [
    (RefusesEverything, "open_turn was refused as late and not accepted"),
    (AcceptsEverything, "open_turn was answered with no TURN_OPENED"),
    (TellsWrongFacts, "open_turn was answered with another sequence in TURN_OPENED"),
]
if DEEP:  # as RefusesEverything, for another reason
    ALMOST_NOTHING.append(
        (RefusesPlausibly, "open_turn was refused as no_active_turn and not accepted")
    )


@pytest.mark.parametrize(("kind", "why"), ALMOST_NOTHING)
def test_almost_nothing_judged_is_the_first_that_is_said(kind: type[Right], why: str) -> None:
    """Why, in how many scripts of how many, and how many rules that leaves; in every report."""
    made = verified(kind)
    first = to_text(made).partition("\n")[0]
    wrong = made.judged.wrong[why]

    assert first.startswith(
        f"VIOLATED: almost nothing could be judged: {why}, in {wrong:,} of {made.judged.scripts:,}"
        f" scripts, so {len(made.not_judged)} of {len(VISIBLE)} rules were not judged"
    )
    assert made.exit_status == 1
    assert made.judged.scripts > 1_000
    assert wrong > made.judged.scripts / 2
    assert {"K-33", "K-36", "K-53"} <= {*made.not_judged}
    assert "almost nothing could be judged" in to_html(made)
    assert json.loads(to_json(made))["headline"] == first


def test_a_kernel_that_refuses_everything_is_green_nowhere() -> None:
    """Not one rule passes in JUnit or on the page: it fails, is an error, or cannot be seen."""
    made = verified(RefusesEverything)
    root = ET.fromstring(to_junit(made))  # noqa: S314 - our own document
    cases = root.findall("testsuite[@name='turnlock.rules']/testcase")
    ends = {str(case.get("name")).partition(" ")[0]: {part.tag for part in case} for case in cases}

    assert [name for name, tags in ends.items() if not tags & {"failure", "error", "skipped"}] == []
    assert "error" in ends["K-33"]
    assert "<td class='status good'>" not in to_html(made)
    not_judged = json.loads(to_json(made))["not_judged"]
    assert not_judged["K-33"].startswith("not judged: each of the ")
    assert "  K-33 not judged: each of the " in to_text(made)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"reason": None}, "tick was accepted with a reason"),
        ({"accepted": False, "reason": ""}, "tick was refused as an empty text and not accepted"),
    ],
)
def test_what_was_wrong_is_no_contradiction(wrong: Raw, told: str) -> None:
    """An acceptance that has a reason is still one, and an empty reason is seen."""
    right: Raw = {"accepted": True, "facts": [], "effects": []}
    tick: Raw = {"type": "tick", "now": 0.0}
    finding = accused("sample", {"run_id": "r"}, (tick,), right, {**right, **wrong})
    assert in_short(finding) == told


@pytest.mark.parametrize("kind", [RefusesClaims, AnswersOnce])
def test_rules_behind_a_wrong_answer_are_not_judged(kind: type[Right]) -> None:
    """Most could be judged: the line says which could not, and blames what stood in the way."""
    made = verified(kind)

    assert made.verdict is Verdict.VIOLATED
    assert "almost" not in headline(made)
    assert "was refused as late and not accepted, in " in headline(made)
    assert made.not_judged["K-36"] > 0
    assert made.judged.rules["K-21"] > 1_000


def test_the_steps_of_a_right_kernel_are_all_judged() -> None:
    """The control: nothing is left, and every step that exercises a rule judges it."""
    made = verified(Right)

    assert made.verdict is Verdict.HOLDS
    assert made.not_judged == {}
    assert made.judged.wrong == made.judged.broken == {}
    assert made.judged.rules == made.coverage.rules
    assert headline(made).startswith(f"HOLDS: {len(VISIBLE)} of {len(VISIBLE)} rules were judged")


def test_what_was_skipped_is_counted_apart() -> None:
    made = verified(Right)

    skipped, passed = (", ".join(made.techniques[how]) for how in ("skipped", "passed"))
    assert {"closure", "rules", "recovery", "journal"} <= {*made.techniques["skipped"]}
    assert headline(made).endswith(f"; passed: {passed}; skipped: {skipped}")
    assert json.loads(to_json(made))["techniques"]["skipped"] == [*made.techniques["skipped"]]
    nothing = report(*(one for one in made.results if one.status is Status.SKIPPED))
    assert (nothing.verdict, nothing.exit_status) == (Verdict.NOT_DONE, 3)
    assert headline(nothing).startswith("NOT DONE: skipped: ")


@pytest.mark.parametrize("profile", [Profile.DEV, *([Profile.CI] if DEEP else ())])
def test_every_visible_rule_is_judged_on_our_kernel(profile: Profile) -> None:
    """By the sample alone, in each profile: that for the night begins with the scripts of ci."""
    results, _ = verify(None, profile=profile, seed=0, progress=lambda _: None, only=("sample",))

    assert report(*results).not_judged == {}
    assert min(results[0].judged.rules.values()) > 0


def test_a_baseline_does_not_hide_what_could_not_be_judged() -> None:
    """All that is wrong is known: and yet most rules were judged by nothing. Status 3, not 0."""
    made = verified(RefusesEverything)
    known = attrs.evolve(made, known=tuple(one.fingerprint for one in made.violations))
    assert (known.verdict, known.exit_status) == (Verdict.NOT_DONE, 3)

    fewer = verified(Right)
    assert attrs.evolve(fewer, known=("0" * 16,)).verdict is Verdict.HOLDS

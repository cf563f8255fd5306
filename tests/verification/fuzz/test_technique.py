"""The techniques of fuzzing: what they find, what they say, and what they leave alone."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from turnlock.models.reasons import Reason
from turnlock.verification.errors import NotDeterministic
from turnlock.verification.findings import NO_ANSWER, Profile, Status
from turnlock.verification.fuzz import shorten
from turnlock.verification.fuzz.differences import alike, expected_receipts
from turnlock.verification.fuzz.guided import MAX_STEPS
from turnlock.verification.fuzz.technique import check, check_rules, first_failure, guided_search
from turnlock.verification.subjects.in_process import InProcess
from turnlock.verification.subjects.kernel import KernelSubject, kernel_driver
from turnlock.verification.subjects.subject import Raw, Script

from .wrong import Forgetful, LosesEffects, TruthIsOne, Wavering, WrongReason


def silent(_: str) -> None:
    pass


def test_the_kernel_holds() -> None:
    """No false alarm; figures and reasons are those of what was played."""
    lines: list[str] = []

    result = check(kernel_driver(), profile=Profile.DEV, progress=lines.append)

    assert result.status is Status.HOLDS
    assert result.findings == ()
    assert result.technique == "guided"
    assert result.figures["steps"] == MAX_STEPS * int(result.figures["scripts"])
    assert set(result.coverage.reasons) == set(Reason)
    assert lines[-1] == f"{result.figures['scripts']} scripts, {result.figures['steps']} steps"
    assert "no proof" in result.guarantee


def test_a_wrong_system_is_violated_by_one_short_finding() -> None:
    result = check(InProcess(WrongReason, name="wrong"), profile=Profile.DEV, progress=silent)

    (finding,) = result.findings
    assert result.status is Status.VIOLATED
    assert len(finding.script) == 4
    assert finding.minimal
    assert (finding.expected["reason"], finding.got["reason"]) == (
        "duplicate",
        "conflicting_duplicate",
    )
    receipts = expected_receipts(finding.run, finding.script)
    assert alike(receipts[-1], finding.expected)


def test_the_same_seed_plays_the_same_scripts() -> None:
    """And another seed others: a failure is repeated by its seed."""
    one, again, other = (
        first_failure(InProcess(TruthIsOne, name="x"), seed=seed, examples=99) for seed in (5, 5, 6)
    )

    assert one == again
    assert one != other


def test_without_recover_nobody_recovers() -> None:
    """A system that does not declare it is never asked; the rest is compared all the same."""
    searches = list(guided_search(InProcess(Forgetful, name="x"), seed=0, examples=60))

    assert searches[-1].finding is None
    assert 0 < searches[-1].steps < MAX_STEPS * searches[-1].scripts


def test_a_system_that_wavers_is_not_blamed() -> None:
    """What fails once and never again is told as such, and is no violation."""
    Wavering.erred = False

    with pytest.raises(NotDeterministic):
        check(InProcess(Wavering, name="wavering"), profile=Profile.DEV, progress=silent)


class Batches(InProcess):
    """Notes how many scripts each request would carry."""

    def __init__(self) -> None:
        super().__init__(KernelSubject, name="batches")
        self.sizes: list[int] = []

    def play(self, run: Raw, scripts: Sequence[Script]) -> list[list[Raw]]:
        self.sizes.append(len(scripts))
        return super().play(run, scripts)


def test_scripts_are_played_in_growing_batches() -> None:
    """The first failure is found early, and a pipe is not asked for each script."""
    driver = Batches()
    (*_, search) = guided_search(driver, seed=0, examples=900, steps=2)

    assert driver.sizes[0] == 1
    assert max(driver.sizes) == 64
    assert sum(driver.sizes) == search.scripts == 900


def test_the_rules_hold_for_the_kernel_and_find_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The machine as a technique: repeatable, and its finding is shortened, in any time."""
    monkeypatch.setattr(shorten, "SECONDS", math.inf)
    holds = check_rules(profile=Profile.DEV, progress=silent)
    violated = check_rules(LosesEffects, profile=Profile.DEV, progress=silent, seed=1)

    assert holds.status is Status.HOLDS
    assert int(holds.figures["steps"]) > 100
    assert violated.status is Status.VIOLATED
    assert len(violated.findings[0].script) == 2
    again = check_rules(LosesEffects, profile=Profile.DEV, progress=silent, seed=1)
    assert again.findings == violated.findings


class Crashing(KernelSubject):
    """Raises where it should answer."""

    def receive(self, delivery: Raw) -> Raw:
        if delivery["type"] == "interrupt":
            raise ZeroDivisionError
        return super().receive(delivery)


def test_a_system_that_crashes_has_failed() -> None:
    """Neither a violation nor a failure of the kit (exit status 5): with its script, shortened."""
    (finding,) = check_rules(Crashing, profile=Profile.DEV, progress=silent).findings

    assert finding.rule == NO_ANSWER
    assert [step["type"] for step in finding.script] == ["interrupt"]
    assert "raised ZeroDivisionError" in finding.got

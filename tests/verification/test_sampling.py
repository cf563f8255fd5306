"""The sample: it exercises every rule, keeps one violation of each, and finds the unsteady."""

from __future__ import annotations

import itertools
from typing import Any

import attrs
import pytest

from turnlock.verification.errors import NotDeterministic, SubjectFailed
from turnlock.verification.findings import Profile, Result, Status
from turnlock.verification.judging import judging
from turnlock.verification.oracle.oracle import Oracle
from turnlock.verification.rulebook import RULES
from turnlock.verification.sampling import check
from turnlock.verification.subjects.in_process import InProcess
from turnlock.verification.subjects.subject import Capability

Raw = dict[str, Any]

REPLAYS = itertools.count()


class Right:
    """The oracle, without recovery."""

    capabilities: frozenset[Capability] = frozenset()

    def reset(self, run: Raw) -> None:
        self.oracle = Oracle(run)

    def receive(self, delivery: Raw) -> Raw:
        assert delivery["type"] != "recover"
        return self.oracle.receive(delivery)


class WrongTwice(Right):
    """Starts what was started, and forgets to ask for continuations: K-33 and K-52."""

    def receive(self, delivery: Raw) -> Raw:
        receipt = super().receive(delivery)
        if receipt.get("reason") == "already_started" and delivery["type"] == "claim":
            del receipt["reason"]
            receipt["accepted"] = True
        receipt["effects"] = [one for one in receipt["effects"] if one["type"] != "continue"]
        return receipt


class Unsteady(Right):
    """Counts how often it was asked, over all runs."""

    def receive(self, delivery: Raw) -> Raw:
        return {**super().receive(delivery), "asked": next(REPLAYS)}


class Crashing(Right):
    """Raises at its first tick."""

    def receive(self, delivery: Raw) -> Raw:
        if delivery["type"] == "tick":
            raise RuntimeError("out of memory")
        return super().receive(delivery)


def checked(kind: type[Right], **more: Any) -> Result:
    driver = InProcess(kind, name="theirs")
    with judging() as tally:
        result = check(driver, profile=Profile.DEV, progress=lambda _: None, **more)
    coverage = attrs.evolve(result.coverage, rules=tally.reached)
    return attrs.evolve(result, judged=tally.result, coverage=coverage)


def test_a_right_system_holds_and_every_rule_is_judged() -> None:
    """Also one that declares no recovery: then it is never asked to."""
    result = checked(Right)
    assert result.status is Status.HOLDS
    assert result.findings == ()
    assert {*result.judged.rules} == {rule.id for rule in RULES if rule.visible}
    assert all(result.judged.rules.values())
    assert result.coverage.rules == result.judged.rules


def test_each_broken_rule_keeps_its_own_short_script() -> None:
    """One violation hides no other: a claim twice, a turn that settles, and hardly a step more."""
    result = checked(WrongTwice)
    found = {finding.rule: finding for finding in result.findings}
    assert {"K-33", "K-52"} <= set(found)
    assert len(found["K-33"].script) <= 4
    assert len(found["K-52"].script) <= 4
    assert result.status is Status.VIOLATED


def test_the_seed_decides_what_is_played() -> None:
    figures = [dict(checked(Right, seed=seed).coverage.reasons) for seed in (1, 1, 2)]
    assert figures[0] == figures[1] != figures[2]


def test_a_system_that_answers_in_two_ways_is_not_blamed() -> None:
    with pytest.raises(NotDeterministic, match=r"answered in two ways, first at step 1") as told:
        checked(Unsteady)
    shown = told.value.shown
    assert shown is not None
    assert len(shown.script) == 1
    assert shown.expected["asked"] != shown.got["asked"]


def test_a_system_that_raises_has_failed_with_the_script() -> None:
    """It is the subject's failure, not the kit's; the script is there to repeat it."""
    with pytest.raises(
        SubjectFailed, match=r"theirs raised RuntimeError \(out of memory\)"
    ) as told:
        checked(Crashing)
    assert told.value.script

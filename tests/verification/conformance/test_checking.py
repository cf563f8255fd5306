"""The suites held against right and wrong systems, as black boxes."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from turnlock.verification.alphabet import approving
from turnlock.verification.alphabet.slice import Slice
from turnlock.verification.alphabet.slices import DEV
from turnlock.verification.conformance import playing, technique
from turnlock.verification.conformance.playing import check_determinism
from turnlock.verification.conformance.suite import Suite, suite
from turnlock.verification.conformance.technique import check, first_failure, suites
from turnlock.verification.conformance.walks import Step
from turnlock.verification.errors import NotDeterministic
from turnlock.verification.findings import NO_ANSWER, Profile, Status
from turnlock.verification.subjects.in_process import InProcess
from turnlock.verification.subjects.kernel import KernelSubject, kernel_driver
from turnlock.verification.subjects.subject import Capability, Driver, Subject
from turnlock.verification.subjects.watched import Streaming

from ..depth import DEEP
from ..oracle_subject import OracleSubject
from .small import SMALL

Raw = dict[str, Any]


def in_process(make: Callable[[], Subject]) -> InProcess:
    """A driver of subjects made so."""
    return InProcess(make, name="subject")


def told(_: str) -> None:
    """Progress that nobody reads."""


@pytest.fixture(scope="module")
def dev() -> list[Suite]:
    """The suites of the dev profile, generated once."""
    return list(suites(Profile.DEV))


class Without(KernelSubject):
    """A right kernel that declares nothing."""

    capabilities = frozenset()


class SettledTwice(KernelSubject):
    """Takes a report of another turn for one of the active one."""

    def receive(self, delivery: Raw) -> Raw:
        if delivery["type"] == "report":
            delivery = {name: value for name, value in delivery.items() if name != "turn_id"}
        return super().receive(delivery)


class TrueIsOne(KernelSubject):
    """Writes 1 where true was reported: `==` does not see it."""

    def receive(self, delivery: Raw) -> Raw:
        if delivery.get("result") is True:
            delivery = {**delivery, "result": 1}
        return super().receive(delivery)


class Wavering(KernelSubject):
    """Counts what it is told over all runs, and now and then forgets an effect."""

    told = 0

    def receive(self, delivery: Raw) -> Raw:
        Wavering.told += 1
        receipt = super().receive(delivery)
        return {**receipt, "effects": []} if Wavering.told % 7 == 0 else receipt


class CrashesOnRecovery(KernelSubject):
    """Cannot recover once it has accepted a second decision."""

    def receive(self, delivery: Raw) -> Raw:
        receipt = super().receive(delivery)
        if receipt.get("reason") == "already_decided":
            self._spoilt = True
            return {"accepted": True, "facts": [], "effects": []}
        return receipt

    def recover(self) -> Raw:
        if getattr(self, "_spoilt", False):
            raise RuntimeError("the journal makes no sense")
        return super().recover()


class Crashes(KernelSubject):
    """Falls over an interrupt."""

    def receive(self, delivery: Raw) -> Raw:
        if delivery["type"] == "interrupt":
            raise RuntimeError("no interrupts here")
        return super().receive(delivery)


@pytest.mark.parametrize(
    ("make", "parts"),
    [(kernel_driver, DEV), (partial(in_process, OracleSubject), DEV if DEEP else DEV[1:2])],
    ids=["kernel", "oracle"],
)
def test_what_is_right_passes(
    make: Callable[[], Driver], parts: tuple[Slice, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our kernel and the oracle itself: no finding, and every test was played."""
    monkeypatch.setattr(technique, "DEV", parts)

    result = check(make(), profile=Profile.DEV, progress=told)

    assert result.findings == ()
    assert result.status is Status.HOLDS
    assert result.figures["slices"] == len(parts)
    assert result.figures["k"] == 0
    assert all(part.name in result.guarantee for part in parts)
    assert "nothing about interactions outside" in result.guarantee


def test_what_does_not_declare_recovery_is_not_asked_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The symbol is left out of every slice, and the guarantee says so."""
    monkeypatch.setattr(technique, "DEV", DEV[1:2])

    result = check(in_process(Without), profile=Profile.DEV, progress=told)

    assert result.status is Status.HOLDS
    assert result.figures["symbols"] == len(DEV[1].symbols) - 1
    assert "does not declare recovery" in result.guarantee


def test_a_fault_is_told_with_a_minimal_script(monkeypatch: pytest.MonkeyPatch) -> None:
    """Open, and report to another turn: two steps, and neither can go."""
    monkeypatch.setattr(technique, "DEV", DEV[:1])

    result = check(in_process(SettledTwice), profile=Profile.DEV, progress=told)

    assert result.status is Status.VIOLATED
    (finding,) = result.findings
    assert finding.minimal
    assert finding.rule == "K-20"
    assert [step["type"] for step in finding.script] == ["open_turn", "report"]


def test_payloads_are_told_apart_by_their_text(dev: list[Suite]) -> None:
    """A result of 1 where true was reported is found, though Python calls them equal."""
    finding = first_failure(in_process(TrueIsOne), dev)

    assert finding is not None
    assert finding.expected == finding.got
    assert [fact["result"] for fact in finding.expected["facts"]] == [True]
    assert repr(finding.expected) != repr(finding.got)


def test_the_first_failure_stops_the_search(dev: list[Suite]) -> None:
    """None where all suites pass; else the shortest of the first batch that has one."""
    assert first_failure(kernel_driver(), dev[1:2]) is None  # the whole of dev: by `check`, above

    finding = first_failure(in_process(SettledTwice), dev)

    assert finding is not None
    assert len(finding.script) <= 5


def test_a_system_that_is_not_deterministic_is_told_as_such(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is not blamed for a rule: the script that it answered in two ways is named."""
    monkeypatch.setattr(technique, "DEV", DEV[:1])

    with pytest.raises(NotDeterministic, match="answered in two ways, first at step"):
        check(in_process(Wavering), profile=Profile.DEV, progress=told)


def test_a_deterministic_system_passes_the_sample(dev: list[Suite]) -> None:
    """No false alarm: our kernel answers the sample twice alike."""
    check_determinism(kernel_driver(), dev[0])


def test_what_was_wrong_before_a_crash_is_the_finding(dev: list[Suite]) -> None:
    """A system that fails because it took in what it must not is blamed for that."""
    finding = first_failure(in_process(CrashesOnRecovery), dev)

    assert finding is not None
    assert finding.expected["reason"] == "already_decided"


def test_what_was_wrong_before_a_crash_is_told_by_a_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the sample nor the shortening, which crash too, may lose the finding."""
    monkeypatch.setattr(technique, "DEV", (approving.DECISIONS,))

    result = check(in_process(CrashesOnRecovery), profile=Profile.DEV, progress=told)

    assert [finding.expected["reason"] for finding in result.findings] == ["already_decided"]


def test_a_crash_is_told_as_such(dev: list[Suite]) -> None:
    """It failed before it answered anything otherwise: no rule is blamed for it."""
    finding = first_failure(in_process(Crashes), dev)

    assert finding is not None
    assert finding.rule == NO_ANSWER
    assert finding.script[-1]["type"] == "interrupt"
    assert "no interrupts here" in finding.got


class Ahead:
    """A driver that plays batches as a pipe does: some are taken before the first is yielded."""

    name = "ahead"

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self.capabilities: frozenset[Capability] = driver.capabilities

    def play(self, run: Raw, scripts: Any) -> list[list[Raw]]:
        return self._driver.play(run, scripts)

    def play_each(self, run: Raw, batches: Any) -> Any:
        yield from [self._driver.play(run, batch) for batch in list(batches)]

    def close(self) -> None:
        self._driver.close()


@pytest.mark.parametrize("make", [KernelSubject, SettledTwice])
def test_a_driver_that_works_ahead_comes_to_the_same_verdict(
    make: Callable[[], Subject], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers are held against the tests that they answer, however far ahead the driver is."""
    monkeypatch.setattr(technique, "DEV", DEV[1:2])
    ahead = Ahead(in_process(make))

    assert isinstance(ahead, Streaming)
    assert (
        check(ahead, profile=Profile.DEV, progress=told).findings
        == check(in_process(make), profile=Profile.DEV, progress=told).findings
    )


def test_at_night_one_more_state_is_granted_where_that_is_feasible(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """k is 1 up to the named bound of steps, else 0, and the figures name what was left out."""
    monkeypatch.setattr(technique, "SLICES", (SMALL, DEV[1]))
    smaller, larger = (suite(part, k=0) for part in (SMALL, DEV[1]))
    monkeypatch.setattr(technique, "MAX_STEPS", smaller.steps_of_next_k)

    made = list(suites(Profile.NIGHTLY))
    result = check(kernel_driver(), profile=Profile.NIGHTLY, progress=told)

    assert [one.k for one in made] == [1, 0]
    assert result.status is Status.HOLDS
    assert result.figures["k"] == 1
    assert result.figures["slices with k = 0 only"] == larger.part.name
    assert result.figures["steps"] == sum(one.steps for one in made)
    assert smaller.steps_of_next_k < larger.steps_of_next_k
    assert made[0].steps == pytest.approx(smaller.steps_of_next_k, rel=0.05)


# ------------------------------------------------------------------------- compared once, and whole


@pytest.fixture(scope="module")
def answered() -> tuple[list[list[Step]], list[list[Raw]]]:
    """The tests of a suite, and right answers, of which those of one step are one object."""
    tests = [*suite(SMALL, k=0).tests()][:60]
    return tests, [[step.receipt for step in test] for test in tests]


def test_a_wrong_answer_is_wrong_wherever_it_stands(
    answered: tuple[list[list[Step]], list[list[Raw]]],
) -> None:
    """Also at a step that another test was answered rightly at, by another object."""
    tests, right = answered
    assert playing._are_right(tests, right) == [True] * len(tests)
    for place, test in enumerate(tests):
        for step in range(len(test)):
            wrong = [list(receipts) for receipts in right]
            wrong[place][step] = {**wrong[place][step], "accepted": None}
            found = playing._are_right(tests, wrong)
            assert found == [number != place for number in range(len(tests))]


def test_too_few_answers_are_not_right_and_too_many_neither(
    answered: tuple[list[list[Step]], list[list[Raw]]],
) -> None:
    """As after a crash, which leaves those before it."""
    (test, *_), (receipts, *_) = answered
    for wrong in ([], receipts[:-1], [*receipts, receipts[-1]]):
        assert playing._are_right([test], [wrong]) == [False]


def test_what_is_shared_is_compared_once(
    answered: tuple[list[list[Step]], list[list[Raw]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And an equal receipt of its own is compared: only the very same one is known."""
    tests, right = answered
    compared: list[Step] = []

    def noted(step: Step, receipt: Raw) -> bool:
        compared.append(step)
        return receipt == step.receipt

    monkeypatch.setattr(playing, "_is_right", noted)
    playing._are_right(tests, right)
    steps = [step for test in tests for step in test]
    assert len(compared) == len({*compared}) == len({*steps}) < len(steps) / 2
    compared.clear()
    playing._are_right(tests, [[dict(receipt) for receipt in receipts] for receipts in right])
    assert len(compared) == len(steps)

"""What scripts share is played once: that changes no answer, no finding, and no failure."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, Self

import attrs
import pytest

from turnlock.verification.alphabet.slices import DEV
from turnlock.verification.conformance import playing
from turnlock.verification.conformance import technique as conformance
from turnlock.verification.conformance.playing import check_determinism, failures
from turnlock.verification.conformance.suite import Suite, distinct_steps, suite
from turnlock.verification.errors import NotDeterministic, SubjectFailed
from turnlock.verification.findings import NO_ANSWER, Profile, Result
from turnlock.verification.fuzz.guided import STEP_BYTES, follow
from turnlock.verification.fuzz.shorten import shortened
from turnlock.verification.judging import judging
from turnlock.verification.subjects import sharing
from turnlock.verification.subjects.in_process import InProcess
from turnlock.verification.subjects.kernel import KernelSubject, kernel_driver, kernel_subjects
from turnlock.verification.subjects.subject import Driver, Raw, Script
from turnlock.verification.subjects.watched import watched

from ...catalogue.bugs import CATALOGUE
from ..depth import DEEP
from ..oracle_subject import OracleSubject

RUN: Raw = {"run_id": "r"}
BUGS = {bug.name: bug for bug in CATALOGUE if not bug.edge}
SAMPLE = (
    "looked up, kept young",
    "a duplicate counts",
    "approve all or crash",
    "commits are not marked",
    "woken late",
)


class Hears:
    """Answers with all that it was told: whoever shares wrongly hears of it."""

    capabilities = frozenset[Any]()
    made = copies = asked = 0

    def __init__(self) -> None:
        self.told: list[Any] = []

    def reset(self, run: Raw) -> None:
        Hears.made += 1

    def receive(self, delivery: Raw) -> Raw:
        Hears.asked += 1
        if delivery.get("crash"):
            raise RuntimeError("out of cheese")
        self.told.append(delivery["n"])
        return {"accepted": True, "facts": [], "effects": [], "told": self.told.copy()}

    def clone(self) -> Self:
        Hears.copies += 1
        twin = type(self)()
        twin.told = self.told.copy()
        return twin


class Aliases(Hears):
    """Its copies hear what it hears."""

    def clone(self) -> Self:
        twin = type(self)()
        twin.told = self.told
        return twin


class Alone:
    """A driver that plays each script on a fresh run: as it is with every stranger."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self.name, self.capabilities = driver.name, driver.capabilities

    def play(self, run: Raw, scripts: Sequence[Script]) -> list[list[Raw]]:
        return self._driver.play(run, scripts)

    def close(self) -> None:
        """There is nothing to let go of."""


def shared(make: Callable[[], Any], scripts: Sequence[Script]) -> list[list[Raw]]:
    (answers,) = InProcess(make, name="ours", trusted=True).play_each(RUN, [scripts])
    return answers


def alone(make: Callable[[], Any], scripts: Sequence[Script]) -> list[list[Raw]]:
    return InProcess(make, name="ours", trusted=True).play(RUN, scripts)


def drawn(number: int, *, ordered: bool) -> list[Script]:
    """Scripts over three deliveries, some the same, some empty, one the beginning of another."""
    draws = random.Random(number)
    letters: list[Raw] = [{"type": "tick", "n": n} for n in range(3)]
    words = [bytes(draws.choices(range(3), k=draws.randrange(6))) for _ in range(25)]
    return [[letters[n] for n in word] for word in (sorted(words) if ordered else words)]


# ------------------------------------------------------------------- what is played


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("number", range(20))
def test_each_script_is_answered_as_if_it_were_alone(number: int, *, ordered: bool) -> None:
    scripts = drawn(number, ordered=ordered)
    assert shared(Hears, scripts) == alone(Hears, scripts)


def test_what_the_script_before_has_played_is_played_once() -> None:
    """One copy for each script that goes on from another; in order, no beginning comes twice."""
    scripts = drawn(1, ordered=True)
    Hears.made = Hears.copies = Hears.asked = 0
    shared(Hears, scripts)

    beginnings = {tuple(it["n"] for it in script[:n]) for script in scripts for n in range(7)}
    joined = sum(bool(sharing.shared(one, other)) for one, other in pairwise(scripts))
    assert Hears.asked == len(beginnings) - 1  # the empty one
    assert (Hears.copies, Hears.made) == (joined, len(scripts) - joined)
    assert Hears.asked < sum(map(len, scripts)) / 2
    words = [bytes(it["n"] for it in script) for script in scripts]
    assert distinct_steps(words) == Hears.asked


def test_equal_deliveries_are_not_shared() -> None:
    """A result of 1 is one of true to `==`."""
    one, true = {"type": "report", "n": 1}, {"type": "report", "n": True}
    assert [[*map(str, it["told"])] for (it,) in shared(Hears, [[one], [true]])] == [
        ["1"],
        ["True"],
    ]
    assert sharing.shared([one], [true]) == 0


def test_copies_that_hear_each_other_are_found() -> None:
    """The negative control: a wrong clone answers otherwise than a fresh run."""
    for number in range(20):
        scripts = drawn(number, ordered=True)
        assert shared(Aliases, scripts) != alone(Aliases, scripts)


def test_a_stranger_is_never_copied() -> None:
    """Not even one who declares it: what his copies forget must not be forgotten here."""

    class Forbids(OracleSubject):
        def clone(self) -> Self:
            raise AssertionError("nobody asked")

    driver = InProcess(Forbids, name="theirs")
    tick: Raw = {"type": "tick", "now": 0.0}
    (played,) = driver.play_each(RUN, [[[tick, tick], [tick]]])
    assert [*map(len, played)] == [2, 1]


def test_a_system_without_copies_is_played_alone() -> None:
    class Without(Hears):
        clone = None  # type: ignore[assignment]

    scripts = drawn(2, ordered=True)
    Hears.copies = 0
    assert shared(Without, scripts) == alone(Hears, scripts)
    assert Hears.copies == 0


# ------------------------------------------------------------------- what fails


@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_a_crash_keeps_its_script_and_its_step(place: int) -> None:
    """In what is shared, behind a parting, and in a copy: as when each is played alone."""
    a, b, c = [{"type": "tick", "n": n} for n in range(3)]
    bad: Raw = {"type": "tick", "crash": True}
    scripts = [[a, a, b], [a, a, c], [a, b], [c]]
    scripts[place].insert(1, bad)
    failed: list[SubjectFailed] = []
    for player in (shared, alone):
        with pytest.raises(SubjectFailed) as raised:
            player(Hears, scripts)
        failed.append(raised.value)

    assert failed[0].script is failed[1].script is scripts[place]
    assert (str(failed[0]), failed[0].how) == (str(failed[1]), failed[1].how)
    driver = InProcess(Hears, name="ours", trusted=True)
    (answers,) = watched(driver).play_each(RUN, [scripts])
    assert answers == watched(Alone(driver)).play(RUN, scripts)
    assert NO_ANSWER in answers[place][-1]


# ------------------------------------------------------------------- our kernel, right and wrong


@cache
def suites() -> tuple[Suite, ...]:
    """Those that the reports are compared on: the first tests of slices of dev."""
    made = [suite(part, k=0) for part in (DEV if DEEP else (DEV[0], DEV[3], DEV[-1]))]
    return tuple(attrs.evolve(one, words=one.words[:300]) for one in made)


def told(driver: Driver) -> list[Any]:
    """All findings of the suites in their order, with all that was counted; and the shortest."""
    with judging() as tally:
        found = [
            finding
            for part in suites()
            for differing in failures(driver, part, part.batches(200))
            for finding in differing
        ]
    short = [shortened(found[0], driver, plays=50)] if found else []
    return [found, short, tally.result]


@pytest.mark.parametrize("name", BUGS if DEEP else SAMPLE)
def test_a_bug_is_told_as_without_sharing(name: str) -> None:
    """The same findings, shrunk to the same, and as many steps judged by each rule."""
    with BUGS[name].planted():
        together = told(kernel_driver())
        assert together == told(Alone(kernel_driver()))
    assert DEEP or together[0]


def test_without_a_second_look_a_bug_would_be_told_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The negative control: this one changes in place what copies share, and errs elsewhere."""

    def as_it_is(*given: Any) -> Any:
        return given[-1]

    monkeypatch.setattr(playing, "_alone", as_it_is)
    with BUGS[SAMPLE[0]].planted():
        assert told(kernel_driver()) != told(Alone(kernel_driver()))


def test_our_kernel_holds_as_without_sharing() -> None:
    """And the steps that tests share are judged for each of them."""
    together = told(kernel_driver())

    assert together == told(Alone(kernel_driver()))
    assert together[0] == []
    judged = together[2]
    assert judged.steps == sum(part.steps for part in suites())
    assert judged.steps > 1.5 * sum(distinct_steps(part.words) for part in suites())


def test_reports_say_the_same_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole results of the technique, but for how long it took."""
    monkeypatch.setattr(conformance, "DEV", DEV if DEEP else DEV[:1])

    def result(driver: Driver) -> Result:
        made = conformance.check(driver, profile=Profile.DEV, progress=lambda _: None)
        return attrs.evolve(made, seconds=0.0, figures={**made.figures, "steps_per_second": 0})

    together = result(kernel_driver())
    assert together == result(Alone(kernel_driver()))
    parts = conformance.suites(Profile.DEV)
    assert together.figures["distinct_steps"] == sum(distinct_steps(it.words) for it in parts)


class SharesItsJournal(KernelSubject):
    """Its copies write to the journal of the original."""

    def clone(self) -> Self:
        twin = super().clone()
        twin._journal = self._journal
        return twin


class SharesItsState(KernelSubject):
    """Its copies go on from the very state of the original."""

    def clone(self) -> Self:
        twin = super().clone()
        twin._kernel = self._kernel
        return twin


class Wavers(KernelSubject):
    """Counts what it is told over all runs, and now and then forgets an effect."""

    heard = 0

    def receive(self, delivery: Raw) -> Raw:
        Wavers.heard += 1
        receipt = super().receive(delivery)
        return {**receipt, "effects": []} if Wavers.heard % 7 == 0 else receipt


@pytest.mark.parametrize("kind", [SharesItsJournal, SharesItsState])
def test_a_wrong_copy_of_our_kernel_goes_red(kind: type[KernelSubject]) -> None:
    """The negative control: a crash, or two answers to one script; and alone it is right."""
    driver = InProcess(kernel_subjects(kind), name="turnlock", trusted=True)

    try:
        (rules,) = {finding.rule for finding in told(driver)[0]}
    except NotDeterministic:
        rules = NO_ANSWER
    assert rules == NO_ANSWER
    assert told(Alone(driver))[0] == []


def test_two_answers_to_one_script_are_found_all_the_same() -> None:
    """What is asked twice, to see whether it is steady, is played twice."""
    driver = InProcess(kernel_subjects(Wavers), name="turnlock", trusted=True)
    with pytest.raises(NotDeterministic):
        check_determinism(driver, suites()[0])


@pytest.mark.parametrize("number", range(6))
def test_a_copy_of_our_kernel_shares_nothing_that_changes(number: int) -> None:
    """Left behind at each step, it later answers the rest, and recovers, like the original."""
    decoded = follow(random.Random(number).randbytes(1 + 40 * STEP_BYTES))
    subject = KernelSubject()
    subject.reset(decoded.run)
    left: list[KernelSubject] = []
    for step in decoded.script:
        left.append(subject.clone())
        answered(subject, step)
    for at, copy in enumerate(left):
        rest = [answered(copy, step) for step in decoded.script[at:]]
        assert rest == decoded.expected[at:]
        assert copy.digest() == subject.digest()
        assert copy.recover() == subject.clone().recover()


def answered(subject: KernelSubject, step: Raw) -> Raw:
    return subject.recover() if step["type"] == "recover" else subject.receive(step)

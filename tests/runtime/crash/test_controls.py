"""Negative controls: whatever is switched off, the checks of the crash tests go red."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs
import pytest

from turnlock import Fact
from turnlock.models.facts import ContinuationTaken, ToolExecutionSucceeded
from turnlock.models.record import changed
from turnlock.runtime import dispatcher, ownership, writer
from turnlock.runtime.actor import Actor
from turnlock.runtime.claiming import Reservations
from turnlock.runtime.executions import Executions, RuntimeContext
from turnlock.runtime.in_doubt import InDoubtResolver
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.owners import Worker
from turnlock.runtime.tenure import Tenure
from turnlock.runtime.tools import performing

from ..faulty_journal import Fault, FaultyJournal
from . import controls
from .checks import violations
from .explore import Stage, haunted, played, points
from .usecase import UseCase
from .usecases import CHAINED, DOUBTS, FREE, LEASED, NOTED, RAISING
from .world import Slow, World

ASKED = DOUBTS[0]


def rules(wrong: Sequence[str]) -> set[str]:
    """Which checks went red."""
    return {one.partition(":")[0] for one in wrong}


def seen(rule: str, case: UseCase, stage: Stage | None = None) -> bool:
    """Whether this check goes red for a crash at some step."""
    steps = played(case, stage=stage).steps[0]
    return any(
        rule in rules(played(case, [step], stage=stage).wrong) for step in range(1, steps + 1)
    )


@pytest.mark.parametrize("slow", [False, True])
def test_without_the_fence_a_zombie_writes(slow: bool) -> None:
    """The journal takes whoever writes for the owner; what is on its way meanwhile, too."""
    stage = Stage(wrapped=lambda it: Slow(controls.Unfenced(it)) if slow else controls.Unfenced(it))
    plays = (
        haunted(LEASED, step, wakes_after=0.5, stage=stage) for step in range(1, points(LEASED) + 1)
    )

    assert any("one_writer" in rules(one.wrong) for one in plays)


@pytest.mark.parametrize("asks", ["never", "once, before the call is begun"])
def test_without_a_look_at_the_clock_a_zombie_starts(
    monkeypatch: pytest.MonkeyPatch, asks: str
) -> None:
    """Whoever stood still calls a tool of a run that another has; a look too early is no help."""
    if asks == "never":
        monkeypatch.setattr(Tenure, "holds", controls.holding)
    else:
        monkeypatch.setattr(performing, "begin", controls.unadmitted)
    plays = (haunted(LEASED, step, wakes_after=None) for step in range(1, points(LEASED) + 1))

    assert any("only_the_owner_starts" in rules(one.wrong) for one in plays)


def test_without_asking_who_owns_the_run_a_zombie_hands_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It goes on calling a callback that raises (D-19)."""
    monkeypatch.setattr(Tenure, "make_sure", controls.surely_held)

    plays = (haunted(RAISING, step, wakes_after=0.5) for step in range(1, points(RAISING) + 1))

    assert any("called continuation" in wrong for one in plays for wrong in one.wrong)


def test_without_the_claim_executions_are_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody need die to see that."""
    monkeypatch.setattr(Executions, "claims", controls.apart)
    monkeypatch.setattr(Executions, "_claimed", controls.unclaimed)

    assert "every_execution_is_recorded" in rules(played(FREE).wrong)


def test_starting_before_what_was_claimed_is_kept_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is reserved for a claim begins while opening and claim are on their way to the disk."""
    at_once = controls.started_at_once(Reservations.add)
    monkeypatch.setattr(Reservations, "add", at_once)

    stage = Stage(wrapped=Slow)
    assert "every_execution_is_recorded" in rules(played(FREE, stage=stage).wrong)


def test_starting_though_nobody_says_that_it_was_kept_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An append that failed for good, and a reservation that does not look at the journal."""
    monkeypatch.setattr(Reservations, "_holds", controls.always_ours)
    stage = Stage(journal=lambda: FaultyJournal(MemoryJournal(), {("append", 1): Fault.LOST}))

    assert "every_execution_is_recorded" in rules(played(FREE, stage=stage).wrong)


def test_effects_before_the_append_are_seen() -> None:
    """A journal that answers before it has kept anything: facts are shown, and then lost."""
    stage = Stage(wrapped=controls.Hasty)

    assert seen("nothing_lost", FREE, stage)
    assert seen("every_execution_is_recorded", FREE, stage)


def test_telling_before_the_append_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """An actor that tells its listeners what it is about to keep."""
    told = controls.told_before_kept(Actor._serve_batch)
    monkeypatch.setattr(Actor, "_serve_batch", told)

    assert "nothing_lost" in rules(played(FREE).wrong)


def test_noting_after_the_deliveries_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """What follows from a note would be kept without it."""
    monkeypatch.setattr(Actor, "hear", controls.heard_backwards(Actor.hear))

    assert "notes_stand_first" in rules(played(NOTED).wrong)


def test_claims_of_a_worker_that_nobody_knows_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it runs would be lost only once its lease is over."""
    monkeypatch.setattr(Worker, "make_known", controls.untold)

    assert "workers_tell_nothing" in rules(played(FREE).wrong)


def test_acknowledging_before_the_callback_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a crash between the two, the host is never told."""
    monkeypatch.setattr(dispatcher, "hand_over", controls.acknowledged_first)

    assert seen("one_continuation", CHAINED)


def test_a_retry_in_silence_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recovery that runs again what was running, under the same attempt, is what K-35 forbids."""
    made: list[Executions] = []
    begin = Executions.__init__

    def noted(self: Executions, runtime: RuntimeContext) -> None:
        begin(self, runtime)
        made.append(self)

    repeating = controls.Repeating(made)
    monkeypatch.setattr(Executions, "__init__", noted)
    monkeypatch.setattr(Executions, "claims", controls.apart)
    monkeypatch.setattr(Executions, "_claimed", controls.unclaimed_again(Executions._claimed))
    monkeypatch.setattr(InDoubtResolver, "lose_what_died", repeating.lose_what_died)

    assert seen("no_attempt_runs_twice", ASKED)


def test_a_replay_that_drops_a_fact_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next process knows less than the journal: it cannot go on, and that is seen."""
    monkeypatch.setattr(ownership, "fold_run", controls.without_the_last)
    monkeypatch.setattr(writer, "fold_run", controls.without_the_last)

    assert seen("settled", ASKED)


def _again(facts: list[Fact], kind: type[Fact]) -> None:
    """Have a fact happen a second time, at the end."""
    again = next(fact for fact in facts if isinstance(fact, kind))
    number = len(facts) + 1
    facts.append(changed(again, sequence=number, commit=number))


def _second_end(world: World) -> None:
    _again(world.memory._runs["r"].facts, ToolExecutionSucceeded)


def _second_continuation(world: World) -> None:
    _again(world.memory._runs["r"].facts, ContinuationTaken)


def _never_begun(world: World) -> None:
    world.begun.clear()


def _lost(world: World) -> None:
    facts = world.memory._runs["r"].facts
    facts[2] = changed(facts[2], at=facts[2].at + 0.5)


def _other_state(world: World) -> None:
    world.live["r"] = changed(world.live["r"], sequence=world.live["r"].sequence + 1)


def _told_twice_in_two_versions(world: World) -> None:
    world.heard.append(attrs.evolve(world.heard[0], results=()))


@pytest.mark.parametrize(
    ("doctor", "rule"),
    [
        (_second_end, "one_outcome"),
        (_second_end, "conforms"),
        (_never_begun, "one_outcome"),
        (_second_continuation, "one_continuation"),
        (_told_twice_in_two_versions, "one_continuation"),
        (_lost, "nothing_lost"),
        (_other_state, "replay_equals_live"),
    ],
)
def test_each_rule_can_be_broken(doctor: Callable[[World], None], rule: str) -> None:
    """A good world, changed in one place: that rule says so."""
    world = played(FREE).world
    assert violations(world, FREE.turns) == []

    doctor(world)

    assert rule in rules(violations(world, FREE.turns))

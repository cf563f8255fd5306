"""Whatever a process does, it can be killed there: nothing is lost, or done twice in silence."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from typing import Final

import pytest

from turnlock.models.facts import ExecutionInDoubt, ExecutionRetried, ToolExecutionStarted

from .depth import DEEP
from .explore import Played, Stage, cancelled, crashed_everywhere, played, points
from .usecase import UseCase
from .usecases import APPROVED, CHAINED, DOUBTS, FREE, INTERRUPTED, USE_CASES
from .world import Slow

CHAINS: Final = 200 if DEEP else 4
"""Plays of each use case in which several lives end, each drawn by its seed."""
SLOWLY: Final = USE_CASES if DEEP else (FREE, APPROVED, CHAINED, INTERRUPTED)
FEWEST: Final = 40
"""Steps that the shortest use case has at least: fewer, and the harness has gone blind."""
IN_ALL: Final = 1_700
"""Steps that all use cases have at least, 1,831 when this was written."""


@pytest.mark.parametrize("case", USE_CASES, ids=lambda case: case.name)
def test_crash_everywhere(case: UseCase) -> None:
    """At every resumption of every task, and around every write: the next process goes on."""
    plays = crashed_everywhere(case)

    assert _wrong(plays) == []
    assert len(plays) >= FEWEST
    places = {place for one in plays for place in one.deaths}
    assert {"before append", "after append", "Actor._serve"} < places
    assert any(len(one.world.heard) > len(case.turns) for one in plays) or "interrupt" in case.name
    print(f"{case.name}: {len(plays)} crash points")


@pytest.mark.parametrize("case", SLOWLY, ids=lambda case: case.name)
def test_crash_everywhere_on_a_slow_disk(case: UseCase) -> None:
    """What was asked for and claimed in one append (K-9) runs once, or is in doubt (K-33).

    A process dies while that is on its way, and once it is kept and nobody was told.
    """
    stage = Stage(wrapped=Slow)
    (steps,) = played(case, stage=stage).steps
    plays = [played(case, [step], stage=stage) for step in range(1, steps + 1)]

    assert _wrong(plays) == []
    assert any(map(_in_doubt_and_never_begun, plays)) or not _holds(plays[-1], ToolExecutionStarted)


@pytest.mark.parametrize("case", DOUBTS, ids=lambda case: case.name)
def test_crashes_bring_what_the_policies_are_for(case: UseCase) -> None:
    """Some crashes leave an execution in doubt, and most do not."""
    plays = crashed_everywhere(case)

    doubts = sum(_holds(one, ExecutionInDoubt) for one in plays)
    retried = sum(_holds(one, ExecutionRetried) for one in plays)
    assert 0 < doubts < len(plays)
    assert (retried == 0) is ("failed" in case.name)


@pytest.mark.parametrize("case", USE_CASES, ids=lambda case: case.name)
def test_crash_while_recovering_from_a_crash(case: UseCase) -> None:
    """Several crashes in a row, one of them in the recovery from the one before."""
    steps = points(case)
    plays: list[Played] = []
    for seed in range(CHAINS):
        draw = random.Random(f"{case.name} {seed}")
        dies_at = [draw.randint(1, steps), *(draw.randint(1, steps // 2) for _ in range(3))]
        plays.append(played(case, dies_at))

    assert _wrong(plays) == []
    assert max(len(one.deaths) for one in plays) > 2


@pytest.mark.parametrize("case", USE_CASES, ids=lambda case: case.name)
def test_cancelled_at_every_step(case: UseCase) -> None:
    """The host's own task is cancelled: its runtime ends cleanly, and the next one goes on."""
    plays = [cancelled(case, step) for step in range(1, points(case) + 1, 1 if DEEP else 4)]

    assert _wrong(plays) == []
    assert all(one.world.lives == 2 for one in plays)


def test_the_use_cases_have_many_steps() -> None:
    """Each is a crash point: this is how much "everywhere" is."""
    in_all = sum(map(points, USE_CASES))

    assert in_all >= IN_ALL
    print(f"{in_all} crash points in all")


def test_a_crash_leaves_nothing_running() -> None:
    """Control of the harness: after its death no step of a life is counted, and none acts."""
    (one,) = (played(USE_CASES[0], [30]),)

    assert one.steps[0] == 30
    assert len(one.deaths) == 1
    assert one.world.lives == 2


def _in_doubt_and_never_begun(one: Played) -> bool:
    """Whether an attempt is in doubt whose tool had not come to its first line."""
    begun = {(it.run_id, it.turn_id, it.invocation_id, it.attempt) for it in one.world.begun}
    doubts = [fact for fact in one.world.facts() if isinstance(fact, ExecutionInDoubt)]
    return any((it.run_id, it.turn_id, it.invocation_id, it.attempt) not in begun for it in doubts)


def _holds(one: Played, kind: type) -> bool:
    return any(isinstance(fact, kind) for fact in one.world.facts())


def _wrong(plays: Iterable[Played]) -> list[object]:
    """What is wrong, with where lives ended."""
    found = [(one.deaths, one.steps, one.wrong) for one in plays if one.wrong]
    return [*found[:3], f"{len(found)} in all"] if found else []


def test_steps_are_the_same_each_time() -> None:
    """A crash point means something only if the same play comes to it again."""
    counted = Counter(played(USE_CASES[0]).steps for _ in range(3))

    assert len(counted) == 1

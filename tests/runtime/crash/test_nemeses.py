"""Nemeses beyond the crash: clocks that are set, machines that sleep, and two things at once."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import cycle
from typing import Final

import pytest

from turnlock.models.facts import ToolExecutionFailed, ToolExecutionSucceeded

from .depth import DEEP
from .explore import Played, haunted, points, rivalled
from .machine import ClockNemesis
from .usecase import UseCase
from .usecases import FREE, LEASED, USE_CASES

DAY: Final = 86_400.0
CLOCKS: Final = (
    ClockNemesis(ahead=45.0),
    ClockNemesis(ahead=-45.0),
    ClockNemesis(ahead=DAY),
    ClockNemesis(ahead=-DAY),
    ClockNemesis(asleep=3_600.0),
    ClockNemesis(ahead=-45.0, asleep=3_600.0),
)
STRIDE: Final = 3 if DEEP else 14
"""Steps from one moment at which a clock goes wrong to the next."""
PAIRS: Final = 100 if DEEP else 3
"""Plays of each use case in which two things happen, drawn by their seeds."""


def wrong(plays: Iterable[Played]) -> Sequence[object]:
    return [(one.deaths, one.steps, one.wrong) for one in plays if one.wrong][:3]


def robbed(one: Played) -> bool:
    """Whether the second process took a run before the first had done all there was to do."""
    return any(
        each.taken and each.by == 2 and each.last < len(one.world.facts(each.run_id))
        for each in one.world.written
    )


def counted(one: Played) -> bool:
    """Whether whatever began was done once, and what it said itself is its outcome."""
    times = Counter((begun.run_id, begun.turn_id, begun.invocation_id) for begun in one.world.begun)
    said = {
        (run_id, fact.turn_id, fact.invocation_id): str(
            getattr(fact, "result", getattr(fact, "error", ""))
        )
        for run_id in one.world.memory._runs
        for fact in one.world.facts(run_id)
        if isinstance(fact, ToolExecutionSucceeded | ToolExecutionFailed)
    }
    own = (" done", "does not work", "cancelled")
    return set(times.values()) <= {1} and all(
        said[call].endswith(own) and said[call] != "was done" for call in times if call in said
    )


def moments(case: UseCase) -> Sequence[int]:
    return range(1, points(case) + 1, STRIDE)


@pytest.mark.parametrize("nemesis", CLOCKS, ids=str)
@pytest.mark.parametrize("case", USE_CASES if DEEP else (FREE, LEASED), ids=lambda case: case.name)
def test_a_clock_that_goes_wrong_robs_nobody(case: UseCase, nemesis: ClockNemesis) -> None:
    """At any step: who wants the run has it when its owner is done, and finds all done once.

    Also where processes count by clocks of their own, as long as they see each other.
    """
    plays = [
        rivalled(case, at, nemesis, agrees=agrees)
        for at, agrees in zip(moments(case), cycle((True, False)))
    ]

    assert wrong(plays) == []
    assert not any(map(robbed, plays))
    if "interrupt" not in case.name:  # its grace may run out while the machine sleeps
        assert all(map(counted, plays))


@pytest.mark.parametrize("nemesis", [CLOCKS[0], CLOCKS[4]], ids=str)
def test_where_nobody_sees_who_lives_a_clock_robs(nemesis: ClockNemesis) -> None:
    """The control: the lease alone counts, by clocks that do not agree.

    Who was robbed is fenced; before that it may begin what is the robber's to begin.
    """
    each = range(1, points(LEASED) + 1, 5)
    plays = [rivalled(LEASED, at, nemesis, sees=False, agrees=False) for at in each]

    rules = {one.partition(":")[0] for play in plays for one in play.wrong}
    assert rules <= {"only_the_owner_starts"}
    assert any(map(robbed, plays))


@pytest.mark.parametrize("case", USE_CASES, ids=lambda case: case.name)
def test_two_nemeses_at_once(case: UseCase) -> None:
    """A clock goes wrong while a process stands still, or before it dies, at any two steps."""
    steps = points(case)
    plays: list[Played] = []
    for seed in range(PAIRS):
        draw = random.Random(f"{case.name} {seed}")
        nemesis = draw.choice(CLOCKS)
        at = draw.randint(1, steps)
        if draw.random() < 0.5:
            wakes_after = draw.choice((0.0, 0.5, 1.5, None))
            plays.append(haunted(case, at, wakes_after=wakes_after, nemesis=nemesis))
        else:
            dies_at = draw.randint(at + 1, steps + 1)
            plays.append(rivalled(case, at, nemesis, dies_at=dies_at))

    assert wrong(plays) == []

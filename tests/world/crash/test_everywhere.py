"""Section 14: the story of section 5, killed before and after every write; one outcome."""

from __future__ import annotations

import random
from typing import Final

import pytest

from turnlock.models.fact import FactType
from turnlock.world.spec import Start

from ...runtime.crash.depth import DEEP
from .cast import LINES
from .explore import (
    Deaths,
    Stage,
    played,
    undisturbed,
    writes_of_host,
    writes_of_person,
    wrong_with,
)
from .living import BURIED
from .story import RUNS

pytestmark = BURIED


CHAINS: Final = 300 if DEEP else 3
"""Plays in which several lives end, one of them while it recovers from the one before."""
FEWEST: Final = 110
"""Points before and after writes that there are at least: fewer, and the harness is blind."""
STRIDE: Final = 61
"""Steps between those at which the host is killed where this is not `make crash`."""
WRITES: Final = 1 if DEEP else 3
"""One write in so many is looked at: it is odd, so that as many are before as after."""
SLICES: Final = 4
"""Parts into which the sweep is cut, so that each says where it is."""


def test_w_6_the_story_is_told_when_nobody_dies() -> None:
    """W-22, W-30: one log, each entry heard once; two handoffs of words, one of the limit."""
    assert undisturbed().deaths == []
    assert len(writes_of_host()) + len(writes_of_person()) >= FEWEST


def test_w_44_all_calls_of_an_answer_ran() -> None:
    """W-1, W-7: of two calls of one answer both, and the model was told of both at once."""
    left = undisturbed().left
    assert left is not None
    started = [it for it in left.facts["alice"] if it.type is FactType.TOOL_EXECUTION_STARTED]
    assert len(started) == 2
    assert [body["text"] for _, body in left.notes["alice"]][1:3] == [
        "I need a yes.",
        "@bob I have paid, ship it.",
    ]


def test_w_32_an_answer_stands_before_the_next_entry_is_heard() -> None:
    """W-31: in the order of the host's writes, and each message has the next number."""
    names = [name for _, name in sorted(writes_of_host().items())]
    said = [it.removeprefix("after note ") for it in names if it.startswith("after note ")]
    for agent in LINES:
        own = [it.split()[1] for it in said if it.startswith(f"{RUNS[agent]} said/")]
        assert own == [f"said/{number}" for number in range(1, len(own) + 1)]
    entered = names.index(f"after entry {RUNS['bob']}/said/2")
    assert entered < names.index(f"before note {RUNS['bob']} said/3")
    entered = names.index(f"after entry {RUNS['alice']}/said/5")
    assert entered < names.index(f"before note {RUNS['alice']} said/6")


@pytest.mark.parametrize("part", range(SLICES))
def test_w_33_killed_before_and_after_every_write(part: int) -> None:
    """W-5, W-30 … W-33: the host dies; the next one says, hears and runs nothing twice."""
    steps = sorted(writes_of_host())[::WRITES][part::SLICES]

    found = [(played(Deaths([step])), step) for step in steps]

    wrong = [(it.deaths, wrong_with(it)) for it, _ in found if wrong_with(it)]
    assert wrong == []
    assert all(len(it.deaths) == 1 for it, _ in found)


def test_w_10_the_person_is_killed_before_and_after_every_write() -> None:
    """What was said is said again under its id; what was decided stands."""
    found = [played(Deaths(of_person=[step])) for step in sorted(writes_of_person())[::WRITES]]

    assert [(it.deaths, wrong_with(it)) for it in found if wrong_with(it)] == []


def test_w_33_killed_while_it_recovers() -> None:
    """Several deaths in a row, each next one soon after the one before."""
    last = max(writes_of_host())
    for seed in range(CHAINS):
        draw = random.Random(seed)
        steps = [draw.randint(1, last), *(draw.randint(1, last // 4) for _ in range(3))]
        done = played(Deaths(steps))
        assert wrong_with(done) == [], done.deaths


@pytest.mark.parametrize("part", range(SLICES))
def test_w_33_killed_at_every_step(part: int) -> None:
    """Wherever a task is resumed, not around writes alone: all of them in `make crash`."""
    host = undisturbed().host
    assert host is not None
    for step in range(1 + part, host.life.steps + 1, SLICES if DEEP else STRIDE):
        done = played(Deaths([step]))
        assert wrong_with(done) == [], done.deaths


def test_w_58_killed_before_and_after_every_write_with_early_calls() -> None:
    """Calls that were added stand, and the chat comes out the same."""
    steps = sorted(writes_of_host(Start.EARLY))[:: 1 if DEEP else 15]

    for step in steps:
        done = played(Deaths([step]), stage=Stage(start=Start.EARLY))
        assert done.wrong == [], done.deaths

"""The proof of a declared machine (K-5) and its own failing examples: each fault is seen once."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, TypeAlias, TypeVar, cast

import attrs
import pytest

from turnlock import FactType, Reason
from turnlock.lifecycle.table import INVOCATION
from turnlock.machines.proof import prove
from turnlock.machines.rows import Machine, Row, leads, moves, refuses, rests
from turnlock.models.errors import BadTable
from turnlock.turn.table import TURN


class Door(StrEnum):
    CLOSED = "CLOSED"
    AJAR = "AJAR"
    GONE = "GONE"


class Hand(StrEnum):
    PUSH = "push"
    PULL = "pull"


OPENED, SWUNG, FELL = FactType.TURN_OPENED, FactType.CALL_ADDED, FactType.TURN_SETTLED
OILED, DRY, LOCKED = "oiled", "dry", "locked"
QUESTIONS = {"is it oiled?": (OILED, DRY), "what holds it?": (OILED, LOCKED, "jammed")}

DoorRow: TypeAlias = Row[Door, Hand]
DoorMachine: TypeAlias = Machine[Door, Hand]

ROWS: tuple[DoorRow, ...] = (
    moves(Door.CLOSED, Hand.PUSH, Door.AJAR, OPENED, "K-22", when=OILED),
    refuses(Door.CLOSED, Hand.PUSH, Reason.LATE, "K-22", when=DRY),
    rests(Door.CLOSED, Hand.PULL, "it opens inwards", "K-22"),
    moves(Door.AJAR, Hand.PUSH, Door.AJAR, SWUNG, "K-22"),
    moves(Door.AJAR, Hand.PULL, Door.GONE, FELL, "K-22"),
    refuses(Door.GONE, Hand.PUSH, Reason.LATE, "K-22"),
    rests(Door.GONE, Hand.PULL, "there is no handle", "K-22"),
)
DOOR: DoorMachine = Machine(
    name="door",
    phases=Door,
    inputs=tuple(Hand),
    initial=(Door.CLOSED,),
    rank={Door.CLOSED: 0, Door.AJAR: 1, Door.GONE: 2},
    questions=QUESTIONS,
    rows=ROWS,
)

T = TypeVar("T")
Breakage: TypeAlias = Callable[[], Machine[Any, Any]]


def but(it: T, **changes: Any) -> T:
    """The same row or machine with these changes."""
    changed: T = attrs.evolve(cast("Any", it), **changes)
    return changed


def with_rows(*rows: DoorRow) -> DoorMachine:
    return but(DOOR, rows=rows)


def replacing(place: int, *rows: DoorRow) -> DoorMachine:
    """The door with other rows where this one stood."""
    return with_rows(*ROWS[:place], *rows, *ROWS[place + 1 :])


def adding(*rows: DoorRow) -> DoorMachine:
    return with_rows(*ROWS, *rows)


class Lamp(StrEnum):
    DARK = "dark"
    LIT = "lit"


FOLLOWS = {Lamp.DARK: (OPENED, Lamp.LIT), Lamp.LIT: (FELL, Lamp.DARK)}
LAMP: Machine[Lamp, FactType] = Machine(
    name="lamp",
    phases=Lamp,
    inputs=tuple(FactType),
    initial=(Lamp.DARK,),
    rank={},
    questions={},
    rows=tuple(
        leads(lamp, fact, there) if fact is on else rests(lamp, fact, "the door stays", "K-22")
        for lamp, (on, there) in FOLLOWS.items()
        for fact in FactType
    ),
)
"""A projection: it follows the door's facts, and goes round."""


def lamp_but(place: int, **changes: Any) -> Machine[Any, Any]:
    """The lamp with one row changed."""
    rows = [*LAMP.rows]
    rows[place] = but(rows[place], **changes)
    return but(LAMP, rows=tuple(rows))


LEADS = next(place for place, row in enumerate(LAMP.rows) if row.target is not row.phase)


def test_a_correct_machine_passes() -> None:
    """Silence is the proof: for the tiny ones and for both of ours."""
    prove(DOOR)
    prove(LAMP)
    prove(INVOCATION)
    prove(TURN)


BREAKAGES: dict[str, tuple[Breakage, str, str]] = {
    "a row of no rule": (
        lambda: replacing(2, but(ROWS[2], rule="")),
        "CLOSED × pull",
        "names no rule",
    ),
    "a missing pair": (lambda: replacing(2), "CLOSED × pull", "no row"),
    "a missing refused pair": (lambda: replacing(5), "GONE × push", "no row"),
    "a duplicate row": (lambda: adding(ROWS[4]), "AJAR × pull → GONE", "stands twice"),
    "a duplicate of another kind": (
        lambda: adding(refuses(Door.AJAR, Hand.PULL, Reason.LATE, "K-22")),
        "AJAR × pull → late",
        "stands twice",
    ),
    "a duplicate guarded row": (
        lambda: adding(refuses(Door.CLOSED, Hand.PUSH, Reason.LATE, "K-22", when=OILED)),
        "CLOSED × push [oiled] → late",
        "stands twice",
    ),
    "a guarded row beside one that always holds": (
        lambda: adding(refuses(Door.AJAR, Hand.PULL, Reason.LATE, "K-22", when=OILED)),
        "AJAR × pull [oiled] → late",
        "always holds",
    ),
    "a row that always holds beside guarded ones": (
        lambda: adding(refuses(Door.CLOSED, Hand.PUSH, Reason.LATE, "K-22")),
        "CLOSED × push → late",
        "always holds",
    ),
    "a guard of no question": (
        lambda: replacing(1, refuses(Door.CLOSED, Hand.PUSH, Reason.LATE, "K-22", when="rusty")),
        "CLOSED × push [rusty] → late",
        "no answer",
    ),
    "guards of two questions": (
        lambda: but(
            replacing(1, refuses(Door.CLOSED, Hand.PUSH, Reason.LATE, "K-22", when="windy")),
            questions={"is it oiled?": (OILED, DRY), "is it windy?": ("windy", "calm")},
        ),
        "CLOSED × push [windy] → late",
        "no answer",
    ),
    "a question inside another": (
        lambda: but(DOOR, questions={**QUESTIONS, "is it oiled or locked?": (OILED, LOCKED)}),
        "'is it oiled or locked?'",
        "all answers of 'what holds it?' too",
    ),
    "an incomplete question": (lambda: replacing(1), "CLOSED × push", "all its answers"),
    "a question short of one of three": (
        lambda: but(
            replacing(1, refuses(Door.CLOSED, Hand.PUSH, Reason.LATE, "K-22", when=LOCKED)),
        ),
        "CLOSED × push",
        "all its answers",
    ),
    "an unreachable phase": (
        lambda: replacing(
            4,
            refuses(Door.AJAR, Hand.PULL, Reason.LATE, "K-22"),
        ),
        "GONE",
        "no path leads here",
    ),
    "a terminal phase that moves": (
        lambda: replacing(5, moves(Door.GONE, Hand.PUSH, Door.GONE, SWUNG, "K-22")),
        "GONE × push → GONE / CALL_ADDED",
        "terminal",
    ),
    "a falling rank": (
        lambda: replacing(3, moves(Door.AJAR, Hand.PUSH, Door.CLOSED, SWUNG, "K-22")),
        "AJAR × push → CLOSED / CALL_ADDED",
        "rank falls",
    ),
    "a row that moves and refuses at once": (
        lambda: replacing(4, but(ROWS[4], reason=Reason.LATE)),
        "AJAR × pull",
        "moves and refuses at once",
    ),
    "a rest without a note": (
        lambda: replacing(2, rests(Door.CLOSED, Hand.PULL, "", "K-22")),
        "CLOSED × pull → rests",
        "add a note",
    ),
    "a fact that leads to two phases": (
        lambda: but(
            replacing(3, moves(Door.AJAR, Hand.PUSH, Door.AJAR, FELL, "K-22")),
        ),
        "AJAR × pull → GONE / TURN_SETTLED",
        "lead to AJAR",
    ),
    "a phase without a rank": (
        lambda: but(DOOR, rank={Door.CLOSED: 0, Door.GONE: 2}),
        "AJAR",
        "has no rank",
    ),
    "another phase without a fact": (
        lambda: replacing(
            2, but(rests(Door.CLOSED, Hand.PULL, "by the wind", "K-22"), target=Door.AJAR)
        ),
        "CLOSED × pull",
        "without a fact",
    ),
    "a refusal that moves": (
        lambda: replacing(
            1,
            but(refuses(Door.CLOSED, Hand.PUSH, Reason.LATE, "K-22", when=DRY), target=Door.AJAR),
        ),
        "CLOSED × push [dry]",
        "without a fact",
    ),
    "a projection that brings a fact forth": (
        lambda: lamp_but(LEADS, fact=SWUNG),
        "dark × TURN_OPENED → lit / CALL_ADDED",
        "follows facts",
    ),
    "a projection that refuses": (
        lambda: lamp_but(0, reason=Reason.LATE),
        f"dark × {LAMP.rows[0].input} → late",
        "follows facts",
    ),
    "a projection that rests without a note": (
        lambda: lamp_but(LEADS, target=Lamp.DARK),
        "dark × TURN_OPENED → rests",
        "add a note",
    ),
    "a projection that never gets there": (
        lambda: lamp_but(LEADS, target=Lamp.DARK, note="it burnt out"),
        "lit",
        "no path leads here",
    ),
    "a projection with some ranks": (
        lambda: but(LAMP, rank={Lamp.LIT: 1}),
        "dark",
        "has no rank",
    ),
    "a machine that is no projection, without ranks": (
        lambda: but(DOOR, rank={}),
        "CLOSED",
        "has no rank",
    ),
}


def test_a_row_of_a_projection_reads_aloud() -> None:
    """Where it leads, without a fact of its own."""
    assert str(LAMP.rows[LEADS]) == "dark × TURN_OPENED → lit"
    assert str(rests(Lamp.DARK, OPENED, "no bulb", "K-22")) == "dark × TURN_OPENED → rests"


@pytest.mark.parametrize("name", BREAKAGES)
def test_a_broken_machine_is_told_at_the_row_at_fault(name: str) -> None:
    """Every way in which a table can be no machine, one at a time; the message names the place."""
    breakage, place, told = BREAKAGES[name]
    broken = breakage()

    with pytest.raises(BadTable) as raised:
        prove(broken)

    message = str(raised.value)
    assert message.startswith(f"{broken.name}: ")
    assert place in message
    assert told in message


def rows_not_missed(machine: Machine[Any, Any]) -> list[str]:
    """The rows without which the proof is as silent as with them."""
    unmissed: list[str] = []
    for row in machine.rows:
        try:
            prove(but(machine, rows=tuple(it for it in machine.rows if it is not row)))
        except BadTable:
            continue
        unmissed.append(str(row))
    return unmissed


@pytest.mark.parametrize("machine", [INVOCATION, TURN], ids=lambda machine: machine.name)
def test_each_row_of_ours_is_missed_when_it_is_gone(machine: Machine[Any, Any]) -> None:
    """Total (K-5): a table short of any one row is no machine, and the proof says so."""
    assert rows_not_missed(machine) == []

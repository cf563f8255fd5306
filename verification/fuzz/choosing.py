"""Chooses what is delivered next, by what the oracle's state says of where the run stands.

What is enabled here, what was sent before and comes again, or anything at all: the guided scripts
and the rules of `TurnlockMachine` both choose with these. A choice is made by small numbers, of
which a byte each is enough, so that the same numbers choose the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from ..oracle.reading import Record, State, digest_of, owed_attempt
from ..subjects.subject import Raw
from . import templates
from .templates import RECOVER, TICK, Choice, Template
from .words import INVOCATIONS, TURNS

RECENT: Final = 8
"""Of these last deliveries most redeliveries are."""

NAMES: Final[tuple[str, ...]] = (*TURNS, "T4", "T5", "T6", "T7")
"""Turns by name; few, so that names are used again."""
_OF_RECORDS: Final = {"OPEN": 128, "SEALED": 220, "INTERRUPTING": 230}
"""Of 256: how many values of the place ask for a step of an invocation, not of the turn."""
_OPENING: Final = 200
"""Of 256: how many of them open a turn when there is none."""


@cache
def paces(age: float) -> tuple[tuple[float, float], ...]:
    """Return, for each value of a byte, how far the clock moves, and how far back one step goes.

    Deadlines of the words are halves and wholes, so that steps end at them and past them (K-34);
    `age` is how long what has closed is remembered.
    """
    steps = [*[(0.0, 0.0)] * 110, *[(0.5, 0.0)] * 40, *[(1.0, 0.0)] * 64, *[(2.0, 0.0)] * 20]
    steps += [(float(age), 0.0), (age + 0.5, 0.0), (age - 1.0, 0.0)]
    steps += [(0.0, 0.5)] * 3 + [(1.0, 1.0)] * 3 + [(0.0, 5.0)] * 3
    return (*steps, *[(11.0, 0.0)] * (256 - len(steps)))


def enabled(state: State, place: int, variant: int) -> Template:
    """Choose what is accepted, for the most part, where the run stands."""
    turn: Raw | None = state["turn"]
    if turn is None:
        return _idle(state, place, variant)
    records: list[Record] = turn["records"]
    if place < _OF_RECORDS[turn["phase"]] and records:
        first = place % len(records)
        for record in (*records[first:], *records[:first]):
            choice = of_record(turn["turn_id"], record)
            if choice:
                return choice[variant % len(choice)]
    return _of_turn(state, turn, place, variant)


def again(sent: Sequence[Template], place: int, variant: int) -> Template:
    """Choose what was sent before, mostly of late: as it was, or with one field changed."""
    near = RECENT if place & 3 else len(sent)
    template = sent[-1 - (place >> 2) % min(near, len(sent))]
    if variant & 1:
        return template
    changed = template.changed
    return changed[(variant >> 1) % len(changed)]


def anything(state: State, place: int, variant: int) -> Template:
    """Choose what is out of order here: half of the time something about this very turn."""
    turn: Raw | None = state["turn"]
    if place & 1 and turn is not None:
        return _out_of_phase(turn, place >> 1, variant)
    kinds = templates.anything()
    row, kind = divmod(place >> 1, len(kinds))
    choice = kinds[kind]
    return choice[(row * 256 + variant) % len(choice)]


def of_record(turn_id: str, record: Record) -> Choice:
    """Return what an invocation may get where it stands: nothing, once it has ended."""
    invocation_id, phase = record["invocation_id"], record["phase"]
    if phase == "STARTED":
        return templates.started(turn_id, invocation_id, record["attempt"])
    owed = owed_attempt(record)
    if owed is not None:
        return templates.ready(turn_id, invocation_id, owed)
    if phase == "REQUESTED":
        return templates.gated(turn_id, invocation_id, _digest(repr(record["arguments"]), record))
    if phase == "IN_DOUBT":
        return templates.in_doubt(turn_id, invocation_id, record["attempt"])
    return ()


def _idle(state: State, place: int, variant: int) -> Template:
    """Choose for a run without a turn; names are reused, sometimes sooner than they may be."""
    if place >= _OPENING or len(state["continuations"]) >= state["run"]["limits"]["continuations"]:
        return _owed(state, place, variant)
    epoch: int = state["epoch"]
    name: str = NAMES[epoch % len(NAMES)] if place & 1 else TURNS[(place >> 1) % len(TURNS)]
    choice = templates.openings(name, epoch + 1)
    return choice[variant % len(choice)]


def _of_turn(state: State, turn: Raw, place: int, variant: int) -> Template:
    if turn["phase"] == "OPEN" and place & 7:
        added = INVOCATIONS[len(turn["records"]) % len(INVOCATIONS)]
        choice = templates.additions(turn["turn_id"], added)
    elif place & 8:
        choice = templates.stops(turn["turn_id"])
    else:
        return _owed(state, place, variant)
    return choice[variant % len(choice)]


def _owed(state: State, place: int, variant: int) -> Template:
    """Take a continuation, revoke a grant, let time pass, or crash."""
    owed, held = state["continuations"], state["grants"]
    if place & 2 and owed:
        return templates.acknowledgement(owed[variant % len(owed)]["turn_id"])
    if place & 4 and held:
        return templates.revocation(held[variant % len(held)]["grant_id"])
    return TICK if variant & 15 else RECOVER


def _out_of_phase(turn: Raw, place: int, variant: int) -> Template:
    """Choose something about the active turn, whatever phase it is in."""
    records, which = turn["records"], place % (len(_OUT_OF_PHASE) + 1)
    if which < len(_OUT_OF_PHASE) and records:
        record = records[(place >> 3) % len(records)]
        choice = _OUT_OF_PHASE[which](turn["turn_id"], record["invocation_id"], record["attempt"])
    else:
        choice = templates.additions(turn["turn_id"], INVOCATIONS[place & 3])
    return choice[variant % len(choice)]


def _gated(turn_id: str, invocation_id: str, _: int) -> Choice:
    return templates.gated(turn_id, invocation_id, digest_of({}))


_OUT_OF_PHASE: Final = (_gated, templates.ready, templates.started, templates.in_doubt)

_digests: Final[dict[str, str]] = {}


def _digest(said: str, record: dict[str, Any]) -> str:
    """Return the digest of a call's arguments; there are no others than those of the words."""
    if said not in _digests:
        _digests[said] = digest_of(record["arguments"])
    return _digests[said]

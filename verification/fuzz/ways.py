"""The way to a place in a turn's life: the next honest step there, from wherever the run stands.

A story such as *a report comes late* needs a turn that has closed. A rule that may happen only
where one has is seldom played; a rule that goes there first is played whenever it is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum, auto
from functools import lru_cache
from typing import Final, TypeAlias

from ..oracle.reading import Record, State, is_pending_approval, is_terminal, owed_attempt
from ..subjects.subject import Raw
from . import templates
from .choosing import NAMES, of_record
from .templates import SITUATIONS, TICK, Choice, Template
from .words import INVOCATIONS

Draw: TypeAlias = Callable[[], int]
"""Gives the next small number, from 0 to 255, of those that a rule was drawn with."""


class Place(Enum):
    """Where an invocation of the active turn, or the run, may stand."""

    IDLE = auto()
    """No turn is active."""
    OPEN = auto()
    """The active turn takes more calls."""
    MEMBER = auto()
    PENDING = auto()
    """A call awaits its approval."""
    DECIDED = auto()
    """Somebody has decided about a call, whatever became of it."""
    READY = auto()
    """An execution is owed."""
    STARTED = auto()
    IN_DOUBT = auto()
    RETRIED = auto()
    """One more attempt was authorised, and not claimed yet."""
    OBSERVED = auto()
    """Another runtime starts a call, and it has not ended."""
    ENDED = auto()
    """An invocation has ended, and its turn has not."""


STANDS: Final[dict[Place, Callable[[Record], bool]]] = {
    Place.MEMBER: lambda _: True,
    Place.PENDING: is_pending_approval,
    Place.DECIDED: lambda record: record["decision"] is not None,
    Place.READY: lambda record: owed_attempt(record) is not None,
    Place.STARTED: lambda record: bool(record["phase"] == "STARTED"),
    Place.IN_DOUBT: lambda record: bool(record["phase"] == "IN_DOUBT"),
    Place.RETRIED: lambda record: bool(record["phase"] == "RETRY_AUTHORISED"),
    Place.OBSERVED: lambda record: record["observed"] and not is_terminal(record),
    Place.ENDED: is_terminal,
}


def standing(state: State, place: Place) -> list[Record]:
    """Return the invocations of the active turn that stand at a place."""
    turn: Raw | None = state["turn"]
    return [] if turn is None else [record for record in turn["records"] if STANDS[place](record)]


def is_there(state: State, place: Place) -> bool:
    """Whether the run, or any invocation of its turn, stands at a place."""
    turn: Raw | None = state["turn"]
    if place is Place.IDLE:
        return turn is None
    if place is Place.OPEN:
        return turn is not None and turn["phase"] == "OPEN"
    return any(map(STANDS[place], turn["records"])) if turn is not None else False


def step(state: State, place: Place, draw: Draw) -> Template:
    """Return an honest delivery that takes the run nearer to a place where it does not stand."""
    turn: Raw | None = state["turn"]
    if turn is None:
        return opening(state, place, draw)
    if place not in _OF_TURNS:
        for record in _from(turn["records"], draw()):
            choice = _nearer(turn, record, place)
            if choice:
                return one_of(choice, draw)
        may_add = place is not Place.OBSERVED and turn["phase"] == "OPEN"
        if may_add and len(turn["records"]) < _most(state):
            return one_of(_added(turn, place), draw)
    return _to_its_end(turn, draw)


def _most(state: State) -> int:
    """Return how many calls a turn can have: there are no more names for them."""
    return min(int(state["run"]["limits"]["calls"]), len(INVOCATIONS))


def _to_its_end(turn: Raw, draw: Draw) -> Template:
    for record in _from(turn["records"], draw()):
        choice = _nearer(turn, record, Place.ENDED)
        if choice:
            return one_of(choice, draw)
    return seal(turn["turn_id"]) if turn["phase"] == "OPEN" else TICK


def one_of(choice: Choice, draw: Draw) -> Template:
    """Return one of several deliveries."""
    return choice[draw() % len(choice)]


def _from(records: list[Record], first: int) -> Iterator[Record]:
    """Yield the records, counted round from one of them."""
    for number in range(len(records)):
        yield records[(first + number) % len(records)]


_OF_TURNS: Final = frozenset({Place.IDLE, Place.OPEN})
_GATED: Final = frozenset({Place.PENDING, Place.DECIDED})
_SEVERAL: Final = 2
"""Calls of a turn of which one can end before the turn does."""

_NEXT: Final[dict[str, dict[Place, str]]] = {
    "awaits approval": {
        Place.DECIDED: "decide",
        Place.READY: "approve",
        Place.STARTED: "approve",
        Place.IN_DOUBT: "approve",
        Place.RETRIED: "approve",
        Place.ENDED: "decide",
    },
    "may start": {
        Place.STARTED: "claim",
        Place.IN_DOUBT: "claim",
        Place.RETRIED: "claim",
        Place.ENDED: "claim",
    },
    "STARTED": {Place.IN_DOUBT: "lose", Place.RETRIED: "lose", Place.ENDED: "report"},
    "IN_DOUBT": {
        Place.READY: "retry",
        Place.STARTED: "retry",
        Place.RETRIED: "retry",
        Place.ENDED: "settle",
    },
}
"""What takes an invocation from where it stands nearer to a place; no row, no way."""

_STARTABLE: Final = frozenset({"REQUESTED", "APPROVED", "RETRY_AUTHORISED"})


def _nearer(turn: Raw, record: Record, place: Place) -> Choice:
    """Return what moves an invocation nearer to a place: nothing, where no way leads there."""
    stands = "may start" if record["phase"] in _STARTABLE else record["phase"]
    stands = "awaits approval" if is_pending_approval(record) else stands
    kind = _NEXT.get(stands, {}).get(place)
    if kind is None:
        return ()
    if kind == "retry" and (record["observed"] or turn["phase"] == "INTERRUPTING"):
        return ()
    if kind == "claim" and owed_attempt(record) is None:  # observed: it starts of itself (K-58)
        return _fitting(templates.ready(turn["turn_id"], record["invocation_id"], 1), kind)
    return _fitting(of_record(turn["turn_id"], record), kind)


_KINDS: Final[dict[str, Callable[[Raw], bool]]] = {
    "decide": lambda raw: raw["type"] == "decide" and raw.get("arguments_digest") != "00",
    "approve": lambda raw: bool(raw.get("approved")) and raw.get("arguments_digest") != "00",
    "grant": lambda raw: raw.get("scope") in {"turn", "session"},
    "numbered": lambda raw: "attempt" in raw,
    "deny": lambda raw: raw.get("approved") is False,
    "claim": lambda raw: raw["type"] == "claim",
    "reject": lambda raw: raw["type"] == "reject",
    "report": lambda raw: raw["type"] == "report",
    "lose": lambda raw: raw["type"] == "lose",
    "renew": lambda raw: raw["type"] == "renew",
    "retry": lambda raw: raw.get("as") == "retry",
    "resolve": lambda raw: raw["type"] == "resolve",
    "settle": lambda raw: raw["type"] == "report" or raw.get("as") in {"result", "error"},
    "interrupt": lambda raw: raw["type"] == "interrupt",
    "add_call": lambda raw: raw["type"] == "add_call",
}


@lru_cache(SITUATIONS)
def _fitting(choice: Choice, kind: str) -> Choice:
    """Return those of a choice that are of a kind."""
    return tuple(template for template in choice if _KINDS[kind](template.raw))


def fitting(choice: Choice, kind: str) -> Choice:
    """Return those of a choice that are of a kind; all of them, where none is."""
    return _fitting(choice, kind) or choice


# --------------------------------------------------------------------------- turns and their calls


def opening(state: State, place: Place, draw: Draw) -> Template:
    """Return the opening of a turn that can lead to a place, or what lets one be opened."""
    owed = state["continuations"]
    if len(owed) >= state["run"]["limits"]["continuations"]:
        return templates.acknowledgement(owed[draw() % len(owed)]["turn_id"])
    epoch: int = state["epoch"]
    choice = _openings(free_name(state, draw), epoch + 1, place, _most(state))
    return one_of(choice, draw)


def free_name(state: State, draw: Draw) -> str:
    """Return the name of a turn that may be opened: one of the few, or a new one."""
    taken = {entry["turn_id"] for entry in (*state["memory"], *state["continuations"])}
    free = [name for name in NAMES if name not in taken]
    return free[draw() % len(free)] if free else f"T{state['epoch'] + 1}th"


@lru_cache(SITUATIONS)
def _openings(turn_id: str, epoch: int, place: Place, most: int) -> Choice:
    """Return the openings of a turn whose calls can get to a place."""
    return tuple(
        template
        for template in templates.openings(turn_id, epoch)
        if template.raw.get("epoch", epoch) == epoch
        and len(template.raw["calls"]) <= most
        and _leads(template.raw, place)
    )


def _leads(raw: Raw, place: Place) -> bool:
    calls, unsealed = raw["calls"], raw.get("sealed") is False
    if place in _OF_TURNS:
        return unsealed is (place is Place.OPEN)
    if place is Place.ENDED:
        return unsealed or len(calls) >= _SEVERAL
    if place in _GATED:
        return any(call["requires_approval"] for call in calls)
    if place is Place.MEMBER:
        return bool(calls)
    if place is Place.OBSERVED:
        return any(call.get("observed") for call in calls)
    return any(not call.get("observed") for call in calls)


@lru_cache(SITUATIONS)
def _added_to(turn_id: str, invocation_id: str, gated: bool | None) -> Choice:  # noqa: FBT001 - a key
    return tuple(
        template
        for template in templates.additions(turn_id, invocation_id)
        if template.raw["type"] == "add_call"
        and gated in {None, template.raw["call"]["requires_approval"]}
    )


def _added(turn: Raw, place: Place) -> Choice:
    return _added_to(turn["turn_id"], new_call(turn), True if place in _GATED else None)


def new_call(turn: Raw) -> str:
    """Return the id of a call that the turn does not have, or its first where it has them all."""
    held = {record["invocation_id"] for record in turn["records"]}
    return next((name for name in INVOCATIONS if name not in held), INVOCATIONS[0])


@lru_cache(SITUATIONS)
def seal(turn_id: str) -> Template:
    """Return the sealing of a turn."""
    return Template({"type": "seal_turn", "turn_id": turn_id})

"""The letters of an alphabet: deliveries that know neither the time nor the numbers of a run.

A symbol is delivered `dt` seconds after the tester's clock, which begins at 0 and afterwards is the
latest time at which anything was delivered: a negative `dt` is a clock that runs backwards (K-10).
Attempts, epochs and grants count on for as long as a run lives. A symbol therefore names them
relative to where the run stands, and is bound to a state when it is delivered: only so are there
finitely many states.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

import attrs

from ..findings import Raw
from ..oracle.reading import find_record, make_id


@attrs.frozen
class Attempt:
    """The current attempt of the invocation that the delivery names, and so many more (K-33)."""

    more: int = 0

    def __str__(self) -> str:
        """Read it aloud."""
        return f"current{self.more:+}"


@attrs.frozen
class Epoch:
    """The number of turns opened so far, and so many more: the next one is 1 more (K-21)."""

    more: int = 1

    def __str__(self) -> str:
        """Read it aloud."""
        return f"opened{self.more:+}"


@attrs.frozen
class GrantInForce:
    """The id of a grant in force, counted from the oldest; where there is none, of one that ended.

    Where none has ended either, it is the id that the next grant will have.
    """

    place: int = 0

    def __str__(self) -> str:
        """Read it aloud."""
        return f"in force #{self.place}"


@attrs.frozen
class GrantToCome:
    """The id that the next grant will have (K-40)."""

    def __str__(self) -> str:
        """Read it aloud."""
        return "to come"


Relative: TypeAlias = Attempt | Epoch | GrantInForce | GrantToCome


@attrs.frozen
class Symbol:
    """One letter: `delivery` as on the wire but without `now`, delivered `dt` s after the clock.

    Values of `delivery` may be `Relative`; `bound` replaces them. `name` is unique in an alphabet.
    """

    name: str
    delivery: Raw
    dt: float = 0.0

    @property
    def relative(self) -> dict[str, Relative]:
        """The fields that have to be bound to a state."""
        fields = self.delivery.items()
        return {name: value for name, value in fields if isinstance(value, Relative)}

    def bound(self, state: Mapping[str, Any], run_id: str) -> Raw:
        """Return the delivery, without its time, for an oracle's state."""
        found = {
            name: bind(value, self.delivery, state, run_id) for name, value in self.relative.items()
        }
        return {**self.delivery, **found}


def bind(value: Relative, delivery: Raw, state: Mapping[str, Any], run_id: str) -> int | str:
    """Return what a relative value of a delivery is in an oracle's state."""
    return _BINDERS[type(value)](value, delivery, state, run_id)


def _attempt(value: Attempt, delivery: Raw, state: Any, _: str) -> int:  # noqa: ANN401 - an oracle's
    record = find_record(state, delivery["invocation_id"])
    return (0 if record is None else int(record["attempt"])) + value.more


def _epoch(value: Epoch, _: Raw, state: Any, __: str) -> int:  # noqa: ANN401
    return int(state["epoch"]) + value.more


def _grant_in_force(value: GrantInForce, _: Raw, state: Any, run_id: str) -> str:  # noqa: ANN401
    grants = state["grants"]
    if value.place < len(grants):
        return str(grants[value.place]["grant_id"])
    held = {grant["grant_id"] for grant in grants}
    last = state["grants_issued"]
    issued = [make_id("grant", run_id, number) for number in range(last, 0, -1)]
    ended = [grant_id for grant_id in issued if grant_id not in held]
    return ended[0] if ended else make_id("grant", run_id, last + 1)


def _grant_to_come(_: GrantToCome, __: Raw, state: Any, run_id: str) -> str:  # noqa: ANN401
    return make_id("grant", run_id, state["grants_issued"] + 1)


_BINDERS: Final[dict[type, Callable[[Any, Raw, Any, str], int | str]]] = {
    Attempt: _attempt,
    Epoch: _epoch,
    GrantInForce: _grant_in_force,
    GrantToCome: _grant_to_come,
}


def symbols(deliveries: Iterable[Raw], *, dt: float = 0.0) -> tuple[Symbol, ...]:
    """Name these deliveries, all of them at the same `dt`."""
    return tuple(Symbol(_name(delivery, dt), delivery, dt) for delivery in deliveries)


def _name(delivery: Raw, dt: float) -> str:
    """Read a delivery aloud: `report T1/a result="ok" +1s`."""
    fields = dict(delivery)
    words = [str(fields.pop("type"))]
    turn_id, invocation_id = fields.pop("turn_id", "–"), fields.pop("invocation_id", None)
    if invocation_id is not None:
        words.append(f"{turn_id}/{invocation_id}")
    elif "turn_id" in delivery:
        words.append(turn_id)
    words += [f"{name}={_shown(value)}" for name, value in fields.items()]
    return " ".join([*words, f"{dt:+g}s"] if dt else words)


def _shown(value: Any) -> str:  # noqa: ANN401 - JSON, or relative
    return str(value) if isinstance(value, Relative) else json.dumps(value, ensure_ascii=False)


# ------------------------------------------------------------------------------------- deliveries


def call(invocation_id: str, *, gated: bool = False, **fields: Any) -> Raw:  # noqa: ANN401 - JSON
    """Return a call of the tool `ls` without arguments, unless `fields` say otherwise."""
    return {
        "invocation_id": invocation_id,
        "tool_name": "ls",
        "arguments": {},
        "requires_approval": gated,
        **fields,
    }


def open_turn(turn_id: str, *calls: Raw, **fields: Any) -> Raw:  # noqa: ANN401 - JSON, or relative
    """Return an open_turn with these calls."""
    return {"type": "open_turn", "turn_id": turn_id, "calls": list(calls), **fields}


def of_turn(type_: str, turn_id: str, **fields: Any) -> Raw:  # noqa: ANN401 - JSON
    """Return a delivery about a turn: add_call, seal_turn, interrupt, acknowledge."""
    return {"type": type_, "turn_id": turn_id, **fields}


def of_call(type_: str, turn_id: str | None, invocation_id: str, **fields: Any) -> Raw:  # noqa: ANN401
    """Return a delivery about an invocation; without a turn where `turn_id` is None."""
    turn = {} if turn_id is None else {"turn_id": turn_id}
    return {"type": type_, **turn, "invocation_id": invocation_id, **fields}


def approve(turn_id: str, invocation_id: str, **fields: Any) -> Raw:  # noqa: ANN401 - JSON
    """Return a decision that approves."""
    return of_call("decide", turn_id, invocation_id, approved=True, **fields)


def deny(turn_id: str, invocation_id: str, **fields: Any) -> Raw:  # noqa: ANN401 - JSON
    """Return a decision that denies."""
    return of_call("decide", turn_id, invocation_id, approved=False, **fields)


def revoke(grant_id: str | Relative) -> Raw:
    """Return a revoke."""
    return {"type": "revoke", "grant_id": grant_id}


TICK: Final[Raw] = {"type": "tick"}

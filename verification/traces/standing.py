"""How a run stands where a log went wrong, and which facts could have happened there instead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final, TypeAlias

from ...engine.decide import DECIDERS
from ...engine.state import State
from ...lifecycle.invocation import Invocation
from ...models.calls import Call
from ...models.codec import read_delivery
from ...models.deliveries import (
    Acknowledge,
    AddCall,
    Claim,
    Delivery,
    Interrupt,
    OpenTurn,
    Revoke,
    SealTurn,
)
from ...models.facts import ToolExecutionFailed
from ...turn.turn import Turn
from ..alphabet.plain import PLAIN

Raw: TypeAlias = dict[str, Any]

_FEW: Final = 3
"""Members, grants and continuations that are looked at where the line names none."""
_NEW: Final = "a new one"


def standing(state: State, raw: Raw) -> str:
    """Say how the turn and the invocation stand that a fact names."""
    turn = state.turn
    if turn is None:
        return "no turn is active"
    where = f"turn {turn.turn_id!r} is {turn.phase}"
    if "turn_id" in raw and raw["turn_id"] not in {None, turn.turn_id}:
        return where
    if "invocation_id" not in raw:
        return f"{where}, {turn.live} of its {len(turn.order)} invocations are not terminal"
    invocation = turn.members.get(raw["invocation_id"])
    if invocation is None:
        return f"{where} and has no invocation {raw['invocation_id']!r}"
    return f"{invocation.invocation_id!r} is {_phase(invocation)} in turn {turn.turn_id!r}"


def _phase(invocation: Invocation) -> str:
    if invocation.gated:
        return f"{invocation.phase}, waiting for approval"
    if invocation.attempt and not invocation.terminal:
        return f"{invocation.phase}, attempt {invocation.attempt}"
    return str(invocation.phase)


def possible(state: State, now: float, raw: Raw) -> tuple[str, ...]:
    """Name the facts that some delivery could have brought forth first in this state.

    About the invocation that the line names, or, where it has ended or is none, about the first few
    that live; then about the turn, the continuations owed and the grants in force.
    Asking changes nothing (K-2).
    """
    found: dict[str, None] = {}
    for delivery in _deliveries(state, raw):
        decision = DECIDERS[type(delivery)](state, delivery, now)
        if isinstance(decision, list):
            fact: Any = decision[0]
            cause = f" ({fact.cause})" if isinstance(fact, ToolExecutionFailed) else ""
            about = getattr(delivery, "invocation_id", None) or getattr(delivery, "grant_id", None)
            found[f"{fact.type}{cause} of {about or fact.turn_id!r}"] = None
    return tuple(found)


def _deliveries(state: State, raw: Raw) -> Iterator[Delivery]:
    turn = state.turn
    if turn is not None:
        for invocation in _meant(turn, raw):
            yield from _about_invocation(turn.turn_id, invocation)
        yield SealTurn(turn_id=turn.turn_id)
        new = Call(invocation_id=_NEW, tool_name=_NEW, arguments={}, requires_approval=False)
        yield AddCall(turn_id=turn.turn_id, call=new)
        yield Interrupt(turn_id=turn.turn_id)
    yield OpenTurn(turn_id=_NEW, calls=(), sealed=False)
    for turn_id in islice(state.continuations, _FEW):
        yield Acknowledge(turn_id=turn_id)
    for grant in islice(state.grants, _FEW):
        yield Revoke(grant_id=grant.grant_id)


def _meant(turn: Turn, raw: Raw) -> Iterable[Invocation]:
    named = turn.members.get(raw.get("invocation_id", ""))
    if named is None or named.terminal:
        return islice(turn.unfinished(), _FEW)
    return (named,)


def _about_invocation(turn_id: str, invocation: Invocation) -> Iterator[Delivery]:
    for kind, variants in PLAIN.items():
        counts = invocation.attempt
        if kind == Claim.type:
            counts = invocation.owed or counts
        for fields in variants:
            named = {"turn_id": turn_id, "invocation_id": invocation.invocation_id}
            attempt = {"attempt": counts} if "attempt" in fields else {}
            yield read_delivery({"type": kind, **named, **fields, **attempt})

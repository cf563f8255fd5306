"""When two states answer alike, whatever comes next (kernel.md section 12, `digest`).

`behaviour` says what can be seen of a state by deliveries from a time on, and `fingerprint` makes
the wire's digest of it. Neither holds sequence numbers, epochs or absolute times, and what can no
longer be seen is left out, so that exploring a run's states comes to an end.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any, Final, TypeAlias

from ..lifecycle.invocation import Decision, Invocation
from ..lifecycle.phases import Phase
from ..models.calls import CallResult
from ..models.deliveries import Match, Scope
from ..models.values import ABSENT, Json, canonical
from ..turn.memory import Grant
from ..turn.phases import TurnPhase
from ..turn.turn import Turn
from .state import FOREVER, State

Row: TypeAlias = tuple[Any, ...]
Behaviour: TypeAlias = tuple[Row, tuple[Row, ...]]
"""What concerns no invocation, and rows that each begin with the id of the one they concern."""

MANY: Final = 2
"""Attempts are told apart as none, the first and later ones: the current one counts (K-33)."""


def fingerprint(state: State) -> str:
    """Return the digest of a state, as hex text; its times count from the latest fact."""
    turn = state.turn
    numbers = (
        state.at > -math.inf,
        state.grants.issued,
        tuple(grant.number for grant in state.grants),
        () if turn is None else tuple(invocation.attempt for invocation in turn.order),
    )
    seen = (behaviour(state, state.at), numbers)
    return hashlib.sha256(canonical(seen).encode()).hexdigest()


def behaviour(state: State, now: float) -> Behaviour:
    """Return what deliveries at `now` or later can see of a state, as a hashable value.

    Times count from `now`. The numbers of attempts and grants are not told: who explores names
    them relative to the state, and then two states that differ only there answer alike.
    """
    at, turn = state.at, state.turn
    earliest = max(at, now)  # earlier times are taken for that of the latest fact (K-10)
    rows: list[Row] = []
    memory: list[Row] = []
    for closed in state.memory.alive(now=earliest):
        since = closed.at - now
        memory.append((closed.turn_id, since))
        rows += [(name, closed.turn_id, since) for name in closed.invocation_ids[closed.first :]]
    for owed in state.continuations.values():
        turn_id = owed.effect.turn_id
        rows += [
            (result.invocation_id, turn_id, *_result(result)) for result in owed.effect.results
        ]
    active = None
    if turn is not None:
        active = (turn.turn_id, turn.phase, _since(turn.grace_until, now))
        rows += [_invocation(invocation, turn, now) for invocation in turn.order]
    whole = (
        earliest - now if earliest > now else 0.0,
        active,
        tuple(state.continuations),
        tuple([_grant(grant, turn, now) for grant in state.grants]),
        state.grants.issued > 0,
        tuple(memory),
    )
    return whole, tuple(rows)


def _since(deadline: float | None, now: float, end: float | None = None) -> float | None:
    """Count a deadline from `now`; one that cannot be reached, or only after `end`, is none."""
    if deadline is None or deadline >= FOREVER or (end is not None and deadline > end):
        return None
    return deadline - now


def _invocation(invocation: Invocation, turn: Turn, now: float) -> Row:
    stopping = turn.phase is TurnPhase.INTERRUPTING  # nothing starts again, nothing continues
    outcome = invocation.outcome
    if stopping and invocation.phase is Phase.DENIED:
        outcome = None
    return (
        invocation.invocation_id,
        invocation.tool_name,
        None if stopping else invocation.provider_call_id,
        None if stopping else _text(invocation.arguments),
        invocation.phase,
        invocation.gated,
        invocation.observed and not invocation.terminal,
        _since(invocation.deadline, now, turn.grace_until),
        None if invocation.decision is None else _decision(invocation.decision),
        min(invocation.attempt, MANY),
        invocation.worker,
        None if outcome is None else _result(outcome),
    )


def _decision(decision: Decision) -> Row:
    return (decision.approved, decision.scope, decision.match, _text(decision.edited))


def _result(result: CallResult) -> Row:
    value = () if result.result is ABSENT else (_text(result.result),)
    given = (result.tool_name, result.provider_call_id)
    return (*given, result.status, value, result.error, result.reason)


def _grant(grant: Grant, turn: Turn | None, now: float) -> Row:
    covers: Row = (grant.tool_name, grant.match)
    if grant.match is Match.EXACT:
        covers += (grant.arguments_digest,)
    end = None
    if grant.scope is Scope.TURN and turn is not None:
        end = turn.grace_until
        if turn.phase is not TurnPhase.OPEN:  # no call can come that it would cover
            covers = ()
    return (covers, grant.scope, _since(grant.expires_at, now, end))


def _text(value: Json) -> str | Row | None:
    """Return a JSON value as something hashable that tells 1, 1.0, true and texts apart."""
    if value is None or type(value) is str:
        return value
    return (canonical(value) if value else str(value),)  # most arguments are empty

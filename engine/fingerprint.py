"""The behavioural digest: equal iff whatever comes next is answered alike (kernel.md section 12).

But for sequence numbers, epochs and absolute times: times count from the latest fact, and what can
no longer be seen is left out, so that exploring a run's states comes to an end.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any

from ..lifecycle.invocation import Decision, Invocation
from ..lifecycle.phases import Phase
from ..models.calls import CallResult
from ..models.deliveries import Match, Scope
from ..models.values import ABSENT, canonical
from ..turn.grants import Grant
from ..turn.phases import TurnPhase
from ..turn.turn import Turn
from .deadlines import FOREVER
from .state import State


def fingerprint(state: State) -> str:
    """Return the digest of a state, as hex text."""
    return hashlib.sha256(canonical(behaviour(state)).encode()).hexdigest()


def behaviour(state: State) -> dict[str, Any]:
    """Return what the digest is taken of, as a JSON object: all of the state that can be seen."""
    at = state.at
    return {
        "begun": at > -math.inf,
        "turn": None if state.turn is None else _turn(state.turn, at),
        "continuations": [
            [owed.effect.turn_id, [_result(result) for result in owed.effect.results]]
            for owed in state.continuations.values()
        ],
        "grants": [_grant(grant, state) for grant in state.grants],
        "grants_issued": state.grants.issued,
        "memory": [
            [closed.turn_id, closed.at - at, closed.invocation_ids[closed.first :]]
            for closed in state.memory.alive(now=at)
        ],
    }


def _since(deadline: float | None, at: float, end: float | None = None) -> float | None:
    """Count a deadline from `at`; one that cannot be reached, or only after `end`, is none."""
    if deadline is None or deadline >= FOREVER or (end is not None and deadline > end):
        return None
    return deadline - at


def _turn(turn: Turn, at: float) -> list[Any]:
    members = [_invocation(invocation, turn, at) for invocation in turn.order]
    return [turn.turn_id, turn.phase, _since(turn.grace_until, at), members]


def _invocation(invocation: Invocation, turn: Turn, at: float) -> list[Any]:
    stopping = turn.phase is TurnPhase.INTERRUPTING  # nothing starts again, nothing continues
    outcome = invocation.outcome
    if stopping and invocation.phase is Phase.DENIED:
        outcome = None
    return [
        invocation.invocation_id,
        invocation.tool_name,
        None if stopping else invocation.provider_call_id,
        None if stopping else invocation.arguments,
        invocation.phase,
        invocation.owed,
        _since(invocation.deadline, at, turn.grace_until),
        _decision(invocation.decision),
        invocation.attempt,
        invocation.worker,
        None if outcome is None else _result(outcome),
    ]


def _decision(decision: Decision | None) -> list[Any] | None:
    if decision is None:
        return None
    return [decision.approved, decision.scope, decision.match, decision.edited]


def _result(result: CallResult) -> list[Any]:
    value = [] if result.result is ABSENT else [result.result]
    given = (result.invocation_id, result.tool_name, result.provider_call_id)
    return [*given, result.status, value, result.error, result.reason]


def _grant(grant: Grant, state: State) -> list[Any]:
    turn = state.turn
    covers: list[Any] = [grant.tool_name, grant.match, None]
    if grant.match is Match.EXACT:
        covers[2] = grant.arguments_digest
    end = None
    if grant.scope is Scope.TURN and turn is not None:
        end = turn.grace_until
        if turn.phase is not TurnPhase.OPEN:  # no call can come that it would cover
            covers = []
    return [grant.number, covers, grant.scope, _since(grant.expires_at, state.at, end)]

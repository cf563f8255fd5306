"""The behavioural digest: equal iff whatever comes next is answered alike (kernel.md section 12).

But for sequence numbers, epochs and absolute times: times count from the latest fact, and what can
no longer be seen is left out, so that exploring a run's states comes to an end.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any

from ..lifecycle.invocation import Decision, Invocation
from ..models.calls import CallResult
from ..models.deliveries import Match
from ..models.values import ABSENT, canonical
from ..turn.grants import Grant
from ..turn.turn import Turn
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
        "grants": [_grant(grant, at) for grant in state.grants],
        "grants_issued": state.grants.issued,
        "memory": [
            [closed.turn_id, closed.at - at, closed.invocation_ids[closed.first :]]
            for closed in state.memory.alive(now=at)
        ],
    }


def _since(deadline: float | None, at: float) -> float | None:
    return None if deadline is None else deadline - at


def _turn(turn: Turn, at: float) -> list[Any]:
    members = [_invocation(invocation, at) for invocation in turn.order]
    return [turn.turn_id, turn.phase, _since(turn.grace_until, at), members]


def _invocation(invocation: Invocation, at: float) -> list[Any]:
    return [
        invocation.invocation_id,
        invocation.tool_name,
        invocation.provider_call_id,
        invocation.arguments,
        invocation.phase,
        invocation.owed,
        _since(invocation.deadline, at),
        _decision(invocation.decision),
        invocation.attempt,
        invocation.worker,
        None if invocation.outcome is None else _result(invocation.outcome),
    ]


def _decision(decision: Decision | None) -> list[Any] | None:
    if decision is None:
        return None
    return [decision.approved, decision.scope, decision.match, decision.edited]


def _result(result: CallResult) -> list[Any]:
    value = [] if result.result is ABSENT else [result.result]
    given = (result.invocation_id, result.tool_name, result.provider_call_id)
    return [*given, result.status, value, result.error, result.reason]


def _grant(grant: Grant, at: float) -> list[Any]:
    digest = grant.arguments_digest if grant.match is Match.EXACT else None
    expiry = _since(grant.expires_at, at)
    return [grant.number, grant.tool_name, grant.match, digest, grant.scope, expiry]

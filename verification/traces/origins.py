"""Which delivery a fact came from: the first fact of a delivery tells all that state needs of it.

A journal holds facts, not deliveries. But what a delivery brought forth begins with a fact that
carries everything the kernel took from it, so one delivery with the same outcome can be built
again. Facts that never begin the facts of a delivery (section 4) follow others, or come with time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from ...engine.state import State
from ...models.checks import number
from ...models.codec import read_delivery
from ...models.deliveries import (
    Acknowledge,
    Claim,
    Decide,
    Delivery,
    Interrupt,
    Lose,
    Match,
    Reject,
    Renew,
    Report,
    Resolution,
    Resolve,
    Revoke,
    Scope,
    SealTurn,
)
from ...models.fact import FactType
from ...models.facts import DenialCause, FailureCause
from ...models.inputs import Input
from ...models.values import ABSENT
from ..rulebook.attribution import rule_of_fact
from .impossible import Impossible

Raw: TypeAlias = dict[str, Any]
Origin: TypeAlias = Callable[[State, Raw], Delivery]


def origin(state: State, raw: Raw) -> Delivery:
    """Return a delivery that brings forth this fact first, if anything does in this state.

    Raises `Impossible` for a fact that never comes first, and `InvalidValue` for a field that no
    delivery can have given.
    """
    build = _ORIGINS.get(raw["type"])
    if build is None:
        raise _never_first(raw)
    return build(state, raw)


def _never_first(raw: Raw) -> Impossible:
    why = _FOLLOWS.get(raw["type"]) or _FOLLOWS_FOR_ITS_CAUSE[raw["cause"]]
    return Impossible(rule=rule_of_fact(raw), cause=f"{raw['type']} comes only {why}")


_FOLLOWS: Final[dict[str, str]] = {
    FactType.TOOL_APPROVAL_REQUESTED: "with its call, after TURN_OPENED or CALL_ADDED",
    FactType.TOOL_APPROVED: "by a decision, or with the call or the grant that it names",
    FactType.TURN_SETTLED: "with what made the last member of a sealed turn terminal",
    FactType.TURN_INTERRUPTED: "with what made the last member of an interrupted turn terminal",
    FactType.GRANT_ISSUED: "right after the approval that it was issued for",
    FactType.GRANT_EXPIRED: "when the time of a grant in force is over",
}
_FOLLOWS_FOR_ITS_CAUSE: Final[dict[str, str]] = {
    DenialCause.EXPIRY: "by expiry when the approval deadline of a waiting call is over",
    DenialCause.INTERRUPT: "by an interrupt right after TURN_INTERRUPTING",
    FailureCause.INTERRUPTED: "by an interrupt when its grace is over",
}


def _opened(_: State, raw: Raw) -> Delivery:
    fields = {name: raw.get(name) for name in ("turn_id", "calls", "sealed", "epoch")}
    return read_delivery({"type": "open_turn", **fields})


def _added(_: State, raw: Raw) -> Delivery:
    return read_delivery(
        {"type": "add_call", "turn_id": raw.get("turn_id"), "call": raw.get("call")}
    )


def _sealed(_: State, raw: Raw) -> Delivery:
    return SealTurn(turn_id=raw["turn_id"])


def _interrupting(_: State, raw: Raw) -> Delivery:
    grace = _seconds(raw, "grace_until")
    return Interrupt(turn_id=raw["turn_id"], reason=raw.get("reason"), grace=grace)


def _taken(_: State, raw: Raw) -> Delivery:
    return Acknowledge(turn_id=raw["turn_id"])


def _revoked(_: State, raw: Raw) -> Delivery:
    return Revoke(grant_id=raw["grant_id"])


def _approved(_: State, raw: Raw) -> Delivery:
    """Return the decision; how long its grant lasts stands in GRANT_ISSUED, which follows."""
    if raw.get("grant_id") is not None:
        raise _never_first(raw)
    return Decide(
        turn_id=raw["turn_id"],
        invocation_id=raw["invocation_id"],
        approved=True,
        scope=raw.get("scope", Scope.ONCE),
        match=raw.get("match", Match.EXACT),
        arguments=raw.get("arguments"),
        reason=raw.get("reason"),
        decided_by=raw.get("decided_by"),
    )


def _denied(_: State, raw: Raw) -> Delivery:
    if raw["cause"] in _FOLLOWS_FOR_ITS_CAUSE:
        raise _never_first(raw)
    return Decide(
        turn_id=raw["turn_id"],
        invocation_id=raw["invocation_id"],
        approved=False,
        reason=raw.get("reason"),
        decided_by=raw.get("decided_by"),
    )


def _claimed(_: State, raw: Raw) -> Delivery:
    lease = None if raw.get("lease_until") is None else _seconds(raw, "lease_until")
    return Claim(
        turn_id=raw["turn_id"],
        invocation_id=raw["invocation_id"],
        attempt=raw["attempt"],
        worker=raw.get("worker"),
        lease=lease,
    )


def _renewed(_: State, raw: Raw) -> Delivery:
    return Renew(
        turn_id=raw["turn_id"],
        invocation_id=raw["invocation_id"],
        attempt=raw["attempt"],
        lease=_seconds(raw, "lease_until"),
    )


def _succeeded(state: State, raw: Raw) -> Delivery:
    """Return the resolve that the input names, else a report: section 6 settles them alike."""
    result = raw.get("result", ABSENT)
    turn_id, invocation_id = raw["turn_id"], raw["invocation_id"]
    if raw.get("input") != Input.RESOLVE_RESULT:
        return Report(turn_id=turn_id, invocation_id=invocation_id, result=result)
    return Resolve(
        turn_id=turn_id,
        invocation_id=invocation_id,
        attempt=_attempt(state, invocation_id),
        resolution=Resolution.RESULT,
        result=result,
    )


def _attempt(state: State, invocation_id: str) -> int:
    """Return the current attempt, or 1 of what is no member: admission refuses that first."""
    member = None if state.turn is None else state.turn.members.get(invocation_id)
    return 1 if member is None else member.attempt


def _failed(state: State, raw: Raw) -> Delivery:
    cause = raw["cause"]
    if cause in _FOLLOWS_FOR_ITS_CAUSE:
        raise _never_first(raw)
    turn_id, invocation_id, error = raw["turn_id"], raw["invocation_id"], raw["error"]
    if cause == FailureCause.REJECTED:
        return Reject(turn_id=turn_id, invocation_id=invocation_id, error=error)
    if cause == FailureCause.REPORTED:
        return Report(turn_id=turn_id, invocation_id=invocation_id, error=error)
    return Resolve(
        turn_id=turn_id,
        invocation_id=invocation_id,
        attempt=_attempt(state, invocation_id),
        resolution=Resolution.ERROR,
        error=error,
    )


def _in_doubt(_: State, raw: Raw) -> Delivery:
    attempt = raw["attempt"]
    return Lose(turn_id=raw["turn_id"], invocation_id=raw["invocation_id"], attempt=attempt)


def _authorised(_: State, raw: Raw) -> Delivery:
    return Resolve(
        turn_id=raw["turn_id"],
        invocation_id=raw["invocation_id"],
        attempt=raw["attempt"],
        resolution=Resolution.RETRY,
    )


_ORIGINS: Final[dict[str, Origin]] = {
    FactType.TURN_OPENED: _opened,
    FactType.CALL_ADDED: _added,
    FactType.TURN_SEALED: _sealed,
    FactType.TURN_INTERRUPTING: _interrupting,
    FactType.CONTINUATION_TAKEN: _taken,
    FactType.GRANT_REVOKED: _revoked,
    FactType.TOOL_APPROVED: _approved,
    FactType.TOOL_DENIED: _denied,
    FactType.TOOL_EXECUTION_STARTED: _claimed,
    FactType.EXECUTION_RETRIED: _claimed,
    FactType.LEASE_RENEWED: _renewed,
    FactType.TOOL_EXECUTION_SUCCEEDED: _succeeded,
    FactType.TOOL_EXECUTION_FAILED: _failed,
    FactType.EXECUTION_IN_DOUBT: _in_doubt,
    FactType.RETRY_AUTHORISED: _authorised,
}


def seconds_until(now: float, until: float) -> float:
    """Return the seconds after `now` that end at this very float, where there are any."""
    seconds = until - now
    for near in (seconds, math.nextafter(seconds, math.inf), math.nextafter(seconds, 0.0)):
        if now + near == until:
            return near
    return seconds


def _seconds(raw: Raw, name: str) -> float:
    until, now = number(raw[name], place=name), number(raw["at"], place="at")
    if until < now:
        raise Impossible(
            rule="K-34", cause=f"its {name} {until} lies before the fact itself, at {now}"
        )
    return seconds_until(now, until)

"""Which delivery a fact came from: the first fact of a delivery tells all that state needs of it.

A journal holds facts, not deliveries. But what a delivery brought forth begins with a fact that
names the input (K-59) and carries everything the kernel took from it, so one delivery with the same
outcome can be built again. In a journal of an older version the input is missing: there the type
and the cause of the fact leave one, but for a success, which a report and a resolve settle alike.
Facts that never begin the facts of a delivery (section 4) follow others, or come with time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeAlias

from ...engine.state import State
from ...models.codec import read_delivery
from ...models.deliveries import (
    Acknowledge,
    Claim,
    Decide,
    Delivery,
    Interrupt,
    Lose,
    Reject,
    Renew,
    Report,
    Resolution,
    Resolve,
    Revoke,
    SealTurn,
)
from ...models.fact import FactType
from ...models.facts import DenialCause, FailureCause
from ...models.inputs import Input
from ...models.record import number
from ..rulebook.attribution import rule_of_fact
from .impossible import Impossible

Raw: TypeAlias = dict[str, Any]


def _read(kind: str, **fields: Any) -> Delivery:  # noqa: ANN401 - any JSON
    """Build what holds calls, which are JSON objects here."""
    return read_delivery({"type": kind, **fields})


_CALL: Final = ("turn_id", "invocation_id")
_BUILT: Final[dict[str, tuple[Callable[..., Delivery], tuple[str, ...]]]] = {
    Input.OPEN_TURN: (partial(_read, "open_turn"), ("turn_id", "calls", "sealed", "epoch")),
    Input.ADD_CALL: (partial(_read, "add_call"), ("turn_id", "call")),
    Input.SEAL_TURN: (SealTurn, ("turn_id",)),
    Input.INTERRUPT: (Interrupt, ("turn_id", "reason")),
    Input.ACKNOWLEDGE: (Acknowledge, ("turn_id",)),
    Input.REVOKE: (Revoke, ("grant_id",)),
    Input.APPROVE: (
        partial(Decide, approved=True),
        (*_CALL, "scope", "match", "arguments", "reason", "decided_by"),
    ),
    Input.DENY: (partial(Decide, approved=False), (*_CALL, "reason", "decided_by")),
    Input.CLAIM: (Claim, (*_CALL, "attempt", "worker")),
    Input.RENEW: (Renew, (*_CALL, "attempt")),
    Input.REJECT: (Reject, (*_CALL, "error")),
    Input.REPORT_RESULT: (Report, (*_CALL, "result")),
    Input.REPORT_ERROR: (Report, (*_CALL, "error")),
    Input.LOSE: (Lose, (*_CALL, "attempt")),
    Input.RESOLVE_RETRY: (partial(Resolve, resolution=Resolution.RETRY), (*_CALL, "attempt")),
    Input.RESOLVE_RESULT: (partial(Resolve, resolution=Resolution.RESULT), (*_CALL, "result")),
    Input.RESOLVE_ERROR: (partial(Resolve, resolution=Resolution.ERROR), (*_CALL, "error")),
}
"""By input: its delivery, and the fields that it has from its first fact.

How long an approval's grant lasts stands in GRANT_ISSUED, which follows.
"""

_FIRST: Final[dict[str, tuple[Input, ...]]] = {
    FactType.TURN_OPENED: (Input.OPEN_TURN,),
    FactType.CALL_ADDED: (Input.ADD_CALL,),
    FactType.TURN_SEALED: (Input.SEAL_TURN,),
    FactType.TURN_INTERRUPTING: (Input.INTERRUPT,),
    FactType.CONTINUATION_TAKEN: (Input.ACKNOWLEDGE,),
    FactType.GRANT_REVOKED: (Input.REVOKE,),
    FactType.TOOL_APPROVED: (Input.APPROVE,),
    FactType.TOOL_DENIED: (Input.DENY,),
    FactType.TOOL_EXECUTION_STARTED: (Input.CLAIM,),
    FactType.EXECUTION_RETRIED: (Input.CLAIM,),
    FactType.LEASE_RENEWED: (Input.RENEW,),
    FactType.TOOL_EXECUTION_SUCCEEDED: (Input.REPORT_RESULT, Input.RESOLVE_RESULT),
    FactType.TOOL_EXECUTION_FAILED: (Input.REPORT_ERROR, Input.RESOLVE_ERROR, Input.REJECT),
    FactType.EXECUTION_IN_DOUBT: (Input.LOSE,),
    FactType.RETRY_AUTHORISED: (Input.RESOLVE_RETRY,),
}
"""The inputs whose facts begin with one of this type."""

_FAILED_BY: Final[dict[str, Input]] = {
    FailureCause.REJECTED: Input.REJECT,
    FailureCause.REPORTED: Input.REPORT_ERROR,
    FailureCause.RESOLVED: Input.RESOLVE_ERROR,
}
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


def origin(state: State, raw: Raw) -> Delivery:
    """Return a delivery that brings forth this fact first, if anything does in this state.

    Raises `Impossible` for a fact that never comes first, and `InvalidValue` for a field that no
    delivery can have given.
    """
    input_ = _input(raw)
    build, names = _BUILT[input_]
    fields = {name: raw[name] for name in names if name in raw}
    if input_ is Input.INTERRUPT:
        fields["grace"] = _seconds(raw, "grace_until")
    elif raw.get("lease_until") is not None:
        fields["lease"] = _seconds(raw, "lease_until")
    elif input_ in {Input.RESOLVE_RESULT, Input.RESOLVE_ERROR}:
        fields["attempt"] = _attempt(state, raw["invocation_id"])
    return build(**fields)


def _input(raw: Raw) -> Input:
    """Return the input that brought about what begins with this fact."""
    kind, cause, named = raw["type"], raw.get("cause"), raw.get("input")
    inputs = _FIRST.get(kind, ())
    by_grant = kind == FactType.TOOL_APPROVED and raw.get("grant_id") is not None
    if not inputs or cause in _FOLLOWS_FOR_ITS_CAUSE or by_grant:
        why = _FOLLOWS.get(kind) or _FOLLOWS_FOR_ITS_CAUSE[raw["cause"]]
        raise Impossible(rule=rule_of_fact(raw), cause=f"{kind} comes only {why}")
    told = _FAILED_BY.get(cause or "", inputs[0])
    return Input(named) if named in inputs else told


def _attempt(state: State, invocation_id: str) -> int:
    """Return the current attempt, or 1 of what is no member: admission refuses that first."""
    member = None if state.turn is None else state.turn.members.get(invocation_id)
    return 1 if member is None else member.attempt


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

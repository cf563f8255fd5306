"""Who sends what to a kernel, and what of a receive time alone has brought.

A delivery does not say who sent it; its type tells which kind of party such a delivery is of. Where
only facts were recorded, the first of them tells it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ...models.facts import (
    DenialCause,
    ExecutionInDoubt,
    Fact,
    FactType,
    FailureCause,
    ToolDenied,
    ToolExecutionFailed,
)
from .messages import CLOCK, EXECUTORS, HOST, MODEL, PERSON, Party

SENDER: Final[dict[str, Party]] = {
    "open_turn": MODEL,
    "add_call": MODEL,
    "seal_turn": MODEL,
    "decide": PERSON,
    "resolve": PERSON,
    "revoke": PERSON,
    "interrupt": PERSON,
    "claim": EXECUTORS,
    "renew": EXECUTORS,
    "report": EXECUTORS,
    "reject": EXECUTORS,
    "lose": EXECUTORS,
    "log": EXECUTORS,
    "acknowledge": HOST,
    "recover": HOST,
    "digest": HOST,
    "tick": CLOCK,
}
"""Who sends deliveries of a type; the last but one and its neighbour belong to harnesses."""

BRINGS: Final[dict[str, frozenset[FactType]]] = {
    "open_turn": frozenset({FactType.TURN_OPENED}),
    "add_call": frozenset({FactType.CALL_ADDED}),
    "seal_turn": frozenset({FactType.TURN_SEALED}),
    "decide": frozenset({FactType.TOOL_APPROVED, FactType.TOOL_DENIED}),
    "resolve": frozenset(
        {
            FactType.RETRY_AUTHORISED,
            FactType.TOOL_EXECUTION_SUCCEEDED,
            FactType.TOOL_EXECUTION_FAILED,
        }
    ),
    "revoke": frozenset({FactType.GRANT_REVOKED}),
    "interrupt": frozenset({FactType.TURN_INTERRUPTING}),
    "claim": frozenset({FactType.TOOL_EXECUTION_STARTED, FactType.EXECUTION_RETRIED}),
    "renew": frozenset({FactType.LEASE_RENEWED}),
    "report": frozenset({FactType.TOOL_EXECUTION_SUCCEEDED, FactType.TOOL_EXECUTION_FAILED}),
    "reject": frozenset({FactType.TOOL_EXECUTION_FAILED}),
    "lose": frozenset({FactType.EXECUTION_IN_DOUBT}),
    "acknowledge": frozenset({FactType.CONTINUATION_TAKEN}),
}
"""The fact with which begins what an accepted delivery of a type brings (section 4)."""

BROUGHT_BY: Final[dict[FactType, tuple[Party, str]]] = {
    FactType.TURN_OPENED: (MODEL, "asked for calls"),
    FactType.CALL_ADDED: (MODEL, "asked for one more call"),
    FactType.TURN_SEALED: (MODEL, "asked for no more"),
    FactType.TOOL_APPROVED: (PERSON, "approved"),
    FactType.TOOL_DENIED: (PERSON, "denied"),
    FactType.TOOL_EXECUTION_STARTED: (EXECUTORS, "started"),
    FactType.EXECUTION_RETRIED: (EXECUTORS, "started again"),
    FactType.LEASE_RENEWED: (EXECUTORS, "was still at work"),
    FactType.TOOL_EXECUTION_SUCCEEDED: (EXECUTORS, "brought a result"),
    FactType.TOOL_EXECUTION_FAILED: (EXECUTORS, "brought an error"),
    FactType.EXECUTION_IN_DOUBT: (EXECUTORS, "went missing"),
    FactType.RETRY_AUTHORISED: (PERSON, "allowed one more attempt"),
    FactType.TURN_INTERRUPTING: (PERSON, "stopped the turn"),
    FactType.CONTINUATION_TAKEN: (HOST, "took the continuation"),
    FactType.GRANT_REVOKED: (PERSON, "took a grant back"),
}
"""Who brings what begins with such a fact, and in which words, where no delivery was recorded."""

_OVER: Final = {
    FactType.TOOL_DENIED: "an approval was waited for too long",
    FactType.EXECUTION_IN_DOUBT: "a lease is over",
    FactType.GRANT_EXPIRED: "a grant is over",
    FactType.TOOL_EXECUTION_FAILED: "the time to finish is over",
}
TIME_WORDS: Final = "a deadline is over"


def time_words(facts: Iterable[Fact]) -> str:
    """Say which deadlines were over; whatever else is among the facts followed from them."""
    told = dict.fromkeys(_OVER[fact.type] for fact in facts if fact.type in _OVER)
    return "; ".join(told) or TIME_WORDS


def brought_by_delivery(facts: tuple[Fact, ...], kind: str, invocation_id: str | None) -> int:
    """Return at which of the facts begins what the delivery brought; before it time did (K-11)."""
    first = BRINGS.get(kind, frozenset[FactType]())
    for place, fact in enumerate(facts):
        if fact.type in first and not brought_by_time(fact) and _about(fact, invocation_id):
            return place
    return len(facts)


def _about(fact: Fact, invocation_id: str | None) -> bool:
    """Whether a fact is about this invocation; a lease that is over is another's doubt."""
    if invocation_id is None or not isinstance(fact, ExecutionInDoubt):
        return True
    return fact.invocation_id == invocation_id


def brought_by_time(fact: Fact) -> bool:
    """Whether the fact itself says that a deadline brought it; a doubt does not say it."""
    if isinstance(fact, ToolDenied):
        return fact.cause is DenialCause.EXPIRY
    if isinstance(fact, ToolExecutionFailed):
        return fact.cause is FailureCause.INTERRUPTED
    return fact.type is FactType.GRANT_EXPIRED


def sender_of_fact(fact: Fact) -> tuple[Party, str]:
    """Return who brought a commit that begins with this fact, and in which words."""
    if isinstance(fact, ToolExecutionFailed) and fact.cause is FailureCause.RESOLVED:
        return PERSON, "decided that it failed"
    if isinstance(fact, ToolExecutionFailed) and fact.cause is FailureCause.REJECTED:
        return EXECUTORS, "could not start"
    return BROUGHT_BY[fact.type]

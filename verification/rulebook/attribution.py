"""Which rules a step exercises: read from the delivery and from the right receipt for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias

Raw: TypeAlias = dict[str, Any]

REASON_RULES: Final = {
    "run_mismatch": "section 5",
    "late": "K-54",
    "no_active_turn": "K-20",
    "turn_mismatch": "K-20",
    "unknown_invocation": "K-20",
    "ambiguous_invocation": "K-20",
    "stale_attempt": "K-33",
    "stale_epoch": "K-55",
    "turn_open": "K-21",
    "turn_busy": "K-21",
    "turn_reused": "K-54",
    "duplicate_invocation": "K-22",
    "empty_turn": "K-21",
    "turn_sealed": "K-22",
    "interrupting": "K-22",
    "duplicate": "K-30",
    "conflicting_duplicate": "K-30",
    "already_decided": "K-31",
    "not_awaiting_approval": "K-31",
    "not_approved": "K-33",
    "not_started": "K-33",
    "already_started": "K-33",
    "already_settled": "K-30",
    "not_authorised": "K-35",
    "not_in_doubt": "K-35",
    "lease_lost": "K-34",
    "arguments_mismatch": "K-32",
    "no_continuation": "K-52",
    "unknown_grant": "K-42",
    "not_owned": "K-58",
    "limit_reached": "K-56",
}
"""The closed list of section 11, each reason with the rule that gives it."""

_REASON_RULES_OF_A_TYPE: Final = {
    ("open_turn", "duplicate_invocation"): "K-21",
    ("add_call", "no_active_turn"): "K-22",
    ("add_call", "turn_mismatch"): "K-22",
    ("seal_turn", "no_active_turn"): "K-22",
    ("seal_turn", "turn_mismatch"): "K-22",
    ("seal_turn", "duplicate"): "K-22",
    ("interrupt", "no_active_turn"): "K-22",
    ("interrupt", "turn_mismatch"): "K-22",
    ("interrupt", "duplicate"): "K-53",
    ("decide", "duplicate"): "K-31",
    ("claim", "duplicate"): "K-33",
    ("claim", "already_settled"): "K-31",
    ("renew", "not_started"): "K-34",
    ("lose", "not_started"): "K-35",
    ("lose", "duplicate"): "K-35",
    ("resolve", "duplicate"): "K-35",
    ("resolve", "interrupting"): "K-53",
}

_FACT_RULES: Final = {
    "TOOL_APPROVAL_REQUESTED": "K-31",
    "TOOL_EXECUTION_STARTED": "K-33",
    "TOOL_EXECUTION_SUCCEEDED": "K-30",
    "TURN_OPENED": "K-21",
    "CALL_ADDED": "K-22",
    "TURN_SEALED": "K-22",
    "TURN_SETTLED": "K-50",
    "TURN_INTERRUPTING": "K-53",
    "TURN_INTERRUPTED": "K-53",
    "CONTINUATION_TAKEN": "K-52",
    "EXECUTION_IN_DOUBT": "K-35",
    "RETRY_AUTHORISED": "K-35",
    "EXECUTION_RETRIED": "K-33",
    "LEASE_RENEWED": "K-34",
    "GRANT_ISSUED": "K-40",
    "GRANT_REVOKED": "K-42",
    "GRANT_EXPIRED": "K-42",
}
_EFFECT_RULES: Final = {
    "execute": "K-33",
    "cancel": "K-53",
    "continue": "K-52",
    "wake": "section 9",
}
_ENDED_BY_TIME: Final = frozenset(
    {("TOOL_DENIED", "expiry"), ("TOOL_EXECUTION_FAILED", "interrupted")}
)
_OF_A_TURN: Final = frozenset({"add_call", "seal_turn", "interrupt", "acknowledge", "revoke"})
_ENDS: Final = frozenset({"TOOL_EXECUTION_SUCCEEDED", "TOOL_EXECUTION_FAILED", "TOOL_DENIED"})


def rule_of_reason(delivery_type: str, reason: str) -> str:
    """Return the rule that refuses such a delivery for this reason (section 11)."""
    known = REASON_RULES.get(reason, "section 11")
    return _REASON_RULES_OF_A_TYPE.get((delivery_type, reason), known)


def rule_of_fact(fact: Raw) -> str:
    """Return the rule that makes this fact happen."""
    kind, cause = fact.get("type"), fact.get("cause")
    if kind == "TOOL_APPROVED":
        return "K-41" if "grant_id" in fact else "K-31"
    if kind == "TOOL_DENIED":
        return {"expiry": "K-11", "interrupt": "K-53"}.get(str(cause), "K-31")
    if kind == "TOOL_EXECUTION_FAILED":
        return "K-53" if cause == "interrupted" else "K-30"
    return _FACT_RULES.get(str(kind), "section 4")


def rule_of_effect(effect: Raw) -> str:
    """Return the rule that owes this effect (section 9)."""
    return _EFFECT_RULES.get(str(effect.get("type")), "section 12")


def happened_by_time(delivery: Raw, fact: Raw) -> bool:
    """Whether time alone brings such a fact about: the deadlines of K-11."""
    kind, cause = fact.get("type"), fact.get("cause")
    if kind == "EXECUTION_IN_DOUBT":
        return bool(delivery["type"] != "lose")
    return kind == "GRANT_EXPIRED" or (kind, cause) in _ENDED_BY_TIME


def is_falsy_result(fact: Raw) -> bool:
    """Whether the fact is a success with a result such as `null`, `0` or an empty list (K-36)."""
    return fact.get("type") == "TOOL_EXECUTION_SUCCEEDED" and not fact.get("result")


def rules_of(delivery: Raw, expected: Raw) -> frozenset[str]:
    """Return the rules that a step exercises, by what it delivers and how it is to be answered."""
    found = {"section 12", *_of_the_verdict(delivery, expected)}
    found.update(_of_the_facts(delivery, expected["facts"]))
    for effect in expected["effects"]:
        found |= {"K-3", "K-7", rule_of_effect(effect)}
    return frozenset(found)


def _of_the_verdict(delivery: Raw, expected: Raw) -> Iterator[str]:
    kind = delivery["type"]
    if kind == "recover":
        yield from ("K-2", "K-3")
        return
    if not expected["accepted"]:
        yield from ("K-2", "section 11", rule_of_reason(kind, expected["reason"]))
        if expected["reason"] == "run_mismatch":
            return
    if kind == "open_turn":
        yield "K-21"
        if delivery.get("epoch") is not None:
            yield "K-55"
    elif kind in _OF_A_TURN:
        yield "K-22"
    elif "invocation_id" in delivery and kind != "log":
        yield "K-20"
    if expected["accepted"]:
        yield from _of_what_was_accepted(delivery)


def _of_what_was_accepted(delivery: Raw) -> Iterator[str]:
    kind = delivery["type"]
    if kind == "decide":
        if delivery.get("arguments") is not None or delivery.get("arguments_digest") is not None:
            yield "K-32"
        if not delivery["approved"]:
            yield "K-42"
    elif kind == "claim":
        yield "K-57" if delivery.get("lease") is None else "K-34"
    elif kind in {"open_turn", "add_call"}:
        calls = delivery["calls"] if kind == "open_turn" else [delivery["call"]]
        if any(call.get("observed") for call in calls):
            yield "K-58"
        if any(call["requires_approval"] and not call.get("approval_timeout") for call in calls):
            yield "K-57"


def _of_the_facts(delivery: Raw, facts: Sequence[Raw]) -> Iterator[str]:
    if facts:
        yield from ("K-9", "section 4")
    settled = any(fact["type"] == "TURN_SETTLED" for fact in facts)
    for fact in facts:
        yield rule_of_fact(fact)
        if "input" in fact:
            yield "K-59"
        if fact["at"] > delivery["now"]:
            yield "K-10"
        if happened_by_time(delivery, fact):
            yield from ("K-11", "K-34")
        if is_falsy_result(fact):
            yield "K-36"
        if fact["type"] == "TOOL_APPROVAL_REQUESTED":
            yield "K-32"
        if fact["type"] in _ENDS:
            yield from ("K-31", "K-50")
            if settled:
                yield "K-51"

"""Decisions of section 6, and the grants of section 7."""

from __future__ import annotations

from typing import Any

from .drafts import approved_by_grant, denied, of_grant, of_lifecycle, put
from .reading import (
    Fact,
    Given,
    Record,
    State,
    canonical,
    digest_of,
    grant_covers,
    is_pending_approval,
    make_id,
)


def judge_decision(state: State, given: Given, record: Record, now: float) -> str | list[Fact]:
    """Columns approve and deny."""
    if not is_pending_approval(record):
        if record["phase"] == "REQUESTED":
            return "not_awaiting_approval"
        return second_decision(given, record)
    if given["approved"]:
        return approve(state, given, record, now)
    reason = given.get("reason") or "denied"
    return [denied(state, "deny", record, reason, "decision", given.get("decided_by"))]


def approve(state: State, given: Given, record: Record, now: float) -> str | list[Fact]:
    """K-32, K-40; the limit of K-56 is checked last."""
    scope = given.get("scope", "once")
    match = given.get("match", "exact")
    if "arguments_digest" in given and given["arguments_digest"] != record["digest"]:
        return "arguments_mismatch"
    if scope != "once" and len(state["grants"]) + 1 > state["run"]["limits"]["grants"]:
        return "limit_reached"
    payload: dict[str, Any] = {"scope": scope}
    if scope != "once":
        payload["match"] = match
    put(payload, "arguments", given.get("arguments"))
    put(payload, "decided_by", given.get("decided_by"))
    put(payload, "reason", given.get("reason"))
    facts = [
        of_lifecycle(state, state["turn"]["turn_id"], "TOOL_APPROVED", "approve", record, payload)
    ]
    if scope != "once":
        facts += issue(state, given, record, now)
    return facts


def issue(state: State, given: Given, record: Record, now: float) -> list[Fact]:
    """K-40: for the arguments that will run; K-41: it approves what it covers, in order."""
    digest = digest_of(given["arguments"]) if "arguments" in given else record["digest"]
    grant: dict[str, Any] = {
        "grant_id": make_id("grant", state["run"]["run_id"], state["grants_issued"] + 1),
        "tool_name": record["tool_name"],
        "match": given.get("match", "exact"),
        "arguments_digest": digest,
        "scope": given["scope"],
    }
    if "expires_in" in given:
        grant["expires_at"] = now + given["expires_in"]
    facts = [of_grant(state, "GRANT_ISSUED", "approve", grant)]
    for other in state["turn"]["records"]:
        if other is record or not is_pending_approval(other):
            continue
        if grant_covers(grant, other["tool_name"], other["digest"]):
            turn_id = state["turn"]["turn_id"]
            facts.append(approved_by_grant(state, turn_id, other, grant["grant_id"]))
    return facts


def gate(state: State, by: str, turn_id: str, call: dict[str, Any], now: float) -> list[Fact]:
    """K-41 and section 4: covered by the oldest grant in force, or asked for, or free."""
    if not call["requires_approval"]:
        return []
    digest = digest_of(call["arguments"])
    for grant in state["grants"]:
        if grant_covers(grant, call["tool_name"], digest):
            return [approved_by_grant(state, turn_id, call, grant["grant_id"])]
    payload: dict[str, Any] = {"arguments": call["arguments"], "arguments_digest": digest}
    if "approval_timeout" in call:
        payload["deadline"] = now + call["approval_timeout"]
    return [of_lifecycle(state, turn_id, "TOOL_APPROVAL_REQUESTED", by, call, payload)]


def second_decision(given: Given, record: Record) -> str:
    """D of section 6."""
    recorded = record["decision"]
    if recorded is None:
        return "already_decided" if record["phase"] == "DENIED" else "not_awaiting_approval"
    if given["approved"] != recorded["approved"]:
        return "already_decided"
    if given["approved"] and not same_approval(given, recorded):
        return "already_decided"
    return "duplicate"


def same_approval(given: Given, recorded: dict[str, Any]) -> bool:
    """D of section 6: the same scope, match where it counts, and edited arguments."""
    scope = given.get("scope", "once")
    if scope != recorded["scope"]:
        return False
    if scope != "once" and given.get("match", "exact") != recorded["match"]:
        return False
    if "arguments" not in given and "arguments" not in recorded:
        return True
    if "arguments" not in given or "arguments" not in recorded:
        return False
    return canonical(given["arguments"]) == canonical(recorded["arguments"])

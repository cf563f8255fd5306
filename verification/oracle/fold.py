"""Evolve (K-2): the fold of facts, in place over a copy that its caller made.

It sees state alone, so a fact that carries too little shows as a difference after recovery.
"""

# ruff: noqa: C901, D401, PLR1714 - it reads like the text, and JSON may be anything

from __future__ import annotations

from typing import Any

from .reading import Fact, Record, State, find_record, new_record, new_state


def refold(journal: list[Fact], run: dict[str, Any]) -> State:
    """Recovery: nothing but the fold of the journal (K-2)."""
    state = new_state(run)
    for fact in journal:
        fold(state, fact)
    return state


def copied(state: State) -> State:
    """A copy whose facts to come leave the original alone. Values inside are never changed."""
    turn = state["turn"]
    if turn is not None:
        turn = {**turn, "records": [record.copy() for record in turn["records"]]}
    return {**state, "turn": turn}


def fold(state: State, fact: Fact) -> None:
    """Fold one fact. Lists of the state are replaced, never changed: copies share them."""
    kind = fact["type"]
    state["sequence"] = fact["sequence"]
    state["at"] = fact["at"]
    if "invocation_id" in fact:
        record = find_record(state, fact["invocation_id"])
        assert record is not None, f"{kind} about a call that is no member"  # noqa: S101
        fold_record(record, fact)
    elif kind == "TURN_OPENED":
        fold_opened(state, fact)
    elif kind == "CALL_ADDED":
        turn = state["turn"]
        turn["records"] = [*turn["records"], new_record(fact["call"])]
    elif kind == "TURN_SEALED":
        state["turn"]["phase"] = "SEALED"
    elif kind == "TURN_INTERRUPTING":
        fold_interrupting(state, fact)
    elif kind == "TURN_SETTLED":
        fold_closed(state, fact, owes_continuation=True)
    elif kind == "TURN_INTERRUPTED":
        fold_closed(state, fact, owes_continuation=False)
    elif kind == "CONTINUATION_TAKEN":
        owed = state["continuations"]
        state["continuations"] = [c for c in owed if c["turn_id"] != fact["turn_id"]]
    elif kind == "GRANT_ISSUED":
        fold_grant(state, fact)
    elif kind == "GRANT_REVOKED" or kind == "GRANT_EXPIRED":
        held = state["grants"]
        state["grants"] = [g for g in held if g["grant_id"] != fact["grant_id"]]
    else:
        raise AssertionError(f"no such fact: {kind}")


def fold_opened(state: State, fact: Fact) -> None:
    """A turn begins."""
    state["epoch"] = fact["epoch"]
    state["turn"] = {
        "turn_id": fact["turn_id"],
        "epoch": fact["epoch"],
        "phase": "SEALED" if fact["sealed"] else "OPEN",
        "records": [new_record(call) for call in fact["calls"]],
        "grace_until": None,
    }


def fold_interrupting(state: State, fact: Fact) -> None:
    """Section 6, column interrupt: an authorised retry is withdrawn by the interrupt itself."""
    state["turn"]["phase"] = "INTERRUPTING"
    state["turn"]["grace_until"] = fact["grace_until"]
    for record in state["turn"]["records"]:
        if record["phase"] == "RETRY_AUTHORISED":
            record["phase"] = "IN_DOUBT"


def fold_grant(state: State, fact: Fact) -> None:
    """A grant comes into force."""
    state["grants_issued"] += 1
    grant = {
        "grant_id": fact["grant_id"],
        "tool_name": fact["tool_name"],
        "match": fact["match"],
        "arguments_digest": fact["arguments_digest"],
        "scope": fact["scope"],
        "expires_at": fact.get("expires_at"),
    }
    state["grants"] = [*state["grants"], grant]


def fold_closed(state: State, fact: Fact, *, owes_continuation: bool) -> None:
    """K-52, K-53, K-54; turn grants end with the closing itself (K-42)."""
    turn = state["turn"]
    if owes_continuation and turn["records"]:
        owed = {
            "turn_id": turn["turn_id"],
            "epoch": turn["epoch"],
            "results": [result_of(record) for record in turn["records"]],
        }
        state["continuations"] = [*state["continuations"], owed]
    for record in turn["records"]:
        remember(state, turn["turn_id"], record["invocation_id"], fact["at"])
    remember(state, turn["turn_id"], None, fact["at"])
    beyond = len(state["memory"]) - state["run"]["limits"]["remembered"]
    if beyond > 0:
        state["memory"] = state["memory"][beyond:]
    state["grants"] = [g for g in state["grants"] if g["scope"] != "turn"]
    state["turn"] = None


def remember(state: State, turn_id: str, invocation_id: str | None, at: float) -> None:
    """K-54: a pair that closes again counts once, as the most recently closed."""
    others = [
        entry
        for entry in state["memory"]
        if entry["invocation_id"] != invocation_id or entry["turn_id"] != turn_id
    ]
    others.append({"turn_id": turn_id, "invocation_id": invocation_id, "closed_at": at})
    state["memory"] = others


def result_of(record: Record) -> dict[str, Any]:
    """One entry of a continuation's results (section 9)."""
    return {
        "invocation_id": record["invocation_id"],
        "tool_name": record["tool_name"],
        **record["outcome"],
    }


def fold_record(record: Record, fact: Fact) -> None:
    """The facts about one invocation."""
    kind = fact["type"]
    if kind == "TOOL_APPROVAL_REQUESTED":
        record["digest"] = fact["arguments_digest"]
        record["deadline"] = fact.get("deadline")
    elif kind == "TOOL_APPROVED":
        fold_approved(record, fact)
    elif kind == "TOOL_DENIED":
        if fact["cause"] == "decision":
            record["decision"] = {"approved": False}
        end(record, "DENIED", {"status": "denied", "reason": fact["reason"]})
    elif kind == "TOOL_EXECUTION_STARTED" or kind == "EXECUTION_RETRIED":
        record["phase"] = "STARTED"
        record["attempt"] = fact["attempt"]
        record["worker"] = fact.get("worker")
        record["lease_until"] = fact.get("lease_until")
    elif kind == "LEASE_RENEWED":
        record["lease_until"] = fact["lease_until"]
    elif kind == "EXECUTION_IN_DOUBT":
        record["phase"] = "IN_DOUBT"
        record["lease_until"] = None
    elif kind == "RETRY_AUTHORISED":
        record["phase"] = "RETRY_AUTHORISED"
    elif kind == "TOOL_EXECUTION_SUCCEEDED":
        end(record, "SUCCEEDED", {"status": "succeeded", "result": fact["result"]})
    elif kind == "TOOL_EXECUTION_FAILED":
        end(record, "FAILED", {"status": "failed", "error": fact["error"]})
    else:
        raise AssertionError(f"no such fact: {kind}")


def fold_approved(record: Record, fact: Fact) -> None:
    """D of section 6: a decision by grant counts as `once`, whatever the grant's own scope."""
    record["phase"] = "APPROVED"
    record["deadline"] = None
    if "arguments" in fact:
        record["arguments"] = fact["arguments"]
    decision: dict[str, Any] = {"approved": True, "scope": "once", "match": None}
    if "grant_id" not in fact:
        decision["scope"] = fact["scope"]
        decision["match"] = fact.get("match")
        if "arguments" in fact:
            decision["arguments"] = fact["arguments"]
    record["decision"] = decision


def end(record: Record, phase: str, outcome: dict[str, Any]) -> None:
    """It has its outcome, and nothing waits for it any more."""
    record["phase"] = phase
    record["outcome"] = outcome
    record["deadline"] = None
    record["lease_until"] = None

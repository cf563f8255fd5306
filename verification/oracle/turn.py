"""Section 8, K-21, and what belongs to the run: continuations and revokes."""

# ruff: noqa: PERF401, PLR0911 - it reads like the text, and JSON may be anything

from __future__ import annotations

from typing import Any

from .approval import gate
from .drafts import denied, of_grant, of_turn, put
from .reading import Fact, Given, State, all_terminal, find_record, is_remembered


def judge_opening(state: State, given: Given, now: float) -> str | list[Fact]:
    """K-21."""
    reason = refuse_opening(state, given, now)
    if reason is not None:
        return reason
    turn_id = given["turn_id"]
    opened: Fact = {
        "type": "TURN_OPENED",
        "input": "open_turn",
        "turn_id": turn_id,
        "epoch": state["epoch"] + 1,
        "sealed": given.get("sealed", True),
        "calls": given["calls"],
    }
    facts = [opened]
    for call in given["calls"]:
        facts += gate(state, "open_turn", turn_id, call, now)
    return facts


def refuse_opening(state: State, given: Given, now: float) -> str | None:
    """K-21, in the order written."""
    turn: dict[str, Any] | None = state["turn"]
    limits = state["run"]["limits"]
    if turn is not None:
        return "turn_open" if turn["turn_id"] == given["turn_id"] else "turn_busy"
    if is_remembered(state, given["turn_id"], None, now):
        return "turn_reused"
    if given["turn_id"] in [owed["turn_id"] for owed in state["continuations"]]:
        return "turn_reused"
    if "epoch" in given and given["epoch"] != state["epoch"] + 1:
        return "stale_epoch"
    ids = [call["invocation_id"] for call in given["calls"]]
    if len(set(ids)) != len(ids):
        return "duplicate_invocation"
    if given.get("sealed", True) and not ids:
        return "empty_turn"
    if len(ids) > limits["calls"]:
        return "limit_reached"
    if len(state["continuations"]) >= limits["continuations"]:
        return "limit_reached"
    return None


def judge_addition(state: State, given: Given, now: float) -> str | list[Fact]:
    """K-22."""
    turn, call = state["turn"], given["call"]
    if turn["phase"] == "SEALED":
        return "turn_sealed"
    if turn["phase"] == "INTERRUPTING":
        return "interrupting"
    if find_record(state, call["invocation_id"]) is not None:
        return "duplicate_invocation"
    if len(turn["records"]) + 1 > state["run"]["limits"]["calls"]:
        return "limit_reached"
    return [
        of_turn(state, "CALL_ADDED", "add_call", {"call": call}),
        *gate(state, "add_call", turn["turn_id"], call, now),
    ]


def judge_sealing(state: State) -> str | list[Fact]:
    """K-22."""
    if state["turn"]["phase"] == "SEALED":
        return "duplicate"
    if state["turn"]["phase"] == "INTERRUPTING":
        return "interrupting"
    return [of_turn(state, "TURN_SEALED", "seal_turn", {})]


def judge_interrupt(state: State, given: Given, now: float) -> str | list[Fact]:
    """K-53."""
    if state["turn"]["phase"] == "INTERRUPTING":
        return "duplicate"
    payload: dict[str, Any] = {"grace_until": now + given.get("grace", 10.0)}
    put(payload, "reason", given.get("reason"))
    facts = [of_turn(state, "TURN_INTERRUPTING", "interrupt", payload)]
    for record in state["turn"]["records"]:
        if record["phase"] == "REQUESTED" or record["phase"] == "APPROVED":
            facts.append(denied(state, "interrupt", record, "interrupted", "interrupt"))
    return facts


def judge_acknowledgement(given: Given, before: State) -> str | list[Fact]:
    """K-22: one that this receive's own deadlines brought forth cannot have been taken."""
    if given["turn_id"] not in [owed["turn_id"] for owed in before["continuations"]]:
        return "no_continuation"
    return [{"type": "CONTINUATION_TAKEN", "input": "acknowledge", "turn_id": given["turn_id"]}]


def judge_revocation(state: State, given: Given) -> str | list[Fact]:
    """K-22, K-42."""
    if given["grant_id"] not in [grant["grant_id"] for grant in state["grants"]]:
        return "unknown_grant"
    return [of_grant(state, "GRANT_REVOKED", "revoke", {"grant_id": given["grant_id"]})]


def closing(state: State) -> list[Fact]:
    """Section 8: what closes the turn comes last; an OPEN turn closes by being sealed only."""
    turn = state["turn"]
    if turn is None or turn["phase"] == "OPEN" or not all_terminal(state):
        return []
    if turn["phase"] == "SEALED":
        return [of_turn(state, "TURN_SETTLED", "settle", {})]
    return [of_turn(state, "TURN_INTERRUPTED", "settle", {})]

"""Section 5: which delivery is judged by what, in the order of the text.

Every `judge` returns a reason, or the facts that the delivery brings forth, and changes nothing.
"""

# ruff: noqa: C901, PLR0911, PLR0912, PLR1714 - it reads like the text, and JSON may be anything

from __future__ import annotations

from typing import Any

from . import invocation, turn
from .approval import judge_decision
from .reading import Fact, Given, Record, State, find_record, is_remembered, owed_attempt

OF_A_TURN = ["add_call", "seal_turn", "interrupt"]


def judge(state: State, given: Given, now: float, before: State) -> str | list[Fact]:
    """Say the reason for refusing, or the facts. `before` is the state before its deadlines."""
    kind = given["type"]
    if "run_id" in given and given["run_id"] != state["run"]["run_id"]:
        return "run_mismatch"
    if kind == "log" or kind == "tick":
        return []
    if kind == "open_turn":
        return turn.judge_opening(state, given, now)
    if kind == "acknowledge":
        return turn.judge_acknowledgement(given, before)
    if kind == "revoke":
        return turn.judge_revocation(state, given)
    if kind in OF_A_TURN:
        reason = admit_turn(state, given, now)
        if reason is not None:
            return reason
        if kind == "add_call":
            return turn.judge_addition(state, given, now)
        if kind == "seal_turn":
            return turn.judge_sealing(state)
        return turn.judge_interrupt(state, given, now)
    record = admit_invocation(state, given, now)
    if isinstance(record, str):
        return record
    if kind == "decide":
        return judge_decision(state, given, record, now)
    if kind == "claim":
        return invocation.judge_claim(state, given, record, now)
    if kind == "renew":
        return invocation.judge_renewal(state, given, record, now)
    if kind == "reject":
        return invocation.judge_rejection(state, given, record)
    if kind == "report":
        return invocation.judge_report(state, given, record)
    if kind == "lose":
        return invocation.judge_loss(state, record)
    if kind == "resolve":
        return invocation.judge_resolution(state, given, record)
    raise AssertionError(f"no such delivery: {kind}")


def admit_turn(state: State, given: Given, now: float) -> str | None:
    """K-22 for add_call, seal_turn and interrupt."""
    active: dict[str, Any] | None = state["turn"]
    if active is not None and active["turn_id"] == given["turn_id"]:
        return None
    if is_remembered(state, given["turn_id"], None, now):
        return "late"
    return "no_active_turn" if active is None else "turn_mismatch"


def admit_invocation(state: State, given: Given, now: float) -> str | Record:
    """Section 5, steps 1 to 4."""
    active: dict[str, Any] | None = state["turn"]
    invocation_id = given["invocation_id"]
    record = find_record(state, invocation_id)
    if "turn_id" in given:
        if active is None or active["turn_id"] != given["turn_id"]:
            if is_remembered(state, given["turn_id"], invocation_id, now):
                return "late"
            return "no_active_turn" if active is None else "turn_mismatch"
    else:
        earlier = is_remembered(state, None, invocation_id, now)
        if record is not None and earlier:
            return "ambiguous_invocation"
        if record is None and earlier:
            return "late"
        if record is None and active is None:
            return "no_active_turn"
    if record is None:
        return "unknown_invocation"
    if "attempt" in given and is_stale(given, record):
        return "stale_attempt"
    return record


def is_stale(given: Given, record: Record) -> bool:
    """Section 5, step 4."""
    owed = owed_attempt(record)
    if given["type"] == "claim" and owed is not None:
        return given["attempt"] != owed  # type: ignore[no-any-return]
    return record["attempt"] > 0 and given["attempt"] != record["attempt"]  # type: ignore[no-any-return]

"""Facts before they have happened: type, input, turn and payload, but no number and no time.

`by` is the input that brings the fact about (K-59).
"""

# ruff: noqa: ANN401, D401, PLR0913, PLR0917 - it reads like the text, and JSON may be anything

from __future__ import annotations

from typing import Any

from .reading import Fact, Record, State


def put(payload: dict[str, Any], name: str, value: Any) -> None:
    """An optional field that is absent stays out, and is never null."""
    if value is not None:
        payload[name] = value


def of_turn(state: State, kind: str, by: str, payload: dict[str, Any]) -> Fact:
    """A fact of the active turn."""
    return {"type": kind, "input": by, "turn_id": state["turn"]["turn_id"], **payload}


def of_execution(state: State, kind: str, by: str, record: Record, payload: dict[str, Any]) -> Fact:
    """A fact about one attempt."""
    return of_turn(state, kind, by, {"invocation_id": record["invocation_id"], **payload})


def of_lifecycle(
    state: State, turn_id: str, kind: str, by: str, record: Record, payload: dict[str, Any]
) -> Fact:
    """The payload of the seed's section 4: agent_id and agent_name where the run has them."""
    fact: Fact = {
        "type": kind,
        "input": by,
        "turn_id": turn_id,
        "invocation_id": record["invocation_id"],
        "tool_name": record["tool_name"],
        **payload,
    }
    run = state["run"]
    if run["agent_id"] is not None:
        fact["agent_id"] = run["agent_id"]
    if run["agent_name"] is not None:
        fact["agent_name"] = run["agent_name"]
    return fact


def of_grant(state: State, kind: str, by: str, payload: dict[str, Any]) -> Fact:
    """Section 4: turn_id is null in grant facts outside a turn."""
    turn = state["turn"]
    return {
        "type": kind,
        "input": by,
        "turn_id": None if turn is None else turn["turn_id"],
        **payload,
    }


def denied(
    state: State, by: str, record: Record, reason: str, cause: str, decided_by: str | None = None
) -> Fact:
    """TOOL_DENIED."""
    payload: dict[str, Any] = {"reason": reason, "cause": cause}
    put(payload, "decided_by", decided_by)
    return of_lifecycle(state, state["turn"]["turn_id"], "TOOL_DENIED", by, record, payload)


def succeeded(state: State, by: str, record: Record, result: Any) -> Fact:
    """TOOL_EXECUTION_SUCCEEDED."""
    turn_id = state["turn"]["turn_id"]
    return of_lifecycle(state, turn_id, "TOOL_EXECUTION_SUCCEEDED", by, record, {"result": result})


def failed(state: State, by: str, record: Record, error: str, cause: str) -> Fact:
    """TOOL_EXECUTION_FAILED."""
    turn_id = state["turn"]["turn_id"]
    payload = {"error": error, "cause": cause}
    return of_lifecycle(state, turn_id, "TOOL_EXECUTION_FAILED", by, record, payload)


def in_doubt(state: State, by: str, record: Record) -> Fact:
    """EXECUTION_IN_DOUBT, of the current attempt."""
    return of_execution(state, "EXECUTION_IN_DOUBT", by, record, {"attempt": record["attempt"]})


def approved_by_grant(state: State, turn_id: str, record: Record, grant_id: str) -> Fact:
    """TOOL_APPROVED, naming the grant. `once` is what D of section 6 says that it counts as."""
    payload = {"scope": "once", "grant_id": grant_id}
    return of_lifecycle(state, turn_id, "TOOL_APPROVED", "grant", record, payload)

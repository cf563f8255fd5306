"""Section 6 but for the decisions: the life of one invocation."""

# ruff: noqa: ANN401, D401, PLR0911 - it reads like the text, and JSON may be anything

from __future__ import annotations

from typing import Any

from .drafts import failed, in_doubt, of_execution, of_lifecycle, put, succeeded
from .reading import (
    Fact,
    Given,
    Record,
    State,
    canonical,
    is_in_doubt,
    is_pending_approval,
    is_terminal,
)


def judge_claim(state: State, given: Given, record: Record, now: float) -> str | list[Fact]:
    """K-33."""
    if is_terminal(record):
        return "already_settled"
    if is_pending_approval(record):
        return "not_approved"
    if record["phase"] == "STARTED":
        if "worker" in given and given["worker"] == record["worker"]:
            return "duplicate"
        return "already_started"
    if record["phase"] == "IN_DOUBT":
        return "not_authorised"
    payload: dict[str, Any] = {"attempt": record["attempt"] + 1}
    put(payload, "worker", given.get("worker"))
    if "lease" in given:
        payload["lease_until"] = now + given["lease"]
    if record["phase"] == "RETRY_AUTHORISED":
        return [of_execution(state, "EXECUTION_RETRIED", "claim", record, payload)]
    payload["arguments"] = record["arguments"]
    turn_id = state["turn"]["turn_id"]
    return [of_lifecycle(state, turn_id, "TOOL_EXECUTION_STARTED", "claim", record, payload)]


def judge_renewal(state: State, given: Given, record: Record, now: float) -> str | list[Fact]:
    """K-34."""
    if is_terminal(record):
        return "already_settled"
    if is_in_doubt(record):
        return "lease_lost"
    if record["phase"] != "STARTED":
        return "not_started"
    payload = {"attempt": record["attempt"], "lease_until": now + given["lease"]}
    return [of_execution(state, "LEASE_RENEWED", "renew", record, payload)]


def judge_rejection(state: State, given: Given, record: Record) -> str | list[Fact]:
    """It could not be started."""
    if is_terminal(record):
        return "already_settled"
    if record["phase"] == "STARTED" or is_in_doubt(record):
        return "already_started"
    return [failed(state, "reject", record, given["error"], "rejected")]


def judge_report(state: State, given: Given, record: Record) -> str | list[Fact]:
    """K-30, K-35, K-36."""
    if record["phase"] == "DENIED":
        return "already_settled"
    if is_terminal(record):
        return second_outcome(given, record)
    if record["phase"] == "REQUESTED" or record["phase"] == "APPROVED":
        return "not_started"
    if "error" in given:
        return [failed(state, "report_error", record, given["error"], "reported")]
    return [succeeded(state, "report_result", record, given["result"])]


def judge_loss(state: State, record: Record) -> str | list[Fact]:
    """K-35."""
    if is_terminal(record):
        return "already_settled"
    if is_in_doubt(record):
        return "duplicate"
    if record["phase"] != "STARTED":
        return "not_started"
    return [in_doubt(state, "lose", record)]


def judge_resolution(state: State, given: Given, record: Record) -> str | list[Fact]:
    """K-35, K-31, K-58."""
    if is_terminal(record):
        return "already_settled"
    if not is_in_doubt(record):
        return "not_in_doubt"
    if given["as"] == "result":
        return [succeeded(state, "resolve_result", record, given["result"])]
    if given["as"] == "error":
        return [failed(state, "resolve_error", record, given["error"], "resolved")]
    if record["observed"]:
        return "not_owned"
    if record["phase"] == "RETRY_AUTHORISED":
        return "duplicate"
    if state["turn"]["phase"] == "INTERRUPTING":
        return "interrupting"
    return [
        of_execution(
            state, "RETRY_AUTHORISED", "resolve_retry", record, {"attempt": record["attempt"]}
        )
    ]


def second_outcome(given: Given, record: Record) -> str:
    """S of section 6, on SUCCEEDED and FAILED."""
    outcome = record["outcome"]
    for kind in ["result", "error"]:
        if kind in given and kind in outcome and same_json(given[kind], outcome[kind]):
            return "duplicate"
    return "conflicting_duplicate"


def same_json(one: Any, other: Any) -> bool:
    """Equal as canonical JSON; two texts need not be written down for that."""
    if type(one) is str and type(other) is str:
        return one == other
    return canonical(one) == canonical(other)

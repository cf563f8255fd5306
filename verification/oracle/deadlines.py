"""The deadlines of K-11 that stand in a state, and what each of them brings."""

# ruff: noqa: D401 - it reads like the text, and JSON may be anything

from __future__ import annotations

from sys import float_info
from typing import Any

from .drafts import denied, failed, in_doubt, of_grant
from .reading import Fact, Record, State, find_record, is_pending_approval, is_terminal


def deadlines(state: State) -> list[dict[str, Any]]:
    """Every deadline that stands and can come due, kind by kind in the order of its ties."""
    turn: dict[str, Any] | None = state["turn"]
    found: list[dict[str, Any]] = []
    leases: list[dict[str, Any]] = []
    if turn is not None:
        record: Record
        for record in turn["records"]:
            if record["deadline"] is not None and is_pending_approval(record):
                found.append(deadline("approval", record["deadline"], record["invocation_id"]))
            if record["lease_until"] is not None and record["phase"] == "STARTED":
                leases.append(deadline("lease", record["lease_until"], record["invocation_id"]))
        found += leases
    for grant in state["grants"]:
        if grant["expires_at"] is not None:
            found.append(deadline("grant", grant["expires_at"], grant["grant_id"]))
    if turn is not None and turn["phase"] == "INTERRUPTING":
        found.append(deadline("grace", turn["grace_until"], turn["turn_id"]))
    if not found:
        return found
    return [entry for entry in found if entry["deadline"] < float_info.max]  # K-34: none is past it


def deadline(kind: str, at: float, subject: str) -> dict[str, Any]:
    """One deadline."""
    return {"kind": kind, "deadline": at, "subject": subject}


def next_due(state: State, now: float) -> dict[str, Any] | None:
    """The oldest deadline that is over (strictly past, K-34), the first of its ties (K-11)."""
    oldest: dict[str, Any] | None = None
    for entry in deadlines(state):
        if now > entry["deadline"] and (oldest is None or entry["deadline"] < oldest["deadline"]):
            oldest = entry
    return oldest


def facts_of(state: State, due: dict[str, Any]) -> list[Fact]:
    """What happens because this deadline is over."""
    if due["kind"] == "grant":
        return [of_grant(state, "GRANT_EXPIRED", "grant_over", {"grant_id": due["subject"]})]
    if due["kind"] == "grace":
        left = [record for record in state["turn"]["records"] if not is_terminal(record)]
        unknown = "interrupted; outcome unknown"
        return [failed(state, "grace_over", record, unknown, "interrupted") for record in left]
    record = find_record(state, due["subject"])
    assert record is not None, "a deadline of a call that is no member"  # noqa: S101
    if due["kind"] == "approval":
        return [denied(state, "approval_over", record, "approval expired", "expiry")]
    return [in_doubt(state, "lease_over", record)]

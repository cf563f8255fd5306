"""What the oracle reads off its state, and the texts it makes: kernel.md aloud, in plain dicts.

Nothing here decides or changes anything.
"""

# ruff: noqa: ANN401, D400, D401 - it reads like the text, and JSON may be anything

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from typing import Any

Fact = dict[str, Any]
State = dict[str, Any]
Record = dict[str, Any]
Given = dict[str, Any]
"""A well-formed delivery of the wire; a field that is null is left out, except `result`."""

TERMINAL = frozenset(["SUCCEEDED", "FAILED", "DENIED"])


ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def canonical(value: Any) -> str:
    """Canonical JSON of K-32; it tells 1, 1.0 and true apart, which `==` does not."""
    return ENCODER.encode(value)


def digest_of(arguments: Any) -> str:
    """The digest of K-32."""
    if arguments == {}:  # as most are
        return DIGEST_OF_NOTHING
    return hashlib.sha256(canonical(arguments).encode("utf-8")).hexdigest()


DIGEST_OF_NOTHING = hashlib.sha256(b"{}").hexdigest()


@lru_cache(maxsize=4096, typed=True)  # exploring asks for the same few ids again and again
def make_id(*parts: Any) -> str:
    """Join parts as K-7 says. `%` goes first, or its own escapes would be escaped again."""
    return "/".join(str(part).replace("%", "%25").replace("/", "%2F") for part in parts)


def new_state(run: dict[str, Any]) -> State:
    """The state of a fresh run. The run is configuration, not facts (section 4)."""
    return {
        "run": run,
        "sequence": 0,
        "at": None,
        "epoch": 0,
        "turn": None,
        "memory": [],
        "continuations": [],
        "grants": [],
        "grants_issued": 0,
    }


def new_record(call: dict[str, Any]) -> Record:
    """An expected invocation, as REQUESTED."""
    return {
        "invocation_id": call["invocation_id"],
        "tool_name": call["tool_name"],
        "arguments": call["arguments"],
        "requires_approval": call["requires_approval"],
        "observed": call.get("observed", False),
        "phase": "REQUESTED",
        "digest": None,
        "deadline": None,
        "attempt": 0,
        "worker": None,
        "lease_until": None,
        "decision": None,
        "outcome": None,
    }


def find_record(state: State, invocation_id: str) -> Record | None:
    """The invocation of the active turn with this id, if it has one."""
    turn: dict[str, Any] | None = state["turn"]
    if turn is None:
        return None
    record: Record
    for record in turn["records"]:
        if record["invocation_id"] == invocation_id:
            return record
    return None


def is_terminal(record: Record) -> bool:
    """Terminal phases of section 6."""
    return record["phase"] in TERMINAL


def is_in_doubt(record: Record) -> bool:
    """Section 6: nobody knows whether it happened, a retry authorised or not."""
    in_doubt: bool = record["phase"] == "IN_DOUBT" or record["phase"] == "RETRY_AUTHORISED"
    return in_doubt


def all_terminal(state: State) -> bool:
    """K-50: by membership; true of an empty turn."""
    for record in state["turn"]["records"]:  # noqa: SIM110 - asked of each step
        if record["phase"] not in TERMINAL:
            return False
    return True


def is_pending_approval(record: Record) -> bool:
    """REQUESTED and gated. A covered call is APPROVED in the commit that brought it (K-41)."""
    pending: bool = record["phase"] == "REQUESTED" and record["requires_approval"]
    return pending


def owed_attempt(record: Record) -> int | None:
    """The attempt of the execute effect this invocation owes, or None (section 9, K-33, K-58)."""
    phase = record["phase"]
    if record["observed"] or phase in TERMINAL:
        return None
    if phase == "APPROVED":
        return 1
    if phase == "REQUESTED":
        return None if record["requires_approval"] else 1
    if phase == "RETRY_AUTHORISED":
        return int(record["attempt"]) + 1
    return None


def grant_covers(grant: dict[str, Any], tool_name: str, arguments_digest: str) -> bool:
    """K-40: the tool, and unless match is tool, the exact arguments."""
    if grant["tool_name"] != tool_name:
        return False
    if grant["match"] == "tool":
        return True
    return bool(grant["arguments_digest"] == arguments_digest)


def is_remembered(state: State, turn_id: str | None, invocation_id: str | None, now: float) -> bool:
    """K-54. No turn_id: does any closed turn that is remembered hold the id?"""
    for entry in state["memory"]:
        if entry["invocation_id"] != invocation_id:
            continue
        if turn_id is not None and entry["turn_id"] != turn_id:
            continue
        if now - entry["closed_at"] <= state["run"]["limits"]["remember_for"]:
            return True
    return False

"""The oracle's ids, digest, fold and owed effects: kernel.md read aloud, in plain dicts and lists.

Nothing here decides anything. `fold` is *evolve* of K-2 and `pending_effects` is K-3; both see
state alone, so a fact that carries too little shows as a difference after recovery.
"""

# ruff: noqa: C901, PERF401, PLR1714 - it reads like the text

# Wire messages are plain dicts of anything: the oracle is dumb on purpose.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportOptionalSubscript=false

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

Fact = dict[str, Any]
State = dict[str, Any]
Record = dict[str, Any]

TERMINAL = ["SUCCEEDED", "FAILED", "DENIED"]


def canonical(value: Any) -> str:
    """Canonical JSON of K-32; it tells 1, 1.0 and true apart, which `==` does not."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest_of(arguments: Any) -> str:
    """The digest of K-32."""
    return hashlib.sha256(canonical(arguments).encode("utf-8")).hexdigest()


def make_id(*parts: Any) -> str:
    """Join parts as K-7 says. `%` goes first, or its own escapes would be escaped again."""
    return "/".join(str(part).replace("%", "%25").replace("/", "%2F") for part in parts)


def new_state(limits: dict[str, Any]) -> State:
    """The state of a fresh run. Limits are configuration, not facts (section 4)."""
    return {
        "limits": limits,
        "sequence": 0,
        "at": None,
        "epoch": 0,
        "turn": None,
        "memory": [],
        "continuations": [],
        "grants": [],
        "grants_issued": 0,
    }


def refold(journal: list[Fact], limits: dict[str, Any]) -> State:
    """Recovery: nothing but the fold of the journal (K-2)."""
    state = new_state(limits)
    for fact in journal:
        fold(state, fact)
    return state


def new_record(call: dict[str, Any]) -> Record:
    """An expected invocation, as REQUESTED."""
    return {
        "invocation_id": call["invocation_id"],
        "tool_name": call["tool_name"],
        "arguments": call["arguments"],
        "requires_approval": call["requires_approval"],
        "phase": "REQUESTED",
        "deadline": None,
        "attempt": 0,
        "worker": None,
        "lease_until": None,
        "retry": False,
        "decision": None,
        "outcome": None,
    }


def find_record(state: State, invocation_id: str) -> Record | None:
    """The invocation of the active turn with this id, if it has one."""
    if state["turn"] is None:
        return None
    for record in state["turn"]["records"]:
        if record["invocation_id"] == invocation_id:
            found: Record = record
            return found
    return None


def is_terminal(record: Record) -> bool:
    """Terminal phases of section 6."""
    return record["phase"] in TERMINAL


def all_terminal(state: State) -> bool:
    """K-50: by membership; true of an empty turn."""
    return all(is_terminal(record) for record in state["turn"]["records"])


def is_pending_approval(record: Record) -> bool:
    """REQUESTED and gated. A covered call is APPROVED in the commit that brought it (K-41)."""
    return bool(record["phase"] == "REQUESTED" and record["requires_approval"])


def owed_attempt(record: Record) -> int | None:
    """The attempt of the execute effect this invocation owes, or None (section 9, K-33)."""
    if record["phase"] == "REQUESTED" and not record["requires_approval"]:
        return 1
    if record["phase"] == "APPROVED":
        return 1
    if record["phase"] == "IN_DOUBT" and record["retry"]:
        return int(record["attempt"]) + 1
    return None


def grant_covers(grant: dict[str, Any], record: Record) -> bool:
    """K-40: the tool, and unless match is tool, the exact arguments."""
    if grant["tool_name"] != record["tool_name"]:
        return False
    if grant["match"] == "tool":
        return True
    return bool(grant["arguments_digest"] == digest_of(record["arguments"]))


# ------------------------------------------------------------------------------------------- evolve


def fold(state: State, fact: Fact) -> None:
    """Evolve, in place (K-2)."""
    kind = fact["type"]
    state["sequence"] = fact["sequence"]
    state["at"] = fact["at"]
    if kind == "TURN_OPENED":
        _fold_opened(state, fact)
    elif kind == "CALL_ADDED":
        state["turn"]["records"].append(new_record(fact["call"]))
    elif kind == "TURN_SEALED":
        state["turn"]["phase"] = "SEALED"
    elif kind == "TURN_INTERRUPTING":
        _fold_interrupting(state, fact)
    elif kind == "TURN_SETTLED":
        _fold_closed(state, fact, owes_continuation=True)
    elif kind == "TURN_INTERRUPTED":
        _fold_closed(state, fact, owes_continuation=False)
    elif kind == "CONTINUATION_TAKEN":
        owed = state["continuations"]
        state["continuations"] = [c for c in owed if c["turn_id"] != fact["turn_id"]]
    elif kind == "GRANT_ISSUED":
        _fold_grant(state, fact)
    elif kind == "GRANT_REVOKED" or kind == "GRANT_EXPIRED":
        held = state["grants"]
        state["grants"] = [g for g in held if g["grant_id"] != fact["grant_id"]]
    else:
        record = find_record(state, fact["invocation_id"])
        assert record is not None, f"{kind} about a call that is no member"
        _fold_record(record, fact)


def _fold_opened(state: State, fact: Fact) -> None:
    state["epoch"] = fact["epoch"]
    state["turn"] = {
        "turn_id": fact["turn_id"],
        "epoch": fact["epoch"],
        "phase": "SEALED" if fact["sealed"] else "OPEN",
        "records": [new_record(call) for call in fact["calls"]],
        "grace_until": None,
    }


def _fold_interrupting(state: State, fact: Fact) -> None:
    """Section 6, column interrupt: an authorised retry is withdrawn by the interrupt itself."""
    state["turn"]["phase"] = "INTERRUPTING"
    state["turn"]["grace_until"] = fact["grace_until"]
    for record in state["turn"]["records"]:
        record["retry"] = False


def _fold_grant(state: State, fact: Fact) -> None:
    state["grants_issued"] += 1
    state["grants"].append(
        {
            "grant_id": fact["grant_id"],
            "tool_name": fact["tool_name"],
            "match": fact["match"],
            "arguments_digest": fact["arguments_digest"],
            "scope": fact["scope"],
            "expires_at": fact.get("expires_at"),
        }
    )


def _fold_closed(state: State, fact: Fact, owes_continuation: bool) -> None:
    """K-52, K-53, K-54; turn grants end with the closing itself (K-42)."""
    turn = state["turn"]
    if owes_continuation and turn["records"]:
        state["continuations"].append(
            {
                "turn_id": turn["turn_id"],
                "epoch": turn["epoch"],
                "results": [_result_of(record) for record in turn["records"]],
            }
        )
    for record in turn["records"]:
        _remember(state, turn["turn_id"], record["invocation_id"], fact["at"])
    _remember(state, turn["turn_id"], None, fact["at"])
    while len(state["memory"]) > state["limits"]["remembered"]:
        state["memory"].pop(0)
    state["grants"] = [g for g in state["grants"] if g["scope"] != "turn"]
    state["turn"] = None


def _remember(state: State, turn_id: str, invocation_id: str | None, at: float) -> None:
    """K-54: a pair that closes again counts once, as the most recently closed."""
    others = []
    for entry in state["memory"]:
        if entry["turn_id"] != turn_id or entry["invocation_id"] != invocation_id:
            others.append(entry)
    others.append({"turn_id": turn_id, "invocation_id": invocation_id, "closed_at": at})
    state["memory"] = others


def _result_of(record: Record) -> dict[str, Any]:
    """One entry of a continuation's results (section 9)."""
    return {
        "invocation_id": record["invocation_id"],
        "tool_name": record["tool_name"],
        **record["outcome"],
    }


def _fold_record(record: Record, fact: Fact) -> None:
    """The facts about one invocation."""
    kind = fact["type"]
    if kind == "TOOL_APPROVAL_REQUESTED":
        record["deadline"] = fact.get("deadline")
    elif kind == "TOOL_APPROVED":
        _fold_approved(record, fact)
    elif kind == "TOOL_DENIED":
        if fact["cause"] == "decision":
            record["decision"] = {"approved": False}
        _end(record, "DENIED", {"status": "denied", "reason": fact["reason"]})
    elif kind == "TOOL_EXECUTION_STARTED" or kind == "EXECUTION_RETRIED":
        record["phase"] = "STARTED"
        record["attempt"] = fact["attempt"]
        record["worker"] = fact.get("worker")
        record["lease_until"] = fact.get("lease_until")
        record["retry"] = False
    elif kind == "LEASE_RENEWED":
        record["lease_until"] = fact["lease_until"]
    elif kind == "EXECUTION_IN_DOUBT":
        record["phase"] = "IN_DOUBT"
        record["lease_until"] = None
    elif kind == "RETRY_AUTHORISED":
        record["retry"] = True
    elif kind == "TOOL_EXECUTION_SUCCEEDED":
        _end(record, "SUCCEEDED", {"status": "succeeded", "result": fact["result"]})
    elif kind == "TOOL_EXECUTION_FAILED":
        _end(record, "FAILED", {"status": "failed", "error": fact["error"]})
    else:
        raise AssertionError(f"no such fact: {kind}")


def _fold_approved(record: Record, fact: Fact) -> None:
    record["phase"] = "APPROVED"
    record["deadline"] = None
    if "arguments" in fact:
        record["arguments"] = fact["arguments"]
    decision: dict[str, Any] = {"approved": True, "scope": "once", "match": None}
    # D of section 6: a decision by grant counts as `once`, whatever the grant's own scope.
    if "grant_id" not in fact:
        decision["scope"] = fact["scope"]
        decision["match"] = fact.get("match")
        if "arguments" in fact:
            decision["arguments"] = fact["arguments"]
    record["decision"] = decision


def _end(record: Record, phase: str, outcome: dict[str, Any]) -> None:
    record["phase"] = phase
    record["outcome"] = outcome
    record["deadline"] = None
    record["lease_until"] = None
    record["retry"] = False


# ------------------------------------------------------------------------------------ effects owed


def pending_effects(state: State, run_id: str) -> list[dict[str, Any]]:
    """All effects still owed, from state alone (K-3): executes, cancels, continues, wake."""
    effects = _executes(state, run_id) + _cancels(state, run_id) + _continues(state, run_id)
    due = deadlines(state)
    if due:
        at = math.nextafter(min(entry["deadline"] for entry in due), math.inf)
        effects.append({"type": "wake", "effect_id": make_id("wake", run_id), "at": at})
    return effects


def _executes(state: State, run_id: str) -> list[dict[str, Any]]:
    turn = state["turn"]
    effects: list[dict[str, Any]] = []
    for record in [] if turn is None else turn["records"]:
        attempt = owed_attempt(record)
        if attempt is None:
            continue
        where = [run_id, turn["epoch"], turn["turn_id"], record["invocation_id"]]
        effects.append(
            {
                "type": "execute",
                "effect_id": make_id("execute", *where, attempt),
                "turn_id": turn["turn_id"],
                "invocation_id": record["invocation_id"],
                "attempt": attempt,
                "tool_name": record["tool_name"],
                "arguments": record["arguments"],
                "idempotency_key": make_id("call", *where),
            }
        )
    return effects


def _cancels(state: State, run_id: str) -> list[dict[str, Any]]:
    """Whatever runs in an interrupting turn ran when it was interrupted: nothing starts after."""
    turn = state["turn"]
    if turn is None or turn["phase"] != "INTERRUPTING":
        return []
    effects: list[dict[str, Any]] = []
    for record in turn["records"]:
        if record["phase"] == "STARTED":
            where = [turn["turn_id"], record["invocation_id"], record["attempt"]]
            effects.append(
                {
                    "type": "cancel",
                    "effect_id": make_id("cancel", run_id, turn["epoch"], *where),
                    "turn_id": turn["turn_id"],
                    "invocation_id": record["invocation_id"],
                    "attempt": record["attempt"],
                }
            )
    return effects


def _continues(state: State, run_id: str) -> list[dict[str, Any]]:
    effects: list[dict[str, Any]] = []
    for owed in state["continuations"]:
        effects.append(
            {
                "type": "continue",
                "effect_id": make_id("continue", run_id, owed["epoch"], owed["turn_id"]),
                "turn_id": owed["turn_id"],
                "results": owed["results"],
            }
        )
    return effects


# ---------------------------------------------------------------------------------------- deadlines


def deadlines(state: State) -> list[dict[str, Any]]:
    """Every deadline of K-11 that stands, kind by kind in the order of its ties."""
    turn = state["turn"]
    records = [] if turn is None else turn["records"]
    found: list[dict[str, Any]] = []
    for record in records:
        if is_pending_approval(record) and record["deadline"] is not None:
            found.append(_deadline("approval", record["deadline"], record["invocation_id"]))
    for record in records:
        if record["phase"] == "STARTED" and record["lease_until"] is not None:
            found.append(_deadline("lease", record["lease_until"], record["invocation_id"]))
    for grant in state["grants"]:
        if grant["expires_at"] is not None:
            found.append(_deadline("grant", grant["expires_at"], grant["grant_id"]))
    if turn is not None and turn["phase"] == "INTERRUPTING":
        found.append(_deadline("grace", turn["grace_until"], turn["turn_id"]))
    return found


def _deadline(kind: str, at: float, subject: str) -> dict[str, Any]:
    return {"kind": kind, "deadline": at, "subject": subject}


def next_due(state: State, now: float) -> dict[str, Any] | None:
    """The oldest deadline that is over (strictly past, K-34), the first of its ties (K-11)."""
    oldest: dict[str, Any] | None = None
    for entry in deadlines(state):
        if now > entry["deadline"] and (oldest is None or entry["deadline"] < oldest["deadline"]):
            oldest = entry
    return oldest

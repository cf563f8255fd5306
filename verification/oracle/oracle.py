"""The oracle: a deliberately dumb second reading of kernel.md, to test the kernel against.

It speaks the wire (section 12): one delivery as a dict in, one receipt as a dict out. It is written
from the text alone, decides by plain `if`s in the order of the text, and recomputes everything
each time. What goes in and out is copied; inside, facts and state may share values, which nobody
changes.
"""

# ruff: noqa: C901, PERF403, PLR0911, PLR1714, SIM102 - it reads like the text

# Wire messages are plain dicts of anything: the oracle is dumb on purpose.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportOptionalSubscript=false

from __future__ import annotations

import copy
import json
from typing import Any

from .reading import (
    Fact,
    Record,
    all_terminal,
    canonical,
    digest_of,
    find_record,
    fold,
    grant_covers,
    is_pending_approval,
    is_terminal,
    make_id,
    new_record,
    new_state,
    next_due,
    owed_attempt,
    pending_effects,
    refold,
)

DEFAULT_LIMITS: dict[str, Any] = {
    "remembered": 1024,
    "remember_for": 300,
    "calls": 10_000,
    "grants": 1_000,
    "continuations": 1_000,
}

OF_AN_INVOCATION = ["decide", "claim", "renew", "reject", "report", "lose", "resolve"]


class Oracle:
    """One run. `receive` takes a well-formed wire delivery and returns its receipt."""

    def __init__(self, run: dict[str, Any]) -> None:
        self.run_id: str = run["run_id"]
        self.agent_id: str | None = run.get("agent_id")
        self.agent_name: str | None = run.get("agent_name")
        self.limits = dict(DEFAULT_LIMITS)
        for name, value in (run.get("limits") or {}).items():
            if value is not None:
                self.limits[name] = value
        self.journal: list[Fact] = []
        self.state = new_state(self.limits)
        self.now = 0.0

    # -------------------------------------------------------------------------------- the receive

    def receive(self, delivery: dict[str, Any]) -> dict[str, Any]:
        """Let happen what is due, then judge, then say what was added (K-11, K-3)."""
        given = without_nulls(copy.deepcopy(delivery))
        if given["type"] == "recover":
            return self._recover()
        before = self._owed()
        owed_before = [entry["turn_id"] for entry in self.state["continuations"]]
        first = len(self.journal)
        self.now = self._time(given["now"])
        self._let_happen_what_is_due()
        reason = self._judge(given, owed_before)
        self._close_commit(first)
        receipt: dict[str, Any] = {"accepted": reason is None}
        if reason is not None:
            receipt["reason"] = reason
        receipt["facts"] = copy.deepcopy(self.journal[first:])
        receipt["effects"] = copy.deepcopy(added(before, self._owed()))
        return receipt

    def pending(self) -> list[dict[str, Any]]:
        """All effects still owed (K-3)."""
        return copy.deepcopy(self._owed())

    def _owed(self) -> list[dict[str, Any]]:
        return pending_effects(self.state, self.run_id)

    def _recover(self) -> dict[str, Any]:
        """Throw the state away and fold the journal, which went through text (K-2, section 12)."""
        self.journal = json.loads(json.dumps(self.journal))
        self.state = refold(self.journal, self.limits)
        return {"accepted": True, "facts": [], "effects": self.pending()}

    def _time(self, now: float) -> float:
        """K-10: the clock is a fold of facts."""
        latest = self.state["at"]
        if latest is not None and now < latest:
            return float(latest)
        return float(now)

    def _close_commit(self, first: int) -> None:
        """The facts of one receive are one commit (K-9): each names the last of them."""
        for fact in self.journal[first:]:
            fact["commit"] = self.journal[-1]["sequence"]

    # --------------------------------------------------------------------------------- emit a fact

    def _emit(self, kind: str, turn_id: str | None, payload: dict[str, Any]) -> None:
        fact: Fact = {
            "run_id": self.run_id,
            "sequence": self.state["sequence"] + 1,
            "at": self.now,
            "turn_id": turn_id,
            "type": kind,
        }
        fact.update(payload)
        self.journal.append(fact)
        fold(self.state, fact)

    def _emit_turn(self, kind: str, payload: dict[str, Any]) -> None:
        self._emit(kind, self.state["turn"]["turn_id"], payload)

    def _emit_execution(self, kind: str, record: Record, payload: dict[str, Any]) -> None:
        self._emit_turn(kind, {"invocation_id": record["invocation_id"], **payload})

    def _emit_lifecycle(self, kind: str, record: Record, payload: dict[str, Any]) -> None:
        """The payload of the seed's section 4: agent_id and agent_name where the run has them."""
        common: dict[str, Any] = {
            "invocation_id": record["invocation_id"],
            "tool_name": record["tool_name"],
        }
        put(common, "agent_id", self.agent_id)
        put(common, "agent_name", self.agent_name)
        self._emit_turn(kind, {**common, **payload})

    def _emit_grant(self, kind: str, payload: dict[str, Any]) -> None:
        """Section 4: turn_id is null in grant facts outside a turn."""
        turn = self.state["turn"]
        self._emit(kind, None if turn is None else turn["turn_id"], payload)

    def _deny(self, record: Record, reason: str, cause: str, decided_by: str | None) -> None:
        payload: dict[str, Any] = {"reason": reason, "cause": cause}
        put(payload, "decided_by", decided_by)
        self._emit_lifecycle("TOOL_DENIED", record, payload)

    def _succeed(self, record: Record, result: Any) -> None:
        self._emit_lifecycle("TOOL_EXECUTION_SUCCEEDED", record, {"result": result})

    def _fail(self, record: Record, error: str, cause: str) -> None:
        self._emit_lifecycle("TOOL_EXECUTION_FAILED", record, {"error": error, "cause": cause})

    def _close_if_done(self) -> None:
        """Section 8: what closes the turn comes last; an OPEN turn closes by being sealed only."""
        turn = self.state["turn"]
        if turn is None or not all_terminal(self.state):
            return
        if turn["phase"] == "SEALED":
            self._emit_turn("TURN_SETTLED", {})
        elif turn["phase"] == "INTERRUPTING":
            self._emit_turn("TURN_INTERRUPTED", {})

    # ---------------------------------------------------------------------------------- deadlines

    def _let_happen_what_is_due(self) -> None:
        """K-11: one at a time, looked up again after each."""
        while True:
            due = next_due(self.state, self.now)
            if due is None:
                return
            self._happen(due)
            self._close_if_done()

    def _happen(self, due: dict[str, Any]) -> None:
        if due["kind"] == "grant":
            self._emit_grant("GRANT_EXPIRED", {"grant_id": due["subject"]})
            return
        if due["kind"] == "grace":
            for record in list(self.state["turn"]["records"]):
                if not is_terminal(record):
                    self._fail(record, "interrupted; outcome unknown", "interrupted")
            return
        late = find_record(self.state, due["subject"])
        assert late is not None
        if due["kind"] == "approval":
            self._deny(late, "approval expired", "expiry", None)
        else:
            self._emit_execution("EXECUTION_IN_DOUBT", late, {"attempt": late["attempt"]})

    # ---------------------------------------------------------------------------------- admission

    def _judge(self, given: dict[str, Any], owed_before: list[str]) -> str | None:
        """A reason, or None once the facts are emitted. The order is section 5's."""
        kind = given["type"]
        if "run_id" in given and given["run_id"] != self.run_id:
            return "run_mismatch"
        if kind == "log" or kind == "tick":
            return None
        if kind == "open_turn":
            return self._open_turn(given)
        if kind == "acknowledge":
            return self._acknowledge(given, owed_before)
        if kind == "revoke":
            return self._revoke(given)
        if kind in OF_AN_INVOCATION:
            reason = self._admit_invocation(given)
        else:
            reason = self._admit_turn(given)
        if reason is None:
            reason = self._judge_admitted(given)
        if reason is None:
            self._close_if_done()
        return reason

    def _judge_admitted(self, given: dict[str, Any]) -> str | None:
        kind = given["type"]
        if kind == "add_call":
            return self._add_call(given)
        if kind == "seal_turn":
            return self._seal_turn()
        if kind == "interrupt":
            return self._interrupt(given)
        record = find_record(self.state, given["invocation_id"])
        assert record is not None
        if kind == "decide":
            return self._decide(given, record)
        if kind == "claim":
            return self._claim(given, record)
        if kind == "renew":
            return self._renew(given, record)
        if kind == "reject":
            return self._reject(given, record)
        if kind == "report":
            return self._report(given, record)
        if kind == "lose":
            return self._lose(record)
        if kind == "resolve":
            return self._resolve(given, record)
        raise AssertionError(f"no such delivery: {kind}")

    def _remembered(self, turn_id: str | None, invocation_id: str | None) -> bool:
        """K-54. No turn_id: does any closed turn that is remembered hold the id?"""
        for entry in self.state["memory"]:
            if self.now - entry["closed_at"] > self.limits["remember_for"]:
                continue
            if turn_id is not None and entry["turn_id"] != turn_id:
                continue
            if entry["invocation_id"] == invocation_id:
                return True
        return False

    def _admit_invocation(self, given: dict[str, Any]) -> str | None:
        """Section 5, steps 1 to 4."""
        turn = self.state["turn"]
        invocation_id = given["invocation_id"]
        record = find_record(self.state, invocation_id)
        if "turn_id" in given:
            if turn is None or turn["turn_id"] != given["turn_id"]:
                if self._remembered(given["turn_id"], invocation_id):
                    return "late"
                return "no_active_turn" if turn is None else "turn_mismatch"
        else:
            earlier = self._remembered(None, invocation_id)
            if record is not None and earlier:
                return "ambiguous_invocation"
            if record is None and earlier:
                return "late"
            if record is None and turn is None:
                return "no_active_turn"
        if record is None:
            return "unknown_invocation"
        if "attempt" in given:
            return self._admit_attempt(given, record)
        return None

    def _admit_attempt(self, given: dict[str, Any], record: Record) -> str | None:
        """Section 5, step 4."""
        owed = owed_attempt(record)
        if given["type"] == "claim" and owed is not None:
            return None if given["attempt"] == owed else "stale_attempt"
        if record["attempt"] > 0 and given["attempt"] != record["attempt"]:
            return "stale_attempt"
        return None

    def _admit_turn(self, given: dict[str, Any]) -> str | None:
        """K-22 for add_call, seal_turn and interrupt."""
        turn = self.state["turn"]
        if turn is not None and turn["turn_id"] == given["turn_id"]:
            return None
        if self._remembered(given["turn_id"], None):
            return "late"
        return "no_active_turn" if turn is None else "turn_mismatch"

    # -------------------------------------------------------------------------------- turn, grants

    def _open_turn(self, given: dict[str, Any]) -> str | None:
        """K-21, in the order written."""
        reason = self._refuse_opening(given)
        if reason is not None:
            return reason
        payload = {
            "epoch": self.state["epoch"] + 1,
            "sealed": given.get("sealed", True),
            "calls": given["calls"],
        }
        self._emit("TURN_OPENED", given["turn_id"], payload)
        for call in given["calls"]:
            self._gate(call)
        return None

    def _refuse_opening(self, given: dict[str, Any]) -> str | None:
        turn = self.state["turn"]
        if turn is not None:
            return "turn_open" if turn["turn_id"] == given["turn_id"] else "turn_busy"
        if self._remembered(given["turn_id"], None):
            return "turn_reused"
        if given["turn_id"] in [owed["turn_id"] for owed in self.state["continuations"]]:
            return "turn_reused"
        if "epoch" in given and given["epoch"] != self.state["epoch"] + 1:
            return "stale_epoch"
        ids = [call["invocation_id"] for call in given["calls"]]
        if len(set(ids)) != len(ids):
            return "duplicate_invocation"
        if given.get("sealed", True) and not ids:
            return "empty_turn"
        if len(ids) > self.limits["calls"]:
            return "limit_reached"
        if len(self.state["continuations"]) >= self.limits["continuations"]:
            return "limit_reached"
        return None

    def _gate(self, call: dict[str, Any]) -> None:
        """K-41 and section 4: covered by the oldest grant in force, or asked for, or free."""
        if not call["requires_approval"]:
            return
        wanted = new_record(call)
        for grant in self.state["grants"]:
            if grant_covers(grant, wanted):
                self._approve_by_grant(wanted, grant["grant_id"])
                return
        payload: dict[str, Any] = {
            "arguments": call["arguments"],
            "arguments_digest": digest_of(call["arguments"]),
        }
        if "approval_timeout" in call:
            payload["deadline"] = self.now + call["approval_timeout"]
        self._emit_lifecycle("TOOL_APPROVAL_REQUESTED", wanted, payload)

    def _approve_by_grant(self, record: Record, grant_id: str) -> None:
        """Its scope is `once`: that is what D of section 6 says it counts as."""
        self._emit_lifecycle("TOOL_APPROVED", record, {"scope": "once", "grant_id": grant_id})

    def _add_call(self, given: dict[str, Any]) -> str | None:
        turn = self.state["turn"]
        if turn["phase"] == "SEALED":
            return "turn_sealed"
        if turn["phase"] == "INTERRUPTING":
            return "interrupting"
        if find_record(self.state, given["call"]["invocation_id"]) is not None:
            return "duplicate_invocation"
        if len(turn["records"]) + 1 > self.limits["calls"]:
            return "limit_reached"
        self._emit_turn("CALL_ADDED", {"call": given["call"]})
        self._gate(given["call"])
        return None

    def _seal_turn(self) -> str | None:
        if self.state["turn"]["phase"] == "SEALED":
            return "duplicate"
        if self.state["turn"]["phase"] == "INTERRUPTING":
            return "interrupting"
        self._emit_turn("TURN_SEALED", {})
        return None

    def _interrupt(self, given: dict[str, Any]) -> str | None:
        """K-53."""
        if self.state["turn"]["phase"] == "INTERRUPTING":
            return "duplicate"
        payload: dict[str, Any] = {"grace_until": self.now + given.get("grace", 10.0)}
        put(payload, "reason", given.get("reason"))
        self._emit_turn("TURN_INTERRUPTING", payload)
        for record in list(self.state["turn"]["records"]):
            if record["phase"] == "REQUESTED" or record["phase"] == "APPROVED":
                self._deny(record, "interrupted", "interrupt", None)
        return None

    def _acknowledge(self, given: dict[str, Any], owed_before: list[str]) -> str | None:
        """K-22: one that this receive's own deadlines brought forth cannot have been taken."""
        if given["turn_id"] not in owed_before:
            return "no_continuation"
        self._emit("CONTINUATION_TAKEN", given["turn_id"], {})
        return None

    def _revoke(self, given: dict[str, Any]) -> str | None:
        if given["grant_id"] not in [grant["grant_id"] for grant in self.state["grants"]]:
            return "unknown_grant"
        self._emit_grant("GRANT_REVOKED", {"grant_id": given["grant_id"]})
        return None

    # ------------------------------------------------------------------------------ one invocation

    def _decide(self, given: dict[str, Any], record: Record) -> str | None:
        if not is_pending_approval(record):
            if record["phase"] == "REQUESTED":
                return "not_awaiting_approval"
            return second_decision(given, record)
        if given["approved"]:
            return self._approve(given, record)
        self._deny(record, given.get("reason") or "denied", "decision", given.get("decided_by"))
        return None

    def _approve(self, given: dict[str, Any], record: Record) -> str | None:
        """K-32, K-40; the limit of K-56 is checked last."""
        scope = given.get("scope", "once")
        match = given.get("match", "exact")
        if "arguments_digest" in given:
            if given["arguments_digest"] != digest_of(record["arguments"]):
                return "arguments_mismatch"
        if scope != "once" and len(self.state["grants"]) + 1 > self.limits["grants"]:
            return "limit_reached"
        payload: dict[str, Any] = {"scope": scope}
        if scope != "once":
            payload["match"] = match
        put(payload, "arguments", given.get("arguments"))
        put(payload, "decided_by", given.get("decided_by"))
        put(payload, "reason", given.get("reason"))
        self._emit_lifecycle("TOOL_APPROVED", record, payload)
        if scope != "once":
            self._issue(given, record, scope, match)
        return None

    def _issue(self, given: dict[str, Any], record: Record, scope: str, match: str) -> None:
        """K-40: for the arguments that will run; K-41: it approves what it covers, in order."""
        grant: dict[str, Any] = {
            "grant_id": make_id("grant", self.run_id, self.state["grants_issued"] + 1),
            "tool_name": record["tool_name"],
            "match": match,
            "arguments_digest": digest_of(given.get("arguments", record["arguments"])),
            "scope": scope,
        }
        if "expires_in" in given:
            grant["expires_at"] = self.now + given["expires_in"]
        self._emit_grant("GRANT_ISSUED", grant)
        for other in list(self.state["turn"]["records"]):
            if is_pending_approval(other) and grant_covers(grant, other):
                self._approve_by_grant(other, grant["grant_id"])

    def _claim(self, given: dict[str, Any], record: Record) -> str | None:
        """K-33."""
        if is_terminal(record):
            return "already_settled"
        if is_pending_approval(record):
            return "not_approved"
        if record["phase"] == "STARTED":
            if "worker" in given and given["worker"] == record["worker"]:
                return "duplicate"
            return "already_started"
        if record["phase"] == "IN_DOUBT" and not record["retry"]:
            return "not_authorised"
        payload: dict[str, Any] = {"attempt": record["attempt"] + 1}
        put(payload, "worker", given.get("worker"))
        if "lease" in given:
            payload["lease_until"] = self.now + given["lease"]
        if record["phase"] == "IN_DOUBT":
            self._emit_execution("EXECUTION_RETRIED", record, payload)
        else:
            payload["arguments"] = record["arguments"]
            self._emit_lifecycle("TOOL_EXECUTION_STARTED", record, payload)
        return None

    def _renew(self, given: dict[str, Any], record: Record) -> str | None:
        if is_terminal(record):
            return "already_settled"
        if record["phase"] == "IN_DOUBT":
            return "lease_lost"
        if record["phase"] != "STARTED":
            return "not_started"
        payload = {"attempt": record["attempt"], "lease_until": self.now + given["lease"]}
        self._emit_execution("LEASE_RENEWED", record, payload)
        return None

    def _reject(self, given: dict[str, Any], record: Record) -> str | None:
        if is_terminal(record):
            return "already_settled"
        if record["phase"] == "STARTED" or record["phase"] == "IN_DOUBT":
            return "already_started"
        self._fail(record, given["error"], "rejected")
        return None

    def _report(self, given: dict[str, Any], record: Record) -> str | None:
        if record["phase"] == "DENIED":
            return "already_settled"
        if is_terminal(record):
            return second_outcome(given, record)
        if record["phase"] == "REQUESTED" or record["phase"] == "APPROVED":
            return "not_started"
        if "error" in given:
            self._fail(record, given["error"], "reported")
        else:
            self._succeed(record, given["result"])
        return None

    def _lose(self, record: Record) -> str | None:
        if is_terminal(record):
            return "already_settled"
        if record["phase"] == "IN_DOUBT":
            return "duplicate"
        if record["phase"] != "STARTED":
            return "not_started"
        self._emit_execution("EXECUTION_IN_DOUBT", record, {"attempt": record["attempt"]})
        return None

    def _resolve(self, given: dict[str, Any], record: Record) -> str | None:
        if is_terminal(record):
            return "already_settled"
        if record["phase"] != "IN_DOUBT":
            return "not_in_doubt"
        if given["as"] == "result":
            self._succeed(record, given["result"])
            return None
        if given["as"] == "error":
            self._fail(record, given["error"], "resolved")
            return None
        if record["retry"]:
            return "duplicate"
        if self.state["turn"]["phase"] == "INTERRUPTING":
            return "interrupting"
        self._emit_execution("RETRY_AUTHORISED", record, {"attempt": record["attempt"]})
        return None


def second_decision(given: dict[str, Any], record: Record) -> str:
    """D of section 6."""
    recorded = record["decision"]
    if recorded is None:
        return "already_decided" if record["phase"] == "DENIED" else "not_awaiting_approval"
    if given["approved"] != recorded["approved"]:
        return "already_decided"
    if given["approved"] and not same_approval(given, recorded):
        return "already_decided"
    return "duplicate"


def same_approval(given: dict[str, Any], recorded: dict[str, Any]) -> bool:
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


def second_outcome(given: dict[str, Any], record: Record) -> str:
    """S of section 6, on SUCCEEDED and FAILED."""
    outcome = record["outcome"]
    for kind in ["result", "error"]:
        if kind in given and kind in outcome:
            if canonical(given[kind]) == canonical(outcome[kind]):
                return "duplicate"
    return "conflicting_duplicate"


def put(payload: dict[str, Any], name: str, value: Any) -> None:
    """An optional field that is absent stays out, and is never null."""
    if value is not None:
        payload[name] = value


def without_nulls(delivery: dict[str, Any]) -> dict[str, Any]:
    """Section 3: an optional field that is null is absent, except `result`."""
    given: dict[str, Any] = {}
    for name, value in delivery.items():
        if value is not None or name == "result":
            given[name] = value
    if "call" in given:
        given["call"] = call_without_nulls(given["call"])
    if "calls" in given:
        given["calls"] = [call_without_nulls(call) for call in given["calls"]]
    return given


def call_without_nulls(call: dict[str, Any]) -> dict[str, Any]:
    """The same for a call; its arguments are the tool's own and stay as they are."""
    return {name: value for name, value in call.items() if value is not None}


def added(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """K-3: what a receive returns is what it added to the effects owed."""
    held = [canonical(effect) for effect in before]
    return [effect for effect in after if canonical(effect) not in held]

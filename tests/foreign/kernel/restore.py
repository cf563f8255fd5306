"""Recovery: a run read back from its journal, by a path of its own."""

from __future__ import annotations

from .books import Grant
from .call import DENIED, FAILED, IN_DOUBT, RETRY, SUCCEEDED, Call, decision_of
from .mail import Raw
from .run import Run
from .turn import INTERRUPTING, SEALED, Turn


def restored(run: Run) -> Run:
    """Return a new run that has lived through the facts of this one."""
    fresh = Run(run.config)
    for fact in run.journal:
        fresh.journal.append(fact)  # K-2
        fresh.latest = fact["at"]  # K-10 K-2
        _turn_fact(fresh, fact)
        _grant_fact(fresh, fact)
        if fresh.turn is not None and "invocation_id" in fact:
            call = fresh.turn.calls[fact["invocation_id"]]
            _life_fact(call, fact)
            _work_fact(call, fact)
            fresh.review(call)  # K-3
    return fresh


def _turn_fact(run: Run, fact: Raw) -> None:
    kind, turn = fact["type"], run.turn
    if kind == "TURN_OPENED":
        run.epochs = fact["epoch"]  # K-55 K-2
        run.turn = Turn(fact["turn_id"], fact["epoch"], fact["sealed"])  # K-2
        for spec in fact["calls"]:  # K-2
            run.review(run.turn.add(spec))  # K-3 K-2
    elif kind == "CONTINUATION_TAKEN":
        run.taken(fact["turn_id"])  # K-52 K-2
    elif turn is None:
        return
    elif kind == "CALL_ADDED":
        run.review(turn.add(fact["call"]))  # K-3 K-2
    elif kind == "TURN_SEALED":
        turn.phase = SEALED  # K-2 S8
    elif kind == "TURN_INTERRUPTING":
        _interrupt(run, turn, fact)
    elif kind in {"TURN_SETTLED", "TURN_INTERRUPTED"}:
        _close(run, turn, fact)


def _interrupt(run: Run, turn: Turn, fact: Raw) -> None:
    turn.phase, turn.grace_until = INTERRUPTING, fact["grace_until"]  # K-53 K-2
    for call in turn.calls.values():  # K-53 K-2
        if call.phase == RETRY:  # K-53 S6
            call.phase = IN_DOUBT  # K-53 S6
        run.review(call)  # K-3 K-53


def _close(run: Run, turn: Turn, fact: Raw) -> None:
    if fact["type"] == "TURN_SETTLED" and turn.calls:  # K-52
        run.owe_continuation(turn)  # K-52 K-3
    run.memory.close(turn.name, list(turn.calls), fact["at"])  # K-54 K-2
    run.grants.turn_over()  # K-42 K-2
    run.turn = None  # K-2


def _grant_fact(run: Run, fact: Raw) -> None:
    if fact["type"] == "GRANT_ISSUED":
        grant = Grant(
            fact["grant_id"],
            tool=fact["tool_name"],
            match=fact["match"],
            digest=fact["arguments_digest"],
            scope=fact["scope"],
            ends=fact.get("expires_at"),
        )  # K-40 K-2
        run.grants.issue(grant)  # K-40 K-2
    elif fact["type"] in {"GRANT_REVOKED", "GRANT_EXPIRED"}:
        del run.grants.live[fact["grant_id"]]  # K-42 K-2


def _life_fact(call: Call, fact: Raw) -> None:
    kind = fact["type"]
    if kind == "TOOL_APPROVAL_REQUESTED":
        call.approve_by = fact.get("deadline")  # K-2 K-11
    elif kind == "TOOL_APPROVED":
        edited = fact.get("arguments")  # K-32 K-2
        call.approve(edited, decision_of(fact["scope"], fact.get("match"), edited))  # S6 K-2
    elif kind == "TOOL_DENIED":
        if fact["cause"] == "decision":  # S6 K-2
            call.decision = ("denied",)  # S6 K-2
        call.finish(DENIED, fact["reason"])  # K-2 K-52
    elif kind == "TOOL_EXECUTION_SUCCEEDED":
        call.finish(SUCCEEDED, fact["result"])  # K-2 K-30
    elif kind == "TOOL_EXECUTION_FAILED":
        call.finish(FAILED, fact["error"])  # K-2 K-30


def _work_fact(call: Call, fact: Raw) -> None:
    kind = fact["type"]
    if kind in {"TOOL_EXECUTION_STARTED", "EXECUTION_RETRIED"}:
        call.start(fact.get("worker"), fact.get("lease_until"))  # K-2 K-33 K-34
    elif kind == "EXECUTION_IN_DOUBT":
        call.lose()  # K-2 K-35
    elif kind == "RETRY_AUTHORISED":
        call.phase = RETRY  # K-2 K-31
    elif kind == "LEASE_RENEWED":
        call.lease_until = fact["lease_until"]  # K-2 K-34

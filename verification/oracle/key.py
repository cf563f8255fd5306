"""When two states answer alike, whatever comes next (section 12, `digest`; verification.md).

A key holds nothing absolute: times count from the tester's clock, the number of an attempt is
"none", "the first" or "a later one", grants stand in order without their numbers, sequence numbers
and epochs are not there. What nothing can ask for any more is left out.
"""

# ruff: noqa: ANN401, D401 - it reads like the text, and JSON may be anything

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, TypeAlias

from .reading import Record, State, canonical, is_pending_approval, owed_attempt

Row: TypeAlias = tuple[Any, ...]
Key: TypeAlias = tuple[Hashable, tuple[Row, ...]]
"""What concerns no invocation, and rows that each begin with the id of the one they concern."""


def key_of(state: State, now: float) -> Key:
    """Say what can be seen of a state by deliveries at `now` or later."""
    at = state["at"]
    # A time before the latest fact's is taken as that fact's (K-10): only then does `at` show.
    earliest = now if at is None or at < now else at
    memory, rows = remembered_from(state, now, earliest)
    continuations: list[str] = []
    for owed in state["continuations"]:
        continuations.append(owed["turn_id"])
        for result in owed["results"]:
            about = (result["invocation_id"], owed["turn_id"], result["tool_name"])
            rows.append((*about, *outcome_of(result)))
    turn = state["turn"]
    active = None
    if turn is not None:
        grace = None if turn["grace_until"] is None else turn["grace_until"] - now
        active = (turn["turn_id"], turn["phase"], grace)
        rows += [row_of(record, turn, now) for record in turn["records"]]
    whole = (
        earliest - now,
        active,
        tuple(continuations),
        tuple([grant_of(grant, turn, now) for grant in state["grants"]]),
        state["grants_issued"] > 0,
        memory,
    )
    return whole, tuple(rows)


def remembered_from(state: State, now: float, earliest: float) -> tuple[Row, list[Row]]:
    """The closed turns that a lookup can still find, and their invocations (K-54)."""
    turns: list[Row] = []
    rows: list[Row] = []
    for entry in state["memory"]:
        if earliest - entry["closed_at"] > state["run"]["limits"]["remember_for"]:
            continue
        since = entry["closed_at"] - now
        if entry["invocation_id"] is None:
            turns.append((entry["turn_id"], since))
        else:
            rows.append((entry["invocation_id"], entry["turn_id"], since))
    return tuple(turns), rows


def row_of(record: Record, turn: dict[str, Any], now: float) -> Row:
    """What can be seen of an invocation of the active turn."""
    phase, outcome = record["phase"], record["outcome"]
    interrupting = turn["phase"] == "INTERRUPTING"  # nothing starts again, nothing continues
    over = record["deadline"] if is_pending_approval(record) else record["lease_until"]
    if over is not None and interrupting and over > turn["grace_until"]:
        over = None  # the grace is over first, and ends it
    may_run = outcome is None and not interrupting
    if interrupting and phase == "DENIED":
        outcome = None
    return (
        record["invocation_id"],
        record["tool_name"],
        phase,
        text_of(record["arguments"]) if may_run else None,
        record["observed"] and outcome is None,
        owed_attempt(record) is not None,
        None if over is None else over - now,
        decision_of(record["decision"]),
        min(record["attempt"], 2),
        record["worker"] if phase == "STARTED" else None,
        None if outcome is None else outcome_of(outcome),
    )


def decision_of(decision: dict[str, Any] | None) -> Row | None:
    """What D of section 6 compares."""
    if decision is None or not decision["approved"]:
        return None if decision is None else (False,)
    edited = decision.get("arguments")
    return (
        True,
        decision["scope"],
        decision["match"],
        None if edited is None else text_of(edited),
    )


def outcome_of(outcome: dict[str, Any]) -> Row:
    """What S of section 6 compares and a continuation says."""
    if "result" in outcome:
        return (outcome["status"], text_of(outcome["result"]))
    return (outcome["status"], outcome.get("error") or outcome.get("reason"))


def grant_of(grant: dict[str, Any], turn: dict[str, Any] | None, now: float) -> Row:
    """What a grant covers, and how long: nothing any more once no call can come."""
    covers: Row = (grant["tool_name"], grant["match"])
    if grant["match"] == "exact":
        covers = (*covers, grant["arguments_digest"])
    over = grant["expires_at"]
    if grant["scope"] == "turn" and turn is not None:
        if turn["phase"] != "OPEN":
            covers = ()
        if over is not None and turn["phase"] == "INTERRUPTING" and over > turn["grace_until"]:
            over = None
    return (covers, grant["scope"], None if over is None else over - now)


def text_of(value: Any) -> Hashable:
    """A JSON value as something hashable that tells 1, 1.0 and true apart."""
    if type(value) is str:
        return value
    return (canonical(value) if value else str(value),)  # most arguments are empty

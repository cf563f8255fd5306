"""Section 9: the effects still owed, from state alone (K-3)."""

from __future__ import annotations

import math
from typing import Any

from .deadlines import deadlines
from .reading import State, make_id, owed_attempt

Effects = list[dict[str, Any]]


def pending_effects(state: State) -> Effects:
    """All effects still owed: executes, cancels, continues, wake."""
    effects = executes(state)
    effects += cancels(state)
    effects += continues(state)
    due = deadlines(state)
    if due:
        at = math.nextafter(min(entry["deadline"] for entry in due), math.inf)
        effect_id = make_id("wake", state["run"]["run_id"])
        effects.append({"type": "wake", "effect_id": effect_id, "at": at})
    return effects


def executes(state: State) -> Effects:
    """Owed while an invocation is ready and unclaimed."""
    turn = state["turn"]
    if turn is None:
        return []
    run_id, epoch, turn_id = state["run"]["run_id"], turn["epoch"], turn["turn_id"]
    effects: Effects = []
    for record in turn["records"]:
        attempt = owed_attempt(record)
        if attempt is None:
            continue
        invocation_id = record["invocation_id"]
        effects.append(
            {
                "type": "execute",
                "effect_id": make_id("execute", run_id, epoch, turn_id, invocation_id, attempt),
                "turn_id": turn_id,
                "invocation_id": invocation_id,
                "attempt": attempt,
                "tool_name": record["tool_name"],
                "arguments": record["arguments"],
                "idempotency_key": make_id("call", run_id, epoch, turn_id, invocation_id),
            }
        )
    return effects


def cancels(state: State) -> Effects:
    """Whatever runs in an interrupting turn ran when it was interrupted: nothing starts after."""
    turn = state["turn"]
    if turn is None or turn["phase"] != "INTERRUPTING":
        return []
    effects: Effects = []
    for record in turn["records"]:
        if record["phase"] == "STARTED":
            where = (turn["turn_id"], record["invocation_id"], record["attempt"])
            effect_id = make_id("cancel", state["run"]["run_id"], turn["epoch"], *where)
            effects.append(
                {
                    "type": "cancel",
                    "effect_id": effect_id,
                    "turn_id": turn["turn_id"],
                    "invocation_id": record["invocation_id"],
                    "attempt": record["attempt"],
                }
            )
    return effects


def continues(state: State) -> Effects:
    """Owed until acknowledged."""
    if not state["continuations"]:
        return []
    run_id = state["run"]["run_id"]
    return [
        {
            "type": "continue",
            "effect_id": make_id("continue", run_id, owed["epoch"], owed["turn_id"]),
            "turn_id": owed["turn_id"],
            "results": owed["results"],
        }
        for owed in state["continuations"]
    ]


def added(before: Effects, after: Effects) -> Effects:
    """K-3: what a receive returns is what it added. Under one id only a wake ever changes."""
    if not before or not after:
        return after
    held = {effect["effect_id"]: effect for effect in before}
    return [effect for effect in after if held.get(effect["effect_id"]) != effect]

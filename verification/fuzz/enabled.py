"""Draws deliveries that are enabled where they stand, most of the time."""

# ruff: noqa: PLR2004 - a chance is written where it is drawn

from __future__ import annotations

from typing import Any

from ..oracle.reading import Record, is_pending_approval, owed_attempt
from .draws import INVOCATIONS, TURNS, Delivery, Draws


def enabled(draws: Draws) -> Delivery:
    """Return one of what the oracle's state would accept, most of the time."""
    choices = _common_choices(draws)
    turn = draws.oracle.state["turn"]
    if turn is None:
        full = len(draws.oracle.state["continuations"]) >= draws.oracle.limits["continuations"]
        choices += [_opening(draws) for _ in range(1 if full else 4)]
    else:
        choices += _turn_choices(draws, turn)
        for record in turn["records"]:
            choices += _record_choices(draws, turn["turn_id"], record)
    delivery = draws.rng.choice(choices)
    if draws.rng.random() < 0.05:
        delivery["run_id"] = draws.oracle.run_id
    return delivery


def _common_choices(draws: Draws) -> list[Delivery]:
    choices: list[Delivery] = [{"type": "tick"}]
    if draws.rng.random() < 0.2:
        choices.append({"type": "recover"})
    if draws.rng.random() < 0.2:
        choices.append({"type": "log", "invocation_id": draws.any_invocation(), "text": "hm"})
    state = draws.oracle.state
    choices += [{"type": "acknowledge", "turn_id": c["turn_id"]} for c in state["continuations"]]
    held = [grant["grant_id"] for grant in state["grants"] if draws.rng.random() < 0.2]
    return [*choices, *({"type": "revoke", "grant_id": grant_id} for grant_id in held)]


def _opening(draws: Draws) -> Delivery:
    closed = [entry["turn_id"] for entry in draws.oracle.state["memory"]]
    owed = [entry["turn_id"] for entry in draws.oracle.state["continuations"]]
    fresh = [name for name in TURNS if name not in closed and name not in owed]
    # With three names and a long memory there is soon none left: then go on under new ones.
    names = fresh or [f"T{draws.oracle.state['epoch'] + 1}", draws.any_turn()]
    delivery: Delivery = {"type": "open_turn", "turn_id": draws.rng.choice(names)}
    sealed = draws.rng.random() < 0.65
    count = draws.rng.choice([1, 2, 2, 3, 4]) if sealed else draws.rng.choice([0, 0, 1, 2])
    if draws.rng.random() < 0.9:
        count = min(count, draws.oracle.limits["calls"])
    delivery["calls"] = [draws.call(invocation_id) for invocation_id in draws.ids(count)]
    if not sealed or draws.rng.random() < 0.2:
        delivery["sealed"] = sealed
    draws.maybe(delivery, "epoch", draws.oracle.state["epoch"] + 1, 0.3)
    return delivery


def _turn_choices(draws: Draws, turn: dict[str, Any]) -> list[Delivery]:
    choices: list[Delivery] = []
    if turn["phase"] == "OPEN":
        held = [record["invocation_id"] for record in turn["records"]]
        for invocation_id in [name for name in INVOCATIONS if name not in held][:2]:
            call = draws.call(invocation_id)
            choices.append({"type": "add_call", "turn_id": turn["turn_id"], "call": call})
        choices.append({"type": "seal_turn", "turn_id": turn["turn_id"]})
    if turn["phase"] != "INTERRUPTING" and draws.rng.random() < 0.2:
        choices.append(draws.interrupt(turn["turn_id"]))
    if draws.rng.random() < 0.2:
        # K-22: no continuation, not even when a deadline of this very receive owes one.
        choices.append({"type": "acknowledge", "turn_id": turn["turn_id"]})
    return choices


def _record_choices(draws: Draws, turn_id: str, record: Record) -> list[Delivery]:
    named = {"turn_id": turn_id, "invocation_id": record["invocation_id"]}
    if is_pending_approval(record):
        choices = [draws.approve(named, record) for _ in range(2)]
        return [*choices, draws.deny(named), draws.reject(named)]
    if owed_attempt(record) is not None:
        choices = [draws.claim(named, owed_attempt(record)) for _ in range(3)]
        if record["phase"] == "IN_DOUBT":
            return [*choices, draws.report(named, record)]
        return [*choices, draws.reject(named)]
    if record["phase"] == "STARTED":
        choices = [draws.report(named, record) for _ in range(2)]
        return [*choices, draws.renew(named, record), draws.lose(named, record)]
    if record["phase"] == "IN_DOUBT":
        choices = [draws.resolve(named, record["attempt"]) for _ in range(3)]
        return [*choices, draws.report(named, record)]
    return []

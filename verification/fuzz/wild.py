"""Draws anything about anything, as long as it could be built (K-8)."""

# ruff: noqa: PLR0911, PLR2004 - one return a kind; a chance is written where it is drawn

from __future__ import annotations

from typing import Any

from ..oracle.reading import Record
from .draws import TYPES, Delivery, Draws


def wild(draws: Draws) -> Delivery:
    """Return a delivery that need not fit where it stands."""
    delivery = _wild_of(draws, draws.rng.choice(TYPES))
    if delivery["type"] != "recover" and draws.rng.random() < 0.05:
        delivery["run_id"] = draws.rng.choice(["other", "", "r/"]) or draws.oracle.run_id
    return delivery


def _wild_of(draws: Draws, kind: str) -> Delivery:
    """Anything about anything, as long as it could be built."""
    turn_id = _wild_turn(draws)
    named = {"turn_id": turn_id, "invocation_id": draws.any_invocation()}
    if kind == "open_turn":
        return _wild_opening(draws, turn_id)
    if kind == "add_call":
        call = draws.call(draws.any_invocation())
        return {"type": kind, "turn_id": turn_id, "call": call}
    if kind in {"seal_turn", "acknowledge"}:
        return {"type": kind, "turn_id": turn_id}
    if kind == "interrupt":
        return draws.interrupt(turn_id)
    if kind == "revoke":
        return {"type": kind, "grant_id": draws.any_grant()}
    if kind in {"tick", "recover"}:
        return {"type": kind}
    return _wild_about(draws, kind, named)


def _wild_turn(draws: Draws) -> str:
    turn = draws.oracle.state["turn"]
    if turn is not None and draws.rng.random() < 0.5:
        return str(turn["turn_id"])
    return draws.any_turn()


def _wild_opening(draws: Draws, turn_id: str) -> Delivery:
    ids = [draws.any_invocation() for _ in range(draws.rng.choice([0, 1, 2, 3, 5]))]
    calls = [draws.call(invocation_id) for invocation_id in ids]
    delivery: Delivery = {"type": "open_turn", "turn_id": turn_id, "calls": calls}
    draws.maybe(delivery, "sealed", draws.rng.random() < 0.5, 0.4)
    epoch = int(draws.oracle.state["epoch"]) + draws.rng.choice([0, 1, 2])
    draws.maybe(delivery, "epoch", max(1, epoch), 0.4)
    return delivery


def _wild_about(draws: Draws, kind: str, named: dict[str, Any]) -> Delivery:
    attempt = draws.rng.choice([0, 1, 1, 2, 3])
    record: Record = {"attempt": attempt}
    if kind == "decide":
        return draws.approve(named, None) if draws.rng.random() < 0.5 else draws.deny(named)
    if kind == "claim":
        return {**draws.claim(named, 1), "attempt": attempt}
    if kind == "renew":
        return draws.renew(named, record)
    if kind == "resolve":
        return draws.resolve(named, attempt)
    if draws.rng.random() < 0.3:
        named = {"invocation_id": named["invocation_id"]}
    if kind == "reject":
        return draws.reject(named)
    if kind == "lose":
        return {**draws.lose(named, record), **named}
    if kind == "report":
        return {**draws.report(named, record), **named}
    return {"type": "log", **named, "text": draws.rng.choice(["", "hm"])}

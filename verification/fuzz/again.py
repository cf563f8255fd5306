"""Draws redeliveries: earlier deliveries come again, some with one field changed."""

# ruff: noqa: PLR2004 - a chance is written where it is drawn

from __future__ import annotations

import copy
from collections.abc import Sequence

from ..oracle.reading import digest_of
from .draws import ERRORS, PEOPLE, WAITS, WORKERS, Delivery, Draws


def again(draws: Draws, written: Sequence[Delivery]) -> Delivery:
    """Return a redelivery, mostly of something recent; half of them with one field changed."""
    recent = written[-8:] if draws.rng.random() < 0.7 else written
    delivery = copy.deepcopy(draws.rng.choice(recent))
    if draws.rng.random() < 0.5:
        return delivery
    names = [name for name in delivery if name not in ["type", "now"]]
    if names:
        _change(draws, delivery, draws.rng.choice(sorted(names)))
    return delivery


def _change(draws: Draws, delivery: Delivery, name: str) -> None:
    """Change one field to another that is well-formed beside the rest."""
    rng = draws.rng
    if name == "turn_id":
        unnamed = delivery["type"] in ["reject", "report", "lose", "log"] and rng.random() < 0.4
        delivery["turn_id"] = None if unnamed else draws.any_turn()
    elif name == "invocation_id":
        delivery["invocation_id"] = draws.any_invocation()
    elif name == "run_id":
        delivery["run_id"] = "other"
    elif name == "attempt":
        delivery["attempt"] = max(0, (delivery["attempt"] or 1) + rng.choice([-1, 1]))
    elif name == "epoch":
        delivery["epoch"] = max(1, (delivery["epoch"] or 1) + rng.choice([-1, 1]))
    elif name == "calls":
        _change_calls(draws, delivery)
    elif name == "call":
        delivery["call"] = draws.call(delivery["call"]["invocation_id"])
    elif name == "approved":
        _change_decision(draws, delivery)
    elif name in {"as", "result", "error"}:
        _change_outcome(draws, delivery)
    else:
        _change_detail(draws, delivery, name)


def _change_calls(draws: Draws, delivery: Delivery) -> None:
    calls = delivery["calls"]
    if calls and draws.rng.random() < 0.3:
        calls.append(copy.deepcopy(calls[0]))
    elif calls and draws.rng.random() < 0.3:
        calls.clear()
    else:
        calls.append(draws.call(draws.any_invocation()))


def _change_decision(draws: Draws, delivery: Delivery) -> None:
    """Turn it into the other decision; K-42 lets a deny carry nothing of an approval."""
    named = {name: delivery[name] for name in ["turn_id", "invocation_id"]}
    changed = draws.deny(named) if delivery["approved"] else draws.approve(named, None)
    delivery.clear()
    delivery.update(changed)


def _change_outcome(draws: Draws, delivery: Delivery) -> None:
    if delivery["type"] == "reject":
        delivery["error"] = draws.rng.choice(ERRORS)
        return
    for name in ["as", "result", "error"]:
        delivery.pop(name, None)
    delivery.update(draws.outcome())
    if delivery["type"] == "resolve":
        delivery["as"] = "result" if "result" in delivery else "error"


def _change_detail(draws: Draws, delivery: Delivery, name: str) -> None:
    rng = draws.rng
    if name == "worker":
        delivery["worker"] = rng.choice([None, *WORKERS])
    elif name in ["lease", "expires_in", "grace"]:
        delivery[name] = rng.choice(WAITS)
    elif name == "scope":
        delivery["scope"] = rng.choice([None, "once", "turn", "session"])
    elif name == "match":
        delivery["match"] = rng.choice([None, "exact", "tool"])
    elif name == "arguments":
        delivery["arguments"] = rng.choice([None, draws.arguments()])
    elif name == "arguments_digest":
        delivery["arguments_digest"] = digest_of(draws.arguments())
    elif name == "grant_id":
        delivery["grant_id"] = draws.any_grant()
    elif name == "sealed":
        delivery["sealed"] = not delivery["sealed"]
    elif name == "decided_by":
        delivery["decided_by"] = rng.choice([None, *PEOPLE])

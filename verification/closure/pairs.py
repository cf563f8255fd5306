"""How often which input came to which phase, as the oracle saw it (verification.md, coverage)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..alphabet.symbols import Symbol
from ..findings import Raw


def counted(symbols: Iterable[Symbol], phases: Mapping[tuple[Any, ...], int]) -> dict[str, int]:
    """Return how often each `phase × input` was met.

    `phases` says in how many states (turn, invocation or None, phase) held; in each of them every
    symbol was delivered. Counted are those that name the turn.
    """
    counts: dict[str, int] = {}
    inputs: dict[tuple[str, str | None], list[str]] = {}
    for symbol in symbols:
        delivery = symbol.delivery
        if "turn_id" in delivery and delivery["type"] not in {"open_turn", "acknowledge", "log"}:
            about = (delivery["turn_id"], delivery.get("invocation_id"))
            inputs.setdefault(about, []).append(input_of(delivery))
    for (turn_id, invocation_id, phase), states in phases.items():
        for name in inputs.get((turn_id, invocation_id), ()):
            pair = f"{phase} × {name}"
            counts[pair] = counts.get(pair, 0) + states
    return counts


def input_of(delivery: Raw) -> str:
    """Name what a delivery is to a table."""
    kind: str = delivery["type"]
    if kind == "decide":
        return "approve" if delivery["approved"] else "deny"
    if kind == "report":
        return "report_error" if "error" in delivery else "report_result"
    return f"resolve_{delivery['as']}" if kind == "resolve" else kind

"""Tools for `turnlock run --tools examples/tools.py`: one that books, and one that looks up.

A booking is what must not happen twice. It needs approval, it is written into a ledger under its
idempotency key, and where nobody knows whether it happened, the ledger is asked: see `probe`.
LEDGER names the file. With KILL_AFTER=n the process is killed right after the n-th line, before
anybody hears of the booking: the demo does so, to show what then becomes of it.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

from turnlock.runtime import (
    Happened,
    InDoubt,
    NeverHappened,
    StillUnknown,
    ToolContext,
    tool,
)

PRICE = 305
"""Dollars that both flights of the recorded conversation cost."""


def entries() -> list[dict[str, Any]]:
    """Return what stands in the ledger: a booking a line."""
    ledger = Path(os.environ.get("LEDGER", "ledger.jsonl"))
    return [json.loads(line) for line in ledger.read_text().splitlines()] if ledger.exists() else []


def probe(context: ToolContext) -> Happened | NeverHappened | StillUnknown:
    """Say whether the booking with this key was made: the ledger knows."""
    try:
        found = [entry for entry in entries() if entry["key"] == context.idempotency_key]
    except (OSError, ValueError) as error:
        return StillUnknown(f"the ledger cannot be read: {error}")
    return Happened(found[0]["result"]) if found else NeverHappened()


@tool(approval=True, in_doubt=InDoubt.PROBE, probe=probe, sequential=True)
def book_reservation(  # noqa: PLR0913 - as the recorded model was told
    *,
    context: ToolContext,
    user_id: str,
    origin: str,
    destination: str,
    flight_type: str,
    cabin: str,
    flights: list[dict[str, Any]],
    passengers: list[dict[str, Any]],
    payment_methods: list[dict[str, Any]],
    total_baggages: int = 0,
    nonfree_baggages: int = 0,
    insurance: str = "no",
) -> dict[str, Any]:
    """Book flights for passengers; the payments must add up."""
    paid = sum(payment["amount"] for payment in payment_methods)
    if paid != PRICE:
        raise ValueError(f"payment amount does not add up, total price is {PRICE}, but paid {paid}")
    done = len(entries())
    result = {
        "reservation_id": f"R{done + 1:05}",
        "user_id": user_id,
        "trip": f"{origin}-{destination}, {flight_type}, {cabin}",
        "flights": [flight["flight_number"] for flight in flights],
        "passengers": len(passengers),
        "baggages": total_baggages + nonfree_baggages,
        "insurance": insurance,
    }
    line = json.dumps({"key": context.idempotency_key, "result": result})
    with Path(os.environ.get("LEDGER", "ledger.jsonl")).open("a") as ledger:
        ledger.write(line + "\n")
        ledger.flush()
        os.fsync(ledger.fileno())
    if os.environ.get("KILL_AFTER") == str(done + 1):
        os.kill(os.getpid(), signal.SIGKILL)
    return result


@tool
def calculate(expression: str) -> str:
    """Add and subtract whole numbers: 250 + 55."""
    terms = expression.replace("-", "+ -").replace("- ", "-").split("+")
    return str(sum(int(term) for term in terms if term.strip()))

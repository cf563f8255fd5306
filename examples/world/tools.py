"""A payment, which must not happen twice: it needs approval, and a ledger knows what was paid.

LEDGER names the file. With KILL_AFTER=n the process is killed right after the n-th line, before
anybody hears of the payment: the demo does so, to show what then becomes of it. With KILL_WHEN it
is killed when that file is there, too: the demo makes it when the approval was answered.
"""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

from turnlock.runtime import Happened, InDoubt, NeverHappened, StillUnknown, ToolContext, tool


def payments() -> list[dict[str, Any]]:
    """Return what stands in the ledger: a payment a line."""
    ledger = Path(os.environ.get("LEDGER", "payments.jsonl"))
    return [json.loads(line) for line in ledger.read_text().splitlines()] if ledger.exists() else []


def probe(context: ToolContext) -> Happened | NeverHappened | StillUnknown:
    """Say whether the payment with this key was made: the ledger knows."""
    try:
        found = [it for it in payments() if it["key"] == context.idempotency_key]
    except (OSError, ValueError) as error:
        return StillUnknown(f"the ledger cannot be read: {error}")
    return Happened(found[0]["paid"]) if found else NeverHappened()


@tool(approval=True, in_doubt=InDoubt.PROBE, probe=probe, sequential=True)
def pay(*, context: ToolContext, to: str, amount: int) -> str:
    """Pay somebody an amount of money."""
    made = len(payments()) + 1
    paid = f"{to} was paid {amount}"
    with Path(os.environ.get("LEDGER", "payments.jsonl")).open("a") as ledger:
        ledger.write(json.dumps({"key": context.idempotency_key, "paid": paid}) + "\n")
        ledger.flush()
        os.fsync(ledger.fileno())
    if os.environ.get("KILL_AFTER") == str(made):
        be_killed()
    return paid


def be_killed() -> None:
    """Die here: at once, or when the file KILL_WHEN is there, within a minute."""
    give_up = time.monotonic() + 60
    when = os.environ.get("KILL_WHEN")
    while when is not None and not Path(when).exists() and time.monotonic() < give_up:
        time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGKILL)

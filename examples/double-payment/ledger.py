"""The bank of the comparison: a payment is a line in a file, and a killed process pays no less.

All in the environment: LEDGER names the file, KILL kills the process right after the payment,
KEYED makes the bank honour idempotency keys, BARRIER holds a worker until so many of them have
come. Every agent uses this, so it imports the standard library alone.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import time
from pathlib import Path
from typing import Final

ASKED: Final = "Pay 5 to DE02."
"""What the user asks of each agent."""
CALL: Final = "call_1"
"""The id that each fake model gives to its one tool call."""
ARGUMENTS: Final = {"account": "DE02", "amount": 5}
SAID: Final = "I have paid."
"""What each fake model says once it has the tool's result."""
TIMEOUT: Final = 60.0
"""Seconds to wait for the other worker."""


def pay(account: str, amount: int, key: str) -> str:
    """Make a payment; with KILL in the environment, be killed before anybody hears of it."""
    paid = {"account": account, "amount": amount, "key": key, "process": os.getpid()}
    with Path(os.environ["LEDGER"]).open("a+", encoding="utf-8") as ledger:
        fcntl.flock(ledger, fcntl.LOCK_EX)
        ledger.seek(0)
        known = {json.loads(line)["key"] for line in ledger}
        if "KEYED" not in os.environ or key not in known:
            ledger.write(json.dumps(paid) + "\n")
            ledger.flush()
            os.fsync(ledger.fileno())
    if "KILL" in os.environ:
        os.kill(os.getpid(), signal.SIGKILL)
    return f"paid {amount} to {account}"


def meet() -> None:
    """Wait until as many workers as BARRIER says have read what they resume from."""
    count = int(os.environ.get("BARRIER", "1"))
    place = Path(os.environ["LEDGER"]).with_name("workers")
    place.mkdir(exist_ok=True)
    (place / str(os.getpid())).touch()
    give_up = time.monotonic() + TIMEOUT
    while len(list(place.iterdir())) < count:
        if time.monotonic() > give_up:
            raise TimeoutError("the other worker never came")
        time.sleep(0.01)


def say(**what: object) -> None:
    """Print one line that the comparison reads."""
    print(json.dumps(what), flush=True)

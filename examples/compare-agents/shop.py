"""The weather and the bank of the comparison: a payment is a line in ledger.txt, synced.

KILL in the environment kills the process inside the payment: `before` it took effect, or right
`after`. Each agent uses this, so it imports the standard library alone.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Final

ASKED: Final = "What is the weather in Oslo? If it rains, pay Ada 5 euros for an umbrella."
"""What the user says to each agent."""


def weather(city: str) -> str:
    """Say the weather, which is always the same."""
    return f"rain in {city}"


def pay(to: str, amount: int) -> str:
    """Make a payment, unless the process is killed before; it is never heard of, if after."""
    _killed("before")
    with Path("ledger.txt").open("a", encoding="utf-8") as ledger:
        ledger.write(f"{amount} to {to}\n")
        ledger.flush()
        os.fsync(ledger.fileno())
    _killed("after")
    return f"paid {amount} to {to}"


def _killed(when: str) -> None:
    if os.environ.get("KILL") == when:
        os.kill(os.getpid(), signal.SIGKILL)

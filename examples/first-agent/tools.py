"""A tool for turnlock run --tools tools.py: docs/first-agent.md kills it in the middle."""

import time
from pathlib import Path

from turnlock.runtime import tool


@tool(approval=True)
def pay(to: str, amount: int) -> str:
    """Pay somebody an amount in euros."""
    with Path("ledger.txt").open("a") as ledger:
        ledger.write(f"{amount} to {to}\n")
    time.sleep(10)  # the bank takes its time to answer
    return f"paid {amount} to {to}"

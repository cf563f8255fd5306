"""The tools of `turnlock run --tools example`, and the conversation that plays with them.

Copy it for tools of your own: there the import is `from turnlock.runtime import tool`.
"""

import time
from pathlib import Path
from typing import Final

from ..runtime.tools.tool import tool

RECORDING: Final = (
    '{"conv": "bills", "turn": 0, "calls": [{"id": "call_1", "name": "pay", "args":'
    ' "{\\"to\\": \\"Ada\\", \\"amount\\": 5}"}],'
    ' "results": [{"id": "call_1", "status": "ok", "content": ""}]}\n'
)
"""One batch: it asks for one payment. Made up, not recorded."""


@tool(approval=True)
def pay(to: str, amount: int) -> str:
    """Pay somebody an amount in euros."""
    with Path("ledger.txt").open("a", encoding="utf-8") as ledger:
        ledger.write(f"{amount} to {to}\n")
    time.sleep(10)  # the bank takes its time to answer
    return f"paid {amount} to {to}"

"""What goes wrong with an MCP server without a guard: whoever asks again has it done again.

    python examples/guards/mcp_bare.py

The bank is examples/guards/mcp_bank.py, over stdio. There is no key, and no money moves.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from mcp import Client, MCPError, StdioServerParameters

BANK = Path(__file__).with_name("mcp_bank.py")


async def main(book: Path) -> None:
    """Ask twice; and ask again when the server was killed."""
    bank = StdioServerParameters(command=sys.executable, args=[str(BANK), str(book)])
    async with Client(bank) as client:
        for _ in range(2):
            await client.call_tool("pay", {"amount": 5})
        print(f"one payment, asked for twice: paid {paid(book, 5)} times, and nobody was asked")
        try:
            await client.call_tool("pay", {"amount": 7})
        except MCPError as error:
            print(f"killed in the tool: {error}")
    async with Client(bank) as client:
        await client.call_tool("pay", {"amount": 7})
        print(f"one payment, asked for again: paid {paid(book, 7)} times")


def paid(book: Path, amount: int) -> int:
    """Return how often the bank has booked it."""
    return book.read_text(encoding="utf-8").split().count(str(amount))


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder, "bank.txt")))

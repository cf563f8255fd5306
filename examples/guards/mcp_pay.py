"""A client of an MCP server that stands behind a guard: what was done once is not done again.

    python examples/guards/mcp_pay.py agent.db order-5 5 [OPTIONS OF THE GUARD]

It pays the amount, in the name of the order, and its person agrees to all. MODE=legacy has it speak
MCP of 2025-11-25. The bank is examples/guards/mcp_bank.py; it books in bank.txt.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from mcp import Client, MCPError, StdioServerParameters
from mcp.client import ClientRequestContext
from mcp_types import ElicitRequestParams, ElicitResult, ErrorData, TextContent

BANK = Path(__file__).with_name("mcp_bank.py")
BOOK = Path("bank.txt")


async def person(
    context: ClientRequestContext,  # noqa: ARG001 - as the client calls it
    params: ElicitRequestParams,
) -> ElicitResult | ErrorData:
    """Show what the client is asked, and agree, as whoever sits before it may."""
    print(params.message)
    return ElicitResult(action="accept", content={"approve": True})


def guarded(db: str, *options: str) -> StdioServerParameters:
    """Return what starts the bank, behind a guard: any client can be configured so."""
    guard = ["-m", "turnlock.guards.mcp", "--db", db, "--gate", "pay", *options]
    bank = [sys.executable, str(BANK), str(BOOK)]
    return StdioServerParameters(command=sys.executable, args=[*guard, "--", *bank])


async def pay(client: Client, order: str, amount: int) -> str:
    """Pay, by a call that has a name: whoever asks for it again gets what came of it."""
    meta: Any = {"turnlock/idempotency-key": order}
    result = await client.call_tool("pay", {"amount": amount}, meta=meta)
    return " ".join(it.text for it in result.content if isinstance(it, TextContent))


async def main(db: str, order: str, amount: str, *options: str) -> None:
    """Pay once, and tell what came of it."""
    legacy = os.environ.get("MODE") == "legacy"
    async with Client(
        guarded(db, *options),
        mode="legacy" if legacy else "auto",
        elicitation_callback=person,
    ) as client:
        try:
            print(await pay(client, order, int(amount)))
        except MCPError as error:
            print(f"{error.code}: {error.message}")
    print(f"booked {booked(amount)} times")


def booked(amount: str) -> int:
    """Return how often the bank has booked it."""
    return BOOK.read_text(encoding="utf-8").split().count(amount) if BOOK.exists() else 0


if __name__ == "__main__":
    if not sys.argv[3:]:
        print(
            "usage: python examples/guards/mcp_pay.py agent.db order-5 5 [OPTIONS OF THE GUARD]",
            file=sys.stderr,
        )
        sys.exit(2)
    asyncio.run(main(*sys.argv[1:]))

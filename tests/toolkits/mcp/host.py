"""A host in a process of its own, to be killed: ``python host.py JOURNAL LEDGER``.

It performs one call of the shop, which works for a minute, and prints the shop's process id.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.toolkits.mcp.hosting import shop_as_program

from turnlock import Call, Run
from turnlock.runtime import Policy, Runtime, Settings, open_journal
from turnlock.toolkits.mcp import McpServers

SETTINGS = Settings(ownership=0.5, poll=0.05)
POLICY = Policy(lease=0.5)
CALL = Call(
    invocation_id="a", tool_name="shop__work", arguments={"seconds": 60}, requires_approval=False
)


async def tell_nobody(_: object) -> None:
    """No model is there to be told."""


async def main(journal: str, ledger: str) -> None:
    server = shop_as_program(Path(ledger), policies={"work": POLICY})
    async with await open_journal(journal) as kept, McpServers({"shop": server}) as servers:
        tools = servers.toolbox()
        async with Runtime(
            journal=kept, tools=tools, on_continue=tell_nobody, settings=SETTINGS
        ) as runtime:
            await runtime.open_run(Run(run_id="r"))
            await runtime.open_turn("r", [CALL], turn_id="t1")
            print(servers.process("shop"), flush=True)
            await asyncio.sleep(60)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

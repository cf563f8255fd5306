"""A host in a process of its own, to be killed: ``python host.py JOURNAL LEDGER``.

It performs two calls of the shop: one works for a minute, the other asks something that nobody
answers. Once it is asked, it prints the shop's process id.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.toolkits.mcp.hosting import shop_as_program

from turnlock import Call, Run
from turnlock.runtime import Policy, Runtime, Settings, open_journal
from turnlock.toolkits.mcp import Cancel, McpServers, Question, Reply

SETTINGS = Settings(ownership=0.5, poll=0.05)
POLICY = Policy(lease=0.5)
CALLS = [
    Call(invocation_id=name, tool_name=f"shop__{tool}", arguments=given, requires_approval=False)
    for name, tool, given in (("a", "work", {"seconds": 60}), ("b", "order", {"what": "tea"}))
]


async def tell_nobody(_: object) -> None:
    """No model is there to be told."""


async def main(journal: str, ledger: str) -> None:
    server = shop_as_program(Path(ledger), policies={"work": POLICY, "order": POLICY})

    async def ask(_: Question) -> Reply:
        print(servers.process("shop"), flush=True)
        await asyncio.sleep(60)
        return Cancel()

    async with (
        await open_journal(journal) as kept,
        McpServers({"shop": server}, elicit=ask) as servers,
    ):
        tools = servers.toolbox()
        async with Runtime(
            journal=kept, tools=tools, on_continue=tell_nobody, settings=SETTINGS
        ) as runtime:
            servers.remember(runtime)
            await runtime.open_run(Run(run_id="r"))
            await runtime.open_turn("r", CALLS, turn_id="t1")
            await asyncio.sleep(60)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

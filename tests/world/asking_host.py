"""A host in a process of its own, to be killed: ``python -m tests.world.asking_host DB LEDGER``.

Alice's run has a call of the shop, which asks something that nobody answers yet.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from turnlock import Call, Run
from turnlock.runtime import Policy, Runtime, Settings, open_journal
from turnlock.toolkits.mcp import McpServers
from turnlock.world.questions import Questions

from ..toolkits.mcp.hosting import shop_as_program

SETTINGS = Settings(ownership=0.5, poll=0.05)
RUN = Run(run_id="demo/plan/alice", kind="world", agent_id="alice", agent_name="alice")
CALL = Call(
    invocation_id="a", tool_name="shop__order", arguments={"what": "tea"}, requires_approval=False
)


async def tell_nobody(_: object) -> None:
    """No model is there to be told."""


async def main(db: str, ledger: str) -> None:
    shop = shop_as_program(Path(ledger), policies={"order": Policy(lease=0.5)})
    async with (
        await open_journal(db) as journal,
        Questions(journal, "demo") as questions,
        McpServers({"shop": shop}, elicit=questions.ask) as servers,
        Runtime(
            journal=journal,
            tools=servers.toolbox(),
            on_continue=tell_nobody,
            settings=SETTINGS,
            kind="world",
        ) as runtime,
    ):
        await runtime.open_run(RUN)
        await runtime.open_turn(RUN.run_id, [CALL], turn_id="t1")
        await asyncio.sleep(60)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

"""turnlock: the same tool on `turnlock.runtime`, with its journal in SQLite.

    python turnlock_agent.py ask|approve|resume FOLDER

The tool declares that a person must agree, and nothing else: what is in doubt asks a person, by
default. What the person was shown is kept in a file, so that two workers can hold one approval.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

from ledger import ARGUMENTS, CALL, TIMEOUT, meet, say
from ledger import pay as pay_for_good

from turnlock import Call, FactType, Run
from turnlock.runtime import (
    Continuation,
    JournalOwned,
    Runtime,
    SqliteJournal,
    Toolbox,
    ToolContext,
    tool,
)

RUN = "r1"


@tool(approval=True)
def pay(context: ToolContext, account: str, amount: int) -> str:
    """Pay an amount to an account."""
    return pay_for_good(account, amount, context.idempotency_key)


async def hear(told: Continuation) -> None:
    """Take the results, as a model would; the runtime keeps that they were taken."""


async def open_run(runtime: Runtime) -> None:
    """Open the run, as soon as no other living process performs it."""
    give_up = time.monotonic() + TIMEOUT
    while True:
        try:
            return await runtime.open_run(Run(run_id=RUN))
        except JournalOwned:
            if time.monotonic() > give_up:
                raise
            await asyncio.sleep(0.05)


async def ask(runtime: Runtime) -> dict[str, Any]:
    """Open the turn that the model asked for, and return what a person is shown."""
    call = Call(invocation_id=CALL, tool_name="pay", arguments=ARGUMENTS, requires_approval=False)
    await runtime.open_turn(RUN, [call], turn_id="t1", epoch=1)
    (waiting,) = runtime.pending(RUN)
    return {
        "turn_id": waiting.turn_id,
        "invocation_id": waiting.invocation_id,
        "arguments_digest": waiting.arguments_digest,
    }


async def main(step: str, folder: Path) -> None:
    """Take one step of the story in this process."""
    shown = folder / "shown.json"
    refused = None
    async with (
        await SqliteJournal.open(folder / "agent.db") as journal,
        Runtime(journal=journal, tools=Toolbox.of(pay), on_continue=hear) as runtime,
    ):
        if step == "approve":
            meet()
        await open_run(runtime)
        if step == "ask":
            shown.write_text(json.dumps(await ask(runtime)), encoding="utf-8")
        elif step == "approve":
            verdict = await runtime.approve(RUN, **json.loads(shown.read_text(encoding="utf-8")))
            refused = verdict.reason
            if verdict.accepted:
                async for fact in runtime.subscribe(RUN):
                    if fact.type == FactType.CONTINUATION_TAKEN:
                        break
        standing = await runtime.status(RUN)
        facts = [fact.type async for fact in journal.facts(RUN)]
        say(
            asks=len(runtime.pending(RUN)),
            results=facts.count(FactType.TOOL_EXECUTION_SUCCEEDED),
            status=standing.status,
            refused=refused,
        )


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))

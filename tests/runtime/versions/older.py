"""A host of an older version, told what to do line by line: ``python older.py JOURNAL``.

It runs with an older turnlock, and uses only what that had; each line is a command and its
arguments, and answered by a line of JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import turnlock
from turnlock import Call, Decide, Run
from turnlock.models.codec import to_json
from turnlock.runtime import (
    Continuation,
    JournalError,
    Runtime,
    Settings,
    SqliteJournal,
    Toolbox,
    submit,
    tool,
)

SETTINGS = Settings(ownership=1.0, poll=0.02, drain=0.1, snapshot_every=5)


def say(answer: Any) -> None:
    print(json.dumps(answer), flush=True)


@tool
async def work() -> str:
    return "done"


@tool(approval=True)
async def pay() -> str:
    return "paid"


@tool
async def hang() -> str:
    say("running")
    await asyncio.sleep(600)
    return "never"


class Host:
    """What it can be told to do."""

    def __init__(self, journal: SqliteJournal) -> None:
        self.journal = journal
        self.taken: list[str] = []
        self.runtime = Runtime(
            journal=journal,
            tools=Toolbox.of(work, pay, hang),
            on_continue=self.on_continue,
            settings=SETTINGS,
        )

    async def on_continue(self, told: Continuation) -> None:
        self.taken.append(told.turn_id)

    async def own(self, run_id: str) -> None:
        await self.runtime.open_run(Run(run_id=run_id))
        say("owned")

    async def turn(self, run_id: str, turn_id: str, tool_name: str) -> None:
        call = Call(invocation_id="c", tool_name=tool_name, arguments={}, requires_approval=False)
        verdict = await self.runtime.open_turn(run_id, [call], turn_id=turn_id)
        if tool_name == "work":
            await self.until(turn_id)
        elif tool_name == "pay":
            say([verdict.accepted, [one.arguments_digest for one in self.runtime.pending(run_id)]])

    async def until(self, turn_id: str) -> None:
        while turn_id not in self.taken:  # noqa: ASYNC110 - a few times
            await asyncio.sleep(0.01)
        say("taken")

    async def approve(self, run_id: str, turn_id: str) -> None:
        delivery = Decide(turn_id=turn_id, invocation_id="c", approved=True)
        said = await submit(self.journal, run_id, delivery, within=20)
        say([said.by_owner, said.receipt])

    async def facts(self, run_id: str) -> None:
        say([to_json(fact).decode() async for fact in self.journal.facts(run_id)])

    async def obey(self) -> None:
        while words := (await asyncio.to_thread(sys.stdin.readline)).split():
            command: Callable[..., Awaitable[None]] = getattr(self, words[0])
            await command(*words[1:])


async def main(path: str) -> None:
    async with await SqliteJournal.open(path) as journal:
        host = Host(journal)
        async with host.runtime:
            say(turnlock.__file__)
            await host.obey()
    say("closed")


if __name__ == "__main__":
    try:
        asyncio.run(main(sys.argv[1]))
    except JournalError as error:
        say(f"refused: {error}")
        sys.exit(3)

"""A person in a process of their own: ``python -m tests.world.replier DB BY SIZE``.

It waits for a question in the chat `plan` of the world `demo`, replies with this size, and prints
whether its reply is new, or there is another one.
"""

from __future__ import annotations

import asyncio
import sys

from turnlock.runtime import open_journal
from turnlock.runtime.journal.contract import Journal
from turnlock.world import World


async def question_of(journal: Journal) -> str:
    """Wait for a question, and return its id."""
    while True:
        for it in await journal.entries("demo/plan"):
            if it.entry_id.startswith("question/"):
                return it.entry_id
        await asyncio.sleep(0.02)


async def main(db: str, by: str, size: str) -> None:
    async with asyncio.timeout(30), await open_journal(db) as journal:
        chat = World(journal, "demo").chat("plan")
        question = await question_of(journal)
        replied = await chat.reply(question, accept={"size": int(size)}, by=by)
        print("new" if replied.new else "there")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

"""The story in processes of their own, to be killed: `… FOLDER host|person`.

In the folder: `world.db`, the journal; and `did`, in which tools and models write what they do,
each line synced before anything else happens. A host prints "hosting" once it hosts, and ends once
all is said and the chat is idle.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Final

from turnlock.runtime.journal.sqlite import SqliteJournal
from turnlock.runtime.settings import Settings
from turnlock.runtime.tools.toolbox import Toolbox
from turnlock.world import Host

from .cast import Outside, models, tools
from .story import CHAT, ENDED, LOG, WORLD, person, prepared

SETTINGS: Final = Settings(ownership=0.5, poll=0.05, retry_first=0.01, retry_longest=0.1)


async def host(folder: Path) -> None:
    """Host the world until all is said."""
    outside = Outside(notebook=folder / "did")
    async with await SqliteJournal.open(folder / "world.db") as journal:
        await prepared(journal)
        async with Host(
            journal,
            WORLD,
            models=models(outside),
            toolboxes=Toolbox(tools(outside)),
            settings=SETTINGS,
        ) as hosting:
            print("hosting", flush=True)
            while len(await journal.entries(LOG)) < len(ENDED):  # noqa: ASYNC110 - a person's part
                await asyncio.sleep(SETTINGS.poll)
            await hosting.idle(CHAT)


async def someone(folder: Path) -> None:
    """Be the person."""
    async with await SqliteJournal.open(folder / "world.db") as journal:
        print("here", flush=True)
        await person(journal, Outside(notebook=folder / "did"))


if __name__ == "__main__":
    asyncio.run({"host": host, "person": someone}[sys.argv[2]](Path(sys.argv[1])))

"""A host in its own process, to be killed: `… FOLDER SECONDS`, the time that each answer takes.

In the folder: the journal, and `asked`, a line for each question of a model. It prints "performing"
once it is entered.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import attrs

from turnlock.agent import Answer, Ended, Question, Said
from turnlock.runtime import Settings
from turnlock.runtime.journal.sqlite import SqliteJournal
from turnlock.world import Host

from .playing import told

SETTINGS: Final = Settings(ownership=1.0, poll=0.05, retry_first=0.01, retry_longest=0.1)


@attrs.define
class Echo:
    """Says what it was told, and writes down that it was asked."""

    file: int
    seconds: float

    async def speak(self, question: Question) -> AsyncIterator[Said]:
        os.write(self.file, f"{os.getpid()} {told(question)!r}\n".encode())
        await asyncio.sleep(self.seconds)
        yield Ended(Answer(text=f"heard: {told(question).replace('@', '')}"))

    async def close(self) -> None: ...


async def main(folder: Path, seconds: float) -> None:
    file = os.open(folder / "asked", os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)
    async with await SqliteJournal.open(folder / "world.db") as journal:
        models = {f"test:{agent}": Echo(file, seconds) for agent in ("alice", "bob")}
        async with Host(journal, "demo", models=models, settings=SETTINGS) as host:
            print("performing", flush=True)
            await host.runtime.failed()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), float(sys.argv[2])))

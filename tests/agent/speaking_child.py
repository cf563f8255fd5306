"""An agent in its own process, to be killed while its model speaks: `… FOLDER SALT PAUSE TURNS`.

In the folder: the journal; `ran`, to which the tool itself appends what it does; and `told`, what
the model was told was said. Each line is one synced write before anything else happens. It prints
"owner" once it owns the run.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import attrs

from turnlock.agent.loop import Agent
from turnlock.agent.speaking import Question, Said
from turnlock.runtime.errors import JournalOwned
from turnlock.runtime.journal.sqlite import SqliteJournal
from turnlock.runtime.settings import Settings
from turnlock.runtime.tools.calling import ToolContext
from turnlock.runtime.tools.policy import InDoubt
from turnlock.runtime.tools.tool import tool

from .early_world import GOODBYE, Whimsical, said_in

SETTINGS: Final = Settings(ownership=0.3, poll=0.05, retry_first=0.01, retry_longest=0.1)
LONGEST: Final = 0.02
"""Seconds that the tool takes at most."""


class Notebook:
    """A file of JSON lines that outlives whoever writes it."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)

    def write(self, line: Any) -> None:
        os.write(self._file, json.dumps(line).encode() + b"\n")
        os.fsync(self._file)


@attrs.define
class Telling(Whimsical):
    """Writes down what it is told before it speaks."""

    notebook: Notebook = attrs.field(kw_only=True)

    async def speak(self, question: Question) -> AsyncIterator[Said]:
        self.notebook.write(said_in(question.messages))
        async for said in super().speak(question):
            yield said


async def main(folder: Path, salt: str, pause: float, turns: int) -> None:
    ran = Notebook(folder / "ran")

    @tool(safe_to_repeat=True, in_doubt=InDoubt.RETRY_IF_SAFE)
    async def look(context: ToolContext, at: str) -> str:
        ran.write([context.turn_id, context.invocation_id, context.attempt, at])
        await asyncio.sleep(random.uniform(0.0, LONGEST))
        return f"{at} seen"

    told = Notebook(folder / "told")
    model = Telling(salt=salt, pause=pause, turns=turns, notebook=told)
    async with await SqliteJournal.open(folder / "journal.db") as journal:
        while True:
            agent = Agent(
                model=model,
                tools=[look],
                run="r",
                journal=journal,
                settings=SETTINGS,
                start="early",
            )
            try:
                async with agent:
                    print("owner", flush=True)
                    assert str(await agent.run("go")) == GOODBYE
                    return
            except JournalOwned:  # by one that was killed: its lease runs out
                await asyncio.sleep(SETTINGS.ownership / 3)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]), int(sys.argv[4])))

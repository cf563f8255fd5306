"""A database that is locked or full under a runtime at work: it is told, and outlived."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from turnlock import Call, FactType, Run
from turnlock.runtime.dispatcher import Continuation
from turnlock.runtime.errors import JournalError
from turnlock.runtime.journal.sqlite import SqliteJournal
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.settings import Settings
from turnlock.runtime.tools.calling import ToolContext
from turnlock.runtime.tools.tool import tool
from turnlock.runtime.tools.toolbox import Toolbox

RUN: Final = Run(run_id="r")


async def _performed(journal: SqliteJournal, runtime: Runtime) -> None:
    """Wait until the turn is off the books. Real time: SQLite has threads of its own."""
    async with asyncio.timeout(10):
        while (await journal.entry("r")).busy:  # noqa: ASYNC110 - a journal tells nobody
            await asyncio.sleep(0.01)
    assert runtime.runs == ("r",)


def _hosted(journal: SqliteJournal, gate: asyncio.Event, ran: list[str]) -> Runtime:
    async def act(context: ToolContext) -> str:
        ran.append(context.idempotency_key)
        await gate.wait()
        return "done" * 2_000

    async def on_continue(_: Continuation) -> None:
        return

    return Runtime(
        journal=journal,
        tools=Toolbox([tool(name="act", description="")(act)]),
        on_continue=on_continue,
        settings=Settings(retry_first=0.01, retry_longest=0.05),
    )


def _limit(pages: int, db: sqlite3.Connection) -> None:
    db.execute(f"PRAGMA max_page_count = {pages}")


async def _open(runtime: Runtime, number: int = 1) -> None:
    call = Call(invocation_id="a", tool_name="act", arguments={}, requires_approval=False)
    await runtime.open_turn("r", [call], turn_id=f"t{number}", epoch=number)


def test_a_locked_database_is_told_and_outlived(tmp_path: Path) -> None:
    """Another process holds the lock: callers are told so, and the tool's report waits its time."""

    async def play() -> None:
        ran: list[str] = []
        gate = asyncio.Event()
        async with await SqliteJournal.open(tmp_path / "j.db", busy_timeout=0.01) as journal:
            async with _hosted(journal, gate, ran) as runtime:
                await runtime.open_run(RUN)
                await _open(runtime)
                while not ran:  # noqa: ASYNC110 - it is a list
                    await asyncio.sleep(0.01)
                other = sqlite3.connect(tmp_path / "j.db", isolation_level=None)
                other.execute("BEGIN IMMEDIATE")
                gate.set()
                with pytest.raises(JournalError, match="another process holds its lock"):
                    await runtime.interrupt("r", turn_id="t1")
                await asyncio.sleep(0.05)
                other.execute("ROLLBACK")
                other.close()
                await _performed(journal, runtime)
            assert FactType.TOOL_EXECUTION_SUCCEEDED in [it.type async for it in journal.facts("r")]
        assert ran == ["call/r/1/t1/a"]

    asyncio.run(play())


def test_a_full_disk_is_told_and_outlived(tmp_path: Path) -> None:
    """Not a page more may be written: nothing has happened; with space again, it goes on."""

    async def play() -> None:
        ran: list[str] = []
        gate = asyncio.Event()
        async with await SqliteJournal.open(tmp_path / "j.db") as journal:

            async def limited(pages: int) -> None:
                """Set it; what shares a transaction with the report that does not fit fails too."""
                while True:
                    with suppress(JournalError):
                        return await journal._write(partial(_limit, pages))

            async with _hosted(journal, gate, ran) as runtime:
                await runtime.open_run(RUN)
                await _open(runtime)
                while not ran:  # noqa: ASYNC110 - it is a list
                    await asyncio.sleep(0.01)
                await limited(1)  # as many as there are
                gate.set()
                await asyncio.sleep(0.05)
                kept = [it.type async for it in journal.facts("r")]
                assert kept == [FactType.TURN_OPENED, FactType.TOOL_EXECUTION_STARTED]
                await limited(1_000_000)
                await _performed(journal, runtime)
            assert [it.type async for it in journal.facts("r")][-1] is FactType.CONTINUATION_TAKEN
        assert ran == ["call/r/1/t1/a"]

    asyncio.run(play())

"""An older process and a newer one on one file: the older goes on as if it were alone."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sqlite3
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, Final

import attrs

from turnlock import Call, Decide, Fact, Resolution, Resolve, Run
from turnlock.models.codec import to_json
from turnlock.models.facts import ContinuationTaken, ExecutionInDoubt, ToolExecutionSucceeded
from turnlock.runtime import (
    Continuation,
    Runtime,
    Settings,
    SqliteJournal,
    Toolbox,
    submit,
    tool,
)
from turnlock.runtime.journal.sqlite_schema import MIGRATIONS

OLDER: Final = Path(__file__).parents[2] / "data/versions/turnlock-0.1.0-py3-none-any.whl"
"""Its journals have version 2; see the README beside it."""
CHILD: Final = Path(__file__).with_name("older.py")
SETTINGS: Final = Settings(ownership=1.0, poll=0.02, drain=0.1)
TIMEOUT: Final = 60.0


@attrs.frozen
class Older:
    """A process of an older version."""

    process: asyncio.subprocess.Process

    async def answers(self) -> Any:
        """Return what it says next."""
        output = self.process.stdout
        assert output is not None
        line = await asyncio.wait_for(output.readline(), TIMEOUT)
        assert line, "it has ended"
        return json.loads(line)

    async def told(self, *words: str) -> Any:
        """Tell it what to do, and return what it says to that."""
        given = self.process.stdin
        assert given is not None
        given.write(" ".join(words).encode() + b"\n")
        return await self.answers()


@asynccontextmanager
async def older(path: Path) -> AsyncGenerator[Older]:
    """Begin a process of an older version that opens this file."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(CHILD),
        str(path),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=2**20,
        env={**os.environ, "PYTHONPATH": str(OLDER)},
    )
    try:
        yield Older(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@tool
async def work() -> str:
    return "done"


@tool(approval=True)
async def pay() -> str:
    return "paid"


@tool
async def hang() -> str:
    return "hangs in the older one alone"


@asynccontextmanager
async def newer(path: Path) -> AsyncGenerator[tuple[SqliteJournal, Runtime]]:
    """A runtime of this version."""

    async def on_continue(_: Continuation) -> None:
        pass

    async with await SqliteJournal.open(path, create=False) as journal:
        tools = Toolbox.of(work, pay, hang)
        runtime = Runtime(journal=journal, tools=tools, on_continue=on_continue, settings=SETTINGS)
        async with runtime:
            yield journal, runtime


def version(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        found: int = connection.execute("PRAGMA user_version").fetchone()[0]
        return found


async def until(what: Callable[[], Awaitable[object]]) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(TIMEOUT):
        while not await what():  # noqa: ASYNC110 - of another process
            await asyncio.sleep(0.02)


async def holds(journal: SqliteJournal, run_id: str, kind: type[Fact], turn_id: str) -> bool:
    facts = [fact async for fact in journal.facts(run_id)]
    return any(isinstance(fact, kind) and getattr(fact, "turn_id", "") == turn_id for fact in facts)


def call(tool_name: str) -> Call:
    return Call(invocation_id="c", tool_name=tool_name, arguments={}, requires_approval=False)


def test_an_older_process_goes_on_under_a_newer_one(tmp_path: Path) -> None:
    """It appends, keeps snapshots, posts, is posted to and renews, in a file that was migrated
    under it; when it dies, the newer one takes its run over."""
    path = tmp_path / "journal.db"

    async def story() -> None:
        async with older(path) as old:
            assert str(OLDER) in await old.answers()
            assert await old.told("own", "old") == "owned"
            assert await old.told("turn", "old", "t1", "work") == "taken"
            assert version(path) == 2

            async with newer(path) as (journal, runtime):
                assert version(path) == len(MIGRATIONS)
                await runtime.open_run(Run(run_id="new"))
                await runtime.open_turn("new", [call("pay")], turn_id="t1")
                assert await old.told("turn", "old", "t2", "work") == "taken"

                by_owner, receipt = await old.told("approve", "new", "t1")
                assert by_owner
                assert receipt["accepted"]
                await until(lambda: holds(journal, "new", ContinuationTaken, "t1"))

                await old.told("turn", "old", "t3", "pay")
                decided = Decide(turn_id="t3", invocation_id="c", approved=True)
                said = await submit(journal, "old", decided, within=20)
                assert said.by_owner
                assert said.receipt["accepted"]
                assert await old.told("until", "t3") == "taken"

                await _is_renewed(journal)
                await _is_whole(journal)
                told = await old.told("facts", "old")
                assert told == [to_json(fact).decode() async for fact in journal.facts("old")]

                assert await old.told("turn", "old", "t4", "hang") == "running"
                assert runtime.runs == ("new",)
                old.process.kill()
                await _is_taken_over(journal, runtime)
                await _is_whole(journal)
                after = [to_json(fact).decode() async for fact in journal.facts("old")]
                assert after[: len(told)] == told

    asyncio.run(story())


async def _is_renewed(journal: SqliteJournal) -> None:
    before = (await journal.entry("old")).owned_until
    assert before is not None

    async def later() -> bool:
        now = (await journal.entry("old")).owned_until
        return now is not None and now > before

    await until(later)


async def _is_whole(journal: SqliteJournal) -> None:
    assert await journal.check() == ()
    for entry in await journal.runs():
        assert len([fact async for fact in journal.facts(entry.run.run_id)]) == entry.sequence
        snapshot = await journal.snapshot(entry.run.run_id)
        assert entry.run.run_id != "old" or snapshot is not None


async def _is_taken_over(journal: SqliteJournal, runtime: Runtime) -> None:
    """What the dead one was running is in doubt, and a person settles it."""
    await until(lambda: holds(journal, "old", ExecutionInDoubt, "t4"))
    assert not await holds(journal, "old", ToolExecutionSucceeded, "t4")
    resolve = Resolve(
        run_id="old",
        turn_id="t4",
        invocation_id="c",
        attempt=1,
        resolution=Resolution.RESULT,
        result="it was",
    )
    await runtime.deliver("old", resolve)
    await until(lambda: holds(journal, "old", ContinuationTaken, "t4"))


def test_without_the_trigger_what_the_older_writes_is_taken_for_damage(tmp_path: Path) -> None:
    """The control: it leaves a checksum beside its own writing that is of what was there before."""
    path = tmp_path / "journal.db"

    async def story() -> None:
        async with older(path) as old:
            await old.answers()
            async with newer(path) as (journal, _):
                with closing(sqlite3.connect(path)) as connection:
                    connection.execute("DROP TRIGGER runs_written_by_older")
                await journal.declare(Run(run_id="old"))
                fence = await journal.own("old", owner="me", now=0.0, lease=1.0)
                await journal.release("old", fence=fence)
                assert (await journal.entry("old")).problem is None
                assert await old.told("own", "old") == "owned"
                assert (await journal.entry("old")).problem is not None

    asyncio.run(story())


def test_an_older_process_started_anew_refuses_by_name(tmp_path: Path) -> None:
    """It does not know what it would have to keep up: it says so, and changes nothing."""
    path = tmp_path / "journal.db"

    async def made() -> None:
        async with newer_file(path) as journal:
            await journal.declare(Run(run_id="r"))

    async def refused() -> None:
        async with older(path) as old:
            assert "a newer turnlock wrote it" in await old.answers()
            assert await asyncio.wait_for(old.process.wait(), TIMEOUT) == 3

    asyncio.run(made())
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    asyncio.run(refused())
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before
    assert [one.name for one in tmp_path.iterdir() if one.name.endswith("-wal")] == []


@asynccontextmanager
async def newer_file(path: Path) -> AsyncGenerator[SqliteJournal]:
    async with await SqliteJournal.open(path) as journal:
        yield journal

"""A disk that is full, a real one: it is told, nothing is half done, and it goes on by itself.

A superuser mounts a small one for each test; elsewhere `test_sqlite_faults` stands in, where SQLite
may not take another page.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest

from turnlock import Call, FactType, Run
from turnlock.runtime import (
    Continuation,
    JournalError,
    Runtime,
    Settings,
    SqliteJournal,
    Toolbox,
    open_journal,
    tool,
)
from turnlock.runtime.journal.sqlite_heads import Heads

from ..cli.recordings import turnlock
from .kept_notes import thread_note

RUN = Run(run_id="r")
BLOCK = 4_096
NOTE = "x" * 3_000


@pytest.fixture
def disk(tmp_path: Path) -> Generator[Path]:
    """A disk of 1 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = [
        "/usr/bin/env",
        "mount",
        "-t",
        "tmpfs",
        "-o",
        "size=1m,mode=0700",
        "turnlock",
        str(folder),
    ]
    if os.geteuid() != 0 or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("needs the right to mount")
    try:
        yield folder
    finally:
        subprocess.run(["/usr/bin/env", "umount", "-l", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """Take all that is left."""
    ballast = folder / "ballast"
    with ballast.open("ab", buffering=0) as file:
        try:
            while True:
                file.write(bytes(BLOCK))
        except OSError:
            return ballast


async def _noted(runtime: Runtime) -> None:
    """Keep notes as long as there is room: in blocks that were taken before, say."""
    for number in range(1_000):
        await runtime.note("r", thread_note(f"n{number}", text=NOTE))


def call(name: str) -> Call:
    return Call(invocation_id=name, tool_name="act", arguments={}, requires_approval=False)


def test_it_is_told_and_goes_on_when_there_is_room_again(disk: Path) -> None:
    """The tool's report waits; whoever reads is served; nothing runs twice."""
    path = disk / "journal.db"
    ran: list[str] = []

    async def play() -> None:
        gate = asyncio.Event()

        async def act() -> str:
            ran.append("begun")
            await gate.wait()
            return "done" * 2_000

        async def on_continue(_: Continuation) -> None:
            return

        async with (
            await SqliteJournal.open(path) as journal,
            Runtime(
                journal=journal,
                tools=Toolbox([tool(name="act", description="")(act)]),
                on_continue=on_continue,
                settings=Settings(retry_first=0.01, retry_longest=0.05),
            ) as runtime,
        ):
            await runtime.open_run(RUN)
            await runtime.open_turn("r", [call("a")], turn_id="t")
            while not ran:  # noqa: ASYNC110 - it is a list
                await asyncio.sleep(0.01)
            ballast = fill(disk)
            with pytest.raises(JournalError, match="the disk is full: 0 bytes are left at"):
                await _noted(runtime)
            gate.set()
            await asyncio.sleep(0.1)
            await asyncio.to_thread(_commands, path)
            ballast.unlink()
            async with asyncio.timeout(10):
                while (await journal.entry("r")).busy:  # noqa: ASYNC110 - it tells nobody
                    await asyncio.sleep(0.01)
            assert runtime.failure is None

    asyncio.run(play())
    assert ran == ["begun"]

    async def look() -> None:
        async with await open_journal(path, read_only=True) as journal:
            types = [fact.type async for fact in journal.facts("r")]
            assert types.count(FactType.TOOL_EXECUTION_SUCCEEDED) == 1
            assert types[-1] is FactType.CONTINUATION_TAKEN
            assert await journal.check() == ()

    asyncio.run(look())


def _commands(path: Path) -> None:
    for command in (["runs"], ["show", "r"], ["check"]):
        done = turnlock(*command, "--db", str(path))
        assert done.exit_code == 0, done.output
    done = turnlock("interrupt", "r", "--turn", "another", "--db", str(path), "--wait", "0.1")
    assert done.exit_code == 1, done.output  # it is full; or a post had room, and nobody answers
    done = turnlock("backup", "--db", str(path), "-o", str(path.with_name("copy.db")))
    assert (done.exit_code, "the disk is full" in done.output) == (1, True), done.output
    assert {it.name for it in path.parent.iterdir()} >= {"journal.db", "ballast"}
    assert not [it for it in path.parent.iterdir() if it.name.endswith(".new")]


async def _renewed(path: Path) -> None:
    """Fill the disk up to a few pages, then write the same pages over and over into the -wal."""
    async with await SqliteJournal.open(path) as journal:
        await journal.declare(RUN)
        with closing(sqlite3.connect(path)) as reader:  # nothing is merged while it reads
            reader.execute("BEGIN")
            reader.execute("SELECT * FROM runs").fetchall()
            for number in range(10):
                await journal.own("r", owner="me", now=float(number), lease=1.0)
            ballast = fill(path.parent)
        os.truncate(ballast, ballast.stat().st_size - 2 * BLOCK)
        for number in range(300):
            await journal.own("r", owner="me", now=float(number), lease=1.0)


def test_merging_the_wal_gives_room(disk: Path) -> None:
    """What is written over and over takes room in the -wal alone: merged, it goes on at once."""
    asyncio.run(_renewed(disk / "journal.db"))


def test_control_without_merging_it_is_full(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Heads, "merge", _never)

    with pytest.raises(JournalError, match="the disk is full"):
        asyncio.run(_renewed(disk / "journal.db"))


def _never(*_: object) -> bool:
    return False

"""`os.fork()` while a journal is open: nothing that the child or the parent writes is lost."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import os
import pickle
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from turnlock import Run
from turnlock.runtime.errors import JournalError, JournalReplaced
from turnlock.runtime.journal import sqlite_worker as under_test
from turnlock.runtime.journal.sqlite import SqliteJournal
from turnlock.runtime.journal.sqlite_worker import Worker

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="fork is POSIX")


class Child:
    """What runs in a process made by a fork; it begins when it is told to."""

    def __init__(self, work: Callable[[Callable[[], None]], object]) -> None:
        """`work` is given what waits for `go`, once."""
        self._go, go = os.pipe()[::-1]
        self._told, told = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of a process that has threads
            self.pid = os.fork()
        if self.pid == 0:
            said: object
            try:
                said = work(lambda: (os.write(told, b"."), os.read(go, 1), None)[2])
            except BaseException as error:  # noqa: BLE001 - the parent is told
                said = repr(error)
            os.write(told, pickle.dumps(said))
            os._exit(0)
        os.close(told)
        os.close(go)

    def waits(self) -> None:
        assert os.read(self._told, 1) == b"."

    def ends(self) -> Any:
        with suppress(BrokenPipeError):  # it may have ended: not all of them wait
            os.write(self._go, b"x")
        said = b"".join(iter(lambda: os.read(self._told, 1 << 16), b""))
        os.close(self._told)
        os.close(self._go)
        os.waitpid(self.pid, 0)
        return pickle.loads(said)  # noqa: S301 - our own child's


async def declared(path: Path, *names: str, wait: Callable[[], None] | None = None) -> set[str]:
    """Open the journal, make runs known, the last after waiting; return all that it has."""
    async with await SqliteJournal.open(path, busy_timeout=2.0) as journal:
        for name in names[:-1]:
            await journal.declare(Run(run_id=name))
        if wait is not None:
            wait()
        await journal.declare(Run(run_id=names[-1]))
        return {entry.run.run_id async for entry in journal.run_entries()}


async def parent_closes_first(path: Path) -> tuple[Any, set[str]]:
    """The child writes, the parent closes, the child writes on; return what it and the file say."""
    journal = await SqliteJournal.open(path)
    await journal.declare(Run(run_id="parent"))
    child = Child(lambda wait: asyncio.run(declared(path, "first", "second", wait=wait)))
    child.waits()
    await journal.declare(Run(run_id="later"))
    await journal.close()
    said = child.ends()
    return said, await declared(path, "after")


def test_what_a_child_writes_after_its_parent_has_closed_is_kept(tmp_path: Path) -> None:
    """The parent goes on in the meantime, though its connections were closed."""
    said, kept = asyncio.run(parent_closes_first(tmp_path / "agent.db"))

    assert said == {"parent", "later", "first", "second"}
    assert kept == {*said, "after"}


def test_with_a_connection_open_the_child_loses_its_file(tmp_path: Path) -> None:
    """The negative control: closing a connection takes away the -wal that the child writes to."""
    with patch.object(Worker, "pause", return_value=None):
        said, kept = asyncio.run(parent_closes_first(tmp_path / "agent.db"))

    assert JournalReplaced.__name__ in said, "SQLite has mended it: the pause may go"
    assert "second" not in kept


def test_a_fork_in_the_middle_of_writing_waits_for_the_write(tmp_path: Path) -> None:
    """Else the child believes for ever in the lock that was held; each write happens once."""
    path = tmp_path / "agent.db"

    async def play() -> set[str]:
        async with await SqliteJournal.open(path) as journal:

            async def write(name: str) -> None:
                for number in range(40):
                    await journal.declare(Run(run_id=f"{name}{number}"))

            def child_of(number: int) -> Child:
                return Child(lambda _: asyncio.run(declared(path, f"child{number}")))

            async def fork() -> None:
                for number in range(4):
                    child = await asyncio.to_thread(child_of, number)
                    said = await asyncio.to_thread(child.ends)
                    assert f"child{number}" in said, said

            await asyncio.gather(write("a"), write("b"), fork())
            return {entry.run.run_id async for entry in journal.run_entries()}

    kept = asyncio.run(asyncio.wait_for(play(), 120))
    assert len(kept) == 84


def test_two_threads_fork_one_after_the_other(tmp_path: Path) -> None:
    """The second must not find connections that were opened anew after the first."""
    path = tmp_path / "agent.db"

    async def play() -> None:
        async with await SqliteJournal.open(path) as journal:
            said: list[Any] = []

            def fork(name: str) -> None:
                said.append(Child(lambda _: asyncio.run(declared(path, name))).ends())

            threads = [threading.Thread(target=fork, args=(f"c{n}",)) for n in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                await asyncio.to_thread(thread.join)
            assert all(isinstance(it, set) for it in said), said
            await journal.declare(Run(run_id="parent"))

    asyncio.run(asyncio.wait_for(play(), 120))


def test_a_file_that_was_replaced_during_a_fork_is_found_out(tmp_path: Path) -> None:
    """The connection is opened anew, and must not take another file for its own."""
    path, other = tmp_path / "agent.db", tmp_path / "other.db"

    async def play() -> None:
        await declared(other, "else")
        journal = await SqliteJournal.open(path)
        here = asyncio.get_running_loop()
        pauses = [it.pause() for it in tuple(under_test._workers) if it._loop is here]
        begun = [it for it in pauses if it is not None]
        for pause in begun:
            await asyncio.to_thread(pause.begun.wait)
        other.replace(path)
        for pause in begun:
            pause.over.set()
        with pytest.raises(JournalError, match="not the file that was opened"):
            await journal.declare(Run(run_id="parent"))
        await journal.close()
        assert "parent" not in await declared(path, "after")

    asyncio.run(asyncio.wait_for(play(), 120))

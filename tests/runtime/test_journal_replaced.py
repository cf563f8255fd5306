"""The journal's file is taken away under a runtime: it notices, stops, and touches nothing else."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from turnlock import Call, FactType, Run
from turnlock.runtime import (
    Continuation,
    JournalError,
    JournalReplaced,
    Runtime,
    Settings,
    SqliteJournal,
    Toolbox,
    open_journal,
    tool,
)
from turnlock.runtime.journal.sqlite_guard import Guard

RUN = Run(run_id="r")
SETTINGS = Settings(poll=0.01, retry_first=0.01, retry_longest=0.05)
CALLS = [
    Call(invocation_id=name, tool_name="act", arguments={}, requires_approval=True)
    for name in ("a", "b")
]


def _remove(path: Path) -> None:
    for end in ("", "-wal", "-shm"):
        path.with_name(path.name + end).unlink()


def _remove_it_alone(path: Path) -> None:
    path.unlink()


def _move_away(path: Path) -> None:
    """As logrotate does: it, its -wal and its -shm."""
    for end in ("", "-wal", "-shm"):
        path.with_name(path.name + end).rename(path.with_name(f"old{end}"))


def _split(path: Path) -> None:
    """A new journal is begun where it was; another process is the owner there."""
    _move_away(path)
    asyncio.run(_begin(path))


def _rename_over(path: Path) -> None:
    asyncio.run(_begin(path.with_name("other.db")))
    path.with_name("other.db").rename(path)


def _write_over(path: Path) -> None:
    """Another journal's bytes, in the same inode; the -wal stays."""
    asyncio.run(_begin(path.with_name("other.db")))
    shutil.copyfile(path.with_name("other.db"), path)


def _restore_in_place(path: Path) -> None:
    """A copy that was made with the tools of SQLite: it has the same identity."""
    shutil.copyfile(path.with_name("copy.db"), path)


def _restore_vacuumed(path: Path) -> None:
    shutil.copyfile(path.with_name("vacuumed.db"), path)


def _restore_through_sqlite(path: Path) -> None:
    """As a transaction of its own: another journal's content in this very file."""
    asyncio.run(_begin(path.with_name("other.db")))
    with (
        closing(sqlite3.connect(path.with_name("other.db"))) as other,
        closing(sqlite3.connect(path)) as here,
    ):
        other.backup(here)


def _cut_off(path: Path) -> None:
    os.truncate(path, 0)


def _take_its_wal(path: Path) -> None:
    path.with_name(path.name + "-wal").unlink()


WAYS: dict[str, Callable[[Path], None]] = {
    way.__name__.strip("_"): way
    for way in (
        *(_remove, _remove_it_alone, _move_away, _split, _rename_over, _write_over),
        *(_restore_in_place, _restore_vacuumed, _restore_through_sqlite, _cut_off, _take_its_wal),
    )
}


async def _begin(path: Path) -> None:
    async with await SqliteJournal.open(path) as journal:
        await journal.declare(Run(run_id="other"))


def _copies(path: Path) -> None:
    """Copies as operators make them, with the tools of SQLite."""
    with (
        closing(sqlite3.connect(path)) as here,
        closing(sqlite3.connect(path.with_name("copy.db"))) as copy,
    ):
        here.backup(copy)
        here.execute("VACUUM INTO ?", (str(path.with_name("vacuumed.db")),))


class Host:
    """A runtime on a journal of its own, and what its tools and its callback were called for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ran: list[str] = []
        self.told: list[str] = []
        self.gate = asyncio.Event()

    def runtime(self, journal: SqliteJournal) -> Runtime:
        async def act() -> str:
            self.ran.append("begun")
            await self.gate.wait()
            return "done"

        async def on_continue(told: Continuation) -> None:
            self.told.append(told.turn_id)

        return Runtime(
            journal=journal,
            tools=Toolbox([tool(name="act", description="")(act)]),
            on_continue=on_continue,
            settings=SETTINGS,
        )


def _content(folder: Path) -> dict[str, bytes]:
    """All but what SQLite keeps in memory."""
    return {it.name: it.read_bytes() for it in folder.iterdir() if not it.name.endswith("-shm")}


async def _approve(runtime: Runtime, name: str) -> None:
    await runtime.approve("r", turn_id="t", invocation_id=name)


@pytest.mark.parametrize("way", WAYS)
def test_whatever_becomes_of_the_file_the_runtime_stops(
    tmp_path: Path, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    """No tool starts, nobody is told anything but why, and not a byte of what is there changes."""
    path = tmp_path / "journal.db"

    async def story() -> None:
        host = Host(path)
        async with await SqliteJournal.open(path, busy_timeout=0.05) as journal:
            async with host.runtime(journal) as runtime:
                await runtime.open_run(RUN)
                await asyncio.to_thread(_copies, path)
                await runtime.open_turn("r", CALLS, turn_id="t")
                await _approve(runtime, "a")
                while not host.ran:  # noqa: ASYNC110 - it is a list
                    await asyncio.sleep(0.001)
                subscription = runtime.subscribe("r")
                await asyncio.to_thread(WAYS[way], path)
                before = _content(tmp_path)

                with pytest.raises(JournalReplaced, match="not the file that was opened"):
                    await _approve(runtime, "b")
                host.gate.set()
                with pytest.raises(JournalReplaced):
                    await runtime.open_run(Run(run_id="r2"))
                with pytest.raises(JournalReplaced):
                    async for _ in subscription:
                        pass
                assert isinstance(runtime.failure, JournalReplaced)
                assert await runtime.failed() is runtime.failure
                assert runtime.runs == ()
            with pytest.raises(JournalReplaced):
                await journal.runs()
        assert host.ran == ["begun"]
        assert host.told == []
        assert _content(tmp_path) == before

    with caplog.at_level(logging.CRITICAL):
        asyncio.run(story())
    (record,) = caplog.records
    assert "nothing is performed here any more" in record.getMessage()


@pytest.mark.parametrize("way", ["remove", "split", "rename_over", "write_over", "take_its_wal"])
def test_it_is_noticed_where_nothing_is_written(tmp_path: Path, way: str) -> None:
    """By the next look for posts; nobody has to call."""
    path = tmp_path / "journal.db"

    async def story() -> None:
        host = Host(path)
        async with await SqliteJournal.open(path) as journal, host.runtime(journal) as runtime:
            await runtime.open_run(RUN)
            await asyncio.to_thread(WAYS[way], path)
            await asyncio.wait_for(runtime.failed(), 5)

    asyncio.run(story())


def _blind(*_: object) -> None:
    """Instead of a look of the guard."""


def test_control_without_the_guard_tools_run_unrecorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was measured: the owner goes on in a file that nobody will find."""
    for look in ("begun", "committed", "check", "look"):
        monkeypatch.setattr(Guard, look, _blind)
    path = tmp_path / "journal.db"

    async def story() -> None:
        host = Host(path)
        async with await SqliteJournal.open(path) as journal, host.runtime(journal) as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", CALLS, turn_id="t")
            await asyncio.to_thread(_split, path)
            await _approve(runtime, "b")
            while not host.ran:  # noqa: ASYNC110 - it is a list
                await asyncio.sleep(0.01)
            async with await open_journal(path, read_only=True) as found:
                assert [entry.run.run_id for entry in await found.runs()] == ["other"]
            host.gate.set()

    asyncio.run(story())


def test_checkpoints_of_others_and_a_copy_are_no_replacement(tmp_path: Path) -> None:
    """What an operator may do: checkpoint, copy, read, chmod, post from another process."""
    path = tmp_path / "journal.db"

    def meddle() -> None:
        _copies(path)
        with closing(sqlite3.connect(path)) as other:
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        path.chmod(0o640)

    async def story() -> None:
        host = Host(path)
        host.gate.set()
        async with await SqliteJournal.open(path) as journal:
            async with host.runtime(journal) as runtime:
                await runtime.open_run(RUN)
                await asyncio.to_thread(meddle)
                await runtime.open_turn("r", CALLS, turn_id="t")
                path.with_name("copy.db").unlink()
                path.with_name("vacuumed.db").unlink()
                await asyncio.to_thread(meddle)
                for name in ("a", "b"):
                    await _approve(runtime, name)
                while not host.told:  # noqa: ASYNC110 - it is a list
                    await asyncio.sleep(0.01)
                assert runtime.failure is None
            types = [fact.type async for fact in journal.facts("r")]
        assert types.count(FactType.TOOL_EXECUTION_SUCCEEDED) == 2

    asyncio.run(story())


def _left_by_a_crash(path: Path) -> None:
    """A journal whose last facts stand in its -wal alone."""
    child = os.fork()
    if child:
        assert os.waitpid(child, 0)[1] == 0
        return

    async def story() -> None:
        journal = await SqliteJournal.open(path)
        for number in range(20):
            await journal.declare(Run(run_id=f"r{number}"))
        os._exit(0)

    asyncio.run(story())


def _opened(path: Path, *, read_only: bool) -> int:
    async def story() -> int:
        async with await SqliteJournal.open(path, read_only=read_only) as journal:
            return len(await journal.runs())

    return asyncio.run(story())


def test_the_wal_of_another_file_is_not_merged(tmp_path: Path) -> None:
    """A file was put back without looking at what lies beside it: neither of the two is changed.

    SQLite itself would mix them: control, at the end.
    """
    path = tmp_path / "journal.db"
    asyncio.run(_begin(path))
    shutil.copyfile(path, tmp_path / "earlier.db")
    asyncio.run(_begin(path))  # a writer was there since, and merged its -wal when it ended
    _left_by_a_crash(path)
    assert _opened(path, read_only=True) == 21
    asyncio.run(_begin(tmp_path / "other.db"))
    for file in ("earlier.db", "other.db"):
        shutil.copyfile(tmp_path / file, path)
        before = _content(tmp_path)
        for read_only in (True, False):
            with pytest.raises(JournalError, match=r"its journal\.db-wal belongs to another file"):
                _opened(path, read_only=read_only)
        assert _content(tmp_path) == before

    with closing(sqlite3.connect(path)) as mixed:
        assert mixed.execute("SELECT count(*) FROM runs").fetchone()[0] == 21
    assert (tmp_path / "other.db").read_bytes() != path.read_bytes()

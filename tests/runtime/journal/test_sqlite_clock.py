"""One time line for all processes of one boot, whoever sets the clock meanwhile."""

# Looks inside: at a `/proc` of its own.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import pytest

from turnlock import Run
from turnlock.runtime import processes, scheduling
from turnlock.runtime.errors import ClockMoved, JournalOwned
from turnlock.runtime.journal import sqlite_clock
from turnlock.runtime.journal.sqlite import SqliteJournal
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.tools.toolbox import Toolbox

RUN: Final = Run(run_id="r")
LEASE: Final = 30.0
STEPS: Final = (45.0, -45.0, 86_400.0, -86_400.0)


@contextmanager
def clock_set(by: float) -> Generator[None]:
    """Have the wall clock of this machine set by so many seconds."""
    real = time.time
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time", lambda: real() + by)
        yield


def play(folder: Path, story: Callable[[Path, SqliteJournal], Awaitable[None]]) -> None:
    """Tell a story of a journal whose first process owns a run."""

    async def told() -> None:
        path = folder / "journal.db"
        async with await SqliteJournal.open(path) as first:
            await first.declare(RUN)
            await first.own("r", owner="ada", now=first.time(), lease=LEASE)
            await story(path, first)

    asyncio.run(told())


def nobody_knows() -> None:
    """Instead of `time_line`: no boot can be told from another."""


def kept(path: Path) -> dict[str, float]:
    """The clocks that the file keeps."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT name, value FROM meta WHERE name LIKE 'clock/%'")
        return {name: float(value) for name, value in rows}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("read_only", [False, True])
def test_who_comes_after_a_step_counts_as_who_was_there(
    tmp_path: Path, step: float, *, read_only: bool
) -> None:
    """To the microsecond, and the file says so once."""

    async def story(path: Path, first: SqliteJournal) -> None:
        before = kept(path)
        with clock_set(step):
            async with await SqliteJournal.open(path, read_only=read_only) as second:
                assert abs(second.time() - first.time()) < 1e-2
                assert second.clock.ahead == first.clock.ahead
        assert kept(path) == before == {next(iter(before)): first.clock.ahead}

    play(tmp_path, story)


@pytest.mark.parametrize("shared", [True, False])
def test_a_step_forward_robs_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, shared: bool
) -> None:
    """The control: where each counts by its own wall clock, the owner is robbed."""

    if not shared:
        monkeypatch.setattr(sqlite_clock, "time_line", nobody_knows)

    async def story(path: Path, _first: SqliteJournal) -> None:
        with clock_set(45.0):
            async with await SqliteJournal.open(path) as second:
                asked = second.own("r", owner="bob", now=second.time(), lease=LEASE)
                if shared:
                    with pytest.raises(JournalOwned):
                        await asked
                else:
                    assert await asked == 2

    play(tmp_path, story)


def test_a_machine_that_slept_counts_it_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who was there and who comes after: an hour has passed for both."""

    async def story(path: Path, first: SqliteJournal) -> None:
        real, before = scheduling.since_boot, first.time()
        monkeypatch.setattr(scheduling, "since_boot", lambda: real() + 3_600.0)
        async with await SqliteJournal.open(path) as second:
            assert 3_600.0 <= first.time() - before < 3_601.0
            assert abs(second.time() - first.time()) < 1e-2

    play(tmp_path, story)


def test_a_wrong_clock_is_kept_anew_when_no_lease_counts_by_it(tmp_path: Path) -> None:
    """Who has the file open learns of it before it owns anything: its runtime asks again."""

    async def on_continue(_: object) -> None:
        """Be told."""

    async def told() -> None:
        path = tmp_path / "journal.db"
        with clock_set(-1e9):
            first = await SqliteJournal.open(path)
        async with first, await SqliteJournal.open(path) as second:
            assert abs(second.time() - time.time()) < 1
            assert first.time() < time.time() - 1e8
            with pytest.raises(ClockMoved):
                await first.renew(owner="ada", now=first.time(), lease=LEASE)
            assert first.clock.ahead == second.clock.ahead
            first.clock.ahead -= 1e9
            async with Runtime(journal=first, tools=Toolbox(), on_continue=on_continue) as runtime:
                await runtime.open_run(RUN)
                until = (await second.entry("r")).owned_until
                assert until is not None
                assert 25 < until - time.time() < 35
                with clock_set(1e9):
                    async with await SqliteJournal.open(path) as third:
                        assert third.clock.ahead == second.clock.ahead

    asyncio.run(told())


def test_the_clocks_of_boots_that_are_over_are_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of this boot another time namespace has its own."""
    path = tmp_path / "journal.db"

    async def opened(line: str | None) -> float:
        monkeypatch.setattr(sqlite_clock, "time_line", lambda: line)
        async with await SqliteJournal.open(path) as journal:
            return journal.clock.ahead

    before = {name: asyncio.run(opened(name)) for name in ("one/1", "one/2")}
    assert kept(path) == {f"clock/{name}": ahead for name, ahead in before.items()}
    asyncio.run(opened(None))
    assert len(kept(path)) == 2

    after = asyncio.run(opened("two/1"))

    assert kept(path) == {"clock/two/1": after}


def test_a_clock_that_is_damaged_or_cannot_be_kept_stops_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is kept anew; where the disk is full, the process counts by its wall clock."""
    path = tmp_path / "journal.db"

    async def opened() -> float:
        async with await SqliteJournal.open(path) as journal:
            return journal.time()

    asyncio.run(opened())
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE meta SET value = x'31' WHERE name LIKE 'clock/%'")
        connection.commit()
    assert abs(asyncio.run(opened()) - time.time()) < 1
    assert next(iter(kept(path).values())) > 1e6

    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM meta WHERE name LIKE 'clock/%'")
        connection.commit()
    monkeypatch.setattr(sqlite_clock, "keep_meta", full)
    assert abs(asyncio.run(opened()) - time.time()) < 1
    assert kept(path) == {}


def test_a_boot_is_told_where_there_is_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without /proc there is no shared time line, and without time namespaces but one."""
    line = processes.time_line()
    assert line is not None
    assert line.startswith(f"{processes.boot()}/")
    monkeypatch.setattr(processes, "_PROC", tmp_path)
    assert processes.time_line() is None
    (tmp_path / "sys/kernel/random").mkdir(parents=True)
    (tmp_path / "sys/kernel/random/boot_id").write_text("that\n")
    assert processes.time_line() == "that/"

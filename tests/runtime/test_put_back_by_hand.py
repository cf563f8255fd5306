"""An older copy of a journal that is put in its place by hand, while nobody has it open."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from turnlock import Call, Run
from turnlock.runtime import (
    Continuation,
    InDoubt,
    JournalRewound,
    Runtime,
    Settings,
    SqliteJournal,
    Toolbox,
    recover,
    restore_journal,
    tool,
)

RUN = Run(run_id="r")
CALLS = [
    Call(invocation_id=name, tool_name=name, arguments={}, requires_approval=False)
    for name in ("wait", "pay")
]


def beside(path: Path, end: str) -> Path:
    return path.with_name(path.name + end)


class Payments:
    """A runtime with one slot, in which a tool has the journal copied before another pays."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "agent.db"
        self.copy = folder / "older.db"
        self.ledger: list[str] = []
        self._told = asyncio.Event()

    async def open(self) -> None:
        """Open the run, its turn the first time, and wait until that has come to its end."""
        self._told = asyncio.Event()
        async with (
            await SqliteJournal.open(self.path) as journal,
            Runtime(
                journal=journal,
                tools=Toolbox(
                    [
                        tool(name="wait", description="", in_doubt=InDoubt.FAIL)(self._wait),
                        tool(name="pay", description="")(self._pay),
                    ]
                ),
                on_continue=self._continued,
                settings=Settings(executions=1),
            ) as runtime,
        ):
            await runtime.open_run(RUN)
            if not self.copy.exists():
                await runtime.open_turn("r", CALLS, turn_id="t")
            await asyncio.wait_for(self._told.wait(), 10)

    async def _wait(self) -> str:
        for end in ("", "-wal"):
            shutil.copy(beside(self.path, end), beside(self.copy, end))
        return "waited"

    async def _pay(self) -> str:
        self.ledger.append("paid")
        return "paid"

    async def _continued(self, _: Continuation) -> None:
        self._told.set()

    def put_back(self) -> None:
        """As an operator does it with `cp`, long after whoever owned the run in the copy."""
        with closing(sqlite3.connect(self.copy)) as copy:
            copy.execute("UPDATE runs SET owner = NULL, owned_until = NULL, head = NULL")
            copy.commit()
        for end in ("-wal", "-shm"):
            beside(self.path, end).unlink(missing_ok=True)
        shutil.copy(self.copy, self.path)


def test_what_was_done_is_not_done_again(tmp_path: Path) -> None:
    """The run is marked, and stands still; `show` and the like say so before, too."""
    payments = Payments(tmp_path)
    asyncio.run(payments.open())
    assert not beside(payments.path, "-wal").exists()
    payments.put_back()

    async def look() -> str | None:
        async with await SqliteJournal.open(payments.path, read_only=True) as journal:
            return (await journal.entry("r")).rewound

    assert "had acknowledged fact" in (asyncio.run(look()) or "")
    for _ in range(2):
        with pytest.raises(JournalRewound, match="turnlock recover"):
            asyncio.run(payments.open())
    assert payments.ledger == ["paid"]


def test_without_the_lines_it_is_done_again(tmp_path: Path) -> None:
    """The negative control; and what who removes them knowingly has asked for."""
    payments = Payments(tmp_path)
    asyncio.run(payments.open())
    payments.put_back()
    beside(payments.path, "-heads").unlink()

    asyncio.run(payments.open())
    assert payments.ledger == ["paid", "paid"]


def test_a_backup_that_is_restored_is_measured_by_no_lines_of_before(tmp_path: Path) -> None:
    """What was idle goes on from there, though more was acknowledged beside the old file."""
    payments = Payments(tmp_path)
    backup = tmp_path / "backup.db"

    async def idle_and_busy() -> tuple[str, ...]:
        async with await SqliteJournal.open(payments.path) as journal:
            await journal.declare(RUN)
            await journal.backup(backup)
        await payments.open()
        return (await restore_journal(backup, payments.path)).rewound

    assert asyncio.run(idle_and_busy()) == ()
    assert not beside(payments.path, "-heads").exists()
    payments.copy.unlink()
    asyncio.run(payments.open())
    assert payments.ledger == ["paid", "paid"]  # as told: the host opened its turn again


def test_a_recovered_run_stays_recovered(tmp_path: Path) -> None:
    """Though it ends before what was acknowledged, each time that it is opened."""
    payments = Payments(tmp_path)
    asyncio.run(payments.open())
    payments.put_back()

    async def story() -> str | None:
        async with await SqliteJournal.open(payments.path) as journal:
            await recover(journal=journal, run_id="r")
        async with await SqliteJournal.open(payments.path) as journal:
            return (await journal.entry("r")).rewound

    assert asyncio.run(story()) is None
    assert payments.ledger == ["paid"]

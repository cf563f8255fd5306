"""A copy that is stopped at any step: nobody performs a run twice, and the same again ends it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from tests.runtime.journal.stage import RUN

from turnlock import Run
from turnlock.models.errors import TurnlockError
from turnlock.runtime import MemoryJournal, SqliteJournal, copying_run
from turnlock.runtime.copying import NotCopied, copied_half, copy_journal
from turnlock.runtime.journal.contract import Journal

from .filled import EMPTY, LONG, fill, held

WRITES: Final = (
    *("declare", "own", "append", "note", "skip", "keep_snapshot", "post", "put_worker"),
    *("mark_rewound", "append_entry", "forget", "release"),
)
RUNS: Final = (RUN.run_id, EMPTY, LONG)
YEAR: Final = 365 * 86_400.0


class Killed(BaseException):
    """The process was killed."""


class Steps:
    """Counts what is written, and is killed before a step, or right behind it."""

    def __init__(self, last: int, *, behind: bool) -> None:
        """Let so many be."""
        self.left = last
        self.behind = behind

    def of(self, journal: Journal) -> Any:
        """Return the journal whose writes are counted."""
        return _Counted(journal, self)


class _Counted:
    """A journal whose writes are counted."""

    def __init__(self, journal: Journal, steps: Steps) -> None:
        self._journal = journal
        self._steps = steps

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._journal, name)
        if name not in WRITES:
            return found

        async def counted(*given: Any, **named: Any) -> Any:
            self._steps.left -= 1
            if self._steps.left < 0 and not self._steps.behind:
                raise Killed
            answer = await found(*given, **named)
            if self._steps.left < 0:
                raise Killed
            return answer

        return counted


async def can_be_performed(journal: Journal, run_id: str) -> bool:
    """Whether somebody who comes a year later would be given the run."""
    try:
        entry = await journal.entry(run_id)
        if entry.owner is not None and (entry.owned_until or 0.0) > journal.time() + YEAR:
            return False
        if entry.rewound is not None:
            return False
    except TurnlockError:
        return False
    return True


async def buried(source: Journal) -> None:
    """Put out the owner of the source's runs, as whoever sees that its process is dead."""
    async for entry in source.run_entries():
        if entry.owner is not None and entry.rewound is None:
            now, run_id = source.time(), entry.run.run_id
            fence = await source.own(run_id, owner="x", now=now, lease=1.0, gone=entry.owner)
            await source.release(run_id, fence=fence)


async def stopped(last: int, *, behind: bool) -> bool:
    """Stop at this step, go on, and say whether it was stopped at all."""
    async with MemoryJournal() as source, MemoryJournal() as target:
        await fill(source, length=16)
        before = await held(source)
        steps = Steps(last, behind=behind)
        was_stopped = False
        try:
            await copy_journal(steps.of(source), steps.of(target), origin="a", place="b")
        except Killed:
            was_stopped = True
            await buried(source)
        for run_id in RUNS:
            there = await can_be_performed(target, run_id) and (await target.entry(run_id)).parts
            here = await can_be_performed(source, run_id)
            assert not (there and here), f"both go on with {run_id!r} after step {last}"
        await copy_journal(source, target, origin="a", place="b")
        assert await held(target) == before
        assert await copied_half(target) is None
        for run_id in RUNS:
            assert not await can_be_performed(source, run_id)
            await target.own(run_id, owner="eve", now=target.time(), lease=1.0)
    return was_stopped


@pytest.mark.parametrize("behind", [False, True], ids=["before", "behind"])
def test_stopped_at_each_step(monkeypatch: pytest.MonkeyPatch, *, behind: bool) -> None:
    """Before it writes something, and right after it: whatever is half done is seen to be so."""
    monkeypatch.setattr(copying_run, "BATCH", 7)
    last = 0
    while asyncio.run(stopped(last, behind=behind)):
        last += 1
    assert last > 40


def test_a_source_that_was_given_up_goes_on_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped before its runs were marked: its leases end, and the half copy is nobody's."""
    monkeypatch.setattr(copying_run, "BATCH", 7)

    async def run() -> None:
        async with MemoryJournal() as source, MemoryJournal() as target:
            await fill(source)
            steps = Steps(20, behind=True)
            with pytest.raises(Killed):
                await copy_journal(steps.of(source), steps.of(target), origin="a", place="b")
            later = source.time() + 61.0
            await source.own(LONG, owner="ada", now=later, lease=1.0)
            assert await copied_half(target) == "a"
            entries = [it async for it in target.run_entries()]
            assert entries
            assert {it.owner for it in entries} == {entries[0].owner}
            assert str(entries[0].owner).startswith("copy:")
            assert min(it.owned_until or 0.0 for it in entries) > later + YEAR

    asyncio.run(run())


def test_a_run_that_was_taken_meanwhile_stops_the_copy() -> None:
    """The machine slept, and somebody has it now: they are not put out of it."""

    class Slept(MemoryJournal):
        """Somebody takes a run of the source while the target is given its snapshot."""

        source: Journal

        async def keep_snapshot(self, snapshot: Any, *, fence: int | None) -> Any:
            later = self.source.time() + 90.0
            await self.source.own(RUN.run_id, owner="eve", now=later, lease=60.0)
            return await super().keep_snapshot(snapshot, fence=fence)

    async def run() -> None:
        async with MemoryJournal() as source, Slept() as target:
            await fill(source)
            target.source = source
            with pytest.raises(NotCopied, match="eve has taken run"):
                await copy_journal(source, target, origin="a", place="b")
            assert (await source.entry(RUN.run_id)).rewound is None

    asyncio.run(run())


CHILD: Final = """
import asyncio, sys
from turnlock.runtime.copying import copy_journal
from turnlock.runtime.journal.contract import open_journal

async def main():
    async with await open_journal(sys.argv[1]) as one, await open_journal(sys.argv[2]) as other:
        await copy_journal(one, other, origin="a", place="b")
asyncio.run(main())
"""


def test_killed_for_real(tmp_path: Path) -> None:
    """By kill -9, at moments that nobody chose; then the same again, until it is whole."""
    one, other = tmp_path / "one.db", tmp_path / "other.db"

    async def filled() -> dict[str, Any]:
        async with await SqliteJournal.open(one) as source:
            await fill(source, length=400)
            for number in range(60):
                await source.declare(Run(run_id=f"r{number}"))
            return await held(source)

    before = asyncio.run(filled())
    kills = 0
    for delay in (0.5, 0.8, 1.2, 60.0):
        child = subprocess.Popen([sys.executable, "-c", CHILD, str(one), str(other)])
        try:
            child.wait(delay)
        except subprocess.TimeoutExpired:
            os.kill(child.pid, signal.SIGKILL)
            child.wait()
            kills += 1
            continue
        assert child.returncode == 0
        break
    assert kills

    async def found() -> dict[str, Any]:
        async with await SqliteJournal.open(other) as target:
            assert await copied_half(target) is None
            return await held(target)

    assert asyncio.run(found()) == before

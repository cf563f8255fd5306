"""A process that is killed while it appends, for real: what it was told was kept is there."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from pathlib import Path

from turnlock.runtime.journal.contract import Entry
from turnlock.runtime.journal.sqlite import SqliteJournal
from turnlock.runtime.owners import is_gone

from .stage import RUN, everything

KILLS = 10

CHILD = """
import asyncio, sys
from turnlock import Run
from turnlock.models.facts import TurnSealed
from turnlock.runtime.journal.contract import Appended
from turnlock.runtime.owners import this_process
from turnlock.runtime.journal.sqlite import SqliteJournal

def fact(sequence, commit):
    return TurnSealed(run_id="run-1", sequence=sequence, commit=commit, at=float(sequence),
                      turn_id=f"turn-{sequence}")

async def main(path):
    journal = await SqliteJournal.open(path)
    await journal.declare(Run(run_id="run-1", agent_id="agent-1", agent_name="Ada"))
    owner = this_process()
    fence = await journal.own("run-1", owner=owner, now=1000.0, lease=30.0, gone=sys.argv[2])
    after = (await journal.entry("run-1")).sequence
    print(owner, flush=True)
    while True:
        size = 1 + after % 5
        batch = [fact(after + 1 + n, after + size) for n in range(size)]
        answer = await journal.append("run-1", fence=fence, after=after, facts=batch, busy=True)
        assert answer is Appended.OK
        after += size
        print(after, flush=True)

asyncio.run(main(sys.argv[1]))
"""


def test_what_was_acknowledged_survives_kill_9(tmp_path: Path) -> None:
    """Killed ten times on one file, at random instants: all of it, no gap, no half commit.

    Real time, because a kill needs an instant: a few hundredths of a second each.
    """
    path = tmp_path / "journal.db"
    draw = random.Random(5)
    last, dead = 0, "nobody"
    for _ in range(KILLS):
        before = last
        last, dead = _killed(path, gone=dead, told=draw.randrange(1, 40))
        kept = _kept(path)
        assert kept in _possible(last)
        assert last > before
        last = kept


def _killed(path: Path, *, gone: str, told: int) -> tuple[int, str]:
    """Let a child append until it has told so often that it did, then kill it at once."""
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path), gone], stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None
        owner = child.stdout.readline().strip()
        acknowledged = [int(child.stdout.readline()) for _ in range(told)]
        assert not is_gone(owner)
    finally:
        child.kill()
    acknowledged += [int(line) for line in child.stdout if line.endswith("\n")]
    child.wait()
    child.stdout.close()
    assert is_gone(owner)
    return acknowledged[-1], owner


def _possible(acknowledged: int) -> tuple[int, int]:
    """Where the journal may end: there, or one append later that nobody could be told about."""
    return acknowledged, acknowledged + 1 + acknowledged % 5


def _kept(path: Path) -> int:
    """Return where the journal ends; hold its facts to what the children wrote."""

    async def story() -> int:
        async with await SqliteJournal.open(path, create=False) as journal:
            found = await everything(journal)
            entry = await journal.entry(RUN.run_id)
            assert entry.sequence == len(found)
            assert [fact.at for fact in found] == [float(n + 1) for n in range(len(found))]
            assert found[-1].commit == found[-1].sequence
            return len(found)

    return asyncio.run(story())


SPEAKER = """
import asyncio, sys
from turnlock.runtime.journal.sqlite import SqliteJournal

async def main(path, log):
    journal = await SqliteJournal.open(path)
    last = sum(it.last for it in await journal.logs(log))
    while True:
        last, new = await journal.append_entry(log, f"say/{last}", {"n": last}, at=1.0)
        assert new
        print(last, flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


def test_w_10_entries_that_were_acknowledged_survive_kill_9(tmp_path: Path) -> None:
    """All of them, gapless, while another process appends to the same log's neighbour."""
    path = tmp_path / "journal.db"
    draw = random.Random(7)
    last = {"w/a": 0, "w/b": 0}
    for _ in range(KILLS // 2):
        before = dict(last)
        told = _both_killed(path, draw.randrange(1, 40))
        entries = asyncio.run(_entries(path))
        for log, acknowledged in told.items():
            last[log] = len(entries[log])
            assert before[log] < acknowledged <= last[log] <= acknowledged + 1
            assert [(it.number, it.entry_id, it.body) for it in entries[log]] == [
                (n + 1, f"say/{n}", {"n": n}) for n in range(last[log])
            ]


def _both_killed(path: Path, told: int) -> dict[str, int]:
    """Let two children append until each has told so often that it did, then kill them."""
    children = {
        log: subprocess.Popen(
            [sys.executable, "-c", SPEAKER, str(path), log], stdout=subprocess.PIPE, text=True
        )
        for log in ("w/a", "w/b")
    }
    said: dict[str, list[int]] = {}
    try:
        for log, child in children.items():
            assert child.stdout is not None
            said[log] = [int(child.stdout.readline()) for _ in range(told)]
    finally:
        for child in children.values():
            child.kill()
    for log, child in children.items():
        assert child.stdout is not None
        said[log] += [int(line) for line in child.stdout if line.endswith("\n")]
        child.wait()
        child.stdout.close()
    return {log: numbers[-1] for log, numbers in said.items()}


async def _entries(path: Path) -> dict[str, tuple[Entry, ...]]:
    async with await SqliteJournal.open(path, create=False) as journal:
        assert await journal.check() == ()
        return {it.name: await _whole(journal, it.name) for it in await journal.logs("w/")}


async def _whole(journal: SqliteJournal, log: str) -> tuple[Entry, ...]:
    """All of a log: a quick machine appends more than a page."""
    found: tuple[Entry, ...] = ()
    while page := await journal.entries(log, after=len(found)):
        found += page
    return found

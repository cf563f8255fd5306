"""``turnlock release``: who is known to be dead has nothing any more (D-46)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from turnlock.models.run import Run
from turnlock.runtime.journal.contract import RunEntry
from turnlock.runtime.journal.sqlite import SqliteJournal
from turnlock.runtime.owners import new_owner, short_name

from .recordings import turnlock

DEAD = "turnlock:pod-7:41:another-boot:ns:1:aa"
BESIDE = "turnlock:pod-7:42:another-boot:ns:1:bb"
OTHER = "turnlock:pod-8:41:another-boot:ns:1:cc"
LEASE = 1e9


@pytest.fixture
def db(tmp_path: Path) -> str:
    """A journal with runs of two processes of one pod, of another's, and of one that is none."""

    async def write() -> None:
        async with await SqliteJournal.open(tmp_path / "a.db") as journal:
            for number, owner in enumerate((DEAD, DEAD, BESIDE, OTHER, "me", new_owner())):
                await journal.declare(Run(run_id=f"r{number}"))
                await journal.own(f"r{number}", owner=owner, now=journal.time(), lease=LEASE)

    asyncio.run(write())
    return str(tmp_path / "a.db")


def owned(db: str) -> list[str]:
    """The runs that somebody owns."""

    async def read() -> tuple[RunEntry, ...]:
        async with await SqliteJournal.open(db, read_only=True) as journal:
            return await journal.runs()

    return [entry.run.run_id for entry in asyncio.run(read()) if entry.owner is not None]


@pytest.mark.parametrize(
    ("name", "left"),
    [
        (DEAD, ["r2", "r3", "r4", "r5"]),
        ("pod-7:41", ["r2", "r3", "r4", "r5"]),
        ("pod-7", ["r3", "r4", "r5"]),
        ("me", ["r0", "r1", "r2", "r3", "r5"]),
    ],
)
def test_d_46_the_runs_of_a_dead_owner_are_let_go(db: str, name: str, left: list[str]) -> None:
    """By its whole name, by host and process, or by host; those of others stay."""
    done = turnlock("release", "--db", db, "--owner", name)

    assert done.exit_code == 0, done.output
    assert owned(db) == left
    lines = done.output.splitlines()
    assert len(lines) == 6 - len(left)
    assert all(line.startswith("released: run r") for line in lines)
    again = turnlock("release", "--db", db, "--owner", name)
    assert again.output == f"released: nothing; {name} owns no run here\n"


@pytest.mark.parametrize("name", ["pod", "pod-7:4", "pod-7:41:another-boot", "turnlock", "41", ""])
def test_d_46_a_part_of_a_name_is_nobodys(db: str, name: str) -> None:
    """Nothing is let go that was not meant."""
    done = turnlock("release", "--db", db, "--owner", name)

    assert done.exit_code == 0
    assert "released: nothing" in done.output
    assert len(owned(db)) == 6


def test_d_46_who_is_seen_to_live_keeps_its_runs(db: str) -> None:
    """This very process: proof that it is dead cannot be right."""
    living = short_name(new_owner())
    for name in (living, living.partition(":")[0]):
        done = turnlock("release", "--db", db, "--owner", name)
        assert done.exit_code == 1
        assert f"owner {living}: it lives; stop that process first" in done.output
    assert len(owned(db)) == 6


def test_what_is_no_journal_is_told(tmp_path: Path) -> None:
    """And none is made."""
    done = turnlock("release", "--db", str(tmp_path / "none.db"), "--owner", "pod-7")

    assert done.exit_code == 2
    assert not list(tmp_path.iterdir())
    assert turnlock("release", "--owner", "pod-7").exit_code == 2
    assert turnlock("release", "--db", str(tmp_path / "none.db")).exit_code == 2

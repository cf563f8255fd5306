"""Many who write one file: none of them ever takes its own -wal, or its file, for another's."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import random
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from turnlock.runtime import JournalError
from turnlock.runtime.journal import sqlite_guard
from turnlock.runtime.journal.sqlite_file import open_writer
from turnlock.runtime.journal.sqlite_guard import Guard
from turnlock.runtime.journal.sqlite_schema import keep_meta

WRITERS = 3
STEPS = 200


class Writer:
    """A process that writes, as far as the file sees it."""

    def __init__(self, path: Path) -> None:
        self.guard = Guard(path)
        self.connection = open_writer(path, create=True, busy_timeout=1.0, guard=self.guard)

    def write(self, size: int) -> None:
        self.connection.execute("BEGIN IMMEDIATE")
        self.guard.begun(self.connection)
        keep_meta(self.connection, "test", bytes(size))
        self.connection.execute("COMMIT")
        self.guard.committed()

    def close(self) -> None:
        self.guard.close(self.connection)


@contextmanager
def writers(path: Path) -> Generator[list[Writer]]:
    made = [Writer(path) for _ in range(WRITERS)]
    try:
        yield made
    finally:
        for writer in made:
            writer.close()


def strange(path: Path, *, seed: int) -> int:
    """Write, merge, read and open anew in any order; count the states that would be refused."""
    draw = random.Random(seed)
    refused = 0
    with (
        writers(path) as all_of_them,
        closing(sqlite3.connect(path, timeout=0.0)) as merger,
        closing(sqlite3.connect(path)) as reader,
    ):
        for _ in range(STEPS):
            step = draw.random()
            if step < 0.6:
                draw.choice(all_of_them).write(draw.choice([10, 10, 9_000]))
            elif step < 0.8:
                how = draw.choice(["PASSIVE", "TRUNCATE"])
                merger.execute(f"PRAGMA wal_checkpoint({how})").fetchall()
            elif step < 0.9:
                if reader.in_transaction:
                    reader.execute("ROLLBACK")
                else:
                    reader.execute("BEGIN")
                    reader.execute("SELECT count(*) FROM runs").fetchone()
            else:
                place = draw.randrange(WRITERS)
                all_of_them[place].close()
                all_of_them[place] = Writer(path)
            main = sqlite_guard._mark_of_main(path)
            whole = sqlite_guard._mark_of(all_of_them[0].connection)
            refused += main is not None and not main.belongs_to(whole)
    return refused


@pytest.mark.parametrize("seed", range(3))
def test_no_state_that_many_writers_leave_is_refused(tmp_path: Path, seed: int) -> None:
    """Whoever opens it then, after a crash, is told nothing of another file."""
    assert strange(tmp_path / "journal.db", seed=seed) == 0


def test_control_a_number_for_each_who_looks_is_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def always(self: Guard, connection: sqlite3.Connection) -> None:
        whole, salts = sqlite_guard._mark_of(connection), self._salts_now()
        number = f"{(whole.number or 0) + 1} {salts}"
        keep_meta(connection, sqlite_guard.NUMBER, number.encode())
        self._written = salts

    monkeypatch.setattr(Guard, "_number", always)

    with pytest.raises(JournalError, match="belongs to another file"):
        strange(tmp_path / "journal.db", seed=0)

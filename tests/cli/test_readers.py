"""Commands that only read a journal: they wait for nobody, change nothing, and say what failed."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import Result

from turnlock.runtime import SqliteJournal

from ..runtime.journal.somebody import somebody
from ..runtime.journal.test_sqlite_reading import content, unwritable
from .recordings import turnlock

WRITTEN_BEFORE = Path(__file__).parents[1] / "data/journals/0.1/journal.db"
READERS = (
    ("runs",),
    ("runs", "--json"),
    ("show", "story"),
    ("show", "story", "--json"),
    ("check",),
    ("check", "--run", "story"),
    ("diagram", "run", "--run", "story"),
)


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return Path(shutil.copy(WRITTEN_BEFORE, tmp_path))


def told(command: tuple[str, ...], db: Path) -> Result:
    return turnlock(*command, "--db", str(db))


@pytest.mark.parametrize("command", READERS)
def test_readers_wait_for_no_lock_and_change_nothing(
    journal: Path, command: tuple[str, ...]
) -> None:
    """Somebody else writes, and does not end."""
    before = content(journal.parent)
    with closing(sqlite3.connect(journal, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        other.execute("UPDATE runs SET busy = 1 - busy")
        done = told(command, journal)
    assert done.exit_code == 0, done.output

    assert told(command, journal).output == done.output
    assert content(journal.parent) == before


def test_readers_need_no_right_to_write(journal: Path) -> None:
    for command in READERS:
        assert told(command, journal).exit_code == 0  # what they import, they import as who we are
    with unwritable() as path:
        shutil.copyfile(journal, path)
        path.chmod(0o444)
        path.parent.chmod(0o555)
        with somebody():
            for command in READERS:
                done = told(command, path)
                assert done.exit_code == 0, done.output


def test_a_journal_that_failed_is_no_wrong_usage(
    journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Busy, not to be written, not to be read, damaged: status 1 with the cause."""
    monkeypatch.setitem(cast("Any", SqliteJournal.open).__kwdefaults__, "busy_timeout", 0.01)
    with closing(sqlite3.connect(journal, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        done = told(("interrupt", "story"), journal)
    assert (done.exit_code, "another process holds its lock" in done.output) == (1, True)

    assert turnlock("run", "--no-input", "--yes").exit_code == 0  # it imports as who we are
    with unwritable() as path:
        path.parent.chmod(0o755)
        path.chmod(0o444)
        with somebody():
            done = told(("interrupt", "run-1"), path)
            assert (done.exit_code, "cannot be written" in done.output) == (1, True)
            done = turnlock("run", "--no-input", "--db", str(path))
            assert (done.exit_code, "cannot be written" in done.output) == (1, True)
        path.chmod(0o000)
        with somebody():
            done = told(("runs",), path)
            assert (done.exit_code, "cannot be" in done.output) == (1, True)
    damaged = bytearray(journal.read_bytes())
    damaged[100:200] = bytes(100)
    journal.write_bytes(damaged)
    done = told(("runs",), journal)
    assert (done.exit_code, "the file is damaged" in done.output) == (1, True)

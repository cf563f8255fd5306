"""``turnlock backup`` and ``restore``: told in full, status for status."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ..runtime.journal.somebody import somebody
from ..runtime.journal.test_sqlite_reading import unwritable
from .recordings import turnlock

WRITTEN_BEFORE = Path(__file__).parents[1] / "data/journals/0.1/journal.db"


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return Path(shutil.copy(WRITTEN_BEFORE, tmp_path))


def test_a_backup_of_an_older_journal_comes_back(journal: Path, tmp_path: Path) -> None:
    """It stays of its version; restored it is one of today. What was busy waits for a person."""
    copy = tmp_path / "copy.db"
    before = journal.read_bytes()
    done = turnlock("backup", "--db", str(journal), "-o", str(copy))
    assert (done.exit_code, done.output) == (
        0,
        f"{copy}: 2 runs, 58 facts, {copy.stat().st_size:,} bytes; whole\n",
    )
    assert journal.read_bytes() == before
    again = turnlock("backup", "--db", str(journal), "-o", str(copy))
    assert (again.exit_code, "there is a file already" in again.output) == (2, True)
    assert turnlock("backup", "--db", str(journal), "-o", str(copy), "--force").exit_code == 0

    back = turnlock("restore", str(copy), "--db", str(journal))
    assert back.exit_code == 0, back.output
    assert "2 runs\nwhat was there is kept: " in back.output
    assert "rewound: run story; look at it, then turnlock recover" in back.output
    (kept,) = tmp_path.glob("journal.db.before-*")
    assert kept.read_bytes() == before
    assert turnlock("check", "--db", str(kept)).exit_code == 0
    shown = json.loads(turnlock("runs", "--db", str(journal), "--json").output)
    assert [run["run_id"] for run in shown] == ["story", "empty"]
    refused = turnlock("interrupt", "story", "--db", str(journal))
    assert (refused.exit_code, "turnlock recover" in refused.output) == (1, True)
    assert turnlock("recover", "story", "--db", str(journal)).exit_code == 0
    assert turnlock("interrupt", "story", "--db", str(journal)).exit_code == 0


def test_a_backup_waits_for_no_lock(journal: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(journal, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        done = turnlock("backup", "--db", str(journal), "-o", str(tmp_path / "copy.db"))
    assert done.exit_code == 0


def test_what_is_wrong_is_told(journal: Path, tmp_path: Path) -> None:
    """No journal is usage; a disk that is full is not."""
    nothing = str(tmp_path / "nothing")
    assert turnlock("backup", "--db", nothing, "-o", str(tmp_path / "copy")).exit_code == 2
    assert turnlock("restore", nothing, "--db", str(journal)).exit_code == 2
    assert turnlock("restore", str(journal), "--db", str(journal)).exit_code == 2
    assert turnlock("backup", "--db", str(journal), "-o", "/proc/copy.db").exit_code == 1
    assert turnlock("restore", str(journal), "--db", "memory:").exit_code == 1
    with unwritable() as path:
        path.parent.chmod(0o000)
        with somebody():
            for command in (
                ("restore", str(journal), "--db", str(path)),
                ("backup", "--db", str(journal), "-o", str(path)),
            ):
                done = turnlock(*command)
                assert done.exit_code == 1, done.output
                assert "Error: journal" in done.output
                assert "the right to" in done.output
                assert ".new" not in done.output  # the name that it would have had first
    with closing(sqlite3.connect(journal)) as lives:
        lives.execute("UPDATE runs SET owner = 'grace', owned_until = 1e12 WHERE number = 1")
        lives.commit()
    copy = shutil.copy(WRITTEN_BEFORE, tmp_path / "copy.db")
    refused = turnlock("restore", str(copy), "--db", str(journal))
    assert (refused.exit_code, "grace performs run 'story'" in refused.output) == (1, True)

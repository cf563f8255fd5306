"""``turnlock journal``: made, watched, checked and copied, told in full and status for status."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.runtime.copying.filled import EMPTY, LONG, STOOD, WHY, fill

from turnlock import Run
from turnlock.runtime import SqliteJournal, open_journal
from turnlock.runtime.owners import new_owner

from .recordings import turnlock

URL = "postgresql://me:hunter2@127.0.0.1:1/agents"


def journal(path: Path) -> str:
    """A file that holds some of everything."""

    async def filled() -> None:
        async with await SqliteJournal.open(path) as made:
            await fill(made)

    asyncio.run(filled())
    return str(path)


def declared(path: Path, *, owner: str | None = None) -> str:
    """A file with one idle run, which somebody may have."""

    async def made() -> None:
        async with await SqliteJournal.open(path) as it:
            await it.declare(Run(run_id="r"))
            if owner is not None:
                await it.own("r", owner=owner, now=it.time(), lease=60.0)

    asyncio.run(made())
    return str(path)


def test_d_56_init_makes_a_journal_and_is_harmless_again(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    done = turnlock("journal", "init", "--db", str(path))
    assert (done.exit_code, done.output) == (0, f"{path}: made\n")
    assert turnlock("runs", "--db", str(path)).exit_code == 0
    again = turnlock("journal", "init", "--db", str(path))
    assert (again.exit_code, again.output) == (0, f"{path}: is as it should be\n")


def test_init_leaves_what_is_another_programs(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE theirs (x)")
    done = turnlock("journal", "init", "--db", str(path))
    assert done.exit_code == 2
    assert "no journal" in done.output or "another program" in done.output


def test_init_reads_no_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURNLOCK_DB", str(tmp_path / "a.db"))
    done = turnlock("journal", "init")
    assert (done.exit_code, "does not read TURNLOCK_DB" in done.output) == (2, True)
    assert not (tmp_path / "a.db").exists()


def test_status_of_a_quiet_journal(tmp_path: Path) -> None:
    """Each number in a line, and all within their bounds."""
    db = declared(tmp_path / "a.db")
    done = turnlock("journal", "status", "--db", db)
    assert done.exit_code == 0, done.output
    told = dict(line.split(": ", 1) for line in done.output.splitlines())
    assert told["runs"] == "1"
    assert told["runs that nobody took for 60 s"] == "0  (at most 0)"
    assert told["copies that are not whole"] == "0  (at most 0)"
    assert told["size of a.db"].endswith(" bytes")
    assert "BEYOND" not in done.output


def test_status_says_what_is_beyond_and_ends_with_1(tmp_path: Path) -> None:
    """A run that was rewound, and one that should be performed; those come first."""
    db = journal(tmp_path / "a.db")
    done = turnlock("journal", "status", "--db", db)
    assert done.exit_code == 1
    first, second, *_ = done.output.splitlines()
    assert first == (
        "runs that nobody took for 60 s: 1  (at most 0)  BEYOND: does a host run, and may it take"
        " more?"
    )
    assert second == "runs that are rewound: 1  (at most 0)  BEYOND: turnlock recover"

    read = json.loads(turnlock("journal", "status", "--db", db, "--json").output)
    beyond = [it["name"] for it in read["numbers"] if it["beyond"]]
    assert (read["journal"], beyond) == (db, [first.split(":")[0], second.split(":")[0]])


def test_check_reads_all_rows(tmp_path: Path) -> None:
    db = declared(tmp_path / "a.db")
    done = turnlock("journal", "check", "--db", db)
    assert (done.exit_code, done.output) == (0, f"{db}: all rows are as they were written\n")


def test_check_tells_what_is_damaged(tmp_path: Path) -> None:
    """The negative control: one byte of a row is another one."""
    db = journal(tmp_path / "a.db")
    with closing(sqlite3.connect(db, isolation_level=None)) as other:
        other.execute("UPDATE appends SET checksum = checksum + 1 WHERE first = 5")
    done = turnlock("journal", "check", "--db", db)
    assert done.exit_code == 1
    assert f"run {LONG!s}".replace("\n", "\\n") in done.output
    assert "fact 5" in done.output
    assert f"run {STOOD}: rewound: {WHY}" in done.output


def test_copy_says_what_it_has_copied(tmp_path: Path) -> None:
    """And the source says where its runs went."""
    one, other = journal(tmp_path / "one.db"), tmp_path / "other.db"
    done = turnlock("journal", "copy", one, str(other))
    assert done.exit_code == 0, done.output
    assert done.stdout == (  # how far it is goes to stderr, where it takes long
        f"{other}: 4 runs, 52 facts, 6 entries of shared logs; read back, and whole\n"
        f"{one}: its runs were moved; nobody goes on with them there\n"
    )
    again = turnlock("journal", "copy", one, str(other))
    assert (again.exit_code, "copied from" in again.output) == (0, True)
    refused = turnlock("interrupt", "run-1", "--db", one)
    assert (refused.exit_code, f"moved to {other}" in refused.output) == (1, True)
    for run_id in ("run-1", STOOD):  # also one that was rewound before, in both
        refused = turnlock("recover", run_id, "--db", one)
        assert (refused.exit_code, f"moved to {other}" in refused.output) == (1, True)
    shown = turnlock("show", "run-1", "--db", one).output  # and nobody is sent to be refused
    assert ("go on with it there" in shown, "turnlock recover" in shown) == (True, False)
    status = turnlock("journal", "status", "--db", one).output
    there = f"BEYOND: they were moved to {other}: go on with them there"
    assert (there in status, "turnlock recover" in status) == (True, False)
    assert turnlock("show", "run-1", "--db", str(other)).exit_code == 0


def test_where_the_copy_is_lost_a_person_goes_on_with_the_original(tmp_path: Path) -> None:
    """By saying so. The copy itself was moved nowhere: what stands still there is recovered."""
    one, other = journal(tmp_path / "one.db"), str(tmp_path / "other.db")
    assert turnlock("journal", "copy", one, other).exit_code == 0

    async def stand() -> None:
        async with await open_journal(other) as copy:
            await copy.mark_rewound(EMPTY, why=WHY)

    asyncio.run(stand())
    for more in (["--db", other], ["--moved", "--db", one]):
        done = turnlock("recover", EMPTY, *more)
        assert (done.exit_code, "it goes on once" in done.output) == (0, True), done.output
        assert "nothing of it was lost" in turnlock("recover", EMPTY, *more).output


def test_copy_refuses_what_is_performed_and_what_is_there(tmp_path: Path) -> None:
    one = declared(tmp_path / "one.db", owner=new_owner())
    done = turnlock("journal", "copy", one, str(tmp_path / "other.db"))
    assert (done.exit_code, "are performed: end those processes" in done.output) == (1, True)
    two, three = declared(tmp_path / "two.db"), declared(tmp_path / "three.db")
    done = turnlock("journal", "copy", two, three)
    assert (done.exit_code, "the target has 1 runs ('r') already" in done.output) == (1, True)
    done = turnlock("journal", "copy", str(tmp_path / "none.db"), three)
    assert done.exit_code == 2


@pytest.mark.parametrize(
    "words",
    [
        ("journal", "init", "--db", URL),
        ("journal", "status", "--db", URL),
        ("journal", "check", "--db", URL),
        ("journal", "copy", URL, URL),
        ("runs", "--db", URL),
        ("show", "r", "--db", URL),
        ("approve", "r", "--db", URL),
        ("check", "--db", URL),
        ("world", "list", "--db", URL),
        ("forget", "r", "--db", URL, "--yes"),
        ("backup", "--db", URL, "-o", "x.db"),
        ("serve", "--db", URL, "--port", "0"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_d_55_no_command_prints_a_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """Nobody listens there: each says so, and how it was asked stays unsaid."""
    monkeypatch.chdir(tmp_path)
    done = turnlock(*words)
    assert done.exit_code in {1, 2}, done.output
    assert "hunter2" not in done.output
    assert "Traceback" not in done.output
    assert [*tmp_path.iterdir()] == []

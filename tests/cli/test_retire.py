"""``turnlock archive`` and ``turnlock forget``: asked for, named with why, refused afterwards."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from turnlock import Claim, Report
from turnlock.models.deliveries import Acknowledge
from turnlock.runtime.journal.sqlite import SqliteJournal

from .recordings import turnlock
from .test_runs import opened, submitted

OVER = (
    opened(False),
    Claim(turn_id="t", invocation_id="c0", attempt=1, worker="me"),
    Report(turn_id="t", invocation_id="c0", attempt=1, result=1),
    Acknowledge(turn_id="t"),
)
FACTS = 5


@pytest.fixture
def db(tmp_path: Path) -> str:
    """A journal of two runs that are over, and one that waits."""

    async def write() -> None:
        async with await SqliteJournal.open(tmp_path / "a.db") as journal:
            await submitted(journal, "one", *OVER)
            await submitted(journal, "tw\x1b[31mo", *OVER)
            await submitted(journal, "waits", opened(True))

    asyncio.run(write())
    return str(tmp_path / "a.db")


def listed(db: str) -> list[str]:
    told = json.loads(turnlock("runs", "--db", db, "--json").output)
    return [run["run_id"] for run in told]


def test_archive(tmp_path: Path, db: str) -> None:
    """The file conforms and is drawn; what is open is named and stays, and that is status 1."""
    file = str(tmp_path / "old.jsonl")
    done = turnlock("archive", "one", "waits", "--db", db, "-o", file)

    assert done.exit_code == 1
    first, second, third = done.stdout.splitlines()
    assert (first, second) == ("archived: one", f"archived: 1 run, {FACTS} facts")
    assert third.startswith(f"{file}: sha256 ")
    assert "left: run 'waits' is not removed: something is under way" in done.stderr
    assert listed(db) == ["tw\x1b[31mo", "waits"]
    assert f"conforms: {FACTS} judged, 1 run" in turnlock("check", file).output
    assert "turn" in turnlock("diagram", "run", file, "--format", "txt").output
    assert turnlock("check", "--db", db).exit_code == 0

    again = turnlock("archive", "one", "--db", db, "-o", file)
    assert again.exit_code == 0
    assert again.stdout.splitlines()[0] == "archived before: one"


def test_what_was_removed_is_refused(db: str) -> None:
    """By its id, with the word that says why, by every command."""
    assert turnlock("forget", "one", "--db", db, "--yes").output.splitlines() == [
        "forgotten: one",
        f"forgotten: 1 run, {FACTS} facts",
    ]
    for command in (["show", "one"], ["interrupt", "one"], ["check", "--run", "one"]):
        done = turnlock(*command, "--db", db)
        assert done.exit_code == 1, command
        assert "run_forgotten" in done.output
    assert "forgotten" in turnlock("runs", "--db", db, "--forgotten").output
    assert turnlock("forget", "one", "--db", db, "--yes").exit_code == 0


def test_forget_asks_and_without_a_terminal_it_must_be_told(db: str) -> None:
    """Nothing is removed by a command that nobody could be asked about."""
    done = turnlock("forget", "one", "--db", db)

    assert done.exit_code == 2
    assert "give --yes" in done.output
    assert len(listed(db)) == 3


def test_as_json(tmp_path: Path, db: str) -> None:
    """All that the command tells, on one stream."""
    done = turnlock("archive", "one", "waits", "--db", db, "-o", str(tmp_path / "f"), "--json")
    told = json.loads(done.stdout)

    assert (told["removed"], told["before"], told["facts"]) == (["one"], [], FACTS)
    assert [it["run_id"] for it in told["left"]] == ["waits"]
    assert len(told["digest"]) == 64


def test_by_age(tmp_path: Path, db: str) -> None:
    """Without RUN all that are old enough; what is open is told of, and that is no failure."""
    none = turnlock("archive", "--db", db, "--older-than", "1d", "-o", str(tmp_path / "none"))
    assert (none.exit_code, none.output) == (0, "archived: 0 runs, 0 facts\n")
    assert not (tmp_path / "none").exists()
    young = turnlock("forget", "one", "--db", db, "--older-than", "1.5h", "--yes")
    assert young.exit_code == 1
    assert "not that old" in young.output

    done = turnlock("archive", "--db", db, "--older-than", "0", "-o", str(tmp_path / "old"))
    assert done.exit_code == 0
    assert done.stdout.splitlines()[1] == r"archived: tw\x1b[31mo"
    assert "left: run 'waits'" in done.stderr
    assert listed(db) == ["waits"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["archive", "-o", "x"], "name a RUN, or give --older-than"),
        (["archive", "one"], "Missing option '-o'"),
        (["archive", "one", "nobody", "-o", "x"], "there is no run 'nobody'"),
        (["archive", "--older-than", "a month", "-o", "x"], "is no duration"),
        (["forget", "--yes"], "name a RUN, or give --older-than"),
        (["forget", "nobody", "--yes"], "there is no run 'nobody'"),
    ],
)
def test_wrong_usage_removes_nothing(db: str, arguments: list[str], told: str) -> None:
    done = turnlock(*arguments, "--db", db)

    assert done.exit_code == 2, done.output
    assert told in done.output
    assert len(listed(db)) == 3


def test_a_place_that_cannot_be_written_removes_nothing(tmp_path: Path, db: str) -> None:
    """And a file that is no archive is not written over."""
    other = tmp_path / "other.txt"
    other.write_text("mine\n")
    for place, told in ((tmp_path / "no" / "f", "No such file"), (other, "line 1")):
        done = turnlock("archive", "one", "--db", db, "-o", str(place))
        assert done.exit_code == 1
        assert told in done.output
    assert other.read_text() == "mine\n"
    assert len(listed(db)) == 3

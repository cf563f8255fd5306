"""What a list says of a run is held against its facts: nobody else would notice."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from turnlock.cli import check_db as module

from .recordings import turnlock
from .waiting import call, deliver, opened

DAMAGES = {
    "waiting = 0": "waiting 0 where its facts say 1",
    "doubts = 1": "doubts 1 where its facts say 0",
    "status = 'idle'": "status idle where its facts say awaiting_approval",
    "status = 'adle'": "what its row tells of it is damaged",
    "told = told + 64": "what its row tells of it is damaged",
    "digested = digested + 64": "what its row tells of it is damaged",
}


def _damaged(folder: Path, damage: str | None) -> str:
    db = folder / "agent.db"
    deliver(db, opened("t1", call("c1", "pay")))
    if damage is not None:
        with closing(sqlite3.connect(db)) as connection, connection:
            connection.execute(f"UPDATE runs SET {damage}")  # noqa: S608 - of ours
    return str(db)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_list_that_says_another_thing_is_found(tmp_path: Path, damage: str) -> None:
    """A person who is told that nothing waits does not look."""
    answer = turnlock("check", "--db", _damaged(tmp_path, damage))

    assert answer.exit_code == 1
    assert DAMAGES[damage] in " ".join(answer.output.split())


def test_what_is_listed_rightly_is_not_found(tmp_path: Path) -> None:
    """And what an older version has appended says nothing: it is folded."""
    for damage in (None, "told = 0, status = 'idle'"):
        assert turnlock("check", "--db", _damaged(tmp_path, damage)).exit_code == 0
        (tmp_path / "agent.db").unlink()


def test_without_the_look_it_is_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control."""

    async def believed(*_: object) -> None:
        pass

    monkeypatch.setattr(module, "misled", believed)
    assert turnlock("check", "--db", _damaged(tmp_path, "waiting = 0")).exit_code == 0

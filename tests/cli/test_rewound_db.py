"""What `check`, `show` and `recover` say of a journal that is damaged, or has lost its end."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from turnlock import Claim
from turnlock.runtime import SqliteJournal

from .recordings import turnlock
from .waiting import RUN, call, deliver, done, opened

WHY = "it had acknowledged fact 9, and ends with fact 4"


@pytest.fixture
def db(tmp_path: Path) -> str:
    """One call runs, one is ready, one waits; and two posts that wait, too."""
    db = str(tmp_path / "a.db")
    deliver(
        db,
        opened(
            "t1",
            call("runs", "pay", gated=False),
            call("ready", "pay", gated=False),
            call("waits", "pay"),
        ),
        Claim(turn_id="t1", invocation_id="runs", attempt=1, worker="w"),
    )

    async def post() -> None:
        async with await SqliteJournal.open(db) as journal:
            for _ in range(2):
                await journal.post(RUN, done("t1", "runs")[1])

    asyncio.run(post())
    return db


def mark(db: str) -> None:
    async def marked() -> None:
        async with await SqliteJournal.open(db) as journal:
            await journal.mark_rewound(RUN, why=WHY)

    asyncio.run(marked())


def change(db: str, statement: str) -> None:
    with closing(sqlite3.connect(db)) as connection:
        connection.execute("DROP TRIGGER runs_written_by_older")
        connection.execute(statement)
        connection.commit()


def test_a_rewound_run_is_shown_and_recovered(db: str) -> None:
    """What it puts in doubt is said in words; then it goes on. A second time nothing is done."""
    mark(db)
    shown = turnlock("show", RUN, "--db", db)
    assert shown.exit_code == 0
    assert WHY in shown.output
    assert f"turnlock recover {RUN}" in shown.output
    assert json.loads(turnlock("show", RUN, "--db", db, "--json").output)["rewound"] == WHY
    assert WHY in turnlock("check", "--db", db).output
    refused = turnlock("interrupt", RUN, "--db", db)
    assert refused.exit_code == 1
    assert "turnlock recover" in refused.output

    recovered = turnlock("recover", RUN, "--db", db)

    assert recovered.exit_code == 0
    for line in (
        f"run {RUN}: {WHY}",
        "doubt  runs pay: it was running",
        "doubt  ready pay: it was ready to run",
        "waits  waits pay: it may have been approved and run",
        "2 in doubt",
    ):
        assert line in recovered.output
    shown = turnlock("show", RUN, "--db", db)
    assert WHY not in shown.output
    assert shown.output.count("nobody knows whether it happened") == 2
    again = turnlock("recover", RUN, "--db", db)
    assert again.exit_code == 0
    assert "nothing of it was lost" in again.output
    assert turnlock("check", "--db", db).exit_code == 0


@pytest.mark.parametrize(
    "damage", ["epoch = 99, owner = 'x', owned_until = 9e9", "owned_until = 'soon'", "sequence = 1"]
)
def test_a_damaged_row_is_written_anew(db: str, damage: str) -> None:
    """By the facts that are there; whoever had the run has an older fencing token."""
    change(db, f"UPDATE runs SET {damage}")  # noqa: S608 - of ours
    checked = turnlock("check", "--db", db)
    assert checked.exit_code == 1
    assert "row: its" in checked.output
    recovered = turnlock("recover", RUN, "--db", db)
    assert recovered.exit_code == 0
    assert "2 in doubt" in recovered.output

    async def look() -> int:
        async with await SqliteJournal.open(db) as journal:
            entry = await journal.entry(RUN)
            assert (entry.problem, entry.owner) == (None, None)
            return entry.fence

    assert asyncio.run(look()) > 1 << 31


def test_check_tells_all_that_is_damaged_and_the_rest_goes_on(db: str) -> None:
    """Not the first alone; a post that cannot be read is shown with its run."""
    change(db, "UPDATE posts SET delivery = replace(delivery, 'runs', 'ruin') WHERE number = 1")
    change_again = "UPDATE meta SET value = CAST('0' AS BLOB) WHERE name = 'identity'"
    with closing(sqlite3.connect(db)) as connection:
        connection.execute(change_again)
        connection.commit()

    checked = turnlock("check", "--db", db)

    assert checked.exit_code == 1
    assert "run 'agent': post 1: it is damaged: the checksum does not fit" in checked.output
    assert "the journal: meta 'identity': it is damaged" in checked.output
    assert "not declared as turnlock declares it" in checked.output  # the trigger
    assert "not as it was kept: 3 found" in checked.output
    told = json.loads(turnlock("check", "--db", db, "--json").output)
    assert (told["conforms"], told["broken"], len(told["findings"])) == (False, None, 3)
    shown = turnlock("show", RUN, "--db", db)
    assert "post 1" in shown.output
    assert "it was set aside: it is damaged" in shown.output


def test_a_damaged_schema_is_no_traceback(db: str) -> None:
    with closing(sqlite3.connect(db)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_master SET sql = CAST(x'ff00fe' AS TEXT) WHERE name = 'runs'"
        )
        connection.commit()
    for command in (["runs"], ["show", RUN], ["check"], ["recover", RUN]):
        told = turnlock(*command, "--db", db)
        assert told.exit_code in {1, 2}
        assert "Traceback" not in told.output
        assert "restore" in told.output


def test_recover_names_a_run_that_is_there(db: str) -> None:
    told = turnlock("recover", "nobody", "--db", db)
    assert told.exit_code == 2
    assert RUN in told.output

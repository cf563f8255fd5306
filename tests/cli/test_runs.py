"""``turnlock runs``: how each run of a journal stands, page by page."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import pytest

from turnlock import Call, Delivery, OpenTurn, Run
from turnlock.cli.durations import told_duration
from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.journal.sqlite import SqliteJournal
from turnlock.runtime.owners import new_owner
from turnlock.runtime.submitting import SharedRun

from .recordings import turnlock

NAMES = ("first", "sec\x1b[31mond", "third", "fourth")


def opened(*gated: bool) -> Delivery:
    calls = tuple(
        Call(invocation_id=f"c{place}", tool_name="pay", arguments={}, requires_approval=it)
        for place, it in enumerate(gated)
    )
    return OpenTurn(turn_id="t", calls=calls)


async def submitted(journal: Journal, run_id: str, *deliveries: Delivery) -> None:
    """Declare a run, and have deliveries judged."""
    await journal.declare(Run(run_id=run_id))
    shared = await SharedRun.open(journal, run_id, policies={})
    await shared.submit(*deliveries)


@pytest.fixture
def db(tmp_path: Path) -> str:
    """A journal of four runs: two calls wait, one runs and is owned, nothing, one removed."""

    async def write() -> None:
        async with await SqliteJournal.open(tmp_path / "a.db") as journal:
            await submitted(journal, NAMES[0], opened(True, True, False))
            await submitted(journal, NAMES[1], opened(False))
            now = time.time()
            await journal.own(NAMES[1], owner=new_owner(), now=now, lease=60.0)
            for name in NAMES[2:]:
                await journal.declare(Run(run_id=name))
            await journal.forget(NAMES[3], fence=0, after=0, at=now)

    asyncio.run(write())
    return str(tmp_path / "a.db")


def listed(*arguments: str) -> list[str]:
    done = turnlock("runs", *arguments)
    assert done.exit_code == 0, done.output
    return done.stdout.splitlines()


def test_each_run_has_a_line_that_says_how_it_stands(db: str) -> None:
    """Facts, status, what waits and is in doubt, how long ago, who has it; harmless text."""
    head, *lines = listed("--db", db)

    assert head.split() == ["facts", "status", "waits", "doubt", "began", "changed", "owner", "run"]
    assert len(lines) == 3
    first, second, third = (line.split() for line in lines)
    assert first[:4] == ["3", "awaiting_approval", "2", "-"]
    assert first[4:] == ["0s", "0s", "-", "first"] or first[4][-1] == "s"
    assert second[1] == "executing"
    assert second[-1] == r"sec\x1b[31mond"
    assert second[-2] != "-"
    assert third == ["0", "idle", "-", "-", "-", "-", "-", "third"]


def test_a_removed_run_is_listed_where_it_is_asked_for(db: str) -> None:
    lines = listed("--db", db, "--forgotten")

    assert len(lines) == 5
    assert lines[-1].split() == ["0", "forgotten", "-", "-", "-", "-", "-", "fourth"]


def test_pages(db: str) -> None:
    """The last line says where to go on, on the other stream, so that a list is a list."""
    done = turnlock("runs", "--db", db, "--limit", "2")
    assert done.stderr == "… and more: go on with --after sec\\x1b[31mond\n"
    assert len(done.stdout.splitlines()) == 3
    rest = turnlock("runs", "--db", db, "--limit", "2", "--after", NAMES[1])
    assert rest.stderr == ""
    assert [line.split()[-1] for line in rest.stdout.splitlines()[1:]] == ["third"]

    unknown = turnlock("runs", "--db", db, "--after", "nobody")
    assert unknown.exit_code == 2
    assert "no run 'nobody'" in unknown.output


def test_as_json(db: str) -> None:
    """With exact times; --open leaves out what has nothing under way."""
    told = json.loads("\n".join(listed("--db", db, "--open", "--json")))

    assert [it["run_id"] for it in told] == list(NAMES[:2])
    first, second = told
    assert (first["status"], first["waiting"], first["doubts"]) == ("awaiting_approval", 2, 0)
    assert (first["facts"], first["open"], first["owner"]) == (3, True, None)
    assert 0 <= time.time() - first["began"] < 60
    assert first["changed"] >= first["began"]
    assert (first["forgotten"], first["rewound"]) == (None, None)
    assert second["owner"].startswith("turnlock:")


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.0, "0s"),
        (119.9, "119s"),
        (120.0, "2m"),
        (7_199.0, "119m"),
        (7_200.0, "2h"),
        (172_800.0, "2d"),
        (1e9, "11574d"),
    ],
)
def test_times_are_short(seconds: float, told: str) -> None:
    assert told_duration(seconds) == told

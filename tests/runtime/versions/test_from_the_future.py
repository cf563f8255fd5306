"""This version as the older one: what a newer one wrote it leaves alone, and says so."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from turnlock import Call, Claim, Fact, Kernel, OpenTurn, Run, Tick, TurnlockError
from turnlock.models.codec import VERSION, to_json
from turnlock.models.facts import ContinuationTaken
from turnlock.runtime import (
    Continuation,
    ForeignRun,
    JournalError,
    Runtime,
    Settings,
    SqliteJournal,
    Toolbox,
    tool,
)
from turnlock.runtime.journal.contract import Appended
from turnlock.runtime.journal.rows import checksum
from turnlock.runtime.journal.sqlite_schema import MIGRATIONS

NEXT: Final = len(MIGRATIONS) + 1
SETTINGS: Final = Settings(ownership=0.6, poll=0.02, drain=0.1, snapshot_every=3)
TIMEOUT: Final = 30.0


@tool
async def work() -> str:
    return "done"


def call() -> Call:
    return Call(invocation_id="c", tool_name="work", arguments={}, requires_approval=False)


def a_runtime(journal: SqliteJournal) -> Runtime:
    async def on_continue(_: Continuation) -> None:
        pass

    return Runtime(
        journal=journal, tools=Toolbox.of(work), on_continue=on_continue, settings=SETTINGS
    )


def written(path: Path, *statements: str, given: Sequence[Any] = ()) -> None:
    """Write into the file as another program."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement, given)


def migrated(path: Path) -> None:
    """Bring the file to the version after ours, as one that only adds would do it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        for (table,) in tables.fetchall():
            if not table.startswith("sqlite_"):
                connection.execute(f"ALTER TABLE {table} ADD COLUMN later TEXT DEFAULT 'x'")
        connection.execute("CREATE TABLE later (number INTEGER PRIMARY KEY)")
        connection.execute(f"PRAGMA user_version = {NEXT}")
        connection.execute("COMMIT")


async def until(what: Callable[[], Awaitable[object]]) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(TIMEOUT):
        while not await what():  # noqa: ASYNC110 - of a file
            await asyncio.sleep(0.01)


async def is_taken(journal: SqliteJournal, run_id: str, turn_id: str) -> bool:
    facts = [fact async for fact in journal.facts(run_id)]
    return any(isinstance(fact, ContinuationTaken) and fact.turn_id == turn_id for fact in facts)


async def performed(journal: SqliteJournal, runtime: Runtime, run_id: str, turn_id: str) -> None:
    """Have a turn performed to its end."""
    await runtime.open_turn(run_id, [call()], turn_id=turn_id)
    await until(lambda: is_taken(journal, run_id, turn_id))


def test_a_process_goes_on_when_its_file_is_migrated_under_it(tmp_path: Path) -> None:
    """Additions of a version that it does not know change nothing for it (D-57)."""
    path = tmp_path / "journal.db"

    async def story() -> None:
        async with await SqliteJournal.open(path) as journal, a_runtime(journal) as runtime:
            await runtime.open_run(Run(run_id="r"))
            await performed(journal, runtime, "r", "t1")
            migrated(path)
            before = await journal.entry("r")
            await performed(journal, runtime, "r", "t2")
            await runtime.open_run(Run(run_id="s"))
            number = await journal.post("r", Tick())
            await until(lambda: journal.answered("r", number))

            async def is_renewed() -> bool:
                until_when = (await journal.entry("r")).owned_until
                return (until_when or 0) > (before.owned_until or 0)

            await until(is_renewed)
            assert (snapshot := await journal.snapshot("r")) is not None
            assert snapshot.sequence > before.sequence
            found = await journal.check()
            assert all(one.what == "schema" for one in found), found

    asyncio.run(story())
    kept = path.read_bytes()
    with pytest.raises(JournalError, match="a newer turnlock wrote it"):
        asyncio.run(_opened(path))
    assert path.read_bytes() == kept


async def _opened(path: Path) -> None:
    async with await SqliteJournal.open(path, create=False):
        pass


def newer(content: bytes, **more: Any) -> bytes:
    """What a newer version would have written."""
    return json.dumps({**json.loads(content), "version": VERSION + 1, **more}).encode()


async def two_runs(path: Path) -> list[Fact]:
    """Make a file in which nobody's runs `newer` and `ours` have something under way."""
    kernel = Kernel(Run(run_id="newer"))
    facts = list(kernel.receive(OpenTurn(turn_id="t1", calls=(call(),)), 1.0).facts)
    claim = Claim(turn_id="t1", invocation_id="c", attempt=1, worker="a newer one")
    facts += kernel.receive(claim, 2.0).facts
    async with await SqliteJournal.open(path) as journal:
        await journal.declare(kernel.run)
        said = await journal.append("newer", fence=None, after=0, facts=facts, busy=True)
        assert said is Appended.OK
    return facts


def test_a_run_with_facts_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    """It is not performed, not written and not taken for damage; other runs go on."""
    path = tmp_path / "journal.db"

    async def story() -> None:
        facts = await two_runs(path)
        lines = [to_json(facts[0]), newer(to_json(facts[1]), type="TOOL_TELEPORTED")]
        content = b"\n".join((*lines, *map(to_json, facts[2:])))
        fits = checksum(content, "newer", 1, len(facts))
        written(path, "UPDATE appends SET facts = ?, checksum = ?", given=(content, fits))
        written(path, "UPDATE runs SET digest = NULL, digested = 0")
        path.with_name("journal.db-heads").unlink()  # of the facts that stood there before
        async with await SqliteJournal.open(path) as journal, a_runtime(journal) as runtime:
            assert not runtime.runs
            (found,) = await journal.check()
            assert (found.run_id, found.what) == ("newer", "fact 2")
            assert "newer turnlock" in found.cause
            before = await journal.entry("newer")
            await runtime.open_run(Run(run_id="ours"))
            await performed(journal, runtime, "ours", "t1")
            await asyncio.sleep(SETTINGS.ownership)  # it is looked for runs of the dead meanwhile
            assert await journal.entry("newer") == before
            with pytest.raises(TurnlockError, match="newer turnlock"):
                await runtime.open_run(Run(run_id="newer"))
            after = await journal.entry("newer")
            assert (after.owner, after.sequence) == (None, before.sequence)
            assert runtime.runs == ("ours",)

    asyncio.run(story())


def test_a_post_of_a_newer_version_stands_in_nobodys_way(tmp_path: Path) -> None:
    """It is set aside, and the posts after it, of its run and others, are answered."""
    path = tmp_path / "journal.db"

    async def story() -> None:
        async with await SqliteJournal.open(path) as journal, a_runtime(journal) as runtime:
            for run_id in ("r", "s"):
                await runtime.open_run(Run(run_id=run_id))
            content = newer(to_json(Tick()), type="TELEPORT")
            strange = await journal.post("r", Tick())
            while await journal.answered("r", strange) is None:  # noqa: ASYNC110 - polled
                await asyncio.sleep(0.01)
            fits = checksum(content, "r")
            add = "INSERT INTO posts (run, delivery, checksum) VALUES (1, ?, ?)"
            written(path, add, given=(content, fits))
            for run_id in ("r", "s"):
                number = await journal.post(run_id, Tick())
                await until(partial(journal.answered, run_id, number))
            said = await journal.answered("r", strange + 1)
            assert said is not None
            assert not said["accepted"]

    asyncio.run(story())


def test_a_run_declared_by_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    """It is listed with its problem; the others are listed, opened and taken over."""
    path = tmp_path / "journal.db"

    async def story() -> None:
        await two_runs(path)
        content = newer(to_json(Run(run_id="newer")), gravity=9.81)
        fits = checksum(content, "newer")
        written(path, "UPDATE runs SET run = ?, checksum = ?", given=(content, fits))
        async with await SqliteJournal.open(path) as journal, a_runtime(journal) as runtime:
            assert runtime.runs == ()
            await runtime.open_run(Run(run_id="ours"))
            await performed(journal, runtime, "ours", "t1")
            listed = {entry.run.run_id: entry for entry in await journal.runs()}
            assert listed.keys() == {"newer", "ours"}
            assert "newer turnlock" in (listed["newer"].problem or "")
            with pytest.raises(TurnlockError, match="newer turnlock"):
                await runtime.open_run(Run(run_id="newer"))

    asyncio.run(story())


def test_a_run_of_a_kind_that_nobody_here_knows_is_left_alone(tmp_path: Path) -> None:
    """Its kind is its own business (K-61)."""
    path = tmp_path / "journal.db"

    async def story() -> None:
        async with await SqliteJournal.open(path) as journal, a_runtime(journal) as runtime:
            await journal.declare(Run(run_id="newer", kind="teleported"))
            with pytest.raises(ForeignRun):
                await runtime.open_run(Run(run_id="newer", kind="teleported"))
            await runtime.open_run(Run(run_id="ours"))
            await performed(journal, runtime, "ours", "t1")

    asyncio.run(story())

"""What is damaged in a database is found by `check`: all of it, by its place, in little room."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest

from turnlock import Decide, Run
from turnlock.models.errors import TurnlockError
from turnlock.runtime.errors import CorruptLog
from turnlock.runtime.journal import ledger as bounds
from turnlock.runtime.journal import pages
from turnlock.runtime.journal.contract import PROBLEM, Appended, Finding, Journal
from turnlock.runtime.journal.postgres import inspection
from turnlock.runtime.journal.postgres.journal import PostgresJournal
from turnlock.runtime.journal.postgres.url import place_of

from ..stage import NOW, OTHER, RUN, facts, kept, note, owned, said, told_run
from .between import Place

APPROVE = Decide(turn_id="turn-1", invocation_id="a", approved=True)


def play(folder: Path, story: Callable[[Place, Journal], Awaitable[Any]]) -> Any:
    """Tell a story on the journal that this folder stands for."""

    async def run() -> Any:
        place = Place(folder)
        async with await place.open() as journal:
            return await story(place, journal)

    return asyncio.run(run())


async def told(journal: Journal) -> None:
    """Keep two runs with facts, a snapshot, notes and posts, and two logs."""
    fence, other = await owned(journal), await owned(journal, OTHER)
    made, kernel = told_run()
    await kept(journal, made[:4], fence)
    await kept(journal, made[4:], fence)
    await journal.keep_snapshot(kernel.snapshot(), fence=fence)
    await journal.note(RUN.run_id, fence=fence, notes=[note(0), said(1, id="said"), said(2)])
    await journal.prune(RUN.run_id, fence=fence, now=NOW + bounds.OBSERVED_FOR + 1)
    await journal.put_worker("w/1", "host:7")
    await kept(journal, facts(2, run_id=OTHER.run_id), other)
    for run in (RUN, OTHER):
        for _ in range(2):
            await journal.post(run.run_id, APPROVE)
    await journal.answer(RUN.run_id, 2, {"accepted": True, "facts": []})
    for n in range(1, 4):
        await journal.append_entry("w", f"id/{n}", {"text": f"word {n}"}, at=NOW)
    await journal.append_entry("v", "id", {}, at=NOW)


async def change(place: Place, *statements: str) -> None:
    """Change rows as damage would; `{name}` stands for a table."""
    names = {it: getattr(place.tables, it) for it in ("runs", *TABLES)}
    async with place.connected() as connection:
        for statement in statements:
            assert await connection.execute(statement.format(**names)) != "UPDATE 0"


TABLES = ("appends", "snapshots", "notes", "logs", "entries", "posts", "workers")
BIT = "set_byte({0}, 12, get_byte({0}, 12) # 1)"


def flipped(table: str, column: str, where: str) -> str:
    """One bit of a column is another."""
    turned = BIT.format(column)
    return f"UPDATE {{{table}}} SET {column} = {turned} WHERE {where}"  # noqa: S608 - ours


DAMAGES = {
    "facts": (flipped("appends", "facts", "run = 1 AND last = 4"), "fact 1"),
    "times": ("UPDATE {appends} SET beside = beside || '\\x00' WHERE run = 1", "fact 1"),
    "a row": ("DELETE FROM {appends} WHERE run = 1 AND first = 1", "fact 1"),
    "the last row": ("DELETE FROM {appends} WHERE run = 1 AND first = 5", "fact 5"),
    "where it ends": ("UPDATE {runs} SET sequence = sequence + 64 WHERE number = 1", "fact 10"),
    "when it began": ("UPDATE {runs} SET began = began + 64 WHERE number = 1", "row"),
    "when it changed": ("UPDATE {runs} SET changed = NULL WHERE number = 2", "row"),
    "what was told": ("UPDATE {runs} SET told = 99 WHERE number = 1", "row"),
    "its status": ("UPDATE {runs} SET status = 'idel' WHERE number = 1", "row"),
    "its configuration": (flipped("runs", "run", "number = 1"), "row"),
    "its key": ("UPDATE {runs} SET key = '\\x00' WHERE number = 1", "row"),
    "a snapshot": (flipped("snapshots", "snapshot", "true"), "snapshot"),
    "where a snapshot is": ("UPDATE {snapshots} SET sequence = sequence - 1", "snapshot"),
    "that there is one": ("UPDATE {runs} SET snapped = 0 WHERE number = 1", "row"),
    "a note": (flipped("notes", "content", "id IS NOT NULL"), "note 'said'"),
    "the name of a note": ("UPDATE {notes} SET id = 'sayd' WHERE id IS NOT NULL", "note 'sayd'"),
    "the key of a note": ("UPDATE {notes} SET key = 'k' WHERE id IS NOT NULL", "note 'said'"),
    "a note that is missing": ("DELETE FROM {notes} WHERE part = 2", "note '9.3'"),
    "a gap": ("UPDATE {notes} SET pruned = 2 WHERE pruned = 1", "note '9.1'"),
    "how many notes": ("UPDATE {runs} SET part = 4 WHERE number = 1", "row"),
    "a post": (flipped("posts", "delivery", "number = 1"), "post 1"),
    "whose a post is": ("UPDATE {posts} SET run = 2 WHERE number = 1", "post 1"),
    "an answer": ("UPDATE {posts} SET receipt = '{{}}' WHERE number = 2", "answer to post 2"),
    "a worker": ("UPDATE {workers} SET meaning = 'host:8'", "worker 'w/1'"),
    "an entry": (flipped("entries", "body", "number = 2"), "entry 2 of log 'w'"),
    "an entry that is missing": ("DELETE FROM {entries} WHERE number = 2", "entry 2 of log 'w'"),
    "the last entry": ("DELETE FROM {entries} WHERE number = 3", "entry 3 of log 'w'"),
    "the key of an entry": ("UPDATE {entries} SET key = 'k' WHERE number = 2", "entry 2 of log"),
    "where a log ends": ("UPDATE {logs} SET last = 2 WHERE name = 'w'", "log 'w'"),
    "a run's row": ("DELETE FROM {runs} WHERE number = 2", "appends"),
}


def test_whatever_is_damaged_is_found(tmp_path: Path) -> None:
    """Each by its place; what is whole is not found. The rows of a table are put back between."""

    async def story(place: Place, journal: Journal) -> None:
        await told(journal)
        assert await journal.check() == ()
        for damage, (statement, what) in DAMAGES.items():
            async with _put_back(place, *re.findall(r"{(\w+)}", statement)):
                await change(place, statement)
                found = await journal.check()
            assert any(it.what.startswith(what) for it in found), (damage, found)
        assert await journal.check() == ()

    play(tmp_path, story)


@asynccontextmanager
async def _put_back(place: Place, *tables: str) -> AsyncGenerator[None]:
    """Have the rows of these tables afterwards as they are now."""
    names = [getattr(place.tables, it) for it in tables]
    async with place.connected() as connection:
        for number, name in enumerate(names):
            rows = f"SELECT * FROM {name}"  # noqa: S608 - ours
            await connection.execute(f"CREATE TEMPORARY TABLE kept_{number} AS {rows}")
        yield
        for number, name in enumerate(names):
            await connection.execute(f"DELETE FROM {name}")  # noqa: S608 - ours
            await connection.execute(
                f"INSERT INTO {name} OVERRIDING SYSTEM VALUE SELECT * FROM kept_{number}"  # noqa: S608 - ours
            )


def test_all_that_is_damaged_is_found_at_once(tmp_path: Path) -> None:
    together = ("facts", "a snapshot", "a note", "a post", "an answer", "a worker", "an entry")

    async def story(place: Place, journal: Journal) -> None:
        await told(journal)
        await change(place, *(DAMAGES[name][0] for name in together))
        found = [it.what for it in await journal.check()]
        for name in together:
            assert any(what.startswith(DAMAGES[name][1]) for what in found), (name, found)

    play(tmp_path, story)


def test_what_is_damaged_is_told_to_who_reads_it(tmp_path: Path) -> None:
    """With its cause, where it is, and what to do; what is beside it is read."""

    async def story(place: Place, journal: Journal) -> None:
        await told(journal)
        names = ("facts", "a note", "an answer", "a worker", "an entry", "a snapshot")
        await change(place, *(DAMAGES[name][0] for name in names))
        for asked in (
            journal.read(RUN.run_id),
            journal.ledger(RUN.run_id),
            journal.find_note(RUN.run_id, "said"),
            journal.notes(RUN.run_id),
            journal.answered(RUN.run_id, 2),
            journal.worker("w/1"),
            journal.entries("w", after=1),
            journal.find_entry("w", "id/2"),
        ):
            with pytest.raises(TurnlockError, match=r"(?=.*damaged)(?=.*schema=).*keep it as"):
                await asked
        assert [it.number for it in await journal.entries("w")] == [1]
        assert await journal.snapshot(RUN.run_id) is None
        assert len(await journal.read(OTHER.run_id)) == 2

    play(tmp_path, story)


def test_a_log_whose_end_is_damaged_is_appended_to_by_nobody(tmp_path: Path) -> None:
    """A number would come again; it is listed with its problem."""

    async def story(place: Place, journal: Journal) -> None:
        await told(journal)
        await change(place, DAMAGES["where a log ends"][0])
        with pytest.raises(CorruptLog, match="where it ends is damaged"):
            await journal.append_entry("w", "new", {}, at=NOW)
        v, w = await journal.logs()
        assert (v.last, v.problem, w.last) == (1, None, 3)
        assert "where it ends is damaged" in str(w.problem)
        assert (await journal.append_entry("w", "id/3", {"text": "word 3"}, at=NOW)).number == 3

    play(tmp_path, story)


@pytest.mark.parametrize(
    ("posted", "why"),
    [
        (b'{"type": "dec', "cannot be read"),
        (b'{"version": 99, "type": "tick"}', "version: 99 is not a version"),
        (b"\xff\x00", "cannot be read"),
    ],
)
def test_a_post_that_nobody_can_read_is_set_aside(
    tmp_path: Path, posted: bytes, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It stands in nobody's way, its poster is told, and it is shown; the log tells it once."""
    from turnlock.runtime.journal.rows import checksum  # noqa: PLC0415 - one use

    async def story(place: Place, journal: Journal) -> None:
        await told(journal)
        summed = checksum(posted, RUN.run_id)
        await change(
            place,
            f"UPDATE {{posts}} SET delivery = '\\x{posted.hex()}', checksum = {summed}"  # noqa: S608
            " WHERE number = 1",
        )
        for _ in range(2):
            posts = await journal.posts([RUN.run_id, OTHER.run_id])
            assert [post.number for post in posts] == [3, 4]
        answer = await journal.answered(RUN.run_id, 1)
        assert answer is not None
        assert why in answer[PROBLEM]
        await journal.answer(RUN.run_id, 1, {"accepted": True})
        assert await journal.answered(RUN.run_id, 1) == answer
        for found in (await journal.check(), await journal.findings(RUN.run_id)):
            (one,) = found
            assert (one.run_id, one.what) == (RUN.run_id, "post 1")
            assert why in one.cause

    play(tmp_path, story)
    (line,) = [it.getMessage() for it in caplog.records if "set aside" in it.getMessage()]
    assert "post 1 for run 'run-1' is set aside" in line


def test_posts_that_nobody_can_read_hide_none_behind_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page is full of those that can be read, however many cannot."""
    monkeypatch.setattr("turnlock.runtime.journal.postgres.posts.POSTS", 2)

    async def story(place: Place, journal: Journal) -> None:
        await journal.declare(RUN)
        for _ in range(8):
            await journal.post(RUN.run_id, APPROVE)
        await change(place, "UPDATE {posts} SET checksum = 0 WHERE number IN (1, 2, 3, 5)")
        assert [it.number for it in await journal.posts([RUN.run_id])] == [4, 6]

    play(tmp_path, story)


def test_what_happens_during_a_check_is_no_damage(tmp_path: Path) -> None:
    """Appends, notes, pruning, posts, entries and removals: each is there or not."""

    async def story(_place: Place, journal: Journal) -> None:
        fences = {it: await owned(journal, Run(run_id=it)) for it in ("a", "b", "c")}
        await journal.declare(Run(run_id="gone"))
        over = asyncio.Event()

        async def goes_on(run_id: str, fence: int) -> None:
            last = 0
            while not over.is_set():
                told = facts(2, after=last, run_id=run_id)
                answer = await journal.append(
                    run_id, fence=fence, after=last, facts=told, busy=True,
                    notes=[note(1), note(2), said(3)],
                )  # fmt: skip
                assert answer is Appended.OK
                last += 2
                await journal.prune(run_id, fence=fence, now=NOW * 1e9)
                await journal.append_entry("w", f"{run_id}/{last}", {}, at=NOW)
                number = await journal.post(run_id, APPROVE)
                await journal.answer(run_id, number, {"accepted": True})

        tasks = [asyncio.create_task(goes_on(*it)) for it in fences.items()]
        found: list[Finding] = []
        for _ in range(6):
            found += await journal.check()
        await journal.forget("gone", fence=0, after=0, at=NOW)
        over.set()
        await asyncio.gather(*tasks)
        assert found == []
        assert await journal.check() == ()

    play(tmp_path, story)


def test_a_check_needs_no_more_room_than_a_portion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No statement returns more rows than that, whatever there is."""
    monkeypatch.setattr(inspection, "PORTION", 5)
    monkeypatch.setattr(inspection, "PAGE", 7)
    monkeypatch.setattr(pages, "PAGE_BYTES", 700)
    most: list[int] = []

    async def story(_place: Place, journal: Journal) -> None:
        fence = await owned(journal)
        for after in range(0, 60, 3):
            await kept(journal, facts(3, after=after), fence)
        await journal.note(RUN.run_id, fence=fence, notes=[*map(said, range(33))])
        for number in range(23):
            await journal.append_entry("w", str(number), number, at=NOW)
            await journal.post(RUN.run_id, APPROVE)
            await journal.put_worker(f"w/{number}", "x")
        real: Any = getattr(journal, "_read")  # noqa: B009 - no journal but this one has it

        async def counted(ask: Any, **more: Any) -> Any:
            async def asked(connection: Any) -> Any:
                return await ask(_Counted(connection, most))

            return await real(asked, **more)

        monkeypatch.setattr(journal, "_read", counted)
        assert await journal.check() == ()

    play(tmp_path, story)
    assert max(most) == 5
    assert len(most) > 33 // 5 + 60 // 7 + 3 * (23 // 5)


class _Counted:
    """A connection that counts what it returns."""

    def __init__(self, inner: Any, most: list[int]) -> None:
        self.inner = inner
        self.most = most

    async def fetch(self, *args: Any) -> Any:
        rows: Any = await self.inner.fetch(*args)
        self.most.append(len(rows))
        return rows

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def test_a_check_may_take_longer_than_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of a million facts takes half a minute; the connection is not dropped meanwhile."""
    real = inspection.run_checked

    async def slow(connection: Any, *args: Any, **more: Any) -> list[Finding]:
        await connection.execute("SELECT pg_sleep(0.5)")
        return await real(connection, *args, **more)

    monkeypatch.setattr(inspection, "run_checked", slow)

    async def run() -> None:
        place = attrs.evolve(place_of(Place(tmp_path).url), answer_within=0.3)
        async with await PostgresJournal.open(place) as journal:
            await journal.declare(RUN)
            assert await journal.check() == ()

    asyncio.run(run())

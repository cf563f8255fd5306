"""Many at once in PostgreSQL: what waits for what, and what a reader sees meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from turnlock import Decide, Run
from turnlock.models.codec import to_json
from turnlock.models.errors import InvalidValue
from turnlock.runtime.errors import JournalRewound, RunForgotten, RunOpen
from turnlock.runtime.journal import ledger as bounds
from turnlock.runtime.journal.contract import ANSWERS, Appended, Entered, Journal
from turnlock.runtime.journal.ledger import START, Cursor, LedgerPage
from turnlock.runtime.journal.logs import given_entry
from turnlock.runtime.journal.postgres import forgetting, ledger, logs, notes, posts
from turnlock.runtime.journal.postgres.doors import Connection

from ..stage import NOW, OTHER, RUN, facts, kept, note, owned
from .between import Happens, Place

DECISION = Decide(turn_id="t", invocation_id="c", approved=True)
DELIVERY = to_json(DECISION)


def play(folder: Path, story: Callable[[Place, Journal], Awaitable[Any]]) -> Any:
    """Tell a story on the journal that this folder stands for."""

    async def run() -> Any:
        place = Place(folder)
        async with await place.open() as journal:
            return await story(place, journal)

    return asyncio.run(run())


async def _forget(connection: Connection, place: Place, run_id: str = RUN.run_id) -> None:
    await forgetting.forget(
        connection, place.tables, run_id, fence=0, after=0, at=NOW, gone=None, where="here"
    )


def test_a_post_waits_for_who_removes_its_run(tmp_path: Path) -> None:
    """And is refused then: nothing is left for a run that is not there."""

    async def story(place: Place, journal: Journal) -> None:
        await journal.declare(RUN)
        async with place.connected() as connection:
            removing = connection.transaction()
            await removing.start()
            await _forget(connection, place)
            posting = asyncio.create_task(journal.post(RUN.run_id, DECISION))
            await place.waits()
            await removing.commit()
        with pytest.raises(RunForgotten):
            await posting
        assert await journal.check() == ()
        async with place.connected() as connection:
            left = await connection.fetchval(f"SELECT count(*) FROM {place.tables.posts}")  # noqa: S608
        assert left == 0

    play(tmp_path, story)


def test_who_removes_a_run_waits_for_a_post(tmp_path: Path) -> None:
    """And removes nothing then: somebody waits for an answer."""

    async def story(place: Place, journal: Journal) -> None:
        await journal.declare(RUN)
        async with place.connected() as connection:
            posting = connection.transaction()
            await posting.start()
            await posts.post(connection, place.tables, RUN.run_id, DELIVERY)
            removing = asyncio.create_task(journal.forget(RUN.run_id, fence=0, after=0, at=NOW))
            await place.waits()
            await posting.commit()
        with pytest.raises(RunOpen, match="1 posts wait"):
            await removing
        assert len(await journal.posts([RUN.run_id])) == 1

    play(tmp_path, story)


def test_a_post_waits_for_no_append(tmp_path: Path) -> None:
    """Whoever decides is not held up by who writes the run."""

    async def story(place: Place, journal: Journal) -> None:
        await journal.declare(RUN)
        async with place.connected() as connection, connection.transaction():
            await notes.note(
                connection, place.tables, RUN.run_id, fence=None, given=(), where="here"
            )
            number = await asyncio.wait_for(journal.post(RUN.run_id, DECISION), 20.0)
        assert [it.number for it in await journal.posts([RUN.run_id])] == [number]

    play(tmp_path, story)


def test_d_38_a_post_that_commits_late_is_not_passed_over(tmp_path: Path) -> None:
    """Its number is smaller than one that was seen before it."""

    async def story(place: Place, journal: Journal) -> None:
        await journal.declare(RUN)
        async with place.connected() as connection:
            late = connection.transaction()
            await late.start()
            smaller = await posts.post(connection, place.tables, RUN.run_id, DELIVERY)
            larger = await journal.post(RUN.run_id, DECISION)
            assert smaller < larger
            assert [it.number for it in await journal.posts([RUN.run_id])] == [larger]
            await late.commit()
        found = [it.number for it in await journal.posts([RUN.run_id])]
        assert found == [smaller, larger]

    play(tmp_path, story)


def test_a_post_is_counted_by_the_statement_that_adds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bound is passed by those alone who post at once (D-38)."""
    monkeypatch.setattr(posts, "POSTS_WAITING", 2)

    async def story(place: Place, journal: Journal) -> None:
        await journal.declare(RUN)
        await journal.post(RUN.run_id, DECISION)
        async with place.connected() as one, one.transaction():
            await posts.post(one, place.tables, RUN.run_id, DELIVERY)
            await journal.post(RUN.run_id, DECISION)  # sees one, and not the one under way
        assert len(await journal.posts([RUN.run_id])) == 3
        with pytest.raises(Exception, match="POSTS_WAITING"):
            await journal.post(RUN.run_id, DECISION)

    play(tmp_path, story)


def test_nobody_posts_for_a_run_that_stands_still(tmp_path: Path) -> None:
    async def story(_: Place, journal: Journal) -> None:
        await journal.declare(RUN)
        await journal.mark_rewound(RUN.run_id, why="lost")
        with pytest.raises(JournalRewound, match="lost"):
            await journal.post(RUN.run_id, DECISION)

    play(tmp_path, story)


def test_old_answers_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Never one that waits, and none of the latest."""
    monkeypatch.setattr(posts, "ANSWERS", 3)
    monkeypatch.setattr(posts, "FORGETTING", 1)
    assert posts.PORTION < ANSWERS

    async def story(_: Place, journal: Journal) -> None:
        await journal.declare(RUN)
        waits = await journal.post(RUN.run_id, DECISION)
        numbers = [await journal.post(RUN.run_id, DECISION) for _ in range(4)]
        last = await journal.post(RUN.run_id, DECISION)
        for number in (*numbers, last):
            await journal.answer(RUN.run_id, number, {"accepted": True})
        known = [await journal.answered(RUN.run_id, it) is not None for it in numbers]
        assert known == [it > last - 3 for it in numbers]
        assert False in known
        assert await journal.posted(RUN.run_id, waits)

    play(tmp_path, story)


@pytest.mark.parametrize("last", [0, 1])
def test_w_10_the_second_of_two_who_append_waits(tmp_path: Path, last: int) -> None:
    """It is told the number that follows, or that it is there already; the log may be a new one."""

    async def story(place: Place, journal: Journal) -> None:
        for entry_id, told in (
            ("a", Entered(last + 1, new=False)),
            ("b", Entered(last + 2, new=True)),
        ):
            log = f"w/{entry_id}"
            for number in range(last):
                await journal.append_entry(log, str(number), {}, at=NOW)
            first = given_entry(log, "a", {"n": 1}, at=NOW)
            async with place.connected() as connection:
                writing = connection.transaction()
                await writing.start()
                await logs.entering(place.tables, where="here")(connection, [first])
                task = asyncio.create_task(journal.append_entry(log, entry_id, {"n": 1}, at=NOW))
                await place.waits()
                await writing.commit()
            assert await task == told
        assert await journal.check() == ()

    play(tmp_path, story)


@pytest.mark.parametrize("begun", [True, False])
def test_w_10_a_log_that_is_given_up_leaves_no_gap(tmp_path: Path, begun: bool) -> None:
    """Who waited for it has the number that was not used, whether the log was there or not."""

    async def story(place: Place, journal: Journal) -> None:
        if begun:
            await journal.append_entry("w", "0", {}, at=NOW)
        async with place.connected() as connection:
            writing = connection.transaction()
            await writing.start()
            first = given_entry("w", "a", {"n": 1}, at=NOW)
            await logs.entering(place.tables, where="here")(connection, [first])
            task = asyncio.create_task(journal.append_entry("w", "a", {"n": 2}, at=NOW))
            await place.waits()
            await writing.rollback()
        assert await task == Entered(2 if begun else 1, new=True)
        assert [it.number for it in await journal.entries("w")] == [1, 2][: 1 + begun]
        assert await journal.check() == ()

    play(tmp_path, story)


def test_w_10_who_is_refused_begins_no_log(tmp_path: Path) -> None:
    """Nothing of it is listed."""

    async def story(_: Place, journal: Journal) -> None:
        with pytest.raises(InvalidValue):
            await journal.append_entry("w", "a", {1: 2}, at=NOW)  # type: ignore[dict-item]
        assert await journal.logs() == ()

    play(tmp_path, story)


async def _page(
    place: Place, *, before: int, happens: Happens, after: Cursor = START, limit: int = 100
) -> LedgerPage:
    """Read a page of the ledger, while this happens before its n-th statement."""
    async with place.asking(before=before, happens=happens) as connection:
        return await ledger.page(
            connection,
            place.tables,
            RUN.run_id,
            after=after,
            limit=limit,
            manifests=False,
            where="here",
        )


STATEMENTS = (2, 3)
"""Of a page: its head, facts, and notes; what happens before the first was there."""


@pytest.mark.parametrize("before", STATEMENTS)
@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_s_60_no_page_passes_over_what_is_kept_meanwhile(
    tmp_path: Path, before: int, limit: int
) -> None:
    """Facts and notes, whatever statement of the page they come before."""

    async def story(place: Place, journal: Journal) -> None:
        fence = await owned(journal)
        last = 0

        async def goes_on() -> None:
            nonlocal last
            await journal.note(RUN.run_id, fence=fence, notes=[note("behind the last")])
            told = facts(2, after=last)
            answer = await journal.append(
                RUN.run_id, fence=fence, after=last, facts=told, busy=True,
                notes=[note("beside", after=last), note("beside")],
            )  # fmt: skip
            assert answer is Appended.OK
            last += 2

        await goes_on()
        seen: list[Cursor] = []
        after = START
        for _ in range(4):
            page = await _page(place, before=before, happens=goes_on, after=after, limit=limit)
            seen += [it.cursor for it in page.entries]
            after = seen[-1] if seen else after
        while (page := await journal.ledger(RUN.run_id, after=after, limit=limit)).entries:
            seen += [it.cursor for it in page.entries]
            after = seen[-1]
        whole = await journal.ledger(RUN.run_id, limit=1_000)
        assert seen == [it.cursor for it in whole.entries]

    play(tmp_path, story)


@pytest.mark.parametrize("before", STATEMENTS)
def test_s_64_what_is_pruned_during_a_read_is_read_or_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    """Each note is an entry or in a gap, whatever statement of the page it went before."""
    monkeypatch.setattr(bounds, "OBSERVATIONS", 1)

    async def story(place: Place, journal: Journal) -> None:
        fence = await owned(journal)
        await kept(journal, facts(1), fence)
        await journal.note(RUN.run_id, fence=fence, notes=[*map(note, range(6))])

        async def prunes() -> None:
            assert await journal.prune(RUN.run_id, fence=fence, now=NOW) == 5

        page = await _page(place, before=before, happens=prunes)
        gone = {
            Cursor(gap.first.sequence, part)
            for gap in page.gaps
            for part in range(gap.first.part, gap.last.part + 1)
        }
        told = gone | {it.cursor for it in page.entries}
        assert told == {Cursor(1, part) for part in range(7)}

    play(tmp_path, story)


@pytest.mark.parametrize("before", STATEMENTS)
def test_a_run_that_is_removed_during_a_read_is_not_damaged(tmp_path: Path, before: int) -> None:
    """Its facts are read, or it is said that it was removed: never that they are missing."""

    async def story(place: Place, journal: Journal) -> None:
        await journal.declare(RUN)
        await kept(journal, facts(2), None, busy=False)

        async def goes() -> None:
            await journal.forget(RUN.run_id, fence=0, after=2, at=NOW)

        if before == STATEMENTS[0]:
            with pytest.raises(RunForgotten):
                await _page(place, before=before, happens=goes)
        else:
            page = await _page(place, before=before, happens=goes)
            assert [str(it.cursor) for it in page.entries] == ["1", "2"]

    play(tmp_path, story)


def test_who_is_fenced_between_two_portions_prunes_no_more(tmp_path: Path) -> None:
    """What was chosen under a fence goes under that fence alone."""

    async def story(place: Place, journal: Journal) -> None:
        old = await owned(journal)
        await journal.note(RUN.run_id, fence=old, notes=[note(1), note(2)])
        async with place.connected() as connection:
            chosen = await notes.prunable(
                connection, place.tables, RUN.run_id, fence=old, now=NOW * 1e6
            )
            assert len(chosen) == 2
            await journal.own(RUN.run_id, owner="bob", now=NOW * 9, lease=1.0)
            gone = await notes.prune(
                connection, place.tables, RUN.run_id, fence=old, cursors=chosen
            )
        assert gone == 0
        assert len(await journal.notes(RUN.run_id)) == 2

    play(tmp_path, story)


def test_s_64_portions_that_meet_leave_one_gap(tmp_path: Path) -> None:
    """In whatever order they go, and also where a portion is done twice."""

    async def story(place: Place, journal: Journal) -> None:
        fence = await owned(journal)
        await journal.note(RUN.run_id, fence=fence, notes=[*map(note, range(9))])
        async with place.connected() as connection:
            for parts in ((2, 4), (8,), (3, 3), (2, 3, 4), (6, 7), (9, 1)):
                cursors = [Cursor(0, part) for part in parts]
                await notes.prune(
                    connection, place.tables, RUN.run_id, fence=fence, cursors=cursors
                )
        page = await journal.ledger(RUN.run_id)
        assert [(it.first.part, it.last.part) for it in page.gaps] == [(1, 4), (6, 9)]
        assert [str(it.cursor) for it in page.entries] == ["0.5"]
        assert await journal.ends([RUN.run_id]) == {RUN.run_id: Cursor(0, 9)}
        assert await journal.check() == ()

    play(tmp_path, story)


def test_f_30_pages_of_a_list_that_changes_lose_nobody_who_stays(tmp_path: Path) -> None:
    """Whatever statement of a page the others move before."""

    async def story(_: Place, journal: Journal) -> None:
        names = [f"r{number}" for number in range(12)]
        for number, name in enumerate(names):
            await journal.declare(Run(run_id=name))
            if number % 3 == 0:
                await kept(journal, facts(1, run_id=name), None, busy=False)
        stays = {name for number, name in enumerate(names) if number % 3}
        found: list[str] = []
        before = None
        for turn in range(100):
            page = await journal.latest(before=before, limit=2)
            found += [it.run.run_id for it in page.entries]
            before = page.next
            if before is None:
                break
            moved = names[3 * (turn % 4)]
            last = (await journal.entry(moved)).sequence
            await kept(journal, facts(1, after=last, run_id=moved), None, busy=False)
        assert stays <= set(found)
        assert len([it for it in found if it in stays]) == len(stays)

    play(tmp_path, story)


def test_appends_go_on_while_another_run_is_read(tmp_path: Path) -> None:
    """Two runs do not wait for each other."""

    async def story(place: Place, journal: Journal) -> None:
        await journal.declare(RUN)
        await journal.declare(OTHER)
        async with place.connected() as connection, connection.transaction():
            await notes.note(
                connection, place.tables, RUN.run_id, fence=None, given=(), where="here"
            )
            await asyncio.wait_for(kept(journal, facts(1, run_id=OTHER.run_id), None), 20.0)
            assert await journal.notes(RUN.run_id) == ()

    play(tmp_path, story)

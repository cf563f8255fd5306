"""What the SQLite journal keeps, takes and hands out at most."""

from __future__ import annotations

from pathlib import Path

import pytest

from turnlock.models.deliveries import Tick
from turnlock.runtime.errors import Overloaded
from turnlock.runtime.journal import given
from turnlock.runtime.journal.sqlite import SqliteJournal

from .stage import RUN, everything, facts, kept, owned
from .test_sqlite_transactions import play


def test_old_answers_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the latest `ANSWERS` posts are kept; a post that waits is never forgotten."""
    monkeypatch.setattr("turnlock.runtime.journal.sqlite_posts.ANSWERS", 3)

    async def story(journal: SqliteJournal) -> None:
        await journal.declare(RUN)
        numbers = [await journal.post(RUN.run_id, Tick()) for _ in range(4)]
        for number in numbers[1:]:
            await journal.answer(RUN.run_id, number, {"n": number})
        numbers += [await journal.post(RUN.run_id, Tick()) for _ in range(2)]

        found = [await journal.answered(RUN.run_id, number) for number in numbers]
        assert found == [None, None, None, {"n": 4}, None, None]
        assert [post.number for post in await journal.posts([RUN.run_id])] == [1, 5, 6]

    play(tmp_path / "journal.db", story)


def test_an_append_has_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite itself would refuse a gigabyte, and everybody else's appends with it."""
    monkeypatch.setattr(given, "APPEND_BYTES", 1_000)

    async def story(journal: SqliteJournal) -> None:
        fence = await owned(journal)
        with pytest.raises(Overloaded, match=r"APPEND_BYTES is 1,000"):
            await kept(journal, facts(20), fence)
        await kept(journal, facts(2), fence)

    play(tmp_path / "journal.db", story)


def test_a_page_of_large_facts_is_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes end a page, too, and nothing is lost by it."""
    monkeypatch.setattr("turnlock.runtime.journal.pages.PAGE_BYTES", 500)

    async def story(journal: SqliteJournal) -> None:
        fence = await owned(journal)
        for after in range(0, 20, 2):
            await kept(journal, facts(2, after=after), fence)

        assert 2 <= len(await journal.read(RUN.run_id)) < 20
        assert await everything(journal) == facts(20)

    play(tmp_path / "journal.db", story)

"""The contract of journals: shared logs, which any process appends to, and nobody owns (W-10)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from turnlock.models.errors import InvalidValue
from turnlock.models.values import Json
from turnlock.runtime.errors import Closed, Overloaded
from turnlock.runtime.journal import logs as bounds
from turnlock.runtime.journal.contract import Entered, Entry, Journal, LogEntry

from .stage import NOW, RUN, JournalStage, facts, kept, owned


class LogsKept(JournalStage):
    """What a log keeps, and what it refuses."""

    def test_entries_are_numbered_from_one(self, tmp_path: Path) -> None:
        """Gapless, each log for itself, and read as they were given (W-10)."""

        async def story(journal: Journal) -> None:
            assert await journal.entries("w/c") == ()
            assert await journal.logs() == ()
            assert await journal.append_entry("w/c", "a", {"n": 1}, at=NOW) == Entered(1, new=True)
            assert await journal.append_entry("w", "a", [1.5, None], at=0) == Entered(1, new=True)
            assert await journal.append_entry("w/c", "b", "x", at=1.5) == Entered(2, new=True)
            assert await journal.entries("w/c") == (
                Entry(1, "a", NOW, {"n": 1}),
                Entry(2, "b", 1.5, "x"),
            )
            assert await journal.entries("w") == (Entry(1, "a", 0.0, [1.5, None]),)
            assert await journal.logs() == (LogEntry("w", 1), LogEntry("w/c", 2))

        self.play(tmp_path, story)

    def test_the_first_of_an_id_wins(self, tmp_path: Path) -> None:
        """An equal body is the entry that is there; another is refused, and nothing is written."""

        async def story(journal: Journal) -> None:
            body: Json = {"a": 1, "b": [True]}
            await journal.append_entry("w", "0", body, at=NOW)
            await journal.append_entry("w", "id", body, at=NOW)
            again: Json = {"b": [True], "a": 1}
            assert await journal.append_entry("w", "id", again, at=9.0) == Entered(2, new=False)
            others: list[Any] = [{"a": 1.0, "b": [True]}, {"a": 1, "b": [1]}, {}, None]
            for other in others:
                with pytest.raises(InvalidValue, match=r"^body: .*entry 2 of log 'w'.*'id'"):
                    await journal.append_entry("w", "id", other, at=NOW)
            assert await journal.append_entry("v", "id", {}, at=NOW) == Entered(1, new=True)
            assert [it.at for it in await journal.entries("w")] == [NOW, NOW]
            assert await journal.logs("w") == (LogEntry("w", 2),)

        self.play(tmp_path, story)

    def test_an_entry_is_found_by_its_id(self, tmp_path: Path) -> None:
        """In its own log; None where there is none."""

        async def story(journal: Journal) -> None:
            assert await journal.find_entry("w", "a") is None
            await journal.append_entry("w", "a", {"n": 1}, at=NOW)
            await journal.append_entry("w", "b/%", {"n": 2}, at=NOW)
            assert await journal.find_entry("w", "b/%") == Entry(2, "b/%", NOW, {"n": 2})
            for log, entry_id in (("w", "b/"), ("w", "B/%"), ("v", "a")):
                assert await journal.find_entry(log, entry_id) is None
            for log, entry_id in (("", "a"), ("w", "\0"), ("w", "\ud800")):
                with pytest.raises(InvalidValue):
                    await journal.find_entry(log, entry_id)

        self.play(tmp_path, story)

    def test_a_log_is_read_in_pages(self, tmp_path: Path) -> None:
        """`after` is the number of the last entry known; behind the end there is nothing."""

        async def story(journal: Journal) -> None:
            for n in range(1, 6):
                await journal.append_entry("w", f"id/{n}", n, at=NOW)
            for limit in (1, 2, 5, 9, 10**30):
                found: list[Entry] = []
                while page := await journal.entries("w", after=len(found), limit=limit):
                    assert len(page) <= limit
                    found += page
                assert [(it.number, it.body) for it in found] == [(n, n) for n in range(1, 6)]
            for after in (5, 6, 10**30):
                assert await journal.entries("w", after=after) == ()
            for wrong in ({"after": -1}, {"limit": 0}, {"after": 1.0}, {"limit": None}):
                told: Any = wrong
                with pytest.raises(InvalidValue, match=rf"^{next(iter(wrong))}: "):
                    await journal.entries("w", **told)

        self.play(tmp_path, story)

    @pytest.mark.parametrize(
        ("prefix", "found"),
        [
            ("", ["%", "W/", "_", "a", "w", "w%/c", "w/", "w/a", "w/b", "w0"]),
            ("w", ["w", "w%/c", "w/", "w/a", "w/b", "w0"]),
            ("w/", ["w/", "w/a", "w/b"]),
            ("w%", ["w%/c"]),
            ("%", ["%"]),
            ("_", ["_"]),
            ("w_", []),
            ("W", ["W/"]),
            ("w/a/b", []),
        ],
    )
    def test_a_prefix_is_taken_as_it_stands(
        self, tmp_path: Path, prefix: str, found: list[str]
    ) -> None:
        """No pattern, and no case is passed over."""

        async def story(journal: Journal) -> None:
            for name in ("w", "w/b", "w/a", "w/", "w0", "w%/c", "W/", "_", "%", "a"):
                await journal.append_entry(name, "id", {}, at=NOW)
            assert [it.name for it in await journal.logs(prefix)] == found

        self.play(tmp_path, story)

    def test_what_is_no_entry_is_refused(self, tmp_path: Path) -> None:
        """Names, ids, bodies and times; nothing is written."""
        good: dict[str, Any] = {"log": "w", "entry_id": "i", "body": {}, "at": NOW}
        wrong: list[tuple[str, Any]] = [
            *((name, it) for name in ("log", "entry_id") for it in ("", "\0", "a\0b", "\ud800", 1)),
            ("log", "é" * bounds.LOG_NAME_BYTES),
            ("entry_id", "x" * (bounds.ENTRY_ID_BYTES + 1)),
            *(("body", it) for it in (float("nan"), {1: 2}, "\udfff", object(), {"a": {1}})),
            *(("at", it) for it in (float("inf"), float("nan"), "now", None, True, 10**400)),
        ]

        async def story(journal: Journal) -> None:
            for name, value in wrong:
                with pytest.raises(InvalidValue, match=rf"^{name}\b"):
                    await journal.append_entry(**{**good, name: value})
            for prefix in ("\0", "\ud800", 1):
                told: Any = prefix
                with pytest.raises(InvalidValue, match=r"^prefix"):
                    await journal.logs(told)
            for log in ("", "\0", "\ud800", None):
                told = log
                with pytest.raises(InvalidValue, match=r"^log"):
                    await journal.entries(told)
            assert await journal.logs() == ()

        self.play(tmp_path, story)

    def test_logs_are_bounded(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A body, and how many entries there are; what is there can be said again."""
        monkeypatch.setattr(bounds, "LOG_ENTRIES", 2)
        monkeypatch.setattr(bounds, "ENTRY_BYTES", 10)

        async def story(journal: Journal) -> None:
            await journal.append_entry("w", "1", "x" * 8, at=NOW)
            with pytest.raises(Overloaded, match=r"^log 'w': .*'2' has 11 bytes.*ENTRY_BYTES"):
                await journal.append_entry("w", "2", "x" * 9, at=NOW)
            await journal.append_entry("w", "2", "", at=NOW)
            with pytest.raises(Overloaded, match=r"^log 'w': it has 2 entries \(LOG_ENTRIES\)"):
                await journal.append_entry("w", "3", "", at=NOW)
            assert await journal.append_entry("w", "2", "", at=NOW) == Entered(2, new=False)
            assert await journal.append_entry("v", "3", "", at=NOW) == Entered(1, new=True)

        self.play(tmp_path, story)

    def test_who_heeds_is_told_of_what_is_new(self, tmp_path: Path) -> None:
        """After it is kept, by log; not of what was there, nor of what was refused."""

        async def story(journal: Journal) -> None:
            told: list[str] = []
            twice: list[str] = []

            def raises(log: str) -> None:
                raise RuntimeError(log)

            ends = [journal.when_entered(it) for it in (raises, told.append, twice.append)]
            ends.append(journal.when_entered(twice.append))
            await journal.append_entry("w", "a", {}, at=NOW)
            assert told == ["w"]
            await journal.append_entry("w", "a", {}, at=NOW)
            with pytest.raises(InvalidValue):
                await journal.append_entry("w", "a", {"x": 1}, at=NOW)
            await journal.append_entry("v", "a", {}, at=NOW)
            assert (told, twice) == (["w", "v"], ["w", "w", "v", "v"])
            for end in (ends[1], ends[2], ends[2]):
                end()
            await journal.append_entry("w", "b", {}, at=NOW)
            assert (told, twice) == (["w", "v"], ["w", "w", "v", "v", "w"])

        self.play(tmp_path, story)

    def test_an_append_that_is_cancelled_is_settled(self, tmp_path: Path) -> None:
        """It is kept or not, once the cancelled task has ended; and who heeds is told if it is."""

        async def story(journal: Journal) -> None:
            told: list[str] = []
            journal.when_entered(told.append)
            for turns in range(4):
                task = asyncio.create_task(journal.append_entry(f"w{turns}", "a", {}, at=NOW))
                for _ in range(turns):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                kept = bool(await journal.entries(f"w{turns}"))
                assert (told.count(f"w{turns}") == 1) is kept
            seen = await journal.logs()
            await asyncio.sleep(0)
            assert await journal.logs() == seen

        self.play(tmp_path, story)

    def test_w_11_what_removes_runs_removes_no_entry(self, tmp_path: Path) -> None:
        """Not even the run of this very name."""

        async def story(journal: Journal) -> None:
            fence = await owned(journal)
            await kept(journal, facts(1), fence, busy=False)
            await journal.append_entry(RUN.run_id, "a", {}, at=NOW)
            before = await journal.entries(RUN.run_id)
            await journal.prune(RUN.run_id, fence=fence, now=NOW * 1e6)
            await journal.release(RUN.run_id, fence=fence)
            await journal.forget(RUN.run_id, fence=fence, after=1, at=NOW)
            await journal.compact()
            assert await journal.entries(RUN.run_id) == before
            assert await journal.logs() == (LogEntry(RUN.run_id, 1),)
            entered = await journal.append_entry(RUN.run_id, "b", {}, at=NOW)
            assert entered == Entered(2, new=True)

        self.play(tmp_path, story)

    def test_a_closed_journal_has_no_logs(self, tmp_path: Path) -> None:
        """Whatever is asked raises `Closed`."""

        async def story(journal: Journal) -> None:
            await journal.close()
            for asked in (
                journal.append_entry("w", "a", {}, at=NOW),
                journal.entries("w"),
                journal.logs(),
            ):
                with pytest.raises(Closed):
                    await asked

        self.play(tmp_path, story)

"""The contract of journals: any story told to logs ends as in a dict, whoever appends (W-12)."""

from __future__ import annotations

import asyncio
import multiprocessing
import random
import sys
from collections import defaultdict
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnlock.models.errors import InvalidValue
from turnlock.models.values import Json, same_json
from turnlock.runtime.journal.contract import Entered, Entry, Journal, LogEntry

from .stage import NOW, JournalStage

NAMES: Final = ("w", "w/c", "w%", "w\U0010ffff", "w\U0010ffffx")
"""Prefixes of each other, and the last character that there is."""
BODIES: Final[tuple[Json, ...]] = ({"a": 1}, {"a": 1.0}, ["x" * 3_000, "\0"])
PROCESSES: Final = 4
APPENDS: Final = 60
"""By each process."""
LOST: Final = 0
"""In place of a number: the append was refused, since another body was there."""

Step: TypeAlias = tuple[str, dict[str, Any]]
Told: TypeAlias = tuple[str, str, int, int, bool]
"""What one append came to: its log and id, which body, its number or `LOST`, whether it is new."""

_logs = st.sampled_from(NAMES)
_ids = st.sampled_from(["a", "b", "%"])
_numbers = st.integers(0, 5)
_append: st.SearchStrategy[Step] = st.tuples(
    st.just("append"),
    st.fixed_dictionaries({"log": _logs, "entry_id": _ids, "which": st.integers(0, 2)}),
)
_steps: st.SearchStrategy[Step] = st.one_of(
    _append,
    _append,
    _append,
    st.tuples(
        st.just("read"),
        st.fixed_dictionaries({"log": _logs, "after": _numbers, "limit": st.integers(1, 3)}),
    ),
    st.tuples(st.just("list"), st.fixed_dictionaries({"prefix": st.sampled_from(("", *NAMES))})),
    st.tuples(st.just("find"), st.fixed_dictionaries({"log": _logs, "entry_id": _ids})),
    st.tuples(st.just("reopen"), st.just({})),
)


class _Model:
    """The contract in the plainest words: a dict of lists."""

    def __init__(self) -> None:
        self.kept: dict[str, list[Entry]] = {}
        self.heard: list[str] = []

    async def append(self, journal: Journal, *, log: str, entry_id: str, which: int) -> None:
        body = BODIES[which]
        known = next((it for it in self.kept.get(log, []) if it.entry_id == entry_id), None)
        asked = journal.append_entry(log, entry_id, body, at=NOW)
        if known is None:
            kept = self.kept.setdefault(log, [])
            kept.append(Entry(len(kept) + 1, entry_id, NOW, body))
            self.heard.append(log)
            assert await asked == Entered(len(kept), new=True)
        elif same_json(known.body, body):
            assert await asked == Entered(known.number, new=False)
        else:
            with pytest.raises(InvalidValue):
                await asked

    async def read(self, journal: Journal, *, log: str, after: int, limit: int) -> None:
        page = await journal.entries(log, after=after, limit=limit)
        assert list(page) == self.kept.get(log, [])[after : after + limit]
        assert all(same_json(it.body, self.kept[log][it.number - 1].body) for it in page)

    async def list(self, journal: Journal, *, prefix: str) -> None:
        assert list(await journal.logs(prefix)) == [
            LogEntry(name, len(self.kept[name]))
            for name in sorted(self.kept)
            if name.startswith(prefix)
        ]

    async def find(self, journal: Journal, *, log: str, entry_id: str) -> None:
        known = [it for it in self.kept.get(log, []) if it.entry_id == entry_id]
        assert await journal.find_entry(log, entry_id) == (known[0] if known else None)


class LogStories(JournalStage):
    """Any order of steps, and many who append at once."""

    settings = settings()

    def test_w_12_any_story_of_logs_ends_as_in_a_dict(self, tmp_path: Path) -> None:
        """Each step answers as the dict does, and what is kept is what the dict holds."""
        places = (tmp_path / str(number) for number in count())

        @self.settings
        @given(st.lists(_steps, min_size=15, max_size=30))
        def agree(story: list[Step]) -> None:
            place = next(places)
            place.mkdir()
            asyncio.run(self._tell_logs(place, story))

        agree()

    async def _tell_logs(self, place: Path, story: list[Step]) -> None:
        journal = await self.open_journal(place)
        model = _Model()
        heard: list[str] = []
        journal.when_entered(heard.append)
        try:
            for what, fields in story:
                if what != "reopen":
                    await getattr(model, what)(journal, **fields)
                elif self.durable:
                    await journal.close()
                    journal = await self.open_journal(place)
                    journal.when_entered(heard.append)
            await model.list(journal, prefix="")
            for log in model.kept:
                await model.read(journal, log=log, after=0, limit=100)
            assert heard == model.heard
            assert await journal.check() == ()
        finally:
            await journal.close()

    def test_w_10_of_many_tasks_that_append_the_first_wins(self, tmp_path: Path) -> None:
        """Gapless, each id once, with one body, and one of them is told that it is new."""

        async def story(journal: Journal) -> None:
            told = await asyncio.gather(*(_appends(journal, who) for who in range(8)))
            await _hold(journal, [one for all_ in told for one in all_])

        self.play(tmp_path, story)


class LogsOutliving(JournalStage):
    """What a durable journal promises besides."""

    durable = True

    def test_entries_outlive_the_journal(self, tmp_path: Path) -> None:
        """Opened again it holds them, and numbers go on."""

        async def write(journal: Journal) -> None:
            for n in (1, 2):
                await journal.append_entry("w/c", f"{n}", {"n": n}, at=NOW)

        async def read(journal: Journal) -> None:
            assert [it.body for it in await journal.entries("w/c")] == [{"n": 1}, {"n": 2}]
            assert await journal.append_entry("w/c", "2", {"n": 2}, at=9.0) == Entered(2, new=False)
            assert await journal.append_entry("w/c", "3", {}, at=NOW) == Entered(3, new=True)

        self.play(tmp_path, write)
        self.play(tmp_path, read)

    def test_w_12_many_processes_append_at_once(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """With ids that repeat and that conflict: gapless, and the same for all readers.

        Each process reads while it appends: what it saw at a number stands there in the end.
        """
        monkeypatch.setattr(sys, "path", [str(Path(__file__).resolve().parents[3]), *sys.path])
        self.play(tmp_path, _nothing)  # the file is there
        context = multiprocessing.get_context("spawn")
        ready = context.Barrier(PROCESSES)
        results = context.SimpleQueue()
        racing = [
            context.Process(target=_race, args=(self, tmp_path, who, ready, results))
            for who in range(PROCESSES)
        ]
        for process in racing:
            process.start()
        found: list[tuple[list[Told], dict[str, list[Entry]]]] = [results.get() for _ in racing]
        for process in racing:
            process.join(60)
            assert process.exitcode == 0

        async def story(journal: Journal) -> None:
            await _hold(journal, [told for all_, _ in found for told in all_])
            for _, seen in found:
                for log, entries in seen.items():
                    assert list(await journal.entries(log))[: len(entries)] == entries

        self.play(tmp_path, story)


class _Barrier(Protocol):
    def wait(self) -> object: ...


class _Queue(Protocol):
    def put(self, item: Any) -> None: ...


def _race(stage: JournalStage, place: Path, who: int, ready: _Barrier, results: _Queue) -> None:
    """Append, and read meanwhile; in a process of its own."""

    async def story(journal: Journal) -> None:
        ready.wait()
        seen: dict[str, list[Entry]] = defaultdict(list)
        told = await _appends(journal, who, seen)
        results.put((told, dict(seen)))

    stage.play(place, story)


async def _appends(
    journal: Journal, who: int, seen: dict[str, list[Entry]] | None = None
) -> list[Told]:
    """Append to few logs under few ids, and tell what came of each."""
    draw = random.Random(who)
    told: list[Told] = []
    for _ in range(APPENDS):
        log, entry_id, which = draw.choice("ab"), str(draw.randrange(APPENDS)), draw.randrange(2)
        try:
            number, new = await journal.append_entry(log, entry_id, BODIES[which], at=float(who))
        except InvalidValue:
            number, new = LOST, False
        told.append((log, entry_id, which, number, new))
        if seen is not None:
            seen[log] += await journal.entries(log, after=len(seen[log]))
    return told


async def _hold(journal: Journal, told: Sequence[Told]) -> None:
    """Hold what was told to all who appended against what is kept."""
    for log, last, problem in await journal.logs():
        entries = await journal.entries(log)
        assert ([it.number for it in entries], problem) == ([*range(1, last + 1)], None)
        kept = {it.entry_id: it for it in entries}
        assert len(kept) == last
        mine = [it for it in told if it[0] == log]
        assert sorted(number for *_, number, new in mine if new) == [*range(1, last + 1)]
        for _, entry_id, which, number, _ in mine:
            same = same_json(kept[entry_id].body, BODIES[which])
            assert number == (kept[entry_id].number if same else LOST)
    assert any(number == LOST for *_, number, _ in told)
    assert any(number != LOST and not new for *_, number, new in told)
    assert await journal.check() == ()


async def _nothing(_: Journal) -> None:
    """Ask nothing."""

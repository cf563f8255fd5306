"""Journals that each break one promise about logs, around one that keeps them all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from fnmatch import fnmatchcase

from turnlock.models.errors import InvalidValue
from turnlock.models.values import Json
from turnlock.runtime.journal.contract import PAGE, Entered, Entry, Journal, LogEntry

from ..faulty_journal import WrappedJournal


class LastWins(WrappedJournal):
    """Another body of an id that is there is dropped, as if it were kept."""

    async def append_entry(self, log: str, entry_id: str, body: Json, *, at: float) -> Entered:
        with suppress(InvalidValue):
            return await self.inner.append_entry(log, entry_id, body, at=at)
        known = await self.inner.find_entry(log, entry_id)
        if known is None:
            raise InvalidValue(place="log", cause="is none", fix="give one")
        return Entered(known.number, new=False)


class TwiceIsTwice(WrappedJournal):
    """What is said again is kept again."""

    async def append_entry(self, log: str, entry_id: str, body: Json, *, at: float) -> Entered:
        entered = await self.inner.append_entry(log, entry_id, body, at=at)
        return entered if entered.new else await self.append_entry(log, f"{entry_id}'", body, at=at)


class OneNumbering(WrappedJournal):
    """Numbers count over all logs."""

    def __init__(self, inner: Journal) -> None:
        super().__init__(inner)
        self.given = 0

    async def append_entry(self, log: str, entry_id: str, body: Json, *, at: float) -> Entered:
        entered = await self.inner.append_entry(log, entry_id, body, at=at)
        self.given += entered.new
        return Entered(self.given, entered.new) if entered.new else entered


class NumbersOutside(WrappedJournal):
    """The number is what was the last before, asked for outside the transaction."""

    async def append_entry(self, log: str, entry_id: str, body: Json, *, at: float) -> Entered:
        last = {it.name: it.last for it in await self.inner.logs()}
        await asyncio.sleep(0)
        entered = await self.inner.append_entry(log, entry_id, body, at=at)
        return Entered(last.get(log, 0) + 1, entered.new) if entered.new else entered


class EveryoneIsNew(WrappedJournal):
    """Who says it again is told that it is new."""

    async def append_entry(self, log: str, entry_id: str, body: Json, *, at: float) -> Entered:
        entered = await self.inner.append_entry(log, entry_id, body, at=at)
        return Entered(entered.number, new=True)


class EqualIsEnough(WrappedJournal):
    """One is true, and 1.0 is 1."""

    async def append_entry(self, log: str, entry_id: str, body: Json, *, at: float) -> Entered:
        try:
            return await self.inner.append_entry(log, entry_id, body, at=at)
        except InvalidValue:
            known = None
            with suppress(InvalidValue):
                known = await self.inner.find_entry(log, entry_id)
            if known is not None and known.body == body:
                return Entered(known.number, new=False)
            raise


class Patterns(WrappedJournal):
    """A prefix is a pattern."""

    async def logs(self, prefix: str = "") -> tuple[LogEntry, ...]:
        await self.inner.logs(prefix)
        pattern = prefix.replace("%", "*").replace("_", "?") + "*"
        return tuple(it for it in await self.inner.logs() if fnmatchcase(it.name, pattern))


class AnyCase(WrappedJournal):
    """Capitals begin what small letters begin."""

    async def logs(self, prefix: str = "") -> tuple[LogEntry, ...]:
        await self.inner.logs(prefix)
        found = await self.inner.logs()
        return tuple(it for it in found if it.name.lower().startswith(prefix.lower()))


class OneMore(WrappedJournal):
    """A page begins with the entry that is known."""

    async def entries(self, log: str, *, after: int = 0, limit: int = PAGE) -> tuple[Entry, ...]:
        await self.inner.entries(log, after=after, limit=limit)
        return await self.inner.entries(log, after=max(0, after - 1), limit=limit)


class AnyLog(WrappedJournal):
    """An id is found in whichever log it is."""

    async def find_entry(self, log: str, entry_id: str) -> Entry | None:
        found = await self.inner.find_entry(log, entry_id)
        for other in () if found is not None else await self.inner.logs():
            found = found or await self.inner.find_entry(other.name, entry_id)
        return found


class TellsNobody(WrappedJournal):
    """Who heeds is not told."""

    def when_entered(self, heed: Callable[[str], None]) -> Callable[[], None]:
        assert callable(heed)
        return lambda: None


class TellsOfAll(WrappedJournal):
    """Who heeds is told of whatever was asked."""

    async def append_entry(self, log: str, entry_id: str, body: Json, *, at: float) -> Entered:
        entered = await self.inner.append_entry(log, entry_id, body, at=at)
        if not entered.new:
            self._heeds.tell(log, Entered(entered.number, new=True))
        return entered

    def when_entered(self, heed: Callable[[str], None]) -> Callable[[], None]:
        ends = [self.inner.when_entered(heed), self._heeds.add(heed)]

        def end() -> None:
            for it in ends:
                it()

        return end


class TellsTooSoon(WrappedJournal):
    """Who heeds is told before anything is kept."""

    async def append_entry(self, log: str, entry_id: str, body: Json, *, at: float) -> Entered:
        self._heeds.tell(log, Entered(0, new=True))
        return await self.inner.append_entry(log, entry_id, body, at=at)

    def when_entered(self, heed: Callable[[str], None]) -> Callable[[], None]:
        return self._heeds.add(heed)


CAUGHT: list[tuple[type[WrappedJournal], str]] = [
    (LastWins, "test_the_first_of_an_id_wins"),
    (LastWins, "test_w_10_of_many_tasks_that_append_the_first_wins"),
    (TwiceIsTwice, "test_the_first_of_an_id_wins"),
    (OneNumbering, "test_entries_are_numbered_from_one"),
    (NumbersOutside, "test_w_10_of_many_tasks_that_append_the_first_wins"),
    (EveryoneIsNew, "test_the_first_of_an_id_wins"),
    (EveryoneIsNew, "test_w_10_of_many_tasks_that_append_the_first_wins"),
    (EqualIsEnough, "test_the_first_of_an_id_wins"),
    (Patterns, "test_a_prefix_is_taken_as_it_stands"),
    (AnyCase, "test_a_prefix_is_taken_as_it_stands"),
    (OneMore, "test_a_log_is_read_in_pages"),
    (AnyLog, "test_an_entry_is_found_by_its_id"),
    (TellsNobody, "test_who_heeds_is_told_of_what_is_new"),
    (TellsOfAll, "test_who_heeds_is_told_of_what_is_new"),
    (TellsTooSoon, "test_who_heeds_is_told_of_what_is_new"),
]
"""And the test that is named for it."""

UNTOLD = (LastWins, TwiceIsTwice, EveryoneIsNew, EqualIsEnough, Patterns, OneMore, TellsTooSoon)
"""Found by random stories, too."""

"""The sources of a chat's stream, each read page by page in its own order (W-71)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final, Protocol

import attrs

from ..models.errors import InvalidValue, UnknownRun
from ..models.facts import Fact, TurnOpened
from ..runtime.errors import RunForgotten
from ..runtime.journal.contract import Entry, Journal
from ..runtime.journal.ledger import Cursor
from .entries import ChatEntry, Unknown, read_entry
from .names import MemberName
from .requests import Projection, Projections

ENTRIES: Final = 100
"""Entries of a chat's log that a stream holds at most."""
FACTS: Final = 256
"""Facts of a run that a stream reads at once."""


@attrs.frozen
class Told:
    """An entry that is to be told next."""

    entry: Entry
    says: ChatEntry | Unknown

    @property
    def at(self) -> float:
        """When it was kept."""
        return self.entry.at


@attrs.frozen
class Projected:
    """A projection that is to be told next, and how far its run is told then."""

    member: MemberName
    projection: Projection
    place: Cursor
    at: float


class Source(Protocol):
    """One source of a stream."""

    drained: bool
    """Whether there was no more when it was read last."""

    @property
    def head(self) -> Told | Projected | None:
        """What is told next of it, as far as it was read."""
        ...

    async def read_on(self) -> None:
        """Read until there is something to tell, or no more."""
        ...

    def pop(self) -> None:
        """Take it that the head is told."""
        ...


class LogSource:
    """The entries of a chat's log."""

    def __init__(self, journal: Journal, log: str, *, after: int) -> None:
        """Begin after an entry."""
        self.drained = False
        self.read: int = after
        """The number of the last entry that was read."""
        self._journal = journal
        self._log = log
        self._page: deque[Told] = deque()

    @property
    def head(self) -> Told | None:
        """The next entry."""
        return self._page[0] if self._page else None

    async def read_on(self) -> None:
        """Read the next page."""
        page = await self._journal.entries(self._log, after=self.read, limit=ENTRIES)
        self.drained = not page
        self._page.extend(Told(entry, _says(entry)) for entry in page)
        if page:
            self.read = page[-1].number

    def pop(self) -> None:
        """Take it that the next entry is told."""
        self._page.popleft()


def _says(entry: Entry) -> ChatEntry | Unknown:
    """Return what an entry says; one that is not as it must be harms no reader (W-8)."""
    try:
        return read_entry(entry)
    except InvalidValue:
        return Unknown(kind="")


class RunSource:
    """What the facts of one member's run say to people."""

    def __init__(self, journal: Journal, member: MemberName, *, after: Cursor) -> None:
        """Begin after a place."""
        self.drained = False
        self.member: Final = member
        self.read: int = after.sequence
        """The sequence of the last fact that was read."""
        self._skip = after.part
        self._journal = journal
        self._fold: Projections | None = None
        self._waiting: deque[Projected] = deque()

    @property
    def head(self) -> Projected | None:
        """The next projection."""
        return self._waiting[0] if self._waiting else None

    def pop(self) -> None:
        """Take it that the next projection is told."""
        self._waiting.popleft()

    async def read_on(self) -> None:
        """Read pages until a fact says something."""
        fold = self._fold or await self._primed()
        while not self._waiting:
            page = await self._facts(after=self.read)
            self._fold = fold
            self.drained = not page
            if not page:
                return
            for fact in page:
                self._take(fold.take(fact), fact)
            self.read = page[-1].sequence

    def _take(self, said: tuple[Projection, ...], fact: Fact) -> None:
        for number, projection in enumerate(said, start=1):
            if number > self._skip:
                last = number == len(said)
                place = Cursor(fact.sequence) if last else Cursor(fact.sequence - 1, number)
                self._waiting.append(Projected(self.member, projection, place, fact.at))
        self._skip = 0

    async def _facts(self, *, after: int, limit: int | None = None) -> tuple[Fact, ...]:
        try:
            return await self._journal.read(self.member.run_id, after=after, limit=limit or FACTS)
        except (UnknownRun, RunForgotten):
            return ()

    async def _primed(self) -> Projections:
        """Return the fold of what was told: of the turn that was the latest then, if any."""
        fold = Projections()
        begin = await self._turn_before(self.read)
        while begin is not None and begin <= self.read:
            page = await self._facts(after=begin - 1, limit=min(FACTS, self.read - begin + 1))
            if not page:
                break
            for fact in page:
                fold.take(fact)
            begin = page[-1].sequence + 1
        return fold

    async def _turn_before(self, sequence: int) -> int | None:
        """Return the sequence of the latest TURN_OPENED up to this one."""
        while sequence > 0:
            begin = max(0, sequence - FACTS)
            found = await self._latest_turn(begin, sequence)
            if found is not None:
                return found
            sequence = begin
        return None

    async def _latest_turn(self, after: int, last: int) -> int | None:
        found: int | None = None
        while after < last:
            page = await self._facts(after=after, limit=last - after)
            if not page:
                break
            found = _turn_in(page) or found
            after = page[-1].sequence
        return found


def _turn_in(page: Iterable[Fact]) -> int | None:
    return max((it.sequence for it in page if isinstance(it, TurnOpened)), default=None)

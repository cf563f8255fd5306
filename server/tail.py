"""The end of a run's ledger, read once for all who are live on it (S-70, S-77).

What was read last waits here for a while, once for all of them. Who is further behind than that
goes back to the journal: nobody is waited for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol, Self

import attrs

from ..models.codec import to_json
from ..models.diagnostics import Diagnostic
from ..runtime.errors import CursorAhead
from ..runtime.journal.ledger import Cursor, LedgerPage
from .deltas import Deltas
from .envelope import Envelopes
from .shown import Diagnosed, Sent, Shown

KEPT: Final = 256 * 1024
"""Bytes of envelopes that wait for those who are live on a run."""
DIAGNOSTICS: Final = 100
"""Diagnostics of a run that wait; the oldest give way (F-44)."""


class Member(Protocol):
    """One who is live on a run."""

    taken: int
    """The number of the batch that it takes next."""

    def wake(self) -> None:
        """Learn that there is something."""
        ...


class Place:
    """How far a ledger was read: `at` the last entry, `shown` the last one that was shown."""

    __slots__ = ("at", "shown")

    def __init__(self, at: Cursor, shown: Cursor | None = None) -> None:
        """Begin behind an entry."""
        self.at = at
        self.shown = at if shown is None else shown

    def read(self, envelopes: Envelopes, read: Read) -> Sequence[Shown]:
        """Go over a page, and return what is shown of it."""
        page, told = read.page, read.told
        if self.shown != read.after:
            told = envelopes.of(page, after=self.shown)
        last = page.entries[-1].cursor if page.entries else self.at
        over = page.gaps[-1].last if page.gaps else self.at
        self.at = max(self.at, last, over)
        sent = next((it.cursor for it in reversed(told) if isinstance(it, Sent)), self.shown)
        self.shown = max(self.shown, sent, over)
        return told


@attrs.frozen
class Read:
    """A page of a run, and what is shown of it to all who were shown what is before it."""

    page: LedgerPage
    after: Cursor
    told: Sequence[Shown]

    @classmethod
    def of(cls, run_id: str, page: LedgerPage, *, after: Cursor) -> Self:
        """Make the envelopes of a page, once for all."""
        return cls(page, after, Envelopes(run_id).of(page, after=after))

    @property
    def has_more(self) -> bool:
        """Whether there is more behind it, so that it stays as it is."""
        entries = self.page.entries
        return bool(entries) and entries[-1].cursor < self.page.head


class Batch(tuple[Shown, ...]):  # noqa: SLOT001 - it has fields of its own
    """What was read at once: its bytes are joined once, for all who take it whole."""

    before: Cursor
    """Up to where its run was read before."""
    place: Place
    """Up to where it was read then."""
    size: int
    entries: int
    """How many of it are entries."""
    sse: bytes

    @classmethod
    def of(cls, told: Iterable[Shown], *, before: Cursor, place: Place) -> Self:
        """Make one."""
        made = cls(told)
        made.before, made.place = before, Place(place.at, place.shown)
        made.sse = b"".join([it.sse for it in made])
        made.size = len(made.sse)
        made.entries = sum(isinstance(it, Sent) for it in made)
        return made


class Tail:
    """What is read of one run, and said in it, for those who are live."""

    def __init__(self, run_id: str, *, place: Place, again: Callable[[Tail], None]) -> None:
        """Begin at a place; `again` is called where there may be more to read."""
        self.run_id: Final = run_id
        self.place: Final = place
        self.envelopes: Final = Envelopes(run_id)
        self.members: Final[set[Member]] = set()
        self.deltas: Final = Deltas(run_id)
        self.diagnosed: Final[deque[Diagnosed]] = deque(maxlen=DIAGNOSTICS)
        self.diagnoses = 0
        """How many diagnostics there were."""
        self.end = 0
        """The number that the next batch has."""
        self._again = again
        self.latest: Batch | None = None
        self._batches: deque[Batch] = deque()
        self._bytes = 0
        self.reading = False
        self.stale = False
        """Whether there may be more to read than was read."""

    @property
    def begin(self) -> int:
        """The number of the first batch that waits."""
        return self.end - len(self._batches)

    def look(self) -> None:
        """Read what there is."""
        self.stale = True
        if not self.reading:
            self.reading = True
            self._again(self)

    def take(self, read: Read) -> bool:
        """Take in what was read; False where that was nothing. Raises `CursorAhead`."""
        page = read.page
        if page.head < self.place.at:
            raise CursorAhead(self.run_id, asked=self.place.at, head=page.head)
        for entry in page.entries:
            self.deltas.supersede(entry)
        before = self.place.at
        told = self.place.read(self.envelopes, read)
        if told:
            self.latest = Batch.of(told, before=before, place=self.place)
            self._batches.append(self.latest)
            self._bytes += self.latest.size
            self.end += 1
            while self._bytes > KEPT and len(self._batches) > 1:
                self._drop()
            self.wake()
        return bool(page.entries or page.gaps)

    def batches(self, number: int) -> Iterable[Batch]:
        """Return the batches from a number on that waits still."""
        begin = self.begin
        return (self._batches[it - begin] for it in range(number, self.end))

    def tidy(self) -> None:
        """Let go what all have taken."""
        needed = min((it.taken for it in self.members), default=self.end)
        while self._batches and self.begin < needed:
            self._drop()
        if not self._batches:
            self.latest = None

    def _drop(self) -> None:
        self._bytes -= self._batches.popleft().size

    def diagnose(self, diagnostic: Diagnostic) -> None:
        """Pass on a diagnostic to those who asked for them."""
        self.diagnosed.append(Diagnosed(self.run_id, to_json(diagnostic)))
        self.diagnoses += 1
        self.wake()

    def wake(self) -> None:
        """Tell all."""
        for member in tuple(self.members):
            member.wake()

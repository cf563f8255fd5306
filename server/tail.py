"""The end of a run's ledger, read once for all who are live on it (S-70, S-77).

What was read last waits here for a while, once for all of them. Who is further behind than that
goes back to the journal: nobody is waited for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

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

    def read(self, envelopes: Envelopes, page: LedgerPage) -> list[Shown]:
        """Go over a page, and return what is shown of it."""
        told = envelopes.of(page, after=self.shown)
        last = page.entries[-1].cursor if page.entries else self.at
        over = page.gaps[-1].last if page.gaps else self.at
        self.at = max(self.at, last, over)
        sent = next((it.cursor for it in reversed(told) if isinstance(it, Sent)), self.shown)
        self.shown = max(self.shown, sent, over)
        return told


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
        self._batches: deque[Sequence[Shown]] = deque()
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

    def take(self, page: LedgerPage) -> bool:
        """Take in what was read; False where that was nothing. Raises `CursorAhead`."""
        if page.head < self.place.at:
            raise CursorAhead(self.run_id, asked=self.place.at, head=page.head)
        for entry in page.entries:
            self.deltas.supersede(entry)
        told = self.place.read(self.envelopes, page)
        if told:
            self._batches.append(told)
            self._bytes += sum(map(len, told))
            self.end += 1
            while self._bytes > KEPT and len(self._batches) > 1:
                self._drop()
            self.wake()
        return bool(page.entries or page.gaps)

    def batches(self, number: int) -> Iterable[Sequence[Shown]]:
        """Return the batches from a number on that waits still."""
        begin = self.begin
        return (self._batches[it - begin] for it in range(number, self.end))

    def tidy(self) -> None:
        """Let go what all have taken."""
        needed = min((it.taken for it in self.members), default=self.end)
        while self._batches and self.begin < needed:
            self._drop()

    def _drop(self) -> None:
        self._bytes -= sum(map(len, self._batches.popleft()))

    def diagnose(self, diagnostic: Diagnostic) -> None:
        """Pass on a diagnostic to those who asked for them."""
        self.diagnosed.append(Diagnosed(self.run_id, to_json(diagnostic)))
        self.diagnoses += 1
        self.wake()

    def wake(self) -> None:
        """Tell all."""
        for member in tuple(self.members):
            member.wake()

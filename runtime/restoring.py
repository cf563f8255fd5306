"""What was acknowledged lately, held to be kept anew where a journal goes on without it (D-62).

A journal whose standby was promoted may lack the last commits. Whoever owned a run then has seen
them: as long as the journal's end is in what is held here, the owner keeps the rest anew, each fact
and note as it was, under a new fencing token, and goes on. Otherwise the run stands still.

Only for journals that say that this may happen (`Journal.rewinds`): what is held costs memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import attrs

from ..models.fact import Fact
from .errors import Conflict, JournalOwned
from .journal.contract import Busy, Journal, RunEntry, RunRead, Told
from .journal.ledger import Note
from .owners import is_dead
from .settings import Settings

if TYPE_CHECKING:
    from .tenure import Tenure

HELD: Final = 20_000
"""Facts and notes that are held, over all runs; the oldest go first."""


@attrs.frozen(kw_only=True)
class _Unit:
    """One append, or notes by themselves; `after` and `parts` are where the run ended before."""

    after: int
    parts: int
    told: Told

    @property
    def size(self) -> int:
        return len(self.told.facts) + len(self.told.notes)


@attrs.define(kw_only=True)
class _History:
    """The end of one run: what came behind `last`, the fact at its beginning."""

    last: Fact | None
    after: int
    parts: int
    units: deque[_Unit] = attrs.field(factory=deque[_Unit])


class Restoring:
    """Holds the ends of the runs that are owned here, and keeps them anew where they are lost."""

    def __init__(
        self,
        *,
        journal: Journal,
        owner: str,
        now: Callable[[], float],
        lease: float,
        held: int = HELD,
    ) -> None:
        """Hold nothing yet; leases count by `now`."""
        self._journal = journal
        self._owner = owner
        self._now = now
        self._lease = lease
        self._most = held
        self._histories: dict[str, _History] = {}
        self._order: deque[tuple[str, _History]] = deque()
        """The units of all runs, the oldest first."""
        self._held = 0

    async def begin(self, run_id: str, *, read: RunRead | None = None) -> None:
        """Hold what is told of a run from now on: it ends as the journal says, or has said."""
        entry = await self._journal.entry(run_id) if read is None else read.entry
        last = None if read is None else read.last
        if last is None:
            last = await _fact_at(self._journal, run_id, entry.sequence)
        self._histories[run_id] = _History(last=last, after=entry.sequence, parts=entry.parts)

    def forget(self, run_id: str) -> None:
        """Hold nothing more of a run that is not owned here any more."""
        self._histories.pop(run_id, None)

    def told(
        self,
        run_id: str,
        *,
        facts: Sequence[Fact] = (),
        notes: Sequence[Note] = (),
        correlations: Sequence[bytes | None] | None = None,
        busy: Busy = False,
    ) -> None:
        """Hold what was acknowledged."""
        history = self._histories.get(run_id)
        if history is None:
            return
        after, parts = _end_of(history)
        standing = [attrs.evolve(it, after=after if it.after is None else it.after) for it in notes]
        told = Told(facts=facts, notes=standing, correlations=correlations, busy=busy)
        unit = _Unit(after=after, parts=parts, told=told)
        history.units.append(unit)
        self._order.append((run_id, history))
        self._held += unit.size
        while self._held > self._most:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        run_id, history = self._order.popleft()
        unit = history.units.popleft()
        self._held -= unit.size
        if self._histories.get(run_id) is history:
            history.after, history.parts = _behind(unit)
            history.last = unit.told.facts[-1] if unit.told.facts else history.last

    async def restore(self, run_id: str, *, fence: int) -> int | None:
        """Keep anew what the journal lacks, and return the new token; None: that cannot be.

        Raises what the journal raises where it fails: nobody knows then.
        """
        history = self._histories.get(run_id)
        if history is None:
            return None
        entry = await self._journal.entry(run_id)
        told = await self._missing(history, entry)
        if told is None:
            return None
        try:
            return await self._journal.restore(
                run_id,
                owner=self._owner,
                fence=fence,
                now=self._now(),
                lease=self._lease,
                after=entry.sequence,
                parts=entry.parts,
                told=told,
                gone=entry.owner if is_dead(entry.owner) else None,
            )
        except (Conflict, JournalOwned):
            return None

    async def _missing(self, history: _History, entry: RunEntry) -> Told | None:
        """Return what was told behind the journal's end; None where that is not in its history."""
        units = [it for it in history.units if _is_behind(it, entry)]
        held = [it for it in history.units if not _is_behind(it, entry)]
        begins = _behind(held[-1])[0] if held else history.after
        if begins != entry.sequence or (not held and entry.parts < history.parts):
            return None
        facts = [fact for it in held for fact in it.told.facts]
        last = facts[-1] if facts else history.last
        if last != await _fact_at(self._journal, entry.run.run_id, entry.sequence):
            return None
        correlated = any(it.told.correlations is not None for it in units)
        busy = next((it.told.busy for it in reversed(units) if it.told.facts), False)
        return Told(
            facts=[fact for it in units for fact in it.told.facts],
            notes=[note for it in units for note in it.told.notes],
            correlations=[
                line for it in units for line in it.told.correlations or [None] * len(it.told.facts)
            ]
            if correlated
            else None,
            busy=busy,
        )


def _is_behind(unit: _Unit, entry: RunEntry) -> bool:
    return (unit.after, unit.parts) >= (entry.sequence, entry.parts)


def _behind(unit: _Unit) -> tuple[int, int]:
    """Return where a run ended after this was kept: its last fact, and the notes behind that."""
    if not unit.told.facts:
        return unit.after, unit.parts + len(unit.told.notes)
    last = unit.told.facts[-1].sequence
    return last, sum(note.after == last for note in unit.told.notes)


def _end_of(history: _History) -> tuple[int, int]:
    return _behind(history.units[-1]) if history.units else (history.after, history.parts)


async def _fact_at(journal: Journal, run_id: str, sequence: int) -> Fact | None:
    if not sequence:
        return None
    page = await journal.read(run_id, after=sequence - 1, limit=1)
    return page[0] if page else None


def restoring_of(journal: Journal, tenure: Tenure, settings: Settings) -> Restoring | None:
    """Return what restores the runs of one owner; None: the journal loses nothing while open."""
    if not journal.rewinds:
        return None
    return Restoring(journal=journal, owner=tenure.owner, now=tenure.now, lease=settings.ownership)

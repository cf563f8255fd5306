"""The notes of one run in memory, and their order with its facts."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from heapq import merge
from typing import Final

import attrs

from ...models.codec import to_json
from ...models.facts import Fact
from .entries import Appended
from .given import Given
from .ledger import START, Cursor, Domain, Gap, LedgerEntry, LedgerPage, Noted
from .pruning import Spared, is_observation, joined, old_of, turn_of

_BEFORE_NOTES: Final = 0


@attrs.frozen
class _Kept:
    """A note as it is kept."""

    noted: Noted
    content: bytes
    correlation: bytes | None

    @property
    def entry(self) -> LedgerEntry:
        note = self.noted.note
        return LedgerEntry(self.noted.cursor, note.at, self.content, self.correlation, note.domain)


class MemoryLedger:
    """What is kept beside the facts of a run, which its owner keeps."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._notes: list[_Kept] = []
        self._ids: dict[str, _Kept] = {}
        self._gaps: list[Gap] = []
        self._lines: list[bytes] = []
        """The facts that were asked for, encoded once."""
        self._correlations: dict[int, bytes] = {}
        self._ends = START
        """Where the latest note stands."""

    def parts(self, sequence: int) -> int:
        """Return how many notes were kept after a fact that is the last."""
        return self._ends.part if self._ends.sequence == sequence else _BEFORE_NOTES

    def shown(self, sequence: int) -> Cursor:
        """Return where the latest entry stands that is no manifest."""
        found = Cursor(sequence)
        for kept in reversed(self._notes):
            cursor = kept.noted.cursor
            if cursor.sequence < sequence or kept.noted.note.domain is not Domain.SESSION:
                found = max(found, cursor)
                break
        return max(found, self._gaps[-1].last) if self._gaps else found

    def keep(self, given: Sequence[Given], *, sequence: int) -> Appended:
        """Keep notes, each after its fact, or after this one."""
        new: dict[str, Given] = {}
        for it in given:
            name = it.note.id
            known = None if name is None else self._ids.get(name) or new.get(name)
            if known is not None and known.content != it.content:
                return Appended.CONFLICT
            if name is not None:
                new.setdefault(name, it)
        for it in given:
            if it.note.id is None or it.note.id not in self._ids:
                self._add(it, sequence if it.after is None else it.after)
        return Appended.OK

    def _add(self, given: Given, sequence: int) -> None:
        part = self._ends.part + 1 if self._ends.sequence == sequence else 1
        self._ends = Cursor(sequence, part)
        kept = _Kept(Noted(cursor=self._ends, note=given.note), given.content, given.correlation)
        self._notes.append(kept)
        if given.note.id is not None:
            self._ids[given.note.id] = kept

    def skip(self, parts: int, *, sequence: int) -> None:
        """Keep a gap behind the last entry."""
        part = self._ends.part if self._ends.sequence == sequence else _BEFORE_NOTES
        self._ends = Cursor(sequence, part + parts)
        first = Cursor(sequence, part + 1)
        self._gaps = joined([*self._gaps, Gap(first=first, last=self._ends)])

    def correlate(self, after: int, correlations: Sequence[bytes | None] | None) -> None:
        """Keep what facts behind `after` are about."""
        for sequence, line in enumerate(correlations or (), after + 1):
            if line is not None:
                self._correlations[sequence] = line

    def notes(self, *, domain: Domain | None, after: Cursor) -> tuple[Noted, ...]:
        """Return the notes, in order."""
        return tuple(
            kept.noted
            for kept in self._behind(after)
            if domain is None or kept.noted.note.domain is domain
        )

    def find(self, note_id: str) -> Noted | None:
        """Return the note of this id."""
        kept = self._ids.get(note_id)
        return None if kept is None else kept.noted

    def page(
        self, facts: Sequence[Fact], *, after: Cursor, limit: int, manifests: bool
    ) -> LedgerPage:
        """Return the next entries."""
        self._lines += map(to_json, facts[len(self._lines) :])
        told = (
            LedgerEntry(
                Cursor(fact.sequence),
                float(fact.at),
                self._lines[fact.sequence - 1],
                self._correlations.get(fact.sequence),
            )
            for fact in facts[after.sequence : after.sequence + limit]
        )
        said = (
            kept.entry
            for kept in self._behind(after)
            if manifests or kept.noted.note.domain is not Domain.SESSION
        )
        both = merge(told, said, key=lambda entry: entry.cursor)
        entries = [entry for _, entry in zip(range(limit), both, strict=False)]
        head = self.shown(len(facts))
        if manifests:
            head = max(head, Cursor(len(facts), self.parts(len(facts))))
        until = entries[-1].cursor if len(entries) == limit else None
        gaps = [
            attrs.evolve(gap, first=max(gap.first, Cursor(after.sequence, after.part + 1)))
            for gap in self._gaps
            if gap.last > after and (until is None or gap.first < until)
        ]
        return LedgerPage(entries=entries, head=head, gaps=gaps)

    def _behind(self, after: Cursor) -> Sequence[_Kept]:
        at = bisect_right(self._notes, after, key=lambda kept: kept.noted.cursor)
        return self._notes[at:]

    def prune(self, facts: Sequence[Fact], *, now: float) -> int:
        """Remove old observations, see `Ledgers.prune`."""
        about = (turn_of(kept.noted.note.correlation) for kept in reversed(self._notes))
        latest = next((it for it in about if it is not None), None)
        spared = Spared.by(reversed(facts), latest=latest)
        observed = [kept for kept in self._notes if is_observation(kept.noted.note)]
        gone = {
            kept.noted.cursor
            for kept in old_of([(kept, kept.noted.note.at) for kept in observed], now=now)
            if not spared.has(kept.noted.cursor.sequence, turn_of(kept.noted.note.correlation))
        }
        self._notes = [kept for kept in self._notes if kept.noted.cursor not in gone]
        self._gaps = joined([*self._gaps, *(Gap(first=it, last=it) for it in gone)])
        return len(gone)

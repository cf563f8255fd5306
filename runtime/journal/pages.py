"""A page of a ledger: facts and notes in one order, as the bytes that were kept (S-60, F-4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from .ledger import Cursor, Gap, LedgerEntry, LedgerPage

PAGE_BYTES: Final = 16_000_000
"""Bytes of JSON after which a page ends, whatever its limit: it fits into memory."""

Told: TypeAlias = LedgerEntry | Gap
"""What stands behind a fact: a note, or what was pruned."""


def page_of(
    facts: Iterator[Sequence[LedgerEntry]], notes: Iterator[Told], *, head: Cursor, limit: int
) -> LedgerPage:
    """Return a page of both; the facts of an append come together, and all in their order.

    What follows the page is not looked at.
    """
    entries: list[LedgerEntry] = []
    gaps: list[Gap] = []
    size = 0
    for it in _merged(facts, notes):
        if isinstance(it, Gap):
            gaps.append(it)
            continue
        entries.append(it)
        size += len(it.content)
        if len(entries) >= limit or size >= PAGE_BYTES:
            break
    return LedgerPage(entries=entries, head=head, gaps=gaps)


def _merged(facts: Iterator[Sequence[LedgerEntry]], notes: Iterator[Told]) -> Iterator[Told]:
    note = next(notes, None)
    for row in facts:
        if note is None or _sequence(note) >= row[-1].cursor.sequence:
            yield from row
            continue
        for fact in row:
            sequence = fact.cursor.sequence
            while note is not None and _sequence(note) < sequence:
                yield note
                note = next(notes, None)
            yield fact
    while note is not None:
        yield note
        note = next(notes, None)


def _sequence(it: Told) -> int:
    return it.first.sequence if isinstance(it, Gap) else it.cursor.sequence

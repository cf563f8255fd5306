"""Which notes may be pruned (S-64)."""

from __future__ import annotations

from collections.abc import Iterable

from ...models.facts import Fact, TurnInterrupted, TurnOpened, TurnSettled
from .ledger import LASTING, Note


def is_observation(note: Note) -> bool:
    """Whether a note may be pruned once it is old: no message, no manifest, and without an id."""
    return note.id is None and note.domain not in LASTING


def open_since(latest_first: Iterable[Fact]) -> int | None:
    """Return the sequence of the fact that opened the turn that is open; None where none is."""
    for fact in latest_first:
        if isinstance(fact, TurnOpened):
            return fact.sequence
        if isinstance(fact, TurnSettled | TurnInterrupted):
            return None
    return None

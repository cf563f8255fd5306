"""Which notes may be pruned (S-64)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from ...models.facts import Fact, TurnInterrupted, TurnOpened, TurnSettled
from .ledger import LASTING, Note


def is_observation(note: Note) -> bool:
    """Whether a note may be pruned once it is old: no message, no manifest, and without an id."""
    return note.id is None and note.domain not in LASTING


def turn_there(turn_id: str) -> str:
    """Return the turn of another runtime that a turn of ours is, or is a part of (S-31, S-63)."""
    return turn_id.partition("#")[0]


def turn_of(correlation: Mapping[str, Any] | None) -> str | None:
    """Return the turn of another runtime that a note is about; None: of none that is known."""
    turn_id = None if correlation is None else correlation.get("turn_id")
    return turn_id if isinstance(turn_id, str) else None


@attrs.frozen
class Spared:
    """What is not pruned, however old: what was told of the turn that is open, or may be.

    `since` is the sequence of the fact that opened it. What another runtime told of it stands
    before, too, and where none is open what it told of its latest turn: nothing may be added of
    it yet (S-23). Those are `turns`, by its ids.
    """

    since: int | None
    turns: frozenset[str]

    @classmethod
    def by(cls, latest_first: Iterable[Fact], *, latest: str | None) -> Spared:
        """Return it by the facts of turns, and the turn that another runtime has told of last."""
        opened = _opened(latest_first)
        there = None if opened is None else turn_there(opened.turn_id)
        return cls(
            None if opened is None else opened.sequence,
            frozenset(it for it in (there, latest) if it is not None),
        )

    def has(self, sequence: int, turn_id: str | None) -> bool:
        """Whether it has a note that stands there, and is about this turn of another runtime."""
        return (self.since is not None and sequence >= self.since) or turn_id in self.turns


def _opened(latest_first: Iterable[Fact]) -> TurnOpened | None:
    """Return the fact that opened the turn that is open; None where none is."""
    for fact in latest_first:
        if isinstance(fact, TurnOpened):
            return fact
        if isinstance(fact, TurnSettled | TurnInterrupted):
            return None
    return None

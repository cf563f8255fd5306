"""Which notes may be pruned, and the gaps that stay in their places (S-64)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar, cast

import attrs

from ...models.errors import InvalidValue
from ...models.facts import Fact, TurnInterrupted, TurnOpened, TurnSettled
from ...models.strict_json import parse
from . import ledger
from .ledger import LASTING, START, Cursor, Gap, Note
from .trusted import trusted_fact

T = TypeVar("T")

TURN_FACTS: Final = b'"TURN_'
"""What the line of each fact of a turn holds; others may, too."""


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


def turn_in(correlation: bytes | None) -> str | None:
    """Return the turn that a correlation names; None where it is damaged: the row says so."""
    if correlation is None:
        return None
    try:
        about: Any = parse(correlation)
    except (InvalidValue, ValueError):
        return None
    return turn_of(cast("dict[str, Any]", about)) if isinstance(about, dict) else None


def turn_facts(facts: bytes) -> Iterator[Fact]:
    """Yield the facts of turns among the lines of an append, the latest first."""
    for line in reversed(facts.split(b"\n")):
        if TURN_FACTS in line:
            yield trusted_fact(line)


def decides(fact: Fact) -> bool:
    """Whether a fact says that a turn is open, or that none is."""
    return isinstance(fact, TurnOpened | TurnSettled | TurnInterrupted)


def old_of(observed: Sequence[tuple[T, float]], *, now: float) -> list[T]:
    """Return which of the observations, in order and each with its time, are old enough to go."""
    beyond = len(observed) - ledger.OBSERVATIONS
    oldest = now - ledger.OBSERVED_FOR
    return [it for place, (it, at) in enumerate(observed) if place < beyond or at < oldest]


def joined(gaps: Iterable[Gap]) -> list[Gap]:
    """Return gaps in order, those that touch or overlap behind one fact as one."""
    found: list[Gap] = []
    for gap in sorted(gaps, key=lambda gap: gap.first):
        last = found[-1].last if found else START
        if last.part and gap.first <= Cursor(last.sequence, last.part + 1):
            found[-1] = attrs.evolve(found[-1], last=max(last, gap.last))
        else:
            found.append(gap)
    return found


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
    latest = next(filter(decides, latest_first), None)
    return latest if isinstance(latest, TurnOpened) else None

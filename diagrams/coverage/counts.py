"""How often each row of the tables was met: counted in recordings, or read from a file.

A row has the name ``phase × input [guard]``, as in the coverage of `turnlock verify`. A row that
was not counted is absent, and one that was never met counts 0: a journal says nothing of refusals,
and no recording of rows at which nothing happens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

import attrs

from ...lifecycle.table import INVOCATION
from ...machines.rows import Row
from ...models.reasons import Reason
from ...turn.table import TURN
from ..recordings.recording import Recording
from ..recordings.steps import Step, events

KeyT = TypeVar("KeyT")


@attrs.frozen(kw_only=True)
class Counts:
    """How often what was met.

    `rows` and `reasons` by name. `either` holds what the recorded facts cannot tell apart: the
    names of the rows, one of which was met, and how often. A row of such a group was met at least
    as often as `rows` says, and at most so often more as its groups say.
    """

    rows: Mapping[str, int] = attrs.field(factory=dict[str, int])
    either: Mapping[tuple[str, ...], int] = attrs.field(factory=dict[tuple[str, ...], int])
    reasons: Mapping[str, int] = attrs.field(factory=dict[str, int])

    @classmethod
    def of(cls, recordings: Iterable[Recording]) -> Counts:
        """Count what happened in recordings of our machines.

        Raises `CorruptJournal` for facts that no run can have written.
        """
        return sum((_counted(recording) for recording in recordings), cls())

    def __add__(self, other: Counts) -> Counts:
        """Return the counts of both together."""
        return Counts(
            rows=_summed(self.rows, other.rows),
            either=_summed(self.either, other.either),
            reasons=_summed(self.reasons, other.reasons),
        )

    def met(self, name: str) -> int | None:
        """Return how often a row was met at least, or None where it was not counted."""
        return self.rows.get(name)

    def perhaps(self, name: str) -> int:
        """Return how much oftener it may have been met."""
        return sum(count for names, count in self.either.items() if name in names)


def row_name(phase: str, input: str, guard: str) -> str:  # noqa: A002 - the word of the spec
    """Return the name under which a row is counted."""
    return f"{phase} × {input} [{guard}]" if guard else f"{phase} × {input}"


def _of_row(row: Row[Any, Any]) -> str:
    return row_name(row.phase, row.input, row.guard)


_ROWS: Final[tuple[Row[Any, Any], ...]] = (*INVOCATION.rows, *TURN.rows)
_MOVING: Final = tuple(_of_row(row) for row in _ROWS if row.fact is not None)
_REFUSING: Final = tuple(_of_row(row) for row in _ROWS if row.reason is not None and row.possible)


def _counted(recording: Recording) -> Counts:
    rows: Counter[str] = Counter(dict.fromkeys(_MOVING, 0))
    either: Counter[tuple[str, ...]] = Counter()
    reasons: Counter[str] = Counter()
    if any(moment.delivery is not None for moment in recording.moments):
        rows.update(dict.fromkeys(_REFUSING, 0))
        reasons.update({str(reason): 0 for reason in Reason})
    for event in events(recording):
        names = tuple(_of_row(row) for row in event.rows)
        if len(names) == 1:
            rows[names[0]] += 1
        elif names:
            either[names] += 1
        if not isinstance(event, Step):
            reasons[event.reason] += 1
    return Counts(rows=dict(rows), either=dict(either), reasons=dict(reasons))


def _summed(one: Mapping[KeyT, int], other: Mapping[KeyT, int]) -> dict[KeyT, int]:
    return {key: one.get(key, 0) + other.get(key, 0) for key in (*one, *other)}

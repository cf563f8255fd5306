"""Histories: who delivered what, between which two moments, and what was answered."""

from __future__ import annotations

from itertools import count
from typing import Final

import attrs

from turnlock.verification.subjects.subject import Raw


@attrs.frozen(kw_only=True)
class Operation:
    """One delivery that was answered. `invoked` and `returned` are stamps of one counter.

    Of two operations the one that returned before the other was invoked came first; otherwise they
    were concurrent, and either may have.
    """

    delivery: Raw
    receipt: Raw
    invoked: int
    returned: int


class History:
    """The operations of many threads or tasks, stamped from outside of any lock."""

    def __init__(self) -> None:
        """Begin with none."""
        self.operations: Final[list[Operation]] = []
        self._stamps = count()

    def stamp(self) -> int:
        """Return the next stamp; a thread is never interrupted inside of it."""
        return next(self._stamps)

    @property
    def overlapping(self) -> int:
        """How many pairs of operations were concurrent."""
        ordered = sorted(self.operations, key=lambda operation: operation.invoked)
        return sum(
            later.invoked < operation.returned
            for place, operation in enumerate(ordered)
            for later in ordered[place + 1 :]
        )

    def add(self, delivery: Raw, receipt: Raw, invoked: int) -> None:
        """Add an operation that returns now."""
        self.operations.append(
            Operation(delivery=delivery, receipt=receipt, invoked=invoked, returned=self.stamp())
        )

"""What is remembered of runs, bounded: the number of each row, and what was acknowledged (D-37)."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, Generic, NamedTuple, TypeVar

V = TypeVar("V")

REMEMBERED: Final = 100_000
"""Runs of which something is remembered."""


class Known(NamedTuple):
    """The number of a run's row, and what each of its appends says (D-41)."""

    number: int
    settle: int


class Remembered(Generic[V]):
    """Something of each of the runs that were used last."""

    def __init__(self, most: int = REMEMBERED) -> None:
        """Begin with nothing."""
        self._most = most
        self._by_run: OrderedDict[str, V] = OrderedDict()

    def get(self, run_id: str) -> V | None:
        """Return what is remembered of a run, None where nothing is."""
        found = self._by_run.get(run_id)
        if found is not None:
            self._by_run.move_to_end(run_id)
        return found

    def put(self, run_id: str, value: V) -> None:
        """Remember something of a run, instead of what was."""
        self._by_run[run_id] = value
        self._by_run.move_to_end(run_id)
        if len(self._by_run) > self._most:
            self._by_run.popitem(last=False)

    def drop(self, run_id: str) -> None:
        """Remember nothing of a run."""
        self._by_run.pop(run_id, None)

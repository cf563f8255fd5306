"""A suite: the tests of one slice, as scripts of the wire with their exact answers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

import attrs

from ..alphabet.slice import Slice
from ..findings import Raw
from ..subjects.collector import collector_paused
from . import hsi
from .extraction import extracted
from .mealy import Mealy, Word, minimal
from .walks import Step, Walks

RECOVERY_COSTS: Final = 4
"""How much rather anything else than a recovery tells states apart: it takes as long as several.

Every state is recovered all the same: `recover` is an input like any other."""


@attrs.frozen(kw_only=True, eq=False)
class Suite:
    """Tests of one slice for systems of at most `k` states more than `machine` has.

    Suites of the same slice and k are the same to the letter: nothing is drawn.
    """

    part: Slice
    k: int
    machine: Mealy
    words: tuple[Word, ...]
    walks: Walks = attrs.field(repr=False)

    @property
    def run(self) -> Raw:
        """The run object that every script is for."""
        return self.part.run

    @property
    def steps(self) -> int:
        """How many deliveries all the tests make."""
        return sum(map(len, self.words))

    @property
    def steps_of_next_k(self) -> int:
        """About how many steps the suite for one more state takes: each test after each input."""
        return self.machine.inputs * (self.steps + len(self.words))

    @property
    def guarantee(self) -> str:
        """What it means that a system passes, and what not."""
        size, inputs = self.machine.states + self.k, self.machine.inputs
        return (
            f"{self.part.name}: if it behaves as a deterministic machine of at most {size} states "
            f"over these {inputs} symbols, it answers every sequence of them as kernel.md says"
        )

    def tests(self) -> Iterator[list[Step]]:
        """Yield the tests, in the order in which they are best played."""
        for number, word in enumerate(self.words):
            if number % 256 == 0:
                self.walks.tidy()
            yield self.walks.walk(word)

    def batches(self, size: int) -> Iterator[list[list[Step]]]:
        """Yield the tests, so many at a time."""
        ordered = self.tests()
        while batch := taken(ordered, size):
            yield batch


def taken(tests: Iterator[list[Step]], size: int) -> list[list[Step]]:
    """Return the next tests, at most so many."""
    with collector_paused():
        return list(islice(tests, size))


def suite(part: Slice, *, k: int) -> Suite:
    """Generate the suite of a slice. Raises `ValueError` when the slice is too large."""
    walks = Walks(part.run, part.symbols)
    with collector_paused():
        machine = minimal(extracted(part, walks))
    walks.keep()
    recovers = [symbol.delivery["type"] == "recover" for symbol in part.symbols]
    prices = [RECOVERY_COSTS if recovery else 1 for recovery in recovers]
    words = tuple(hsi.words(machine, k=k, prices=prices))
    return Suite(part=part, k=k, machine=machine, words=words, walks=walks)

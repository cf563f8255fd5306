"""Walks of the oracle over an alphabet: what a script says word by word, and its exact answers.

A place is where a walk has come to: an oracle and the tester's clock. Steps are asked of the oracle
once and kept, so that the many tests that share a beginning share its steps. A step that brings no
fact stays with the oracle it had, since nothing has changed (K-2).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from ..alphabet.symbols import Symbol
from ..findings import Raw
from ..oracle.oracle import Oracle
from .mealy import Word

_VALUES: Final = ("result", "arguments")
"""Where receipts hold what is a tool's own."""
MAX_LOOSE: Final = 100_000
"""How many steps are kept beyond those of the machine: what one state's tests share, and more."""


@attrs.define(eq=False)
class Place:
    """Where a walk has come to. `steps` holds those that were asked for, by letter."""

    oracle: Oracle
    clock: float
    steps: dict[int, Step]


@attrs.frozen(eq=False)
class Step:
    """One delivery, with its time, and how it is to be answered.

    `delicate` says that the receipt holds payload values that `==` may not tell apart, as it does
    not 1 and true.
    """

    place: Place
    delivery: Raw
    receipt: Raw
    leads_to: Place
    delicate: bool


class Walks:
    """All walks over these symbols, from a fresh run."""

    def __init__(self, run: Raw, symbols: Sequence[Symbol]) -> None:
        """Start where nothing has happened, at time 0."""
        self._symbols = symbols
        self._deliveries: dict[tuple[int, float], Raw] = {}
        self._loose: list[tuple[Place, int]] = []
        self.start = Place(Oracle(run), 0.0, {})
        self._original: Oracle = self.start.oracle
        self._copy: Oracle = self._original

    def step(self, place: Place, letter: int) -> Step:
        """Return the step that a symbol takes from here."""
        known = place.steps.get(letter)
        if known is None:
            known = place.steps[letter] = self._taken(place, letter)
            self._loose.append((place, letter))
        return known

    def walk(self, word: Word) -> list[Step]:
        """Return the steps of a word from the start."""
        place = self.start
        steps: list[Step] = []
        for letter in word:
            step = place.steps.get(letter) or self.step(place, letter)
            steps.append(step)
            place = step.leads_to
        return steps

    def keep(self) -> None:
        """Keep the steps taken so far for good."""
        self._loose.clear()

    def tidy(self) -> None:
        """Forget the steps taken since `keep`, when they are too many: they can be asked again."""
        if len(self._loose) > MAX_LOOSE:
            for place, letter in self._loose:
                del place.steps[letter]
            self._loose.clear()

    def clear(self) -> None:
        """Forget all steps: they take most of the room, and can be asked again."""
        self._loose.clear()
        self.start.steps.clear()

    def _taken(self, place: Place, letter: int) -> Step:
        now = place.clock + self._symbols[letter].dt
        delivery = self._delivery(letter, now)
        if self._copy is self._original or place.oracle is not self._original:
            self._original, self._copy = place.oracle, place.oracle.clone()
        receipt = self._copy.receive(delivery)
        clock = max(place.clock, now)
        oracle = place.oracle
        if receipt["facts"]:
            oracle, self._copy = self._copy, self._original
        elif clock == place.clock:
            return Step(place, delivery, receipt, place, holds_values(receipt))
        return Step(place, delivery, receipt, Place(oracle, clock, {}), holds_values(receipt))

    def _delivery(self, letter: int, now: float) -> Raw:
        """Return the same object for the same delivery at the same time: they are many."""
        known = self._deliveries.get((letter, now))
        if known is None:
            fields = self._symbols[letter].delivery
            known = fields if fields["type"] == "recover" else {**fields, "now": now}
            self._deliveries[letter, now] = known
        return known


def holds_values(receipt: Raw) -> bool:
    """Whether a receipt holds results or arguments with more in them than text."""
    return any(map(_holds_values, (*receipt["facts"], *receipt["effects"])))


def _holds_values(said: Raw) -> bool:
    calls = [said["call"]] if "call" in said else said.get("calls", [])
    parts: list[Raw] = [said, *calls, *said.get("results", [])]
    values = [part[name] for part in parts for name in _VALUES if name in part]
    return any(
        isinstance(value, int | float) or (bool(value) and not isinstance(value, str))
        for value in values
    )

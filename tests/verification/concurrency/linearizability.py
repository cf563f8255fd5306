"""Linearizability: an order of a history's operations that explains every receipt.

A search after Wing and Gong, with Lowe's memory of what was tried. It knows nothing of any lock: of
the operations that may come first (none returned before they were invoked) each is tried that the
oracle answers alike, and so on from there. What has been tried is remembered by the set of
operations alone: their receipts hold all facts, and the facts are the state (K-2).
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from turnlock.verification.fuzz.differences import alike
from turnlock.verification.oracle.moment import Moment
from turnlock.verification.oracle.reading import new_state
from turnlock.verification.oracle.wording import configured, receipt_of, well_formed
from turnlock.verification.subjects.subject import Raw, Script

from .histories import Operation


@attrs.frozen
class Model:
    """The specification as one run stands: to be asked, never changed."""

    moment: Moment

    @classmethod
    def of(cls, run: Raw, script: Script = ()) -> Model:
        """Return a run as it stands after these deliveries."""
        return cls(Moment(new_state(configured(run)))).after(script)

    def after(self, script: Script) -> Model:
        """Return the run as it stands after these deliveries, one after the other."""
        model = self
        for delivery in script:
            _, model = model.answer(delivery)
        return model

    def answer(self, delivery: Raw) -> tuple[Raw, Model]:
        """Return the right receipt, and the run as it stands afterwards."""
        given = well_formed(delivery)
        reason, facts, effects, after = self.moment.answer(given, float(delivery["now"]))
        return receipt_of(reason, facts, effects), Model(after)


@attrs.frozen
class Linearized:
    """The longest order that explains its receipts, and the run as it stands after it.

    It is a whole one when `stuck` is None; otherwise that operation can follow nowhere behind it,
    and `expected` is what it had to be answered there.
    """

    order: tuple[Operation, ...]
    model: Model
    stuck: Operation | None = None
    expected: Raw | None = None
    tried: int = 0


@attrs.define
class _Place:
    """Where the search stands: what is still to come, and which of it was not tried here."""

    model: Model
    left: tuple[int, ...]
    untried: list[int]


def linearized(model: Model, operations: Sequence[Operation]) -> Linearized:
    """Search for an order of the operations that explains every receipt, from this state on."""
    history = sorted(operations, key=lambda operation: operation.invoked)
    everything = tuple(range(len(history)))
    path = [_Place(model, everything, _first(history, everything))]
    chosen: list[int] = []
    seen: set[tuple[int, ...]] = set()
    longest = Linearized((), model)
    tried = 0
    while path:
        place = path[-1]
        if not place.left:
            order = tuple(history[number] for number in chosen)
            return Linearized(order, place.model, tried=tried)
        if not place.untried:
            path.pop()
            if chosen:
                chosen.pop()
            continue
        number = place.untried.pop()
        operation = history[number]
        tried += 1
        receipt, after = place.model.answer(operation.delivery)
        if not alike(receipt, operation.receipt):
            if longest.stuck is None or len(chosen) > len(longest.order):
                order = tuple(history[before] for before in chosen)
                longest = Linearized(order, place.model, operation, receipt)
            continue
        left = tuple(other for other in place.left if other != number)
        if left not in seen:
            seen.add(left)
            chosen.append(number)
            path.append(_Place(after, left, _first(history, left)))
    return attrs.evolve(longest, tried=tried)


def _first(history: Sequence[Operation], left: Sequence[int]) -> list[int]:
    """Return which may come first: those invoked before any other has returned; likeliest last."""
    if not left:
        return []
    earliest = min(history[number].returned for number in left)
    first = [number for number in left if history[number].invoked < earliest]
    return sorted(first, key=lambda number: -history[number].returned)

"""Seeded random wire scripts, guided by an oracle that they drive along.

About 60 % of the deliveries are enabled where they stand, 25 % are earlier ones come again (some
with one field changed) and 15 % are wild. All of them are well-formed: what raises at construction
(K-8) is not for here. For speed there is `guided`; these are slower and draw more widely.
"""

# ruff: noqa: PLR2004 - a chance is written where it is drawn

from __future__ import annotations

import copy
import random
from typing import Any, Final

from ..oracle.oracle import Oracle
from .again import again
from .draws import STEPS, TYPES, Delivery, Draws
from .enabled import enabled
from .wild import wild

__all__ = ["TYPES", "run", "script"]

ONE_LEAP_IN: Final = 80
"""One chance in so many; a step of 400 s outlives the default memory of 300 s."""
ONE_STEP_BACK_IN: Final = 40


def run(rng: random.Random) -> dict[str, Any]:
    """Return a random run object: limits small enough to be met, and sometimes none at all."""
    return {
        "run_id": rng.choice(["r", "r", "r", "run/1", "50%"]),
        "agent_id": rng.choice([None, "agent-1"]),
        "agent_name": rng.choice([None, "Agent"]),
        "limits": _limits(rng),
    }


def _limits(rng: random.Random) -> dict[str, Any]:
    limits: dict[str, Any] = {}
    if rng.random() < 0.7:
        limits["remembered"] = rng.choice([0, 1, 2, 3, 4, 5, 6, 1024])
    if rng.random() < 0.6:
        limits["remember_for"] = rng.choice([2, 5, 20, 300])
    if rng.random() < 0.4:
        limits["calls"] = rng.choice([2, 3, 4])
    if rng.random() < 0.4:
        limits["grants"] = rng.choice([1, 2])
    if rng.random() < 0.4:
        limits["continuations"] = rng.choice([1, 2])
    return limits


def script(rng: random.Random, length: int, of: dict[str, Any] | None = None) -> list[Delivery]:
    """Return a script for the run object `of`, or for a run `r` with the default limits."""
    oracle = Oracle(of or {"run_id": "r", "limits": {}})
    author = _Author(rng, oracle)
    return [author.next() for _ in range(length)]


class _Author:
    """Writes one delivery after the other and lets the oracle receive each."""

    def __init__(self, rng: random.Random, oracle: Oracle) -> None:
        self.rng = rng
        self.oracle = oracle
        self.draws = Draws(rng, oracle)
        self.clock = 0.0
        self.written: list[Delivery] = []

    def next(self) -> Delivery:
        draw = self.rng.random()
        if draw < 0.25 and self.written:
            delivery = again(self.draws, self.written)
        elif draw < 0.40:
            delivery = wild(self.draws)
        else:
            delivery = enabled(self.draws)
        delivery["now"] = self._time()
        self.oracle.receive(delivery)
        self.written.append(copy.deepcopy(delivery))
        return delivery

    def _time(self) -> float:
        if self.rng.randrange(ONE_STEP_BACK_IN) == 0:
            return max(0.0, self.clock - self.rng.choice([0.5, 1.0, 5.0]))
        if self.rng.randrange(ONE_LEAP_IN) == 0:
            self.clock += 400.0
        else:
            self.clock += self.rng.choice(STEPS)
        return self.clock

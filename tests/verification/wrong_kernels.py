"""Systems that are wrong all over: what is said of them must be true, and never green."""

from __future__ import annotations

from typing import Any

from turnlock.verification.oracle.oracle import Oracle
from turnlock.verification.subjects.subject import Capability, Raw


class Right:
    """A kernel of somebody else's: the oracle."""

    capabilities: frozenset[Capability] = frozenset()

    def reset(self, run: Raw) -> None:
        self.oracle = Oracle(run)
        self.received = 0

    def receive(self, delivery: Raw) -> Any:
        self.received += 1
        return self.answer(delivery, self.oracle.receive(delivery))

    def answer(self, delivery: Raw, right: Raw) -> Any:
        """What it answers in place of the right receipt."""
        return right


def refusal(reason: str) -> Raw:
    return {"accepted": False, "reason": reason, "facts": [], "effects": []}


class RefusesEverything(Right):
    def answer(self, delivery: Raw, right: Raw) -> Any:
        return refusal("late")


class RefusesPlausibly(Right):
    """With the reason that is right before the first turn."""

    def answer(self, delivery: Raw, right: Raw) -> Any:
        return refusal("no_active_turn")


class AcceptsEverything(Right):
    """And nothing happens."""

    def answer(self, delivery: Raw, right: Raw) -> Any:
        return {"accepted": True, "facts": [], "effects": []}


class TellsWrongFacts(Right):
    def answer(self, delivery: Raw, right: Raw) -> Any:
        return {**right, "facts": [{**fact, "sequence": 7} for fact in right["facts"]]}


class AnswersOnce(Right):
    """Rightly; then it refuses."""

    def answer(self, delivery: Raw, right: Raw) -> Any:
        return right if self.received == 1 else refusal("late")


class RefusesClaims(Right):
    """All else is right."""

    def answer(self, delivery: Raw, right: Raw) -> Any:
        return refusal("late") if delivery["type"] == "claim" else right

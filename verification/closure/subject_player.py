"""A user's own kernel in this process, which declares that it can be copied and told apart."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, cast

import attrs

from ..findings import Raw
from ..oracle.reading import canonical
from ..rulebook import first_difference
from ..subjects.in_process import ask
from ..subjects.subject import Capability, Explorable, Recoverable
from .player import Flaw


@attrs.frozen
class Receipt:
    """What a subject answered, read as a reply."""

    raw: Raw
    reason: str | None
    facts: Sequence[Raw]
    effects: Sequence[Raw]


class SubjectPlayer:
    """Its states are subjects. What it answers is compared as the wire's: numbers by value."""

    def __init__(self, make: Callable[[], Explorable], run: Raw) -> None:
        """Build subjects with `make`, for this run."""
        self.exact = False
        self._make = make
        self._run = run
        self._loaded: Explorable = make()
        self._recovers = Capability.RECOVER in self._loaded.capabilities

    def begin(self) -> Explorable:
        """Return a subject at the beginning of the run."""
        subject = self._make()
        subject.reset(self._run)
        return subject

    def build(self, delivery: Raw) -> Raw:
        """Take a delivery as it is."""
        return delivery

    def load(self, state: Explorable) -> None:
        """Let this subject receive what comes next."""
        self._loaded = state

    def fire(self, letter: Raw, now: float) -> Receipt:
        """Deliver."""
        raw = ask(self._loaded, {**letter, "now": now})
        reason = None if raw["accepted"] else raw.get("reason", "")
        return Receipt(raw, reason, raw["facts"], raw["effects"])

    def clone(self, state: Explorable) -> Explorable:
        """Let the subject copy itself."""
        return state.clone()

    def key(self, state: Explorable, _: float) -> Hashable:
        """Ask the subject for its digest."""
        return state.digest()

    def receipt(self, reply: Receipt) -> Raw:
        """Return the receipt as it came."""
        return reply.raw

    def agrees(self, reply: Receipt, expected: Raw) -> bool:
        """Compare every field."""
        return first_difference(expected, reply.raw) is None

    def step_flaw(self, _: Receipt, __: Explorable, ___: Explorable) -> Flaw | None:
        """Nothing is known of it but its receipts, and those were compared."""
        return None

    def refold(self, folded: None, _: Sequence[Any]) -> None:
        """Leave recovery to the subject, which knows its journal."""
        return folded

    def state_flaw(
        self, state: Explorable, owed: list[Raw], _: Sequence[Any], __: None
    ) -> Flaw | None:
        """Let a copy recover, where it can: the same digest, the same effects owed (K-2, K-3)."""
        if not self._recovers:
            return None
        twin = state.clone()
        receipt = cast("Recoverable", twin).recover()
        if twin.digest() != state.digest():
            return "K-2", "after recovery its digest is another"
        expected = {"accepted": True, "facts": [], "effects": owed}
        if first_difference(expected, receipt) is not None:
            return "K-3", f"after recovery it owes {canonical(receipt['effects'])}"
        return None

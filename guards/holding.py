"""What this process has claimed: who runs here, and for how long that is said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

import attrs

from ..models.deliveries import Claim
from ..models.values import Json
from ..runtime.tools.policy import Policy
from ..views.call_view import CallView
from .values import At

RENEWED: Final = 3
"""A lease is renewed when one part of so many is over."""
UNBEGUN: Final = 10_000
"""Claims that failed half-way, and are remembered as such; what is forgotten of them is doubt."""

Key: TypeAlias = tuple[str, str, str, int]
"""An attempt: run, turn, call, and its number."""


@attrs.define(eq=False, kw_only=True)
class Held:
    """A claim: whoever has it runs the tool, with these arguments, and says what became of it."""

    at: At
    """With its turn."""
    tool: str
    arguments: Mapping[str, Json]
    """Those that run: the edited ones, where an approval edited them."""
    attempt: int
    idempotency_key: str
    policy: Policy | None
    """What is declared about its tool."""
    lease: float
    """Seconds for which it is held unless renewed."""
    renewed: float = 0.0
    """When it was claimed or renewed last, by the clock of the loop."""

    @property
    def key(self) -> Key:
        """What names the attempt."""
        return self.at.run, self.at.turn or "", self.at.call, self.attempt

    @property
    def due(self) -> float:
        """When it is to be renewed, by the clock of the loop."""
        return self.renewed + self.lease / RENEWED


class Holding:
    """The attempts that are claimed here, from before the claim is made until one lets go."""

    def __init__(self) -> None:
        """Hold nothing."""
        self._held: dict[Key, Held] = {}
        self._beginning: set[Key] = set()
        """Claims that are on their way: nobody knows yet whether they are accepted."""
        self._unbegun: set[Key] = set()
        """Claims of which nobody knows, and which nobody will run: their append failed."""

    def __len__(self) -> int:
        """Count what is held."""
        return len(self._held)

    def __iter__(self) -> Iterator[Held]:
        """Iterate over what is held."""
        return iter(tuple(self._held.values()))

    def runs(self, call: CallView) -> bool:
        """Whether this attempt runs in this process, or is about to."""
        key = key_of(call)
        return key in self._held or key in self._beginning

    def never_began(self, call: CallView) -> bool:
        """Whether this attempt was claimed by this process, and surely not begun."""
        return key_of(call) in self._unbegun

    def begins(self, claim: Claim) -> Key:
        """Learn that a claim is on its way."""
        key = claim.run_id or "", claim.turn_id, claim.invocation_id, claim.attempt
        self._beginning.add(key)
        return key

    def takes(self, held: Held) -> None:
        """Hold a claim that was accepted."""
        self._held[held.key] = held
        self._unbegun.discard(held.key)

    def ends(self, key: Key, *, unknown: bool) -> None:
        """Learn that a claim is not on its way any more; `unknown`: it may have been accepted."""
        self._beginning.discard(key)
        if unknown:
            if len(self._unbegun) >= UNBEGUN:
                self._unbegun.clear()
            self._unbegun.add(key)

    def lets_go(self, held: Held) -> None:
        """Hold it no more."""
        self._held.pop(held.key, None)

    def due(self, now: float) -> dict[str, list[Held]]:
        """Return what is to be renewed by `now`, the loop's clock, by run."""
        found: dict[str, list[Held]] = {}
        for held in self:
            if held.due <= now:
                found.setdefault(held.at.run, []).append(held)
        return found

    def due_next(self) -> float:
        """Return when something is to be renewed next; 0.0: nothing is held."""
        return min((it.due for it in self), default=0.0)


def key_of(call: CallView) -> Key:
    """Return what names the attempt that counts of a call."""
    return call.run_id, call.turn_id, call.invocation_id, call.attempt

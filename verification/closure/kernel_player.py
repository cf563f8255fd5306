"""Our kernel, explored from the inside: states are cloned and fired at, never pickled or parsed."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Final

import msgspec

from ...engine.fingerprint import behaviour
from ...engine.kernel import Kernel
from ...engine.state import State
from ...models.codec import read, read_delivery, write
from ...models.deliveries import Delivery
from ...models.effects import Effect
from ...models.fact import Fact
from ...models.run import Run
from ...models.verdicts import Verdict
from ..findings import Raw
from .invariants import flaw_of_lives, flaw_of_numbers, flaw_of_turn
from .player import Flaw

_encode: Final = msgspec.json.Encoder(order="sorted").encode
"""Canonical text, which tells 1, 1.0 and true apart, as `==` does not."""


class KernelPlayer:
    """One kernel, into which the states of a run are put one after the other."""

    exact: Final = True

    def __init__(self, run: Raw) -> None:
        """Take the run's configuration."""
        self._kernel = Kernel(read(Run, run))
        self.fire = self._kernel.receive
        self._owed_before: tuple[State | None, frozenset[Any]] = (None, frozenset())

    def begin(self) -> State:
        """Return the state of a fresh run."""
        return State(self._kernel.run)

    def build(self, delivery: Raw) -> Delivery:
        """Parse a delivery, once for all the times that it is fired."""
        return read_delivery(delivery)

    def load(self, state: State) -> None:
        """Put a state into the kernel."""
        self._kernel.state = state

    def clone(self, state: State) -> State:
        """Copy a state."""
        return state.clone()

    def key(self, state: State, now: float) -> Hashable:
        """Return the kernel's own key."""
        return behaviour(state, now)

    def receipt(self, reply: Verdict) -> Raw:
        """Write a verdict as its receipt."""
        receipt: Raw = {"accepted": reply.reason is None}
        if reply.reason is not None:
            receipt["reason"] = str(reply.reason)
        receipt["facts"] = [write(fact) for fact in reply.facts]
        receipt["effects"] = [write(effect) for effect in reply.effects]
        return receipt

    def agrees(self, reply: Verdict, expected: Raw) -> bool:
        """Compare every field, and the types of numbers too."""
        return _encode(self.receipt(reply)) == _encode(expected)

    def step_flaw(self, reply: Verdict, before: State, after: State) -> Flaw | None:
        """K-3, K-9, K-11."""
        if self._owed_before[0] is not before:
            self._owed_before = (before, self._owed(before))
        if self._named(reply.effects) != self._owed(after) - self._owed_before[1]:
            return "K-3", "the effects returned are not those that were added to what is owed"
        return flaw_of_numbers(reply.facts, before.sequence, after.sequence)

    def state_flaw(self, state: State, owed: list[Raw]) -> Flaw | None:
        """K-3 and K-50 … K-56."""
        self.load(state)
        pending = [write(effect) for effect in self._kernel.pending_effects]
        if _encode(pending) != _encode(owed):
            return "K-3", f"owed is {pending}, and ought to be {owed}"
        return flaw_of_turn(state)

    def recovery_flaw(self, state: State, journal: Sequence[Fact], _: list[Raw]) -> Flaw | None:
        """K-2, K-3, K-31: the fold of the journal is the state that was."""
        recovered = Kernel.recover(self._kernel.run, journal).state
        if self._all_of(recovered) != self._all_of(state):
            return "K-2", "what recovery rebuilds from the journal is not the state that was"
        return flaw_of_lives(journal)

    def _owed(self, state: State) -> frozenset[Any]:
        self.load(state)
        return self._named(self._kernel.pending_effects)

    @staticmethod
    def _named(effects: Sequence[Effect]) -> frozenset[Any]:
        """Name effects by id, a wake by its time too: what it asks for changes (section 9)."""
        return frozenset((it.effect_id, getattr(it, "at", None)) for it in effects)

    def _all_of(self, state: State) -> tuple[Any, ...]:
        """Return all that can be seen of a state, absolute numbers too."""
        turn = state.turn
        return (
            behaviour(state, state.at),
            state.at,
            state.sequence,
            state.epoch,
            state.grants.issued,
            tuple(state.grants.in_force),
            () if turn is None else tuple(invocation.attempt for invocation in turn.order),
            self._owed(state),
        )

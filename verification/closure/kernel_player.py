"""Our kernel, explored from the inside: states are cloned and fired at, never pickled or parsed."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Final

import msgspec

from ...engine import kernel
from ...engine.effects import pending
from ...engine.fingerprint import behaviour
from ...engine.kernel import Kernel
from ...engine.state import State
from ...models.codec import read, read_delivery, write
from ...models.deliveries import Delivery
from ...models.effects import Effect, Wake
from ...models.fact import Fact
from ...models.run import Run
from ...models.verdicts import Verdict
from ..findings import Raw
from ..subjects.kernel import receipt_of
from .invariants import flaw_of_lives, flaw_of_numbers, flaw_of_turn
from .player import Flaw

_encode: Final = msgspec.json.Encoder(order="sorted").encode
"""Canonical text, which tells 1, 1.0 and true apart, as `==` does not."""


class KernelPlayer:
    """One kernel, into which the states of a run are put one after the other."""

    def __init__(self, run: Raw) -> None:
        """Take the run's configuration."""
        self.exact = True
        self._kernel = Kernel(read(Run, run))
        self.fire = self._kernel.receive

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
        return receipt_of(reply.reason, reply.facts, reply.effects)

    def agrees(self, reply: Verdict, expected: Raw) -> bool:
        """Compare every field, and the types of numbers too."""
        return _encode(self.receipt(reply)) == _encode(expected)

    def refold(self, folded: State, facts: Sequence[Fact]) -> State:
        """Recover from the state that the journal before made, and the facts after it (K-2)."""
        twin = folded.clone()
        # By the name under which `recover` calls it: who wraps that one wraps this too.
        kernel.replay(twin, facts)  # type: ignore[attr-defined]
        return twin

    def step_flaw(self, reply: Verdict, before: State, after: State) -> Flaw | None:
        """K-3, K-9, K-11."""
        if named(reply.effects) != named(pending(after)) - named(pending(before)):
            return "K-3", "the effects returned are not those that were added to what is owed"
        return flaw_of_numbers(reply.facts, before.sequence, after.sequence)

    def state_flaw(
        self, state: State, owed: list[Raw], journal: Sequence[Fact], folded: State
    ) -> Flaw | None:
        """K-2, K-3, K-31 and K-50 … K-56."""
        effects = pending(state)
        if _encode([write(effect) for effect in effects]) != _encode(owed):
            return "K-3", "what is owed is not what ought to be"
        if (
            numbers_of(folded) != numbers_of(state)
            or behaviour(folded, state.at) != behaviour(state, state.at)
            or named(pending(folded)) != named(effects)
        ):
            return "K-2", "what recovery rebuilds from the journal is not the state that was"
        return flaw_of_turn(state) or flaw_of_lives(journal)


def named(effects: Sequence[Effect]) -> frozenset[Any]:
    """Name effects by id, a wake by its time too: what it asks for changes (section 9)."""
    return frozenset([(it.effect_id, it.at if type(it) is Wake else None) for it in effects])


def numbers_of(state: State) -> tuple[Any, ...]:
    """Return the absolute numbers of a state, which its key does not tell."""
    turn = state.turn
    return (
        state.at,
        state.sequence,
        state.epoch,
        state.grants.issued,
        tuple(state.grants.in_force),
        () if turn is None else [invocation.attempt for invocation in turn.order],
    )

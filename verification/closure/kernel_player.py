"""Our kernel, explored from the inside: states are cloned and fired at, never pickled or parsed."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Final

import msgspec

from ...engine import recovery
from ...engine.effects import pending
from ...engine.fingerprint import behaviour
from ...engine.kernel import Kernel, put_state
from ...engine.state import State
from ...models.codec import read, read_delivery, write
from ...models.deliveries import Delivery
from ...models.effects import Effect, Wake
from ...models.fact import Fact, FactType
from ...models.facts import LIFECYCLE_FAMILY, ContinuationTaken, TurnSettled
from ...models.run import Run
from ...models.verdicts import Verdict
from ...turn.phases import TurnPhase
from ..findings import Raw
from ..subjects.kernel import receipt_of
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
        put_state(self._kernel, state)

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
        if not (reply.facts or reply.effects or expected["facts"] or expected["effects"]):
            return reply.reason == expected.get("reason")
        return _encode(self.receipt(reply)) == _encode(expected)

    def refold(self, folded: State, facts: Sequence[Fact]) -> State:
        """Recover from the state that the journal before made, and the facts after it (K-2)."""
        twin = folded.clone()
        # By the name under which `recover` calls it: who wraps that one wraps this too.
        recovery.replay(twin, facts)
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


# ------------------------------------------------------------------------------
# What must hold of facts and states of our kernel, whatever the oracle says.


_ENDS: Final = frozenset(
    {
        FactType.TOOL_EXECUTION_SUCCEEDED,
        FactType.TOOL_EXECUTION_FAILED,
        FactType.TOOL_DENIED,
    }
)
_CLOSED: Final = frozenset({TurnPhase.SETTLED, TurnPhase.INTERRUPTED})


def flaw_of_numbers(facts: Sequence[Fact], before: int, after: int) -> Flaw | None:
    """Hold the facts of one receive to K-9 and K-11: no gap, one commit, one time."""
    number = before
    for fact in facts:
        number += 1
        if fact.sequence != number:
            return "K-9", f"fact {fact.sequence} follows fact {number - 1}"
        if fact.commit != after:
            return "K-9", f"fact {number} names the commit {fact.commit}, not {after}"
        if fact.at != facts[0].at:
            return "K-11", f"fact {number} happened at {fact.at}, the first of it at {facts[0].at}"
    return None if number == after else ("K-9", f"the state is at {after}, its facts at {number}")


def flaw_of_turn(state: State) -> Flaw | None:  # noqa: PLR0911 - one for each rule
    """Hold a state to K-50 … K-56: membership, one door, bounds."""
    turn, limits = state.turn, state.run.limits
    if turn is not None:
        live = sum(not invocation.terminal for invocation in turn.order)
        if turn.live != live:
            return "K-50", f"{live} are left, and {turn.live} are counted"
        if turn.phase in _CLOSED or (not live and turn.phase is not TurnPhase.OPEN):
            return "K-50", f"the turn is {turn.phase}, all of it is terminal, and it is active"
        if list(turn.members) != [member.invocation_id for member in turn.order]:
            return "K-50", "the members are not those of the expected order, each once"
        if len(turn.order) > limits.calls:
            return "K-56", f"{len(turn.order)} calls are more than {limits.calls}"
    if sum(closed.entries for closed in state.memory.closings) > limits.remembered:
        return "K-54", f"more than {limits.remembered} are remembered"
    if len(state.grants) > limits.grants:
        return "K-56", f"{len(state.grants)} grants in force are more than {limits.grants}"
    if len(state.continuations) > limits.continuations:
        return "K-56", f"more continuations than {limits.continuations} are owed"
    return None


def flaw_of_lives(journal: Sequence[Fact]) -> Flaw | None:
    """Hold a journal to K-31 and K-52: one life an invocation, one continuation a settled turn."""
    lives: dict[str, set[FactType]] = {}
    settled: set[str] = set()
    for fact in journal:
        kind = fact.type
        if kind is FactType.TURN_OPENED:
            lives = {}
        elif isinstance(fact, LIFECYCLE_FAMILY):
            life = lives.setdefault(fact.invocation_id, set())
            if kind in life or life & _ENDS:
                return "K-31", f"{kind} of {fact.invocation_id} comes after {', '.join(life)}"
            if kind is FactType.TOOL_DENIED and FactType.TOOL_EXECUTION_STARTED in life:
                return "K-31", f"{fact.invocation_id} was denied after it had started"
            life.add(kind)
        elif isinstance(fact, TurnSettled):
            settled.add(fact.turn_id)
        elif isinstance(fact, ContinuationTaken):
            if fact.turn_id not in settled:
                return "K-52", f"the continuation of {fact.turn_id} was taken, and none was owed"
            settled.remove(fact.turn_id)
    return None

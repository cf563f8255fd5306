"""What must hold of facts and states of our kernel, whatever the oracle says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...engine.state import State
from ...models.fact import Fact, FactType
from ...models.facts import LIFECYCLE_FAMILY, ContinuationTaken, TurnSettled
from ...turn.phases import TurnPhase
from .player import Flaw

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

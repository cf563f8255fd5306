"""Our own walk through the model: every state, every transition, every invariant.

A transition is one action of one member in one state, counted even where two of them lead to the
same state or back to where they began: what TLC calls states generated, less one for the initial
state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

import attrs

from ...lifecycle.phases import Phase
from ...turn.phases import TurnPhase
from .model import ATTEMPTS, Action, Member, Model, Move, Needs, Owes, State

Step: TypeAlias = tuple[Action, int | None, State]
"""An action, the member that it names (from 0) or None, and the state it leads to."""


@attrs.frozen(kw_only=True)
class Exploration:
    """What the walk counted. `broken` names the invariants that the last state or step broke.

    The walk ends at the first that breaks one: a model that is wrong need not be finite.
    """

    states: int
    transitions: int
    broken: tuple[str, ...] = ()


def explore(model: Model) -> Exploration:
    """Walk breadth first from the initial state to the last."""
    seen = {model.initial}
    level = [model.initial]
    transitions = 0
    while level:
        further: list[State] = []
        for state in level:
            for _, _, after in steps(model, state):
                transitions += 1
                broken = falls(model, state, after)
                if after not in seen:
                    seen.add(after)
                    further.append(after)
                    broken += broken_invariants(model, after)
                if broken:
                    return Exploration(states=len(seen), transitions=transitions, broken=broken)
        level = further
    return Exploration(states=len(seen), transitions=transitions)


def steps(model: Model, state: State) -> Iterator[Step]:
    """Return every transition out of a state, in the order of the actions, then of the roster."""
    for action in model.actions:
        if state.turn not in action.during or action.needs_grant not in {None, state.grant}:
            continue
        if action.takes:
            if state.taken < state.asked:
                yield action, None, state._replace(taken=state.taken + 1)
        elif action.move is not None:
            for place, member in enumerate(state.roster[: state.members]):
                if fits(action.move, member, state.turn):
                    yield action, place, _happens(model, action, state, place)
        elif action.enrols is None or state.members in action.places:
            yield action, None, _happens(model, action, state, None)


def fits(move: Move, member: Member, turn: str) -> bool:
    """Say whether the move is that of this member, now."""
    return (
        member.phase == move.phase
        and (move.needs is Needs.ANYTHING or (move.needs is Needs.OWED) == (member.owed > 0))
        and not (move.calm and turn == TurnPhase.INTERRUPTING)
        and not (move.bounded and member.attempt >= ATTEMPTS)
    )


def _happens(model: Model, action: Action, state: State, place: int | None) -> State:
    """Do what the action says, then ask the doors."""
    roster = list(state.roster)
    members = state.members
    if action.move is not None and place is not None:
        roster[place] = _moved(action.move, roster[place])
    if action.enrols is not None:
        roster[members] = action.enrols
        members += 1
    if action.spreads:
        moves = model.spreads[action.spreads]
        for other in range(members):
            if other != place:
                roster[other] = _spread(moves, roster[other], state.turn)
    turn = action.becomes or state.turn
    grant = state.grant if action.grants is None else action.grants
    after = State(turn, members, tuple(roster), grant, state.asked, state.taken)
    return _settled(model, after)


def _spread(moves: tuple[Move, ...], member: Member, turn: str) -> Member:
    for move in moves:
        if fits(move, member, turn):
            return _moved(move, member)
    return member


def _moved(move: Move, member: Member) -> Member:
    owed = {
        Owes.SAME: member.owed,
        Owes.NOTHING: 0,
        Owes.FIRST: 1,
        Owes.NEXT: member.attempt + 1,
    }[move.owes]
    return Member(move.target, owed, member.owed if move.starts else member.attempt)


def _settled(model: Model, state: State) -> State:
    """Close the turn if all of it is done (K-50); closing ends its grants (K-42)."""
    for door in model.doors:
        if state.turn == door.phase and _all_terminal(model, state):
            asked = state.asked + (door.continues and state.members > 0)
            return state._replace(turn=door.target, grant=False, asked=asked)
    return state


def _all_terminal(model: Model, state: State) -> bool:
    return all(member.phase in model.terminal for member in state.roster[: state.members])


def falls(model: Model, before: State, after: State) -> tuple[str, ...]:
    """Name the property that this step breaks, if it does: no rank ever falls (K-5)."""
    members = zip(before.roster, after.roster, strict=True)
    kept = model.turn_rank[before.turn] <= model.turn_rank[after.turn] and all(
        model.rank[old.phase] <= model.rank[new.phase] for old, new in members
    )
    return () if kept else ("RankNeverFalls",)


def broken_invariants(model: Model, state: State) -> tuple[str, ...]:
    """Name the invariants that do not hold in this state."""
    return tuple(name for name, holds in INVARIANTS.items() if not holds(model, state))


def _type_ok(model: Model, state: State) -> bool:
    return (
        state.turn in model.turn_rank
        and 0 <= state.members <= model.scope.invocations
        and 0 <= state.taken <= state.asked <= 1
        and all(
            phase in model.rank and 0 <= owed <= ATTEMPTS and 0 <= attempt <= ATTEMPTS
            for phase, owed, attempt in state.roster
        )
    )


def _one_continuation(_: Model, state: State) -> bool:
    return state.asked == (state.turn == TurnPhase.SETTLED and state.members > 0)


def _never_denied_and_started(_: Model, state: State) -> bool:
    return all(phase != Phase.DENIED or attempt == 0 for phase, _, attempt in state.roster)


_RAN: Final = frozenset({Phase.STARTED, Phase.IN_DOUBT, Phase.SUCCEEDED})


def _runs_only_what_was_owed(_: Model, state: State) -> bool:
    return all(phase not in _RAN or attempt > 0 for phase, _, attempt in state.roster)


def _closed_iff_all_terminal(model: Model, state: State) -> bool:
    done = state.turn != TurnPhase.OPEN and _all_terminal(model, state)
    return (state.turn in model.closed) == done


INVARIANTS: Final[dict[str, Callable[[Model, State], bool]]] = {
    "TypeOK": _type_ok,
    "ExactlyOneContinuation": _one_continuation,
    "NeverDeniedAndStarted": _never_denied_and_started,
    "RunsOnlyWhatWasOwed": _runs_only_what_was_owed,
    "ClosedIffAllTerminal": _closed_iff_all_terminal,
}
"""What holds in every state, from kernel.md, not from the tables: K-6, K-52, K-31, K-33, K-50."""

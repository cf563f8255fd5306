"""Recovery: the fold of a journal (K-2, K-9); a journal that no run can have written is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from ..lifecycle.invocation import Invocation
from ..lifecycle.table import FOLD
from ..models.errors import CorruptJournal
from ..models.fact import FactType, Foldable
from ..models.facts import (
    EXECUTION_FAMILY,
    LIFECYCLE_FAMILY,
    TURN_FAMILY,
    ContinuationTaken,
    GrantExpired,
    GrantIssued,
    GrantRevoked,
    TurnOpened,
)
from ..models.ids import grant_id
from ..turn.phases import TurnPhase
from ..turn.table import FOLD as TURN_FOLD
from ..turn.turn import Turn
from .evolve import EVOLVERS
from .new_facts import settled
from .state import SLACK, State

# Facts are known by their type alone, so that a reader may give what only the fold reads of them
# (`Foldable`). A look into a set tells which kind one is: to ask `isinstance(fact, A | B)` would
# build the union at each call, and recovery took a third longer.

_INTERRUPTING: Final = TurnPhase.INTERRUPTING
"""Bound once, as the phases are (lifecycle/phases.py)."""

_TELLING_MORE: Final = frozenset(
    {FactType.TURN_OPENED, FactType.TURN_INTERRUPTING, FactType.CALL_ADDED}
)
_CLOSING: Final = frozenset({FactType.TURN_SETTLED, FactType.TURN_INTERRUPTED})
_NAMING_A_TOOL: Final = frozenset(cls.type for cls in LIFECYCLE_FAMILY)
_STARTING: Final = frozenset({FactType.TOOL_EXECUTION_STARTED, FactType.EXECUTION_RETRIED})
_OF_AN_ATTEMPT: Final = frozenset({*_STARTING, *(cls.type for cls in EXECUTION_FAMILY)})
_CALL_ADDED: Final = FactType.CALL_ADDED
_APPROVAL_REQUESTED: Final = FactType.TOOL_APPROVAL_REQUESTED
_APPROVED: Final = FactType.TOOL_APPROVED
_RETRY_AUTHORISED: Final = FactType.RETRY_AUTHORISED


def replay(state: State, facts: Iterable[Foldable]) -> int:
    """Fold the journal's facts into the state, commit by commit; return how many were dropped.

    The facts of one receive are one commit. A journal that ends inside one was torn while it was
    written, so the incomplete last commit is dropped whole, and the next receive uses its sequence
    numbers again: cut the journal there (K-9). Facts at or before the state's sequence are passed
    over, so that a snapshot can be given with the whole journal. Raises `CorruptJournal` at the
    first fact that cannot have happened.
    """
    run_id = state.run.run_id
    last = state.sequence
    commit: list[Foldable] = []
    for fact in facts:
        sequence, end = fact.sequence, fact.commit
        if sequence <= state.sequence:
            continue
        fits = commit[0].commit == end if commit else sequence <= end
        if sequence != last + 1 or fact.run_id != run_id or not fits:
            raise _misplaced(fact, last, run_id)
        commit.append(fact)
        last = sequence
        if sequence == end:
            _fold_commit(state, commit)
            commit = []
    state.tidy_deadlines()
    return len(commit)


def _misplaced(fact: Foldable, last: int, run_id: str) -> CorruptJournal:
    """Say why this fact cannot stand here, after the `last` one."""
    if fact.sequence != last + 1:
        return CorruptJournal(
            sequence=fact.sequence,
            cause=f"it follows fact {last}",
            fix="give all facts of the run once, in the order of their sequence",
        )
    if fact.run_id != run_id:
        return _corrupt(fact, f"it belongs to run {fact.run_id!r}, not {run_id!r}")
    return _corrupt(fact, f"its commit {fact.commit} does not fit the facts before it")


def _fold_commit(state: State, commit: list[Foldable]) -> None:
    for fact in commit:
        kind = fact.type
        if fact.at < state.at:
            raise _corrupt(fact, f"its time {fact.at} lies before {state.at}")
        cause = _IMPOSSIBLE[kind](state, fact, kind)
        if cause is not None:
            raise _corrupt(fact, cause)
        EVOLVERS[kind](state, state.turn, fact)
        state.at = fact.at
    state.sequence += len(commit)
    if state.turn is not None:
        cause = _unfinished(state, state.turn, commit)
        if cause is not None:
            raise _corrupt(commit[-1], cause)
    if len(state.deadlines) > SLACK:  # nothing here asks for the first one: it may be stale
        state.tidy_deadlines()


def _unfinished(state: State, turn: Turn, commit: list[Foldable]) -> str | None:
    """Say what the commit should have brought too, or None.

    Members are looked at only where the commit brought them or interrupted them: to look at all of
    them after every commit would make recovery quadratic in the calls of a turn.
    """
    if settled(state, turn, state.at):
        return "every member is terminal, and yet the turn was not closed"
    for fact in commit:
        if fact.type not in _TELLING_MORE:  # most facts
            continue
        for invocation in _concerned(turn, fact):
            if invocation.gated and invocation.digest is None:
                return f"nobody was asked about {invocation.invocation_id!r}"
            if turn.phase is _INTERRUPTING and not invocation.attempt:
                return f"{invocation.invocation_id!r} was not denied by the interrupt"
    return None


def _concerned(turn: Turn, fact: Any) -> Iterable[Invocation]:  # noqa: ANN401 - any of these
    """Return the members of which a fact's commit must tell more than the fact itself does."""
    if fact.type is _CALL_ADDED:
        return (turn.members[fact.call.invocation_id],)
    return turn.unfinished()


def _corrupt(fact: Foldable, cause: str) -> CorruptJournal:
    return CorruptJournal(
        sequence=fact.sequence,
        cause=f"{fact.type}: {cause}",
        fix="restore the journal from a copy; no run writes this",
    )


def _impossible_opening(state: State, fact: TurnOpened, _: FactType) -> str | None:
    if state.turn is not None:
        return f"turn {state.turn.turn_id!r} is still active"
    if fact.turn_id in state.continuations:
        return "the continuation of that turn is still owed"
    if state.memory.holds_turn(fact.turn_id, now=fact.at):
        return "that turn is remembered as closed; were the run's limits the same?"
    if fact.epoch != state.epoch + 1:
        return f"its epoch is {fact.epoch}, the next one is {state.epoch + 1}"
    if len({call.invocation_id for call in fact.calls}) < len(fact.calls):
        return "two of its calls have one id"
    return None


def _impossible_taking(state: State, fact: ContinuationTaken, _: FactType) -> str | None:
    return None if fact.turn_id in state.continuations else "no continuation is owed"


def _impossible_grant(state: State, fact: GrantIssued, _: FactType) -> str | None:
    expected = grant_id(state.run.run_id, state.grants.issued + 1)
    return None if fact.grant_id == expected else f"the next grant is {expected}"


def _impossible_grant_end(
    state: State, fact: GrantRevoked | GrantExpired, _: FactType
) -> str | None:
    return None if fact.grant_id in state.grants.in_force else "the grant is not in force"


def _impossible_for_turn(state: State, fact: Any, kind: FactType) -> str | None:  # noqa: ANN401
    turn = state.turn
    if turn is None or turn.turn_id != fact.turn_id:
        return _not_active(fact)
    if turn.phase not in TURN_FOLD[kind]:
        return f"the turn is {turn.phase}"
    if kind is _CALL_ADDED and fact.call.invocation_id in turn.members:
        return "the turn has that call already"
    if turn.live and kind in _CLOSING:
        return f"{turn.live} of its invocations are not terminal"
    return None


def _not_active(fact: Any) -> str:  # noqa: ANN401
    return f"turn {fact.turn_id!r} is not the active one"


def _impossible_for_invocation(  # noqa: PLR0911 - a line for each cause
    state: State,
    fact: Any,  # noqa: ANN401
    kind: FactType,
) -> str | None:
    turn = state.turn
    if turn is None or turn.turn_id != fact.turn_id:
        return _not_active(fact)
    invocation = turn.members.get(fact.invocation_id)
    if invocation is None:
        return f"the turn has no invocation {fact.invocation_id!r}"
    if kind is _APPROVAL_REQUESTED:
        asked = invocation.digest is not None
        return None if invocation.gated and not asked else "it does not wait to be asked"
    if invocation.phase not in FOLD[kind]:
        return f"the invocation is {invocation.phase}"
    if kind is _APPROVED and not invocation.gated:
        return "it does not wait for approval"
    if kind in _NAMING_A_TOOL and fact.tool_name != invocation.tool_name:
        return f"the tool is {invocation.tool_name!r}"
    return _impossible_attempt(turn, invocation, fact, kind) if kind in _OF_AN_ATTEMPT else None


def _impossible_attempt(
    turn: Turn,
    invocation: Invocation,
    fact: Any,  # noqa: ANN401
    kind: FactType,
) -> str | None:
    if kind in _STARTING:
        expected = 0 if invocation.gated else invocation.attempt + 1
    else:
        expected = invocation.attempt
    if fact.attempt != expected:
        return f"its attempt is {fact.attempt}, not {expected or 'owed at all'}"
    if kind is _RETRY_AUTHORISED and (invocation.observed or turn.phase is _INTERRUPTING):
        return "no retry can be authorised here"
    return None


_IMPOSSIBLE: Final[dict[FactType, Callable[[State, Any, FactType], str | None]]] = {
    **dict.fromkeys(FactType, _impossible_for_invocation),
    **{cls.type: _impossible_for_turn for cls in TURN_FAMILY},
    FactType.TURN_OPENED: _impossible_opening,
    FactType.CONTINUATION_TAKEN: _impossible_taking,
    FactType.GRANT_ISSUED: _impossible_grant,
    FactType.GRANT_REVOKED: _impossible_grant_end,
    FactType.GRANT_EXPIRED: _impossible_grant_end,
}
"""Who says why a fact cannot have happened in this state, or None."""

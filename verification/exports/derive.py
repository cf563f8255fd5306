"""Makes the model from the tables that are enforced.

A row that moves becomes an action. What a row cannot say is here, each in one place: what its guard
asks of the model's bits, what its fact does to them, and the settlement rules of kernel.md
section 8 that bind the two tables together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import attrs

from ...lifecycle.phases import Guard, Phase
from ...lifecycle.table import INVOCATION, InvocationRow
from ...machines.rows import ALWAYS, Machine
from ...models.fact import FactType
from ...models.inputs import Input
from ...turn.phases import TurnGuard, TurnPhase
from ...turn.table import TURN, TurnRow
from ..errors import HarnessFailed
from .model import (
    ACKNOWLEDGE,
    ADD_FREE_CALL,
    ADD_GATED_CALL,
    APPROVE_FOR_TURN,
    REVOKE,
    Action,
    Door,
    Feature,
    Gate,
    Member,
    Model,
    Move,
    Needs,
    Owes,
    Scope,
    State,
)

_NEEDS: Final[dict[str, Needs]] = {
    ALWAYS: Needs.ANYTHING,
    Guard.GATED: Needs.NOTHING_OWED,
    Guard.SHOWN: Needs.NOTHING_OWED,  # who approves has seen the arguments, and grants have room
    Guard.FREE: Needs.OWED,
    Guard.OWNED: Needs.ANYTHING,
}
"""What a guard asks of the attempt owed (engine/admission answers the same questions)."""

_OWES: Final[dict[FactType, Owes]] = {
    FactType.TOOL_APPROVED: Owes.FIRST,
    FactType.TOOL_DENIED: Owes.NOTHING,
    FactType.TOOL_EXECUTION_STARTED: Owes.NOTHING,
    FactType.TOOL_EXECUTION_SUCCEEDED: Owes.NOTHING,
    FactType.TOOL_EXECUTION_FAILED: Owes.NOTHING,
    FactType.EXECUTION_IN_DOUBT: Owes.SAME,
    FactType.RETRY_AUTHORISED: Owes.NEXT,
    FactType.EXECUTION_RETRIED: Owes.NOTHING,
    FactType.LEASE_RENEWED: Owes.SAME,
    FactType.TURN_INTERRUPTING: Owes.NOTHING,
}
"""What a fact does to the attempt owed (K-31, K-33)."""

_STARTS: Final = frozenset({FactType.TOOL_EXECUTION_STARTED, FactType.EXECUTION_RETRIED})

_SPREADS: Final = (Input.INTERRUPT, Input.GRACE_OVER, Input.GRANT)
"""What comes to every member at once: the first two through the turn, under the same name."""

_WITHOUT: Final[dict[Feature, frozenset[Input]]] = {
    Feature.LEASES: frozenset({Input.RENEW, Input.LEASE_OVER}),
    Feature.DOUBT: frozenset({Input.LOSE, Input.LEASE_OVER}),
    Feature.RETRIES: frozenset({Input.RESOLVE_RETRY}),
    Feature.GRANTS: frozenset({Input.GRANT}),
}
"""The inputs that never come in a model without the feature."""


def derive(
    scope: Scope,
    *,
    invocation: Machine[Phase, Input] = INVOCATION,
    turn: Machine[TurnPhase, Input] = TURN,
) -> Model:
    """Return the model of one turn, opened empty and filled call by call.

    A turn that is opened sealed is in no state that one filled and then sealed does not reach, so
    one initial state is enough. Raises `HarnessFailed` where a row moves by a guard or a fact that
    has no meaning here yet.
    """
    never = frozenset[Input]().union(*(_WITHOUT[feature] for feature in scope.without))
    rows = tuple(row for row in invocation.rows if row.input not in never)
    begin = Member(str(invocation.initial[0]), 0, 0)
    active = tuple(str(phase) for phase in turn.phases if phase not in turn.terminal)
    spreads = {str(input_): moves for input_ in _SPREADS if (moves := _spread(rows, input_))}
    actions = [
        *_of_members(rows, active, spreads),
        *_of_turn(turn, scope, begin, spreads),
        Action(
            name="Acknowledge",
            input=ACKNOWLEDGE,
            sentence="the host takes the continuation (K-52)",
            during=tuple(str(phase) for phase in turn.phases),
            takes=True,
        ),
    ]
    if Feature.GRANTS not in scope.without:
        actions.append(
            Action(
                name="Revoke",
                input=REVOKE,
                sentence="the grant is taken back; approvals already given stay (K-42)",
                during=active,
                needs_grant=True,
                grants=False,
            )
        )
    return Model(
        scope=scope,
        initial=State(
            turn=str(turn.initial[0]),
            members=0,
            roster=(begin,) * scope.invocations,
            grant=False,
            asked=0,
            taken=0,
        ),
        rank={str(phase): rank for phase, rank in invocation.rank.items()},
        terminal=tuple(str(phase) for phase in invocation.phases if phase in invocation.terminal),
        turn_rank={str(phase): rank for phase, rank in turn.rank.items()},
        closed=tuple(str(phase) for phase in turn.phases if phase in turn.terminal),
        actions=tuple(actions),
        spreads=spreads,
        doors=tuple(_doors(turn)),
    )


def _of_members(
    rows: tuple[InvocationRow, ...],
    active: tuple[str, ...],
    spreads: Mapping[str, tuple[Move, ...]],
) -> Iterator[Action]:
    """Make an action of each row that moves one member, and one more of an approval that grants."""
    for row in rows:
        if row.fact is None or row.input in _SPREADS:
            continue
        move = _move(row)
        action = Action(
            name=_name(row), input=row.input, sentence=move.sentence, during=active, move=move
        )
        yield action
        if row.input is Input.APPROVE and Input.GRANT in spreads:
            yield attrs.evolve(
                action,
                name=f"{action.name}ForTurn",
                input=APPROVE_FOR_TURN,
                sentence=f"{move.sentence}, with a grant for the tool until the turn closes (K-40)",
                spreads=str(Input.GRANT),
                grants=True,
            )


def _of_turn(
    turn: Machine[TurnPhase, Input],
    scope: Scope,
    begin: Member,
    spreads: Mapping[str, tuple[Move, ...]],
) -> Iterator[Action]:
    """Make an action of each row of the turn that moves it or its members."""
    for row in turn.rows:
        if row.input is Input.SETTLE or row.reason is not None or not row.possible:
            continue
        action = Action(
            name=_name(row),
            input=row.input,
            sentence=_sentence(row),
            during=(str(row.phase),),
            becomes=str(row.target),
            spreads=str(row.input) if row.input in spreads else "",
        )
        if row.input is Input.ADD_CALL:
            yield from _additions(action, scope, begin, spreads.get(Input.GRANT, ()))
        else:
            yield action


def _additions(
    action: Action, scope: Scope, begin: Member, grant: tuple[Move, ...]
) -> Iterator[Action]:
    """Tell apart the calls that may be added: free, gated, and gated but covered by a grant."""
    ready = begin._replace(owed=1)
    gated = attrs.evolve(
        action,
        name=f"{action.name}Gated",
        input=ADD_GATED_CALL,
        sentence=f"{action.sentence}, a call that waits for approval",
        enrols=begin,
        places=scope.places(Gate.GATED),
        needs_grant=False,
    )
    yield attrs.evolve(
        action,
        name=f"{action.name}Free",
        input=ADD_FREE_CALL,
        sentence=f"{action.sentence}, a call that needs no approval",
        enrols=ready,
        places=scope.places(Gate.FREE),
    )
    yield gated
    for covering in grant:
        if covering.phase == begin.phase:
            yield attrs.evolve(
                gated,
                name=f"{action.name}Covered",
                sentence=f"{action.sentence}; then {covering.sentence}, for a grant covers it",
                enrols=ready._replace(phase=covering.target),
                needs_grant=True,
            )


def _spread(rows: tuple[InvocationRow, ...], input_: Input) -> tuple[Move, ...]:
    return tuple(_move(row) for row in rows if row.input is input_ and row.fact is not None)


def _move(row: InvocationRow) -> Move:
    """Return what a row does to a member, its guard and its fact put in the model's bits."""
    owes = None if row.fact is None else _OWES.get(row.fact)
    if row.guard not in _NEEDS or owes is None:
        raise HarnessFailed(f"{row}: the model has no meaning for this guard or fact; give it one")
    waits = row.input is Input.APPROVAL_OVER  # that deadline runs for what waits alone (K-34)
    return Move(
        sentence=_sentence(row),
        phase=str(row.phase),
        needs=Needs.NOTHING_OWED if waits else _NEEDS[row.guard],
        calm=row.guard == Guard.OWNED,
        bounded=owes is Owes.NEXT,
        target=str(row.target),
        owes=owes,
        starts=row.fact in _STARTS,
    )


def _doors(turn: Machine[TurnPhase, Input]) -> Iterator[Door]:
    for row in turn.rows:
        if row.input is not Input.SETTLE or row.fact is None:
            continue
        if row.guard != TurnGuard.COMPLETE:
            raise HarnessFailed(f"{row}: a door of the model opens when all are terminal, only")
        yield Door(
            sentence=str(row),
            phase=str(row.phase),
            target=str(row.target),
            continues=row.fact is FactType.TURN_SETTLED,
        )


def _sentence(row: InvocationRow | TurnRow) -> str:
    return f"{row}: {row.note}" if row.note else str(row)


def _name(row: InvocationRow | TurnRow) -> str:
    """Return a row's name in a formal text: ``ApproveRequestedShown``."""
    words = f"{row.input}_{row.phase}_{row.guard}".casefold().split("_")
    return "".join(word.capitalize() for word in words)

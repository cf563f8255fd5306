"""The model made from the tables: what it counts, what it checks, and that wrong rows show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from turnlock.lifecycle.phases import Guard, Phase
from turnlock.lifecycle.table import INVOCATION
from turnlock.models.errors import InvalidValue
from turnlock.models.fact import FactType
from turnlock.models.inputs import Input
from turnlock.turn.phases import TurnGuard, TurnPhase
from turnlock.verification.errors import HarnessFailed
from turnlock.verification.exports.derive import derive
from turnlock.verification.exports.explore import (
    INVARIANTS,
    Exploration,
    broken_invariants,
    explore,
    falls,
    steps,
)
from turnlock.verification.exports.model import Feature, Gate, Member, Model, Scope, State

from .kernel_walk import paths as states
from .plants import MOVING, PLANTS, row, turn_row, with_row


@pytest.mark.parametrize(
    ("invocations", "states", "transitions"),
    [(1, 68, 257), (2, 955, 5_850), (3, 12_606, 105_623)],
)
def test_the_counts_are_pinned(invocations: int, states: int, transitions: int) -> None:
    """A change of the tables or of the settlement rules shows here; TLC and Spin count the same."""
    assert explore(derive(Scope(invocations=invocations))) == Exploration(
        states=states, transitions=transitions
    )


@pytest.mark.parametrize(
    ("scope", "states", "transitions"),
    [
        (Scope(invocations=2, without=frozenset({Feature.LEASES})), 955, 5_234),
        (Scope(invocations=2, without=frozenset({Feature.DOUBT})), 289, 1_154),
        (Scope(invocations=2, without=frozenset({Feature.RETRIES})), 381, 2_004),
        (Scope(invocations=2, without=frozenset({Feature.GRANTS})), 575, 2_964),
        (Scope(invocations=2, gates=(Gate.GATED, Gate.FREE)), 763, 4_671),
        (Scope(invocations=1, gates=(Gate.FREE,), without=frozenset(Feature)), 21, 29),
    ],
    ids=[
        "no leases",
        "no doubt",
        "no retries",
        "no grants",
        "gated and free",
        "free, nothing else",
    ],
)
def test_a_model_can_do_with_less(scope: Scope, states: int, transitions: int) -> None:
    """Each feature and each gate that is left out takes its states or transitions along.

    The smallest, counted by hand: OPEN 6, SEALED 2, SETTLED 7, INTERRUPTING 1, INTERRUPTED 5.
    """
    assert explore(derive(scope)) == Exploration(states=states, transitions=transitions)


def test_every_row_that_moves_is_in_the_model() -> None:
    """Nothing that moves a phase is left out: each such row is read aloud somewhere."""
    sentences = read_aloud(derive(Scope(invocations=1)))

    assert [row for row in MOVING if row not in sentences] == []


def read_aloud(model: Model) -> str:
    return "\n".join(
        (
            *(action.sentence for action in model.actions),
            *(move.sentence for moves in model.spreads.values() for move in moves),
            *(door.sentence for door in model.doors),
        )
    )


WRONG_ROWS: dict[str, Callable[[], Model]] = {
    "nothing rejects what is approved": lambda: row(
        Phase.APPROVED, Input.REJECT, target=Phase.APPROVED, fact=None, note="ignored"
    ),
    "nobody renews a lease": lambda: row(Phase.STARTED, Input.RENEW, fact=None, note="ignored"),
    "a grant covers nothing": lambda: row(
        Phase.REQUESTED,
        Input.GRANT,
        Guard.GATED,
        target=Phase.REQUESTED,
        fact=None,
        note="ignored",
    ),
    "an unauthorised claim fails it": lambda: row(
        Phase.IN_DOUBT,
        Input.CLAIM,
        reason=None,
        target=Phase.FAILED,
        fact=FactType.TOOL_EXECUTION_FAILED,
    ),
    "a sealed turn is not interrupted": lambda: turn_row(
        TurnPhase.SEALED, Input.INTERRUPT, target=TurnPhase.SEALED, fact=None, possible=False
    ),
    "an interrupted turn settles": lambda: turn_row(
        TurnPhase.INTERRUPTING,
        Input.SETTLE,
        TurnGuard.COMPLETE,
        target=TurnPhase.SETTLED,
        fact=FactType.TURN_SETTLED,
    ),
}
REDIRECTED: dict[str, Callable[[], Model]] = {
    "a lease that runs out fails": lambda: row(
        Phase.STARTED, Input.LEASE_OVER, target=Phase.FAILED
    ),
    "grace makes a success of doubt": lambda: row(
        Phase.IN_DOUBT, Input.GRACE_OVER, target=Phase.SUCCEEDED
    ),
}


@pytest.mark.parametrize("planted", WRONG_ROWS.values(), ids=WRONG_ROWS)
def test_one_wrong_row_changes_the_counts(planted: Callable[[], Model]) -> None:
    """The negative control of the pinned counts."""
    assert explore(planted()) != explore(derive(Scope(invocations=1)))


MOVES = {
    ("REQUESTED", "APPROVED"): 4,
    ("REQUESTED", "STARTED"): 2,
    ("REQUESTED", "FAILED"): 4,
    ("REQUESTED", "DENIED"): 8,
    ("APPROVED", "STARTED"): 4,
    ("APPROVED", "FAILED"): 4,
    ("APPROVED", "DENIED"): 4,
    ("STARTED", "IN_DOUBT"): 24,
    ("IN_DOUBT", "RETRY_AUTHORISED"): 4,
    ("RETRY_AUTHORISED", "IN_DOUBT"): 4,
    ("RETRY_AUTHORISED", "STARTED"): 4,
    ("RETRY_AUTHORISED", "SUCCEEDED"): 8,
    ("RETRY_AUTHORISED", "FAILED"): 8,
    ("STARTED", "SUCCEEDED"): 12,
    ("STARTED", "FAILED"): 16,
    ("IN_DOUBT", "SUCCEEDED"): 24,
    ("IN_DOUBT", "FAILED"): 28,
}


def arrivals(model: Model) -> Counter[tuple[str, str]]:
    """How many transitions of a model of one lead its member from one phase to another."""
    return Counter(
        (state.roster[0].phase, after.roster[0].phase)
        for state in states(model)
        for _, _, after in steps(model, state)
        if state.roster[0].phase != after.roster[0].phase
    )


def test_where_the_transitions_lead_is_pinned() -> None:
    """A row that leads to another phase may keep both counts: this is what sees it."""
    assert arrivals(derive(Scope(invocations=1))) == MOVES


@pytest.mark.parametrize("planted", REDIRECTED.values(), ids=REDIRECTED)
def test_a_row_that_leads_elsewhere_changes_where_they_lead(
    planted: Callable[[], Model],
) -> None:
    """The negative control, on two rows that keep the counts as they were."""
    assert explore(planted()) == explore(derive(Scope(invocations=1)))
    assert arrivals(planted()) != MOVES


@pytest.mark.parametrize("name", PLANTS)
def test_each_property_is_seen_to_break(name: str) -> None:
    """The negative control of each invariant: one wrong row breaks it, and it is named."""
    assert name in explore(PLANTS[name]()).broken


def test_every_property_has_its_plant() -> None:
    """No invariant is without a negative control; TypeOK has the ones below."""
    assert {*PLANTS, "TypeOK"} == {*INVARIANTS, "RankNeverFalls"}


@pytest.mark.parametrize(
    "state",
    [
        State("OPEN", 2, (Member("REQUESTED", 0, 0),), grant=False, asked=0, taken=0),
        State("LOST", 1, (Member("REQUESTED", 0, 0),), grant=False, asked=0, taken=0),
        State("OPEN", 1, (Member("REQUESTED", 3, 0),), grant=False, asked=0, taken=0),
        State("OPEN", 1, (Member("LOST", 0, 0),), grant=False, asked=0, taken=0),
        State("SETTLED", 1, (Member("DENIED", 0, 0),), grant=False, asked=2, taken=0),
        State("SETTLED", 1, (Member("DENIED", 0, 0),), grant=False, asked=0, taken=1),
    ],
)
def test_what_is_no_state_is_told(state: State) -> None:
    """TypeOK holds every variable to its range, continuations to one."""
    assert "TypeOK" in broken_invariants(derive(Scope(invocations=1)), state)


def test_the_rank_of_the_turn_is_watched_too() -> None:
    """A turn that goes back to where members can be added would break K-5."""
    model = derive(Scope(invocations=1))

    sealed = model.initial._replace(turn="SEALED")

    assert falls(model, sealed, model.initial) == ("RankNeverFalls",)
    assert falls(model, model.initial, sealed) == ()


def test_a_row_without_meaning_is_refused() -> None:
    """A row that would move by a guard that the model knows nothing of is told, not guessed."""
    wrong = with_row(
        INVOCATION, Phase.STARTED, Input.CLAIM, Guard.SAME_WORKER,
        reason=None, fact=FactType.LEASE_RENEWED,
    )  # fmt: skip

    with pytest.raises(HarnessFailed, match=r"STARTED × claim \[same_worker\].*no meaning"):
        derive(Scope(invocations=1), invocation=wrong)


def test_a_door_that_does_not_wait_is_refused() -> None:
    """A turn that closes before all are terminal has no place in the model's door."""
    with pytest.raises(HarnessFailed, match=r"SEALED × settle \[incomplete\]"):
        turn_row(TurnPhase.SEALED, Input.SETTLE, TurnGuard.INCOMPLETE,
                 fact=FactType.TURN_SETTLED)  # fmt: skip


@pytest.mark.parametrize(
    ("invocations", "gates", "told"),
    [(0, (), "0 is not between 1 and 4"), (5, (), "5 is not"), (2, (Gate.FREE,), "1 gates for 2")],
)
def test_a_scope_that_no_model_has_is_refused(
    invocations: int, gates: tuple[Gate, ...], told: str
) -> None:
    """The error names the cause and the fix (K-8)."""
    with pytest.raises(InvalidValue, match=told):
        Scope(invocations=invocations, gates=gates)

"""Section 5: run, turn, membership, attempt, table, one test for each branch.

Branch 4, the attempt, stands in test_admission_attempts.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from turnlock import (
    Claim,
    Decide,
    Delivery,
    Limits,
    Lose,
    Reason,
    Reject,
    Renew,
    Report,
    Resolution,
    Resolve,
)
from turnlock.models.deliveries import DELIVERIES

from ..outcome import happens, refused
from ..script import Script
from .examples import WHOLE

WITH_TURN: dict[str, Callable[[str, str], Delivery]] = {
    "approve": lambda turn, name: Decide(turn_id=turn, invocation_id=name, approved=True),
    "deny": lambda turn, name: Decide(turn_id=turn, invocation_id=name, approved=False),
    "claim": lambda turn, name: Claim(turn_id=turn, invocation_id=name, attempt=1),
    "renew": lambda turn, name: Renew(turn_id=turn, invocation_id=name, lease=1.0),
    "reject": lambda turn, name: Reject(turn_id=turn, invocation_id=name, error="x"),
    "report": lambda turn, name: Report(turn_id=turn, invocation_id=name, result=1),
    "lose": lambda turn, name: Lose(turn_id=turn, invocation_id=name),
    "resolve": lambda turn, name: Resolve(
        turn_id=turn, invocation_id=name, attempt=1, resolution=Resolution.RETRY
    ),
}
WITHOUT_TURN: dict[str, Callable[[str], Delivery]] = {
    "reject": lambda name: Reject(invocation_id=name, error="x"),
    "report": lambda name: Report(invocation_id=name, result=1),
    "lose": lambda name: Lose(invocation_id=name),
}
each_with_turn = pytest.mark.parametrize("kind", WITH_TURN)
each_without_turn = pytest.mark.parametrize("kind", WITHOUT_TURN)


def between_turns() -> Script:
    """T1 held `a` and is remembered as closed; no turn is active."""
    play = Script()
    play.opens("T1", "a")
    play.rejects("a")
    return play


def in_second_turn() -> Script:
    """T1 held `a` and `old`, and is remembered; T2 is active and holds `a` and `new`."""
    play = Script()
    play.opens("T1", "a", "old")
    play.rejects("a")
    play.rejects("old")
    play.opens("T2", "a", "new", "more")
    return play


# ------------------------------------------------------------------------------- first of all


@pytest.mark.parametrize("kind", DELIVERIES, ids=lambda kind: kind.__name__)
def test_first_the_run_must_be_this_one(kind: type[Delivery]) -> None:
    """Every delivery, tick and log too; with this run's id, or none, it is looked at further."""
    play = in_second_turn()

    assert play.receives(kind(**WHOLE[kind], run_id="another")) == refused(Reason.RUN_MISMATCH)

    assert play.receives(kind(**WHOLE[kind], run_id="r")).reason is not Reason.RUN_MISMATCH
    assert play.receives(kind(**WHOLE[kind])).reason is not Reason.RUN_MISMATCH


# ------------------------------------------------------------------------------- 1: with a turn


@each_with_turn
def test_1_the_active_turn_goes_on_to_membership(kind: str) -> None:
    """Even if an earlier turn held the same id: nothing is ambiguous about a turn that is named."""
    play = in_second_turn()

    reason = play.receives(WITH_TURN[kind]("T2", "a")).reason

    assert reason not in {
        *(Reason.LATE, Reason.NO_ACTIVE_TURN, Reason.TURN_MISMATCH),
        *(Reason.AMBIGUOUS_INVOCATION, Reason.UNKNOWN_INVOCATION),
    }


@each_with_turn
def test_1_remembered_as_closed_is_late(kind: str) -> None:
    """With another turn active, or none."""
    assert between_turns().receives(WITH_TURN[kind]("T1", "a")) == refused(Reason.LATE)
    assert in_second_turn().receives(WITH_TURN[kind]("T1", "a")) == refused(Reason.LATE)


@each_with_turn
def test_1_late_is_the_pair_not_the_turn_and_not_the_id(kind: str) -> None:
    """A closed turn that never held the id, and an id that another turn held: not late."""
    assert between_turns().receives(WITH_TURN[kind]("T1", "x")) == refused(Reason.NO_ACTIVE_TURN)
    assert between_turns().receives(WITH_TURN[kind]("T9", "a")) == refused(Reason.NO_ACTIVE_TURN)
    assert in_second_turn().receives(WITH_TURN[kind]("T1", "new")) == refused(Reason.TURN_MISMATCH)
    assert in_second_turn().receives(WITH_TURN[kind]("T9", "old")) == refused(Reason.TURN_MISMATCH)


@each_with_turn
def test_1_no_turn_active(kind: str) -> None:
    """At the very beginning, too."""
    assert Script().receives(WITH_TURN[kind]("T1", "a")) == refused(Reason.NO_ACTIVE_TURN)


@each_with_turn
def test_1_otherwise_the_turn_is_another(kind: str) -> None:
    """Though the active one holds the id."""
    assert in_second_turn().receives(WITH_TURN[kind]("T9", "new")) == refused(Reason.TURN_MISMATCH)


# ---------------------------------------------------------------------------- 2: without a turn


@each_without_turn
def test_2_held_by_both_is_ambiguous(kind: str) -> None:
    """The active turn and a remembered one."""
    play = in_second_turn()

    assert play.receives(WITHOUT_TURN[kind]("a")) == refused(Reason.AMBIGUOUS_INVOCATION)


@each_without_turn
def test_2_held_by_the_active_turn_goes_on(kind: str) -> None:
    """To the attempt and the table."""
    reason = in_second_turn().receives(WITHOUT_TURN[kind]("new")).reason

    assert reason == {"reject": None, "report": "not_started", "lose": "not_started"}[kind]


@each_without_turn
def test_2_held_by_a_remembered_turn_is_late(kind: str) -> None:
    """With another turn active, or none."""
    assert in_second_turn().receives(WITHOUT_TURN[kind]("old")) == refused(Reason.LATE)
    assert between_turns().receives(WITHOUT_TURN[kind]("a")) == refused(Reason.LATE)


@each_without_turn
def test_2_no_turn_active(kind: str) -> None:
    """And nobody remembers the id."""
    assert between_turns().receives(WITHOUT_TURN[kind]("x")) == refused(Reason.NO_ACTIVE_TURN)
    assert Script().receives(WITHOUT_TURN[kind]("x")) == refused(Reason.NO_ACTIVE_TURN)


@each_without_turn
def test_2_otherwise_it_is_unknown(kind: str) -> None:
    """A turn is active, and nobody has such an id."""
    assert in_second_turn().receives(WITHOUT_TURN[kind]("x")) == refused(Reason.UNKNOWN_INVOCATION)


def test_2_what_is_forgotten_is_neither_late_nor_ambiguous() -> None:
    """Without a memory the active turn is the only one there is."""
    play = Script(limits=Limits(remembered=0))
    play.opens("T1", "a", "old")
    play.rejects("a")
    play.rejects("old")
    play.opens("T2", "a", "more")

    assert play.rejects("old", turn=None) == refused(Reason.UNKNOWN_INVOCATION)
    assert play.rejects("a", turn=None) == happens("TOOL_EXECUTION_FAILED a")


# -------------------------------------------------------------------------------- 3: membership


@each_with_turn
def test_3_no_member_of_the_active_turn(kind: str) -> None:
    """An unknown id, and one that only an earlier turn held."""
    for name in ("x", "old"):
        play = in_second_turn()
        assert play.receives(WITH_TURN[kind]("T2", name)) == refused(Reason.UNKNOWN_INVOCATION)


# ------------------------------------------------------------------------------------ the order


def test_5_turn_comes_before_membership_before_attempt_before_table() -> None:
    """Each wrong thing hides those after it."""
    play = in_second_turn()
    play.claims("new")
    play.reports("new", 7)

    assert play.reports("x", 8, attempt=9, turn="T9") == refused(Reason.TURN_MISMATCH)
    assert play.reports("old", 8, attempt=9, turn="T1") == refused(Reason.LATE)
    assert play.reports("x", 8, attempt=9, turn="T2") == refused(Reason.UNKNOWN_INVOCATION)
    assert play.reports("new", 8, attempt=9, turn="T2") == refused(Reason.STALE_ATTEMPT)
    assert play.reports("new", 8, attempt=1, turn="T2") == refused(Reason.CONFLICTING_DUPLICATE)
    assert play.reports("new", 7, attempt=1, turn="T2") == refused(Reason.DUPLICATE)

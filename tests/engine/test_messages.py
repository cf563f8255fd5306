"""What the doors of the engine say when they refuse, to the letter: place, cause and fix (K-8)."""

from __future__ import annotations

import math
from typing import Any

import pytest

from turnlock import Call, Claim, CorruptJournal, Kernel, Limits, OpenTurn, Run, Tick
from turnlock.engine.inbox import Inbox
from turnlock.engine.runs import Runs
from turnlock.models.errors import InboxFull, InvalidValue, TurnlockError

from .test_snapshot import FULL, impossible

STRANGER = "delivery: 'tick' is no delivery; build one of turnlock.models.deliveries"


@pytest.mark.parametrize(
    ("delivery", "now", "text"),
    [
        ("tick", 0.0, STRANGER),
        (Tick(), "now", "now: 'now' is not a number; give a number"),
        (Tick(), math.inf, "now: inf is not finite; give a finite number"),
        (Tick(), -math.inf, "now: -inf is not finite; give a finite number"),
        (Tick(), math.nan, "now: nan is not finite; give a finite number"),
    ],
)
def test_a_kernel_says_what_it_cannot_receive(delivery: Any, now: Any, text: str) -> None:
    kernel = Kernel(Run(run_id="r"))

    with pytest.raises(InvalidValue) as raised:
        kernel.receive(delivery, now)
    with pytest.raises(InvalidValue) as raised_of_many:
        kernel.receive_many([(delivery, now)])

    assert str(raised.value) == str(raised_of_many.value) == text


def test_a_time_that_is_a_whole_number_is_received() -> None:
    assert Kernel(Run(run_id="r")).receive(Tick(), 1).accepted


def test_an_inbox_says_what_it_cannot_hold() -> None:
    stranger: Any = "tick"
    inbox = Inbox(capacity=1)
    inbox.put(Tick())

    with pytest.raises(InvalidValue) as raised:
        inbox.put(stranger)
    with pytest.raises(InboxFull) as full:
        inbox.put(Tick())
    with pytest.raises(InvalidValue) as bounded:
        Inbox(capacity=0)

    assert str(raised.value) == STRANGER
    assert str(full.value) == (
        "the inbox holds 1 deliveries, its capacity; take some, then put this one again"
    )
    assert str(bounded.value) == "capacity: 0 is no positive whole number; give 1 or more"


def test_a_registry_says_whose_kernel_it_holds() -> None:
    runs = Runs()
    runs.open(Run(run_id="r"))

    with pytest.raises(TurnlockError) as raised:
        runs.adopt(Kernel(Run(run_id="r")))

    assert str(raised.value) == (
        "run 'r' is held with another kernel; go on with that one (get), or close it first"
    )


def test_a_kernel_that_is_adopted_is_woken() -> None:
    """Under its own name, and at its own time."""
    kernel = Kernel(Run(run_id="r"))
    call = Call(invocation_id="a", tool_name="ls", arguments={}, requires_approval=False)
    kernel.receive(OpenTurn(turn_id="T1", calls=(call,)), 0.0)
    kernel.receive(Claim(turn_id="T1", invocation_id="a", attempt=1, lease=5.0), 0.0)
    runs = Runs()

    runs.adopt(kernel)

    assert [run_id for run_id, _ in runs.wake(6.0)] == ["r"]


def test_a_snapshot_of_another_run_is_refused_with_both() -> None:
    snapshot = Kernel(Run(run_id="r", limits=Limits(calls=3))).snapshot()

    with pytest.raises(CorruptJournal) as raised:
        Kernel.recover(Run(run_id="r"), [], snapshot=snapshot)

    assert str(raised.value) == (
        "fact 0: the snapshot is of Run(run_id='r', limits=Limits(calls=3)), "
        "not of Run(run_id='r', limits=Limits()); "
        "give the configuration that the run had: identity and limits"
    )


SAYS = {
    "closed twice": "that a turn closed twice",
    "a pair closed twice": "that a turn closed twice",
    "grants out of order": "that grants were issued out of order",
    "grants not yet issued": "that grants were issued out of order",
    "another's grant id": "that a grant has another's id",
    "no time": "that facts happened at no time, or none at some time",
    "a closed turn": "that a closed turn is active",
    "grace without interrupt": "that a turn which is SEALED has no grace, or has one",
    "interrupt without grace": "that a turn which is INTERRUPTING has no grace, or has one",
    "one id twice": "that two invocations of the turn have one id",
    "all terminal": "that a turn whose members are all terminal is active",
    "waiting, unasked": "of 'a' what cannot be while REQUESTED",
    "approved with a deadline": "of 'a' what cannot be while APPROVED",
    "running, never started": "of 'b' what cannot be while STARTED",
    "doubtful, with a worker": "of 'b' what cannot be while IN_DOUBT",
    "done without an outcome": "of 'c' what cannot be while FAILED",
}


@pytest.mark.parametrize("name", SAYS)
def test_a_snapshot_says_what_no_run_can_be(name: str) -> None:
    with pytest.raises(CorruptJournal) as raised:
        Kernel.recover(FULL.run, [], snapshot=impossible()[name])

    assert str(raised.value) == (
        f"fact {FULL.sequence}: the snapshot says {SAYS[name]}; "
        "restore it from a copy, or fold the journal instead"
    )

"""What counts as the same state: see also the wire's digest, in tests/wire."""

from __future__ import annotations

import json
from typing import Any

import pytest

from turnlock import Kernel, Limits, Run
from turnlock.engine.fingerprint import behaviour, fingerprint
from turnlock.engine.kernel import state_of
from turnlock.engine.state import State
from turnlock.models.codec import read_delivery

Step = dict[str, Any]

CALLS: list[Step] = [
    {"invocation_id": "a", "tool_name": "ls", "arguments": {}, "requires_approval": False},
    {"invocation_id": "b", "tool_name": "ls", "arguments": {"n": 1}, "requires_approval": True},
]
OPEN: Step = {"type": "open_turn", "turn_id": "T1", "calls": CALLS}
ABOUT: Step = {"turn_id": "T1", "invocation_id": "a"}
CLAIM: Step = {"type": "claim", **ABOUT, "attempt": 1, "lease": 5}
LOSE: Step = {"type": "lose", **ABOUT}
REPORT: Step = {"type": "report", **ABOUT, "result": 1}
APPROVE: Step = {"type": "decide", "turn_id": "T1", "invocation_id": "b", "approved": True}


def retry(attempt: int) -> list[Step]:
    """A retry after `attempt`, up to the next doubt."""
    return [
        {"type": "resolve", **ABOUT, "attempt": attempt, "as": "retry"},
        {"type": "claim", **ABOUT, "attempt": attempt + 1},
        LOSE,
    ]


def played(*script: Step, now: float = 0.0, **limits: int) -> State:
    """The state of a kernel that received these at `now`."""
    kernel = Kernel(Run(run_id="r", limits=Limits(**limits)))
    for delivery in script:
        assert kernel.receive(read_delivery(json.loads(json.dumps(delivery))), now).accepted
    return state_of(kernel)


def test_times_count_from_now() -> None:
    """Moved in time, a state is the same one; seen from another time, it is not."""
    early, late = played(OPEN, CLAIM), played(OPEN, CLAIM, now=64.0)

    assert behaviour(early, 0.0) == behaviour(late, 64.0)
    assert behaviour(early, 0.0) != behaviour(early, 1.0)
    assert fingerprint(early) == fingerprint(late)


def test_a_clock_that_may_run_backwards_sees_the_latest_fact() -> None:
    """K-10: an earlier time is taken for the latest fact's, so how far back that lies counts."""
    early, late = played(OPEN), played(OPEN, now=1.0)

    assert behaviour(early, 1.0) == behaviour(late, 1.0)
    assert behaviour(early, 0.0) != behaviour(late, 0.0)


def test_the_second_and_the_third_attempt_behave_alike() -> None:
    """Told apart are none, the first, and later ones; the wire's digest tells the numbers."""
    first = played(OPEN, CLAIM, LOSE)
    second = played(OPEN, CLAIM, LOSE, *retry(1))
    third = played(OPEN, CLAIM, LOSE, *retry(1), *retry(2))

    assert behaviour(first, 0.0) != behaviour(second, 0.0) == behaviour(third, 0.0)
    assert fingerprint(second) != fingerprint(third)


def test_a_grant_behaves_alike_whatever_its_number() -> None:
    """Only that one was ever issued is told; the wire's digest tells the numbers."""
    session: Step = {**APPROVE, "scope": "session"}
    revoke: Step = {"type": "revoke", "grant_id": "grant/r/1"}
    end = [CLAIM, REPORT, {"type": "reject", **ABOUT, "invocation_id": "b", "error": "no"}]
    again = [{**step, "turn_id": "T2"} for step in (OPEN, session)]
    once = played(OPEN, session, revoke, *end, again[0], remembered=0)
    twice = played(
        OPEN, session, revoke, *end, *again, {**revoke, "grant_id": "grant/r/2"}, remembered=0
    )

    assert once.grants.issued == 1
    assert twice.grants.issued == 2
    assert behaviour(once, 0.0)[0] == behaviour(twice, 0.0)[0]
    assert fingerprint(once) != fingerprint(twice)


@pytest.mark.parametrize(
    ("one", "other"),
    [(1, True), (1, 1.0), (0, False), (0, 0.0), ({}, []), ("", None), ("{}", {}), ("1", 1)],
)
def test_results_that_only_python_holds_equal_are_told_apart(one: object, other: object) -> None:
    """S of section 6 compares canonical JSON, so must the key."""
    states = [played(OPEN, CLAIM, {**REPORT, "result": result}) for result in (one, other)]

    assert behaviour(states[0], 0.0) != behaviour(states[1], 0.0)
    assert fingerprint(states[0]) != fingerprint(states[1])


def test_a_lease_that_the_grace_forestalls_is_not_told() -> None:
    """The end of the grace ends what runs; a lease that would be over only later never is."""
    stop: Step = {"type": "interrupt", "turn_id": "T1", "grace": 1}
    five = played(OPEN, CLAIM, stop)
    six = played(OPEN, {**CLAIM, "lease": 6}, stop)
    one = played(OPEN, {**CLAIM, "lease": 1}, stop)

    assert behaviour(five, 0.0) == behaviour(six, 0.0) != behaviour(one, 0.0)


def test_a_turn_grant_covers_nothing_more_once_no_call_can_come() -> None:
    """Only that it can be revoked is told; in an open turn, and for the session, what it covers."""
    kinds = [{"match": "exact"}, {"match": "tool"}]
    sealed = [played(OPEN, {**APPROVE, "scope": "turn", **kind}) for kind in kinds]
    open_ = [
        played({**OPEN, "sealed": False}, {**APPROVE, "scope": "turn", **kind}) for kind in kinds
    ]
    session = [played(OPEN, {**APPROVE, "scope": "session", **kind}) for kind in kinds]

    assert behaviour(sealed[0], 0.0)[0] == behaviour(sealed[1], 0.0)[0]
    assert behaviour(open_[0], 0.0)[0] != behaviour(open_[1], 0.0)[0]
    assert behaviour(session[0], 0.0)[0] != behaviour(session[1], 0.0)[0]

"""What each part of a state adds to what can be seen of it: pairs that only that part tells apart.

tests/engine/test_fingerprint.py and the wire's digest hold the principles.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from turnlock import Kernel, Limits, Run
from turnlock.engine.fingerprint import behaviour, fingerprint
from turnlock.engine.kernel import state_of
from turnlock.engine.state import State
from turnlock.models.codec import read_delivery

Step = dict[str, Any]


def call(name: str, **more: Any) -> Step:
    fixed: Step = {
        "invocation_id": name,
        "tool_name": "ls",
        "arguments": {},
        "requires_approval": False,
    }
    return {**fixed, **more}


def opens(turn: str, *calls: Step, sealed: bool = True) -> Step:
    return {"type": "open_turn", "turn_id": turn, "calls": list(calls), "sealed": sealed}


def rejects(turn: str, name: str, error: str = "no") -> Step:
    return {"type": "reject", "turn_id": turn, "invocation_id": name, "error": error}


def takes(turn: str) -> Step:
    return {"type": "acknowledge", "turn_id": turn}


def claims(name: str, **more: Any) -> Step:
    return {"type": "claim", "turn_id": "T", "invocation_id": name, "attempt": 1, **more}


def reports(name: str, result: Any) -> Step:
    return {"type": "report", "turn_id": "T", "invocation_id": name, "result": result}


def decides(name: str, **more: Any) -> Step:
    return {"type": "decide", "turn_id": "T", "invocation_id": name, "approved": True, **more}


STOP: Step = {"type": "interrupt", "turn_id": "T", "grace": 5}
EMPTY = [opens("T", sealed=False), {"type": "seal_turn", "turn_id": "T"}]


def played(*script: Step, now: float = 0.0, **limits: int) -> State:
    """The state of a kernel that received these at `now`."""
    kernel = Kernel(Run(run_id="r", limits=Limits(**limits)))
    for delivery in script:
        assert kernel.receive(read_delivery(json.loads(json.dumps(delivery))), now).accepted
    return state_of(kernel)


def alike(one: list[Step], other: list[Step], **limits: int) -> bool:
    """Whether nothing tells these two apart."""
    states = [played(*script, **limits) for script in (one, other)]
    return behaviour(states[0], 0.0) == behaviour(states[1], 0.0)


def test_a_turn_without_calls_is_remembered() -> None:
    """Its id cannot be used again (K-21), and no invocation tells so."""
    other = [{**step, "turn_id": "U"} for step in EMPTY]

    assert not alike(EMPTY, other)
    assert alike(EMPTY, other, remembered=0)


@pytest.mark.parametrize("turn", [0, 1])
def test_each_turn_that_is_remembered_tells_its_invocations(turn: int) -> None:
    def closed(*names: str) -> list[Step]:
        return [
            step
            for turn_id, name in zip("TU", names, strict=True)
            for step in (opens(turn_id, call(name)), rejects(turn_id, name), takes(turn_id))
        ]

    names = ["a", "b"]
    names[turn] = "c"

    assert not alike(closed("a", "b"), closed(*names))


def closing(turn: str, *names: str) -> list[Step]:
    """A turn of these calls that has come to its end."""
    ends = [rejects(turn, name) for name in names]
    return [opens(turn, *map(call, names)), *ends, takes(turn)]


def test_what_is_remembered_is_told_beside_what_is_open() -> None:
    """K-20: the ids of the turn before are taken while another turn runs, too."""
    later = opens("U", call("b"))

    assert not alike([*closing("T", "a"), later], [*closing("T", "c"), later])


def test_when_a_turn_was_closed_is_counted_from_now() -> None:
    """How long it is remembered does not depend on when the run began."""
    early, late = (played(*closing("T", "a"), now=now) for now in (0.0, 64.0))

    assert behaviour(early, 1.0) == behaviour(late, 65.0)
    assert behaviour(early, 1.0) != behaviour(early, 2.0)


def test_that_a_call_is_observed_is_told_until_it_has_ended() -> None:
    """K-58: nothing is owed for it and it is not ours to retry, while there is anything to do."""

    def scripts(*more: Step) -> list[list[Step]]:
        return [[opens("T", call("a", observed=flag), call("b")), *more] for flag in (True, False)]

    assert not alike(*scripts())
    assert not alike(*scripts(claims("a")))
    assert alike(*scripts(claims("a"), reports("a", 1)))


def test_each_continuation_tells_its_results() -> None:
    """The earlier one, too, and which result is in which."""

    def owed(first: dict[str, str], second: dict[str, str]) -> list[Step]:
        return [
            step
            for turn, errors in (("T", first), ("U", second))
            for step in (
                opens(turn, *map(call, errors)),
                *(rejects(turn, name, error) for name, error in errors.items()),
            )
        ]

    one = owed({"a": "x"}, {"b": "y", "c": "z"})

    assert not alike(one, owed({"a": "o"}, {"b": "y", "c": "z"}), remembered=0)
    assert not alike(one, owed({"a": "x"}, {"b": "y", "c": "o"}), remembered=0)
    assert not alike(one, owed({"a": "x", "b": "y"}, {"c": "z"}), remembered=0)


def test_what_will_never_run_or_continue_again_is_not_told() -> None:
    """K-53: an interrupted turn has no continuation, and none of its calls starts again."""

    def stopped(**more: Any) -> list[Step]:
        return [opens("T", call("a", **more), call("b")), claims("a")]

    def denied(reason: str) -> list[Step]:
        calls = (call("a"), call("b", requires_approval=True))
        return [opens("T", *calls), claims("a"), decides("b", approved=False, reason=reason)]

    for one, other in [
        (stopped(), stopped(provider_call_id="p")),
        (stopped(), stopped(arguments={"n": 1})),
        (denied("x"), denied("y")),
    ]:
        assert not alike(one, other)
        assert alike([*one, STOP], [*other, STOP])


def test_a_result_is_told_even_while_its_turn_is_interrupted() -> None:
    """Section 6: the same report once more is a duplicate, another one a conflict."""
    before = [opens("T", call("a"), call("b")), claims("a"), claims("b")]

    assert not alike([*before, reports("b", 1), STOP], [*before, reports("b", 2), STOP])


def test_that_a_grant_was_ever_issued_is_told() -> None:
    """Its id can be told from one that never was."""
    asked = opens("T", call("a", requires_approval=True), call("b"))
    end = [rejects("T", "a"), rejects("T", "b"), takes("T")]
    granted = [asked, decides("a", scope="session"), {"type": "revoke", "grant_id": "grant/r/1"}]

    assert not alike([asked, decides("a"), *end], [*granted, *end], remembered=0)


@pytest.mark.parametrize(
    ("match", "call_", "other", "same"),
    [
        ("exact", {}, {"arguments": {"n": 1}}, False),
        ("exact", {}, {"tool_name": "rm"}, False),
        ("exact", {"arguments": {"a": 1, "b": 2}}, {"arguments": {"b": 2, "a": 1}}, True),
        ("tool", {}, {"arguments": {"n": 1}}, True),
        ("tool", {}, {"tool_name": "rm"}, False),
    ],
)
def test_a_grant_tells_what_it_covers(match: str, call_: Step, other: Step, *, same: bool) -> None:
    """K-32: a tool, and of an exact grant the canonical arguments."""

    def granted(of: Step) -> list[Step]:
        asked = opens("T", call("a", requires_approval=True, **of))
        return [asked, decides("a", scope="session", match=match), rejects("T", "a"), takes("T")]

    assert alike(granted(call_), granted(other), remembered=0) is same


def test_arguments_are_told_by_their_canonical_text() -> None:
    """K-32: the order of keys is none of it."""
    orders = ({"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1, "b": 2.0})
    one, other, third = ([opens("T", call("a", arguments=order))] for order in orders)

    assert alike(one, other)
    assert not alike(one, third)


def test_a_turn_s_grant_that_the_grace_forestalls_does_not_tell_its_expiry() -> None:
    """It ends with its turn at the latest."""

    def granted(expires_in: int) -> list[Step]:
        calls = (call("a", requires_approval=True), call("b"))
        approve = decides("a", scope="turn", expires_in=expires_in)
        return [opens("T", *calls), claims("b"), approve]

    assert not alike(granted(8), granted(9))
    assert alike([*granted(8), STOP], [*granted(9), STOP])
    assert not alike([*granted(3), STOP], [*granted(4), STOP])


def test_a_lease_without_end_is_none() -> None:
    """K-34: no time is past it."""
    start = opens("T", call("a"))

    assert alike([start, claims("a")], [start, claims("a", lease=sys.float_info.max)])
    assert not alike([start, claims("a")], [start, claims("a", lease=9)])


def test_how_far_back_a_clock_ran_is_counted_from_now() -> None:
    """K-10: from another time, too."""
    steps = [opens("T", call("a"))]

    assert behaviour(played(*steps, now=5.0), 3.0) == (behaviour(played(*steps, now=4.0), 2.0))


def test_a_run_in_which_something_happened_is_another_one() -> None:
    """Its clock has begun, even if nothing else is left."""
    assert fingerprint(played(remembered=0)) != (fingerprint(played(*EMPTY, remembered=0)))

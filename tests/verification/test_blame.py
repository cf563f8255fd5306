"""Blame by where the run stood: the same difference breaks another rule in another state."""

# ruff: noqa: E501 - one case a line

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import attrs
import pytest

from turnlock.verification.findings import Finding
from turnlock.verification.fuzz.shorten import shortened
from turnlock.verification.oracle.oracle import Oracle
from turnlock.verification.rulebook import accused, differences, of_its_story
from turnlock.verification.subjects.in_process import InProcess
from turnlock.verification.subjects.subject import Capability

from .test_rulebook import (
    APPROVE,
    CLAIM,
    DONE,
    FREE,
    GATED,
    OBSERVED_LOST,
    RETRY,
    SETTLED,
    STOP,
    TAKE,
    TIMED,
    about,
    accepts,
    adds,
    drops,
    opening,
    refuses,
    sets,
)

Raw = dict[str, Any]
Plant = Callable[[Raw], None]

RUN: Raw = {"run_id": "r"}
TICK: Raw = {"type": "tick"}
LOST = about("lose", "b")
SESSION = {**APPROVE, "scope": "session"}
OTHER = {**GATED, "invocation_id": "c", "arguments": {"n": 1}}
GRANT: Raw = {"type": "revoke", "grant_id": "grant/r/1"}
THIRD = about("decide", "c", approved=True, scope="turn")
NEXT = {**opening(GATED), "turn_id": "T2"}
EXECUTE: Raw = {"type": "execute", "invocation_id": "b", "turn_id": "T1", "effect_id": "e"}


def found(run: Raw, deliveries: list[Raw], plant: Plant) -> Finding:
    """The finding of a script, a second a step, whose last answer is changed."""
    oracle = Oracle(run)
    script = tuple({**delivery, "now": float(n)} for n, delivery in enumerate(deliveries))
    *_, expected = (oracle.receive(delivery) for delivery in script)
    got = copy.deepcopy(expected)
    plant(got)
    return accused("test", run, script, expected, got)


def reopened(receipt: Raw) -> None:
    accepts(receipt)
    receipt["facts"] = [{"type": "TURN_OPENED", "turn_id": "T1"}]


def judged_first(receipt: Raw) -> None:
    accepts(receipt)
    receipt["facts"] = [{"type": "TOOL_APPROVED", "input": "approve", "invocation_id": "a"}]


def asks_instead(receipt: Raw) -> None:
    receipt["facts"][1]["type"] = "TOOL_APPROVAL_REQUESTED"


def approves_instead(receipt: Raw) -> None:
    receipt["facts"][1].update(type="TOOL_APPROVED", grant_id="grant/r/1")


def backwards(receipt: Raw) -> None:
    receipt["facts"].reverse()


def first_last(receipt: Raw) -> None:
    receipt["facts"].append(receipt["facts"].pop(0))


def approved_again(receipt: Raw) -> None:
    accepts(receipt)
    receipt["facts"] = [{"type": "TOOL_APPROVED", "input": "approve", "invocation_id": "a"}]


def denied_all_the_same(receipt: Raw) -> None:
    accepts(receipt)
    receipt["facts"] = [{"type": "TOOL_DENIED", "input": "deny", "invocation_id": "b"}]


def told_as_lost(receipt: Raw) -> None:
    accepts(receipt)
    receipt["facts"][0]["input"] = "lose"


RENEW = about("renew", "b", lease=1.0)
GRANTED = [opening(GATED, sealed=False), SESSION]
STATES: list[tuple[str, list[Raw], Plant]] = [
    # what time brought goes before the verdict, closings included
    ("K-51", [opening(TIMED), TICK, APPROVE], drops("facts", 1)),
    ("K-11", [opening(TIMED), TICK, APPROVE], judged_first),
    ("K-11", [opening(TIMED), TICK, APPROVE], sets("facts", 0, at=1.0)),
    ("K-11", [opening(FREE), {**CLAIM, "lease": 0.5}, LOST], told_as_lost),
    ("K-11", [opening(TIMED, FREE, sealed=False), CLAIM, LOST], backwards),
    ("K-57", [opening(GATED), TICK], adds("facts", type="TOOL_DENIED", input="approval_over")),
    ("K-50", [opening(FREE), CLAIM, DONE], sets("facts", 1, type="TURN_INTERRUPTED")),
    ("K-53", [opening(FREE), STOP], sets("facts", 2, type="TURN_SETTLED")),
    ("K-50", [opening(TIMED, FREE), TICK, APPROVE], adds("facts", type="TURN_SETTLED", input="settle", sequence=4)),
    ("K-11", [opening(GATED, FREE), {**SESSION, "expires_in": 4.0}, CLAIM, {**STOP, "grace": 2.0}, TICK, TICK, TICK], first_last),
    # memory, or a continuation that keeps the id
    ("K-54", [*SETTLED, TAKE, opening(FREE)], reopened),
    ("K-20", [*SETTLED, {**opening(FREE), "turn_id": "T2"}, {**CLAIM, "turn_id": "T2"}], refuses("late")),
    ("K-54", [*SETTLED, DONE], refuses("no_active_turn")),
    # falsy results, refused or spoilt
    ("K-36", [opening(FREE), CLAIM, {**DONE, "result": None}], refuses("not_started")),
    ("section 6", [opening(FREE), CLAIM, DONE], refuses("not_started")),
    ("K-30", [opening(FREE), CLAIM, DONE], refuses("duplicate")),
    ("K-53", [opening(FREE), CLAIM, STOP, DONE], refuses("interrupting")),
    ("K-35", [opening(FREE), CLAIM, LOST, DONE], refuses("lease_lost")),
    ("K-35", [opening(FREE), CLAIM, LOST, {**DONE, "result": None}], refuses("lease_lost")),
    # effects: on a refusal, too many, of whom
    ("K-2", [opening(FREE), CLAIM, CLAIM], adds("effects", **EXECUTE)),
    ("K-35", [opening(FREE), CLAIM, LOST], adds("effects", **EXECUTE)),
    ("K-33", [opening(FREE), CLAIM], adds("effects", **EXECUTE)),
    ("K-58", [opening({**FREE, "observed": True})], adds("effects", **EXECUTE)),
    ("K-58", [*OBSERVED_LOST, RETRY], refuses("interrupting")),
    # grants: what is covered, by what, and until when
    ("K-40", GRANTED, sets("facts", 1, arguments_digest="00")),
    ("K-42", [*GRANTED, STOP, NEXT], asks_instead),
    ("K-41", [*GRANTED, {"type": "add_call", "turn_id": "T1", "call": {**GATED, "invocation_id": "c"}}], asks_instead),
    ("K-42", [*GRANTED, GRANT, STOP, NEXT], approves_instead),
    # what has ended, and is counted all the same
    ("K-56", [opening(GATED, OTHER), SESSION, GRANT, THIRD], refuses("limit_reached")),
    ("K-52", [*SETTLED, TAKE, NEXT], refuses("limit_reached")),
    ("K-56", [*SETTLED, NEXT], refuses("limit_reached")),
    # who, why, for which run
    ("section 5", [opening(FREE), {**CLAIM, "run_id": "other"}], refuses("late")),
    ("section 5", [opening(FREE), CLAIM], refuses("run_mismatch")),
    ("section 4", [opening(GATED), {**APPROVE, "approved": False}], sets("facts", 0, cause="expiry")),
    ("K-33", [opening(FREE), {**CLAIM, "worker": "w"}], sets("facts", 0, worker="v")),
    ("section 3", [{"type": "log", "invocation_id": "x", "text": "t"}], refuses("late")),
    # the order of K-21: a check that was left out, not the next one
    ("K-55", [opening(epoch=7)], refuses("empty_turn")),
    # a decision that is refused breaks the table; a second fact of one kind breaks K-31
    ("section 6", [opening(GATED, FREE), APPROVE, {**APPROVE, "scope": "turn"}], refuses("duplicate")),
    ("section 6", [opening(FREE), about("decide", "b", approved=False)], denied_all_the_same),
    ("section 6", [opening(GATED, FREE), {**APPROVE, "approved": False}, about("report", "a", result=1)], refuses("conflicting_duplicate")),
    ("K-31", [opening(GATED, FREE), APPROVE, APPROVE], approved_again),
    # what a rule says of leases, grants and memory, and what it does not
    ("section 6", [opening(FREE), RENEW], refuses("already_settled")),
    ("section 6", [opening(FREE), CLAIM, LOST, RENEW], refuses("not_started")),
    ("K-34", [opening(FREE), CLAIM, LOST, RENEW], accepts),
    ("section 5", [opening(GATED, FREE), APPROVE, APPROVE], refuses("stale_attempt")),
    # one refusal in the place of another is the table's, whatever rule the row serves
    ("section 6", [opening(FREE), CLAIM, CLAIM], refuses("not_authorised")),
    ("section 6", [opening(FREE), CLAIM, LOST, LOST], refuses("not_started")),
    ("section 6", [opening(FREE), CLAIM, about("reject", "b", error="no")], accepts),
    ("section 6", [opening(FREE), DONE], refuses("already_settled")),
    ("K-33", [opening(FREE), CLAIM, CLAIM], accepts),
    ("K-33", [opening(FREE), DONE], accepts),
    # what a turn's table says of its members, and of their number
    ("section 8", [opening(FREE, sealed=False), {"type": "seal_turn", "turn_id": "T1"}], drops("facts", 0)),
    ("K-42", [opening(GATED, {**FREE, "observed": True}), SESSION, GRANT], adds("effects", type="wake", effect_id="wake/r", at=9.0)),
    ("K-33", [opening(GATED, FREE), SESSION, about("claim", "a", attempt=1)], refuses("not_approved")),
    ("K-41", [opening(GATED, {**GATED, "invocation_id": "c"}), SESSION, about("claim", "c", attempt=1)], refuses("not_approved")),
    ("K-42", [opening(GATED, FREE), SESSION, GRANT, about("claim", "a", attempt=1)], refuses("not_approved")),
    ("K-54", [*SETTLED, DONE], refuses("duplicate")),
    ("K-20", [*SETTLED, {**opening(FREE), "turn_id": "T2"}, DONE], refuses("not_started")),
    # a fact that no list has, and one that was not told though what follows from it was
    ("section 4", [opening(FREE), CLAIM], sets("facts", 0, type="TOOL_STARTED")),
    ("section 4", [opening(FREE), CLAIM, DONE], drops("facts", 0)),
    # what an acknowledgement or a revocation names, and what has ended
    ("K-22", [*SETTLED, TAKE], refuses("no_continuation")),
    ("K-22", [opening(FREE), CLAIM, TAKE], accepts),
    ("K-52", [*SETTLED, TAKE, TAKE], accepts),
    ("K-22", [*GRANTED, GRANT], refuses("unknown_grant")),
    ("K-42", [*GRANTED, STOP, GRANT], refuses("unknown_grant")),
    ("K-42", [*GRANTED, GRANT, GRANT], accepts),
    # a retry that an interrupt took back
    ("K-53", [opening(FREE), CLAIM, LOST, RETRY, STOP, {**CLAIM, "attempt": 1}], accepts),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "deliveries", "plant"), STATES)
def test_the_rule_is_that_of_the_state(rule: str, deliveries: list[Raw], plant: Plant) -> None:
    assert found(RUN, deliveries, plant).rule == rule


def test_an_execute_too_many_is_told_first() -> None:
    """It is the worst, even where the verdict is wrong, too; and the verdict is said with it."""

    def both(receipt: Raw) -> None:
        accepts(receipt)
        receipt["effects"].append(EXECUTE)

    finding = found(RUN, [opening(FREE), CLAIM, CLAIM], both)
    first, second = differences(finding.expected, finding.got)[:2]
    assert (first.too_many, second.path) == (True, "accepted")
    assert "an execute" not in finding.message
    assert "effects[0] too many: execute of b; claim was to be refused" in finding.message
    assert finding.rule == "K-33"


def test_a_grant_that_has_ended_and_is_counted_is_told_by_the_number_of_all() -> None:
    run = {"run_id": "r", "limits": {"grants": 1}}
    script = [opening(GATED, OTHER), SESSION, GRANT, THIRD]
    assert found(run, script, refuses("limit_reached")).rule == "K-42"


def test_what_closes_in_the_same_receive_is_a_matter_of_memory_too() -> None:
    """Time ends the turn first, and nothing of it is kept (K-54): no id was taken for another's."""
    run = {"run_id": "r", "limits": {"remembered": 0}}
    stopped = [opening(FREE), CLAIM, {**STOP, "grace": 0.5}]
    renewal = found(run, [*stopped, RENEW], lambda receipt: receipt.update(reason="late"))
    again = found(run, [*stopped, opening()], lambda receipt: receipt.update(reason="turn_reused"))
    assert (renewal.rule, again.rule) == ("K-54", "K-54")


def test_a_continuation_that_is_owed_keeps_the_id_by_another_rule() -> None:
    """Where nothing is remembered it is K-21 that refuses the turn, not the memory."""
    run = {"run_id": "r", "limits": {"remembered": 0}}
    assert found(run, [*SETTLED, opening(FREE)], reopened).rule == "K-21"


@pytest.mark.parametrize(
    ("deliveries", "rule", "other"),
    [
        ([opening(FREE), {"type": "recover"}, CLAIM], "K-2", "K-33"),
        ([opening(FREE), about("claim", "b", attempt=2), CLAIM], "K-2", "K-33"),
        ([opening(FREE, GATED), CLAIM, DONE, {**DONE, "result": 7}, APPROVE], "K-30", "K-2"),
        ([opening(FREE), CLAIM], "K-33", "section 6"),
        ([opening(FREE), TICK, CLAIM], "K-33", "section 6"),
        ([opening(FREE), about("log", "b", text="on it"), CLAIM], "section 3", "K-33"),
        ([opening(FREE), {**CLAIM, "worker": None}], "section 3", "K-33"),
        ([opening({**FREE, "approval_timeout": None}), CLAIM], "section 3", "K-33"),
        ([opening(FREE), CLAIM, {**DONE, "turn_id": None}], "section 6", "K-30"),
    ],
)
def test_a_script_is_blamed_for_what_it_needs(deliveries: list[Raw], rule: str, other: str) -> None:
    """A recovery, a refusal or a null that cannot be left out; without one, the answer.

    A tick may be how time passes, where that is told in steps.
    """
    finding = of_its_story(found(RUN, deliveries, refuses("not_started")))
    assert finding.rule == rule
    assert other in finding.also


class Wakeless:
    """The oracle, but it asks for no wake; one that is `deaf` knows no deadlines either."""

    capabilities: frozenset[Capability] = frozenset()

    def __init__(self, *, deaf: bool) -> None:
        self._deaf = deaf

    def reset(self, run: Raw) -> None:
        self._oracle = Oracle(run)

    def receive(self, delivery: Raw) -> Raw:
        receipt = copy.deepcopy(self._oracle.receive(delivery))
        receipt["effects"] = [one for one in receipt["effects"] if one["type"] != "wake"]
        if self._deaf and delivery["type"] == "tick":
            receipt["facts"] = []
        return receipt


@pytest.mark.parametrize(("deaf", "rule"), [(False, "section 9"), (True, "K-34")])
def test_a_wake_that_is_missing_is_told_from_a_deadline_that_is(*, deaf: bool, rule: str) -> None:
    """A tick past it shows which: what is asked for, or what happens."""
    driver = InProcess(partial(Wakeless, deaf=deaf), name="wakeless")
    finding = found(RUN, [opening(TIMED)], drops("effects", 0))
    assert finding.rule == "section 9"
    assert shortened(attrs.evolve(finding, minimal=False), driver, plays=50).rule == rule


def without_lease(receipt: Raw) -> None:
    del receipt["facts"][0]["lease_until"]


@pytest.mark.parametrize(
    ("plant", "rule"),
    [
        (without_lease, "K-34"),
        (sets("facts", 0, lease_until=4.0), "K-10"),
    ],
)
def test_k_10_is_blamed_for_a_time_that_was_counted_and_not_for_none(
    plant: Plant, rule: str
) -> None:
    """The clock ran backwards before the claim; where no time is told, it cannot be the cause."""
    script = ({**opening(FREE), "now": 10.0}, {**CLAIM, "lease": 1.0, "now": 3.0})
    oracle = Oracle(RUN)
    *_, expected = (oracle.receive(delivery) for delivery in script)
    got = copy.deepcopy(expected)
    plant(got)

    assert accused("test", RUN, script, expected, got).rule == rule

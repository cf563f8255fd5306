"""The rulebook: every rule of kernel.md, the steps that exercise it, the answers that break it."""

from __future__ import annotations

import copy
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from turnlock.verification.oracle.oracle import Oracle
from turnlock.verification.rulebook import (
    ABSENT,
    RULES,
    blamed,
    described,
    first_difference,
    rule_called,
    rules_of,
)
from turnlock.verification.rulebook.attribution import REASON_RULES, rule_of_reason

from ..random_scripts import run, script

Raw = dict[str, Any]

NUMBERED = [*range(1, 12), *range(20, 23), *range(30, 37), *range(40, 43), *range(50, 62)]
SCRIPTS = 120


def steps(count: int) -> list[tuple[Raw, Raw]]:
    """Deliveries of random scripts, each with the oracle's receipt."""
    found: list[tuple[Raw, Raw]] = []
    for seed in range(count):
        rng = random.Random(seed)
        of = run(rng)
        oracle = Oracle(of)
        found += [(delivery, oracle.receive(delivery)) for delivery in script(rng, 40, of)]
    return found


@pytest.fixture(scope="module")
def exercised() -> Counter[str]:
    """How many steps of the random scripts exercise each rule."""
    return Counter(rule for step in steps(SCRIPTS) for rule in rules_of(*step))


def test_every_numbered_rule_stands_in_the_rulebook() -> None:
    """K-1 … K-61, and the sections whose demands have no number, each once."""
    ids = [rule.id for rule in RULES]
    assert [id_ for id_ in ids if id_.startswith("K-")] == [f"K-{number}" for number in NUMBERED]
    assert len(set(ids)) == len(ids)
    assert all(rule.title and rule.sentence.endswith(".") for rule in RULES)


def test_what_cannot_be_seen_says_how_it_is_held() -> None:
    hidden = {rule.id for rule in RULES if not rule.visible}
    assert hidden == {"K-1", "K-4", "K-5", "K-6", "K-8", "K-60", "K-61"}
    assert all(rule_called(rule).held for rule in hidden)


@pytest.mark.parametrize("rule", [rule.id for rule in RULES if rule.visible])
def test_every_visible_rule_is_exercised(rule: str, exercised: Counter[str]) -> None:
    """Random scripts reach each: a rule that no step exercises could never be seen broken."""
    assert exercised[rule] > 0


def test_only_visible_rules_are_exercised(exercised: Counter[str]) -> None:
    """The negative control: no step counts for what receipts cannot show, or for no rule at all."""
    assert set(exercised) <= {rule.id for rule in RULES if rule.visible}


def test_every_reason_has_its_rule() -> None:
    reasons = {step[1]["reason"] for step in steps(SCRIPTS) if not step[1]["accepted"]}
    assert reasons <= set(REASON_RULES)
    assert {rule_called(rule).visible for rule in REASON_RULES.values()} == {True}
    assert rule_of_reason({"type": "claim"}, "no such reason") == "section 11"


# ----------------------------------------------------------------------------------- planted faults


RUN: Raw = {"run_id": "r", "agent_id": None, "agent_name": None, "limits": {"grants": 1}}
GATED: Raw = {"invocation_id": "a", "tool_name": "ls", "arguments": {}, "requires_approval": True}
TIMED: Raw = {**GATED, "approval_timeout": 1.0}
FREE: Raw = {**GATED, "invocation_id": "b", "requires_approval": False}


def opening(*calls: Raw, **more: Any) -> Raw:
    return {"type": "open_turn", "turn_id": "T1", "calls": list(calls), **more}


def about(kind: str, name: str, **more: Any) -> Raw:
    return {"type": kind, "turn_id": "T1", "invocation_id": name, **more}


SEAL: Raw = {"type": "seal_turn", "turn_id": "T1"}
TAKE: Raw = {"type": "acknowledge", "turn_id": "T1"}
STOP: Raw = {"type": "interrupt", "turn_id": "T1", "grace": 1.0}
CLAIM = about("claim", "b", attempt=1)
LEASED = about("claim", "b", attempt=1, lease=1.0)
DONE = about("report", "b", result="ok")
APPROVE = about("decide", "a", approved=True)
RETRY = about("resolve", "b", attempt=1, **{"as": "retry"})


def last_step(deliveries: list[Raw], gap: float = 0.0) -> tuple[Raw, Raw]:
    """Play deliveries one second apart, the last after a gap, and return it with its receipt."""
    oracle = Oracle(RUN)
    timed = [{**delivery, "now": float(place)} for place, delivery in enumerate(deliveries)]
    timed[-1]["now"] += gap
    receipts = [oracle.receive(delivery) for delivery in timed]
    return timed[-1], receipts[-1]


def accepts(receipt: Raw) -> None:
    receipt.pop("reason", None)
    receipt["accepted"] = True


def refuses(reason: str) -> Callable[[Raw], None]:
    def change(receipt: Raw) -> None:
        receipt.update(accepted=False, reason=reason, facts=[], effects=[])

    return change


def sets(part: str, place: int, **fields: Any) -> Callable[[Raw], None]:
    return lambda receipt: receipt[part][place].update(fields)


def drops(part: str, place: int) -> Callable[[Raw], None]:
    return lambda receipt: receipt[part].pop(place)


def adds(part: str, **fields: Any) -> Callable[[Raw], None]:
    return lambda receipt: receipt[part].append(fields)


def turns(part: str) -> Callable[[Raw], None]:
    return lambda receipt: receipt[part].reverse()


def repeats(part: str) -> Callable[[Raw], None]:
    return lambda receipt: receipt[part].append(receipt[part][-1])


SETTLED = [opening(FREE), CLAIM, DONE]
OBSERVED_LOST = [opening({**FREE, "observed": True}), CLAIM, about("lose", "b")]
PLANTED: list[tuple[str, list[Raw], Callable[[Raw], None]]] = [
    ("K-2", [opening(FREE), CLAIM, CLAIM], adds("facts", type="LEASE_RENEWED", sequence=3)),
    ("K-2", [opening(FREE), CLAIM, {"type": "recover"}], refuses("late")),
    ("K-3", [opening(FREE), {"type": "recover"}], drops("effects", 0)),
    ("section 9", [opening(FREE)], drops("effects", 0)),
    ("K-3", [opening(FREE)], repeats("effects")),
    ("K-7", [opening(FREE)], sets("effects", 0, effect_id="execute/r/T1/b")),
    ("K-7", [opening(FREE)], sets("effects", 0, idempotency_key="call/r/T1/b")),
    ("section 4", [opening(FREE)], sets("facts", 0, sequence=2)),
    ("wire.md", [opening(FREE)], sets("facts", 0, commit=2)),
    ("K-10", [opening(FREE)], sets("facts", 0, at=7.0)),
    ("K-11", [opening(TIMED), {"type": "tick"}, {"type": "tick"}], drops("facts", 0)),
    ("K-11", [opening(TIMED), {"type": "tick"}, APPROVE], refuses("turn_mismatch")),
    ("K-20", [opening(FREE), about("claim", "x", attempt=1)], accepts),
    ("K-20", [opening(FREE), {**CLAIM, "turn_id": "T2"}], refuses("unknown_invocation")),
    ("K-21", [opening(FREE), opening(FREE)], refuses("turn_busy")),
    ("K-21", [opening(FREE, FREE)], accepts),
    ("K-22", [opening(FREE), SEAL], accepts),
    ("K-22", [opening(sealed=False), {"type": "add_call", "turn_id": "T2", "call": FREE}], accepts),
    ("K-30", [opening(FREE, GATED), CLAIM, DONE, DONE], accepts),
    ("K-30", [opening(FREE), CLAIM, DONE], sets("facts", 0, result="other")),
    ("K-31", [opening(FREE), CLAIM, about("lose", "b"), RETRY], drops("facts", 0)),
    ("section 4", [opening(GATED), APPROVE], drops("facts", 0)),
    ("section 6", [opening(GATED), APPROVE, APPROVE], refuses("not_awaiting_approval")),
    ("K-32", [opening(GATED), {**APPROVE, "arguments_digest": "00"}], accepts),
    ("K-32", [opening(GATED)], sets("facts", 1, arguments_digest="00")),
    ("K-32", [opening(GATED), APPROVE], sets("effects", 0, arguments={"n": 1})),
    ("K-33", [opening(FREE), CLAIM, CLAIM], accepts),
    ("K-33", [opening(GATED), about("claim", "a", attempt=1)], accepts),
    ("K-33", [opening(FREE), about("claim", "b", attempt=2)], accepts),
    ("K-34", [opening(FREE), LEASED], sets("facts", 0, lease_until=9.0)),
    (
        "K-34",
        [opening(FREE), LEASED, {"type": "tick"}],
        adds("facts", type="EXECUTION_IN_DOUBT", input="lease_over", invocation_id="b"),
    ),
    ("K-35", [opening(FREE), CLAIM, about("lose", "b")], refuses("not_started")),
    ("K-35", [opening(FREE), CLAIM, about("resolve", "b", attempt=1, **{"as": "retry"})], accepts),
    ("K-36", [opening(FREE), CLAIM, {**DONE, "result": None}], sets("facts", 0, result="null")),
    ("K-40", [opening(GATED), {**APPROVE, "scope": "turn"}], drops("facts", 1)),
    ("K-40", [opening(GATED), {**APPROVE, "scope": "turn"}], sets("facts", 1, match="tool")),
    (
        "K-41",
        [opening(GATED, {**GATED, "invocation_id": "c"}), {**APPROVE, "scope": "turn"}],
        drops("facts", 2),
    ),
    ("K-22", [{"type": "revoke", "grant_id": "grant/r/1"}], accepts),
    ("K-50", [opening(FREE), CLAIM, DONE], drops("facts", 1)),
    ("K-50", [opening(FREE, GATED), CLAIM, DONE], adds("facts", type="TURN_SETTLED", sequence=4)),
    ("K-52", [opening(FREE), CLAIM, DONE], drops("effects", 0)),
    ("K-52", [opening(FREE), CLAIM, DONE], sets("effects", 0, results=[])),
    ("K-22", [TAKE], accepts),
    ("K-53", [opening(FREE), CLAIM, STOP], drops("effects", 0)),
    ("K-53", [opening(FREE), STOP], drops("facts", 1)),
    ("K-53", [opening(FREE), CLAIM, STOP, {"type": "tick"}, {"type": "tick"}], drops("facts", 0)),
    ("K-54", [*SETTLED, DONE], refuses("no_active_turn")),
    ("K-54", [*SETTLED, TAKE, opening(FREE)], accepts),
    ("K-55", [opening(FREE, epoch=2)], accepts),
    ("K-57", [opening(FREE), CLAIM], sets("facts", 0, lease_until=9.0)),
    ("K-58", [*OBSERVED_LOST, RETRY], accepts),
    ("K-58", [*OBSERVED_LOST, RETRY], refuses("not_in_doubt")),
    ("K-59", [opening(FREE), CLAIM], sets("facts", 0, input="lose")),
    ("K-59", [opening(FREE, GATED), CLAIM, DONE], sets("facts", 0, input="resolve_result")),
    ("section 4", [opening(GATED, {**GATED, "invocation_id": "c"}), STOP], turns("facts")),
    ("section 4", [opening(FREE)], sets("facts", 0, turn_id="T2")),
    ("section 5", [opening(FREE), {**CLAIM, "run_id": "other"}], accepts),
    ("section 9", [opening(TIMED)], drops("effects", 0)),
    ("section 11", [opening(FREE), CLAIM, CLAIM], refuses("because")),
]


@pytest.mark.parametrize(("rule", "deliveries", "plant"), PLANTED)
def test_a_planted_fault_is_blamed_on_its_rule(
    rule: str, deliveries: list[Raw], plant: Callable[[Raw], None]
) -> None:
    """The most specific rule; the step exercises rules, and the fault is said in a sentence."""
    delivery, expected = last_step(deliveries)
    got = copy.deepcopy(expected)
    plant(got)
    assert first_difference(expected, got) is not None
    assert blamed(delivery, expected, got) == rule
    assert str(delivery["type"]) in described(delivery, expected, got)
    assert "expected one" not in described(delivery, expected, got)


@pytest.mark.parametrize("got", [None, {}, {"accepted": True}, "no", {"accepted": 1, "facts": []}])
def test_what_is_no_receipt_breaks_the_wire(got: Any) -> None:
    delivery, expected = last_step([opening(FREE)])
    assert blamed(delivery, expected, got) == "section 12"
    assert described(delivery, expected, got) == "open_turn was answered by no receipt"


def test_the_same_answer_differs_in_nothing() -> None:
    """The other control: not even where another language writes 1 for 1.0, or orders effects."""
    delivery, expected = last_step([opening(FREE, TIMED)])
    got = copy.deepcopy(expected)
    got["effects"].reverse()
    got["facts"][0]["at"] = int(got["facts"][0]["at"])
    assert first_difference(expected, got) is None
    assert described(delivery, expected, got) == "the answer to open_turn is the expected one"


def test_true_is_not_one() -> None:
    _, expected = last_step([opening(FREE), CLAIM, {**DONE, "result": True}])
    got = copy.deepcopy(expected)
    got["facts"][0]["result"] = 1
    found = first_difference(expected, got)
    assert found is not None
    assert (found.path, found.expected, found.got) == ("facts[0].result", True, 1)


def test_a_difference_names_the_place() -> None:
    """The path leads to the first field that differs; what is not there is absent."""
    _, expected = last_step([opening(FREE), CLAIM, DONE])
    got = copy.deepcopy(expected)
    got["facts"].pop()
    found = first_difference(expected, got)
    assert found is not None
    assert (found.path, found.field, found.got) == ("facts[1]", "", ABSENT)
    assert found.part == expected["facts"][1]


def test_random_faults_are_blamed_on_visible_rules() -> None:
    """Whatever part of a receipt is lost, changed or doubled, some rule of the book is broken."""
    rng = random.Random(1)
    for delivery, expected in steps(40):
        got = copy.deepcopy(expected)
        parts = [part for part in ("facts", "effects") if got[part]]
        if not parts:
            continue
        part = rng.choice(parts)
        place = rng.randrange(len(got[part]))
        name = rng.choice(sorted(got[part][place]))
        plant = rng.choice(
            [drops(part, place), repeats(part), sets(part, place, **{name: "planted"})]
        )
        plant(got)
        rule = rule_called(blamed(delivery, expected, got))
        assert rule.visible

"""The oracle against the spec's own examples, and the script generator's reach."""

# ruff: noqa: SIM905

# Wire messages are plain dicts of anything: the oracle is dumb on purpose.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportOptionalSubscript=false

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest

from turnlock.verification.oracle.fold import refold
from turnlock.verification.oracle.oracle import Oracle
from turnlock.verification.oracle.reading import canonical

from ..random_scripts import TYPES, run, script
from .depth import DEEP

EXAMPLES = Path(__file__).parents[2] / "docs" / "spec" / "wire-examples.jsonl"

# Section 11, the closed list.
REASONS = (
    "run_mismatch late no_active_turn turn_mismatch unknown_invocation ambiguous_invocation "
    "stale_attempt stale_epoch turn_open turn_busy turn_reused duplicate_invocation empty_turn "
    "turn_sealed interrupting duplicate conflicting_duplicate already_decided "
    "not_awaiting_approval not_approved not_started already_started already_settled "
    "not_authorised not_in_doubt lease_lost arguments_mismatch no_continuation unknown_grant "
    "not_owned limit_reached"
).split()

# Section 4, all families.
FACTS = (
    "TOOL_APPROVAL_REQUESTED TOOL_APPROVED TOOL_DENIED TOOL_EXECUTION_STARTED "
    "TOOL_EXECUTION_SUCCEEDED TOOL_EXECUTION_FAILED TURN_OPENED CALL_ADDED TURN_SEALED "
    "TURN_SETTLED TURN_INTERRUPTING TURN_INTERRUPTED CONTINUATION_TAKEN EXECUTION_IN_DOUBT "
    "RETRY_AUTHORISED EXECUTION_RETRIED LEASE_RENEWED GRANT_ISSUED GRANT_REVOKED GRANT_EXPIRED"
).split()

SCRIPTS = 800 if DEEP else 400
LENGTH = 40


def examples() -> list[dict[str, Any]]:
    """The scripts of wire-examples.jsonl."""
    lines = EXAMPLES.read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.strip()]


def shows(expected: Any, actual: Any) -> bool:
    """Every field shown is there with that value; more fields may be; lists match one to one."""
    if isinstance(expected, dict):
        return isinstance(actual, dict) and all(
            name in actual and shows(value, actual[name]) for name, value in expected.items()
        )
    if isinstance(expected, list):
        return (
            isinstance(actual, list)
            and len(expected) == len(actual)
            and all(shows(one, other) for one, other in zip(expected, actual, strict=True))
        )
    return canonical(expected) == canonical(actual)


def without_wakes(receipt: dict[str, Any]) -> dict[str, Any]:
    """The examples leave wake effects out."""
    kept = [effect for effect in receipt["effects"] if effect["type"] != "wake"]
    return {**receipt, "effects": kept}


@pytest.mark.parametrize("example", examples(), ids=lambda example: str(example["title"]))
def test_oracle_answers_the_examples(example: dict[str, Any]) -> None:
    oracle = Oracle({"run_id": "r", "agent_id": None, "agent_name": None, "limits": {}})
    assert len(example["script"]) == len(example["receipts"])
    for delivery, expected in zip(example["script"], example["receipts"], strict=True):
        receipt = oracle.receive(delivery)
        assert shows(expected, without_wakes(receipt)), (delivery, expected, receipt)


class Reach:
    """What the seeded scripts reached."""

    def __init__(self) -> None:
        self.reasons: dict[str, int] = {}
        self.accepted: dict[str, int] = {}
        self.facts: dict[str, int] = {}

    def note(self, delivery: dict[str, Any], receipt: dict[str, Any]) -> None:
        if receipt["accepted"]:
            self.accepted[delivery["type"]] = self.accepted.get(delivery["type"], 0) + 1
        else:
            self.reasons[receipt["reason"]] = self.reasons.get(receipt["reason"], 0) + 1
        for fact in receipt["facts"]:
            self.facts[fact["type"]] = self.facts.get(fact["type"], 0) + 1


@pytest.fixture(scope="module")
def reach() -> Reach:
    """Drive all scripts once, and check on the way what must hold after every delivery."""
    reached = Reach()
    for seed in range(SCRIPTS):
        rng = random.Random(seed)
        of = run(rng)
        oracle = Oracle(of)
        for delivery in script(rng, LENGTH, of):
            before = oracle.pending()
            receipt = oracle.receive(delivery)
            reached.note(delivery, receipt)
            if delivery["type"] == "recover":
                assert receipt["effects"] == before == oracle.pending()
        assert_recovers(oracle)
        assert_journal_is_numbered(oracle)
    return reached


def assert_recovers(oracle: Oracle) -> None:
    """K-2, K-3: the same facts give the same state, and the same effects are owed."""
    assert canonical(refold(oracle.journal, oracle.run)) == canonical(oracle.state)
    before = oracle.pending()
    assert oracle.receive({"type": "recover", "now": 0.0})["effects"] == before
    assert canonical(oracle.pending()) == canonical(before)


def assert_journal_is_numbered(oracle: Oracle) -> None:
    """Section 4: from 1 without gaps, in time; every commit ends with its own last fact (K-9)."""
    numbers = [fact["sequence"] for fact in oracle.journal]
    assert numbers == list(range(1, len(numbers) + 1))
    times = [fact["at"] for fact in oracle.journal]
    assert times == sorted(times)
    for fact in oracle.journal:
        assert oracle.journal[fact["commit"] - 1]["commit"] == fact["commit"]


def test_every_reason_occurs(reach: Reach) -> None:
    assert sorted(reach.reasons) == sorted(REASONS)


def test_every_type_is_accepted(reach: Reach) -> None:
    assert sorted(reach.accepted) == sorted(TYPES)


def test_every_fact_occurs(reach: Reach) -> None:
    assert sorted(reach.facts) == sorted(FACTS)


def test_a_seed_is_a_script() -> None:
    """The generator draws from nothing but its argument."""
    assert script(random.Random(7), LENGTH) == script(random.Random(7), LENGTH)


@pytest.mark.parametrize("wait", [1.7976931348623157e308, 1.7976931348623155e308])
def test_k_34_the_oracle_wakes_for_no_deadline_that_no_float_is_past(wait: float) -> None:
    """K-34: the largest float never comes due; the one before it does, at the largest."""
    call = {"invocation_id": "a", "tool_name": "ls", "arguments": {}, "requires_approval": True}
    opening = {
        "type": "open_turn",
        "now": 0.0,
        "turn_id": "T",
        "calls": [{**call, "approval_timeout": wait}],
    }

    effects = Oracle({"run_id": "r"}).receive(opening)["effects"]

    wakes = [] if wait == sys.float_info.max else [sys.float_info.max]
    assert [effect["at"] for effect in effects if effect["type"] == "wake"] == wakes

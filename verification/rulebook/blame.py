"""Which one rule a wrong answer breaks: the most specific that the step allows to name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, cast

from ...wire.plain import is_receipt
from .attribution import (
    REASON_RULES,
    Raw,
    happened_by_time,
    is_falsy_result,
    rule_of_effect,
    rule_of_fact,
    rule_of_reason,
)
from .difference import ABSENT, Difference, first_difference

_REASONS_OF_MEMORY: Final = frozenset({"late", "turn_reused"})

_FIELD_RULES: Final = {
    "input": "K-59",
    "sequence": "K-9",
    "commit": "K-9",
    "at": "K-10",
    "arguments": "K-32",
    "arguments_digest": "K-32",
    "attempt": "K-33",
    "deadline": "K-34",
    "lease_until": "K-34",
    "grace_until": "K-53",
    "epoch": "K-21",
    "calls": "K-21",
    "sealed": "K-21",
    "call": "K-22",
    "scope": "K-40",
    "match": "K-40",
    "grant_id": "K-40",
    "expires_at": "K-40",
    "result": "K-30",
    "error": "K-30",
}
"""Of a fact that is the right one, the rule of the field that is wrong."""

_DEADLINES: Final = frozenset({"deadline", "lease_until"})


def blamed(delivery: Raw, expected: Raw, got: Raw | None) -> str:
    """Return the id of the one rule that this answer breaks.

    Deadlines come first, since what they bring about changes how the delivery is judged (K-11);
    then the verdict, the facts, the effects.
    """
    found = first_difference(expected, got)
    if found is None or not is_receipt(got):
        return "section 12"
    received = cast("Raw", got)
    if delivery["type"] == "recover":
        return "K-3" if found.path.startswith("effects") else "K-2"
    by_time = _blamed_deadline(expected["facts"], received["facts"])
    if by_time is not None:
        return by_time
    return _blamed_difference(delivery, expected, received, found)


def _blamed_difference(delivery: Raw, expected: Raw, received: Raw, found: Difference) -> str:
    if found.path in {"accepted", "reason"}:
        return _blamed_verdict(delivery, expected, received)
    if found.path.startswith("facts"):
        return _blamed_facts(expected, received, found)
    return _blamed_effects(found)


def _blamed_deadline(expected: Sequence[Raw], got: Sequence[Raw]) -> str | None:
    """Blame what was due and did not happen (K-11), or happened before it was over (K-34)."""
    there = [_about(fact) for fact in got]
    for fact in _by_time(expected):
        if _about(fact) not in there:
            return "K-53" if fact["type"] == "TOOL_EXECUTION_FAILED" else "K-11"
    there = [_about(fact) for fact in expected]
    if any(_about(fact) not in there for fact in _by_time(got)):
        return "K-34"
    return None


def _by_time(facts: Sequence[Raw]) -> Iterator[Raw]:
    return (fact for fact in facts if happened_by_time(fact))


def _about(fact: Raw) -> tuple[object, ...]:
    return fact.get("type"), fact.get("invocation_id"), fact.get("grant_id")


def _blamed_verdict(delivery: Raw, expected: Raw, got: Raw) -> str:
    """Name the rule that refuses what is to be refused, or that refused what is not."""
    reason = got.get("reason")
    if not got["accepted"] and reason not in REASON_RULES:
        return "section 11"
    if expected["accepted"]:
        return rule_of_reason(delivery, str(reason))
    if expected["reason"] != "run_mismatch" and reason in _REASONS_OF_MEMORY:
        return "K-54"
    return rule_of_reason(delivery, expected["reason"])


def _blamed_facts(expected: Raw, got: Raw, found: Difference) -> str:
    fact = cast("Raw", found.part)
    if found.field:
        return _blamed_field(fact, found)
    if sorted(map(str, map(_about, expected["facts"]))) == sorted(
        map(str, map(_about, got["facts"]))
    ):
        in_time = [_about(one) for one in _by_time(expected["facts"])]
        return "K-11" if in_time else "section 4"
    if not expected["accepted"]:
        return "K-2"
    if found.got is not ABSENT and cast("Raw", found.got).get("grant_id"):
        return rule_of_fact(cast("Raw", found.got))
    return "K-36" if is_falsy_result(fact) else rule_of_fact(fact)


def _blamed_field(fact: Raw, found: Difference) -> str:
    name = found.field
    if name in _DEADLINES and found.expected is ABSENT:
        return "K-57"
    if name == "result" and is_falsy_result(fact):
        return "K-36"
    if name == "grant_id" and fact["type"] == "TOOL_APPROVED":
        return "K-41"
    return _FIELD_RULES.get(name, "section 4")


def _blamed_effects(found: Difference) -> str:
    effect = found.part
    if effect is None:
        return "K-3"
    if found.field in {"effect_id", "idempotency_key"}:
        return "K-7"
    if effect["type"] == "execute":
        return {"arguments": "K-32", "attempt": "K-33"}.get(found.field, "K-3")
    return rule_of_effect(effect)

"""Which rules a step exercises: read from the delivery and from the right receipt for it.

What a table decides is attributed by its rows, which say their rule; only what is decided before a
table is asked, or without one, is attributed here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from ...lifecycle.table import INVOCATION
from ...machines.rows import Row
from ...models.fact import FactType
from ...models.inputs import Input
from ...models.reasons import Reason
from ...turn.table import TURN
from .before import happened_by_time
from .payloads import WIRE

Raw: TypeAlias = dict[str, Any]

_ROWS: Final[tuple[Row[Any, Any], ...]] = (*TURN.rows, *INVOCATION.rows)

_RULE_OF_REFUSAL: Final[dict[tuple[str, str], str]] = {}
"""By input and reason: what the rows that refuse say; the first where several do."""
_RULE_OF_MOVE: Final[dict[tuple[str, str], str]] = {}
"""By fact, and its cause or the input that brought it about, likewise."""
_RULE_OF_ROW: Final[dict[tuple[str, str, str | None], str]] = {}
"""By phase, input and reason; None where the row moves."""
for _row in _ROWS:
    _RULE_OF_ROW.setdefault((_row.phase, _row.input, _row.reason), _row.rule)
    if _row.reason is not None:
        _RULE_OF_REFUSAL.setdefault((_row.input, _row.reason), _row.rule)
    elif _row.fact is not None:
        _RULE_OF_MOVE.setdefault((_row.fact, _row.input), _row.rule)
        _RULE_OF_MOVE.setdefault((_row.fact, _row.cause or ""), _row.rule)

_ADMISSION: Final[dict[str, str]] = {
    Reason.RUN_MISMATCH: "section 5",
    Reason.LATE: "K-54",
    Reason.NO_ACTIVE_TURN: "K-20",
    Reason.TURN_MISMATCH: "K-20",
    Reason.UNKNOWN_INVOCATION: "K-20",
    Reason.AMBIGUOUS_INVOCATION: "K-20",
    Reason.STALE_ATTEMPT: "K-33",
    Reason.STALE_EPOCH: "K-55",
    Reason.TURN_OPEN: "K-21",
    Reason.TURN_BUSY: "K-21",
    Reason.TURN_REUSED: "K-54",
    Reason.EMPTY_TURN: "K-21",
    Reason.NO_CONTINUATION: "K-52",
    Reason.UNKNOWN_GRANT: "K-42",
}
"""What is refused before any table is asked (section 5): each reason with its rule."""

_ADMISSION_OF_A_TYPE: Final[dict[tuple[str, str], str]] = {
    (Input.OPEN_TURN, Reason.DUPLICATE_INVOCATION): "K-21",
    **{
        (kind, reason): "K-22"
        for kind in (Input.ADD_CALL, Input.SEAL_TURN, Input.INTERRUPT)
        for reason in (Reason.NO_ACTIVE_TURN, Reason.TURN_MISMATCH)
    },
}

REASON_RULES: Final[dict[str, str]] = {
    reason: _ADMISSION.get(reason)
    or next(rule for (_, given), rule in _RULE_OF_REFUSAL.items() if given == reason)
    for reason in Reason
}
"""The closed list of section 11, each reason with the rule that gives it first."""

_UNASKED: Final[dict[str, str]] = {
    FactType.TOOL_APPROVAL_REQUESTED: "K-31",
    FactType.TURN_OPENED: "K-21",
    FactType.CONTINUATION_TAKEN: "K-52",
    FactType.GRANT_ISSUED: "K-40",
    FactType.GRANT_REVOKED: "K-42",
    FactType.GRANT_EXPIRED: "K-42",
}
"""The facts that no row brings about."""
_EFFECT_RULES: Final = {
    "execute": "K-33",
    "cancel": "K-53",
    "continue": "K-52",
    "wake": "section 9",
}
_OF_A_TURN: Final = frozenset({"add_call", "seal_turn", "interrupt", "acknowledge", "revoke"})
_ENDS: Final = frozenset({"TOOL_EXECUTION_SUCCEEDED", "TOOL_EXECUTION_FAILED", "TOOL_DENIED"})


def input_of(delivery: Raw) -> str:
    """Name what a delivery is to a table: a decision, a report or a resolution by what it says."""
    kind: str = delivery["type"]
    if kind == "decide":
        return Input.APPROVE if delivery["approved"] else Input.DENY
    if kind == "report":
        return Input.REPORT_ERROR if delivery.get("error") is not None else Input.REPORT_RESULT
    return f"resolve_{delivery['as']}" if kind == "resolve" else kind


def rule_of_reason(delivery: Raw, reason: str) -> str:
    """Return the rule that refuses such a delivery for this reason (section 11)."""
    asked = input_of(delivery), reason
    said = _ADMISSION_OF_A_TYPE.get(asked) or _RULE_OF_REFUSAL.get(asked)
    return said or REASON_RULES.get(reason, "section 11")


def rule_of_fact(fact: Raw) -> str:
    """Return the rule that makes this fact happen: that of its row, by cause or input (K-59)."""
    kind = str(fact.get("type"))
    return (
        _RULE_OF_MOVE.get((kind, str(fact.get("cause"))))
        or _RULE_OF_MOVE.get((kind, str(fact.get("input"))))
        or _RULE_OF_MOVE.get((kind, ""))
        or _UNASKED.get(kind, "section 4")
    )


def rule_of_effect(effect: Raw) -> str:
    """Return the rule that owes this effect (section 9)."""
    return _EFFECT_RULES.get(str(effect.get("type")), "section 12")


def rule_of_phase(phase: str | None, asked: str, reason: str | None) -> str | None:
    """Return the rule of the row that answers such an input in a phase: by moving, or so."""
    return _RULE_OF_ROW.get((phase or "", asked, reason))


def is_falsy(value: object) -> bool:
    """Whether a result is one of those that K-36 names, such as `null`, `0` or an empty list."""
    return not value


def is_falsy_result(fact: Raw) -> bool:
    """Whether the fact is a success with a result such as `null`, `0` or an empty list (K-36)."""
    return fact.get("type") == "TOOL_EXECUTION_SUCCEEDED" and is_falsy(fact.get("result"))


def rules_of(delivery: Raw, expected: Raw) -> frozenset[str]:
    """Return the rules that a step exercises, by what it delivers and how it is to be answered."""
    found = {"section 12"}
    _of_the_verdict(found, delivery, expected)
    if expected["facts"]:
        _of_the_facts(found, delivery, expected["facts"])
    if expected["effects"]:
        found |= _OF_EFFECTS
        found.update(map(rule_of_effect, expected["effects"]))
    return frozenset(found)


_OF_EFFECTS: Final = frozenset({"K-3", "K-7", "section 9"})
_OF_RECOVERY: Final = frozenset({"K-2", "K-3"})
_OF_REFUSALS: Final = frozenset({"K-2", "section 11"})
_OF_INVOCATIONS: Final = frozenset({"K-20", "section 6"})
_OF_FACTS: Final = frozenset({"K-9", "section 4", WIRE})


def _of_the_verdict(found: set[str], delivery: Raw, expected: Raw) -> None:
    kind = delivery["type"]
    if kind == "recover":
        found |= _OF_RECOVERY
        return
    accepted = expected["accepted"]
    if not accepted:
        found |= _OF_REFUSALS
        found.add(rule_of_reason(delivery, expected["reason"]))
        if expected["reason"] == "run_mismatch":
            return
    if kind == "open_turn":
        found.add("K-21")
        if delivery.get("epoch") is not None:
            found.add("K-55")
    elif kind in _OF_A_TURN:
        found.add("K-22")
    elif "invocation_id" in delivery and kind != "log":
        found |= _OF_INVOCATIONS
    if has_nulls(delivery):
        found.add("section 3")
    if accepted:
        _of_what_was_accepted(found, delivery)


def has_nulls(delivery: Raw) -> bool:
    """Whether a field that may be absent is null, in the delivery or in a call of it."""
    if _is_null_in(delivery):
        return True
    calls = [delivery["call"]] if "call" in delivery else delivery.get("calls", ())
    return any(map(_is_null_in, calls))


def _is_null_in(part: Raw) -> bool:
    if None not in part.values():
        return False
    return any(value is None and name != "result" for name, value in part.items())


def _of_what_was_accepted(found: set[str], delivery: Raw) -> None:
    kind = delivery["type"]
    if kind == "decide":
        if delivery.get("arguments") is not None or delivery.get("arguments_digest") is not None:
            found.add("K-32")
        if not delivery["approved"]:
            found.add("K-42")
    elif kind in {"log", "tick"}:
        found.add("section 3")
    elif kind == "claim":
        found.add("K-57" if delivery.get("lease") is None else "K-34")
    elif kind in {"open_turn", "add_call"}:
        calls = delivery["calls"] if kind == "open_turn" else [delivery["call"]]
        for call in calls:
            if call.get("observed"):
                found.add("K-58")
            if call["requires_approval"] and not call.get("approval_timeout"):
                found.add("K-57")


def _of_the_facts(found: set[str], delivery: Raw, facts: Sequence[Raw]) -> None:
    found |= _OF_FACTS
    settled = any(fact["type"] == "TURN_SETTLED" for fact in facts)
    for fact in facts:
        kind = fact["type"]
        found.add(rule_of_fact(fact))
        if "input" in fact:
            found.add("K-59")
        if fact["at"] > delivery["now"]:
            found.add("K-10")
        if happened_by_time(fact):
            found |= _BY_TIME
        if is_falsy_result(fact):
            found.add("K-36")
        if kind == "TOOL_APPROVAL_REQUESTED":
            found.add("K-32")
        if kind in _ENDS:
            found |= _OF_ENDS
            if settled:
                found.add("K-51")


_BY_TIME: Final = frozenset({"K-11", "K-34"})
_OF_ENDS: Final = frozenset({"K-31", "K-50"})

"""What a suite reaches of the spec: reasons, rules, and pairs of phase and input.

Counted is each transition of a suite's machine, once: its tests play every one of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import attrs

from ...lifecycle.phases import Input
from ...lifecycle.table import INVOCATION
from ...models.reasons import Reason
from ...turn.phases import TurnInput
from ...turn.table import TURN
from ..findings import Coverage, Raw
from ..oracle.reading import digest_of, find_record, grant_covers
from ..rulebook import RULES, rules_of
from .mealy import access_words
from .suite import Suite
from .walks import Step

_POSSIBLE: Final = [
    f"{row.phase} × {row.input}"
    for rows in (INVOCATION.rows, TURN.rows)
    for row in rows
    if row.possible
]
_BEFORE_THE_TABLE: Final = frozenset(
    {
        Reason.RUN_MISMATCH,
        Reason.LATE,
        Reason.NO_ACTIVE_TURN,
        Reason.TURN_MISMATCH,
        Reason.UNKNOWN_INVOCATION,
        Reason.AMBIGUOUS_INVOCATION,
        Reason.STALE_ATTEMPT,
    }
)
"""Refused by admission (section 5): no phase has seen the input."""
_OF_TURNS: Final = frozenset({TurnInput.ADD_CALL, TurnInput.SEAL_TURN, TurnInput.INTERRUPT})
_PLAIN: Final = frozenset({Input.CLAIM, Input.RENEW, Input.REJECT, Input.LOSE})


@attrs.define
class Reach:
    """Counts what the transitions of suites reach; what none reaches counts 0."""

    reasons: Counter[str] = attrs.field(factory=Counter[str])
    rules: Counter[str] = attrs.field(factory=Counter[str])
    pairs: Counter[str] = attrs.field(factory=Counter[str])

    def add(self, part: Suite) -> None:
        """Count the transitions of one suite."""
        for step in _transitions(part):
            if not step.receipt["accepted"]:
                self.reasons[step.receipt["reason"]] += 1
            self.rules.update(rules_of(step.delivery, step.receipt))
            self.pairs.update(_pairs(step))

    @property
    def coverage(self) -> Coverage:
        """What was reached so far."""
        return Coverage(
            reasons={str(reason): self.reasons[reason] for reason in Reason},
            rules={rule.id: self.rules[rule.id] for rule in RULES if rule.visible},
            pairs={pair: self.pairs[pair] for pair in dict.fromkeys(_POSSIBLE)},
        )


def _transitions(part: Suite) -> Iterator[Step]:
    for word in access_words(part.machine):
        way = part.walks.walk(word)
        place = way[-1].leads_to if way else part.walks.start
        for letter in range(part.machine.inputs):
            yield part.walks.step(place, letter)


def _pairs(step: Step) -> Iterator[str]:
    """Yield the pairs of phase and input that a step brings together."""
    delivery, receipt = step.delivery, step.receipt
    if delivery["type"] == "recover":
        return
    before = step.place.oracle.state
    oracle = step.place.oracle.clone()
    lapsed = oracle.receive({"type": "tick", "now": delivery["now"]})["facts"]
    yield from _by_time(before, lapsed)
    if receipt.get("reason") not in _BEFORE_THE_TABLE and oracle.state["turn"] is not None:
        yield from _by_delivery(oracle.state["turn"], delivery, receipt["facts"][len(lapsed) :])


def _by_time(state: Any, facts: list[Raw]) -> Iterator[str]:  # noqa: ANN401 - an oracle's
    turn = state["turn"]
    grace = [fact for fact in facts if fact.get("cause") == "interrupted"]
    if grace:
        yield f"{turn['phase']} × {TurnInput.GRACE_OVER}"
        yield from (f"{record['phase']} × {Input.GRACE_OVER}" for record in turn["records"])
    for fact in facts:
        if fact.get("cause") == "expiry":
            yield f"REQUESTED × {Input.APPROVAL_OVER}"
        elif fact["type"] == "EXECUTION_IN_DOUBT":
            yield f"STARTED × {Input.LEASE_OVER}"
    if turn is not None and any(map(_ends, facts)):
        yield f"{turn['phase']} × {TurnInput.SETTLE}"


def _by_delivery(turn: Raw, delivery: Raw, facts: list[Raw]) -> Iterator[str]:
    kind = delivery["type"]
    if kind in _OF_TURNS:
        yield f"{turn['phase']} × {kind}"
        if kind == TurnInput.INTERRUPT:
            yield from (f"{record['phase']} × {Input.INTERRUPT}" for record in turn["records"])
    else:
        entry = _input(delivery)
        record = find_record({"turn": turn}, delivery.get("invocation_id", ""))
        if entry is not None and record is not None:
            yield f"{record['phase']} × {entry}"
    for fact in facts:
        if fact["type"] == "GRANT_ISSUED":
            for record in turn["records"]:
                if grant_covers(fact, record["tool_name"], digest_of(record["arguments"])):
                    yield f"{record['phase']} × {Input.GRANT}"
    if any(map(_ends, facts)):
        yield f"{turn['phase']} × {TurnInput.SETTLE}"


def _input(delivery: Raw) -> Input | None:
    """Return what a delivery is to the invocation that it names."""
    kind = delivery["type"]
    if kind in _PLAIN:
        return Input(kind)
    if kind == "decide":
        return Input.APPROVE if delivery["approved"] else Input.DENY
    if kind == "report":
        return Input.REPORT_RESULT if "result" in delivery else Input.REPORT_ERROR
    return Input(f"resolve_{delivery['as']}") if kind == "resolve" else None


def _ends(fact: Raw) -> bool:
    return fact["type"] in {"TOOL_EXECUTION_SUCCEEDED", "TOOL_EXECUTION_FAILED", "TOOL_DENIED"}

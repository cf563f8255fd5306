"""What a suite reaches of the spec: reasons, rules, and rows of both tables.

Counted is each transition of a suite's machine, once: its tests play every one of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import attrs

from ...lifecycle.phases import TERMINAL, Guard, Phase
from ...lifecycle.table import INVOCATION
from ...machines.rows import ALWAYS, Machine
from ...models.facts import DenialCause, FactType, FailureCause
from ...models.inputs import Input
from ...models.reasons import Reason
from ...turn.phases import TurnGuard, TurnPhase
from ...turn.table import TURN
from ..closure.rows import POSSIBLE, spoken
from ..findings import Coverage, Raw
from ..oracle.reading import digest_of, find_record, grant_covers
from ..rulebook import RULES, rules_of
from .mealy import access_words
from .suite import Suite
from .walks import Step

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
_MOVED: Final = {
    FactType.TURN_SEALED: TurnPhase.SEALED,
    FactType.TURN_INTERRUPTING: TurnPhase.INTERRUPTING,
}
_ASKING: Final = _MOVED.keys() | {
    FactType.TOOL_EXECUTION_SUCCEEDED,
    FactType.TOOL_EXECUTION_FAILED,
    FactType.TOOL_DENIED,
}
"""After these facts settlement is asked for."""
_OF_TURNS: Final = frozenset({Input.ADD_CALL, Input.SEAL_TURN, Input.INTERRUPT})
_PLAIN: Final = frozenset({Input.CLAIM, Input.RENEW, Input.REJECT, Input.LOSE})


@attrs.define
class Reach:
    """Counts what the transitions of suites reach; what none reaches counts 0."""

    reasons: Counter[str] = attrs.field(factory=Counter[str])
    rules: Counter[str] = attrs.field(factory=Counter[str])
    rows: Counter[str] = attrs.field(factory=Counter[str])

    def add(self, part: Suite) -> None:
        """Count the transitions of one suite."""
        for step in _transitions(part):
            if not step.receipt["accepted"]:
                self.reasons[step.receipt["reason"]] += 1
            self.rules.update(rules_of(step.delivery, step.receipt))
            self.rows.update(_rows(step))

    @property
    def coverage(self) -> Coverage:
        """What was reached so far."""
        pairs: Counter[str] = Counter()
        for row in POSSIBLE:
            pairs[row.partition(" [")[0]] += self.rows[row]
        return Coverage(
            reasons={str(reason): self.reasons[reason] for reason in Reason},
            rules={rule.id: self.rules[rule.id] for rule in RULES if rule.visible},
            pairs=dict(pairs),
            rows={row: self.rows[row] for row in POSSIBLE},
        )


def _transitions(part: Suite) -> Iterator[Step]:
    for word in access_words(part.machine):
        way = part.walks.walk(word)
        place = way[-1].leads_to if way else part.walks.start
        for letter in range(part.machine.inputs):
            yield part.walks.step(place, letter)


def _rows(step: Step) -> Iterator[str]:
    """Yield the rows that a step meets, by name."""
    delivery, receipt = step.delivery, step.receipt
    if delivery["type"] == "recover":
        return
    before = step.place.oracle.state
    oracle = step.place.oracle.clone()
    lapsed = oracle.receive({"type": "tick", "now": delivery["now"]})["facts"]
    after = step.leads_to.oracle.state["turn"]
    if before["turn"] is not None:
        yield from _by_time(before["turn"], lapsed, oracle.state["turn"])
    if receipt.get("reason") not in _BEFORE_THE_TABLE and oracle.state["turn"] is not None:
        yield from _by_delivery(oracle.state["turn"], step, receipt["facts"][len(lapsed) :], after)


def _by_time(turn: Raw, facts: list[Raw], after: Raw | None) -> Iterator[str]:
    if any(fact.get("cause") == FailureCause.INTERRUPTED for fact in facts):
        yield spoken(turn["phase"], Input.GRACE_OVER)
        yield from (spoken(record["phase"], Input.GRACE_OVER) for record in turn["records"])
    for fact in facts:
        if fact.get("cause") == DenialCause.EXPIRY:
            yield spoken(Phase.REQUESTED, Input.APPROVAL_OVER)
        elif fact["type"] == FactType.EXECUTION_IN_DOUBT:
            yield spoken(Phase.STARTED, Input.LEASE_OVER)
    yield from _settling(turn["phase"], facts, after)


def _by_delivery(turn: Raw, step: Step, facts: list[Raw], after: Raw | None) -> Iterator[str]:
    """Yield the rows that a delivery meets in this turn; `after` is the turn that it leaves."""
    delivery, kind = step.delivery, step.delivery["type"]
    named = delivery.get("invocation_id", "")
    outcome = step.receipt.get("reason") or (facts[0]["type"] if facts else "")
    if kind in _OF_TURNS:
        yield from _named(TURN, turn["phase"], kind, outcome)
        if kind == Input.INTERRUPT and facts:
            yield from (spoken(record["phase"], Input.INTERRUPT) for record in turn["records"])
    else:
        entry = _input(delivery)
        record = find_record({"turn": turn}, named)
        if entry is not None and record is not None:
            undecided = record["decision"] is None
            yield from _named(INVOCATION, record["phase"], entry, outcome, undecided=undecided)
    for fact in facts:
        if fact["type"] == FactType.GRANT_ISSUED:
            others = [it for it in turn["records"] if it["invocation_id"] != named]
            yield from _covered(others, fact)
    yield from _settling(turn["phase"], facts, after)


def _named(
    machine: Machine[Any, Any], phase: str, entry: str, outcome: str, *, undecided: bool = False
) -> Iterator[str]:
    """Name the row by what it brought: a fact or a reason tells the guard.

    Only in DENIED two guards bring the same: whether any decision was recorded tells them apart.
    """
    rows = [
        row
        for row in machine.rows
        if (row.phase, row.input) == (phase, entry) and outcome in {row.fact, row.reason}
    ]
    if len(rows) > 1:
        rows = [row for row in rows if (row.guard == Guard.NO_DECISION) is undecided]
    yield from (spoken(row.phase, row.input, row.guard) for row in rows)


def _covered(records: list[Raw], grant: Raw) -> Iterator[str]:
    for record in records:
        if grant_covers(grant, record["tool_name"], digest_of(record["arguments"])):
            gate = Guard.GATED if record["requires_approval"] else Guard.FREE
            guard = gate if record["phase"] == Phase.REQUESTED else ALWAYS
            yield spoken(record["phase"], Input.GRANT, guard)


def _settling(phase: str, facts: list[Raw], after: Raw | None) -> Iterator[str]:
    """Name the row of the one door, which is asked after these facts if after any (K-51)."""
    kinds = {fact["type"] for fact in facts}
    for kind in _MOVED.keys() & kinds:
        phase = _MOVED[kind]
    if kinds & _ASKING:
        live = after is not None and any(
            record["phase"] not in TERMINAL for record in after["records"]
        )
        guard = TurnGuard.INCOMPLETE if live else TurnGuard.COMPLETE
        yield spoken(phase, Input.SETTLE, guard)


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

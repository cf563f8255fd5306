"""Fair to other readings: what kernel.md lets be otherwise is tolerated, what it says is not.

Each tolerance has its control: the same place, changed in a way that the text does not allow.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from turnlock.models.facts import FACTS
from turnlock.verification.alphabet import symbols
from turnlock.verification.edges.edge import Edge, at
from turnlock.verification.edges.technique import Played
from turnlock.verification.fuzz.technique import first_failure
from turnlock.verification.oracle.oracle import Oracle
from turnlock.verification.rulebook import differences
from turnlock.verification.rulebook.payloads import PAYLOADS, WIRE
from turnlock.verification.subjects.in_process import InProcess
from turnlock.verification.subjects.subject import Capability

from ..random_scripts import run, script
from .depth import DEEP

Raw = dict[str, Any]
Change = Callable[[Raw], None]


class Other:
    """The oracle, but for what it writes into its receipts."""

    capabilities: frozenset[Capability] = frozenset()

    def __init__(self, change: Change) -> None:
        self._change = change

    def reset(self, run: Raw) -> None:
        self._oracle = Oracle(run)

    def receive(self, delivery: Raw) -> Raw:
        receipt = copy.deepcopy(self._oracle.receive(delivery))
        self._change(receipt)
        return receipt


def blamed(change: Change) -> str | None:
    """The first rule that is blamed for a change of every receipt, in a few guided scripts."""
    driver = InProcess(partial(Other, change), name="other")
    finding = first_failure(driver, seed=0, examples=150 if DEEP else 50)
    return None if finding is None else finding.rule


def facts(receipt: Raw, *kinds: str) -> Iterator[Raw]:
    return (fact for fact in receipt["facts"] if not kinds or fact["type"] in kinds)


def records(receipt: Raw) -> Iterator[Raw]:
    """Every object of the wire in a receipt: facts, effects, calls, results."""
    for part in (*receipt["facts"], *receipt["effects"]):
        yield part
        yield from part.get("calls", ())
        yield from part.get("results", ())
        if "call" in part:
            yield part["call"]


def says_more(receipt: Raw) -> None:
    for record in (receipt, *records(receipt)):
        record["x_trace"] = "9"


def says_more_in_arguments(receipt: Raw) -> None:
    for fact in facts(receipt, "TOOL_APPROVAL_REQUESTED"):
        fact["arguments"] = {**fact["arguments"], "x_trace": "9"}


def without_commit(receipt: Raw) -> None:
    for fact in facts(receipt):
        del fact["commit"]


def without_sequence(receipt: Raw) -> None:
    for fact in facts(receipt):
        del fact["sequence"]


def starts_without_arguments(receipt: Raw) -> None:
    for fact in facts(receipt, "TOOL_EXECUTION_STARTED"):
        del fact["arguments"]


def starts_with_others(receipt: Raw) -> None:
    for fact in facts(receipt, "TOOL_EXECUTION_STARTED"):
        fact["arguments"] = {"other": 1}


def asks_without_arguments(receipt: Raw) -> None:
    for fact in facts(receipt, "TOOL_APPROVAL_REQUESTED"):
        del fact["arguments"]


def effects_backwards(receipt: Raw) -> None:
    receipt["effects"].reverse()


def results_backwards(receipt: Raw) -> None:
    for effect in receipt["effects"]:
        if "results" in effect:
            effect["results"].reverse()


@pytest.mark.parametrize(
    ("tolerated", "control", "rule"),
    [
        (says_more, says_more_in_arguments, "K-32"),
        (without_commit, without_sequence, "section 4"),
        (starts_without_arguments, starts_with_others, "K-32"),
        (starts_without_arguments, asks_without_arguments, "K-32"),
        (effects_backwards, results_backwards, "K-52"),
    ],
)
def test_what_the_text_leaves_free_is_tolerated(
    tolerated: Change, control: Change, rule: str
) -> None:
    """And only that: its neighbour is blamed on the rule that says it."""
    assert blamed(tolerated) is None
    assert blamed(control) == rule


def without_correlation(receipt: Raw) -> None:
    for record in records(receipt):
        record.pop("provider_call_id", None)


def correlated_otherwise(receipt: Raw) -> None:
    for record in records(receipt):
        if "provider_call_id" in record:
            record["provider_call_id"] = "other"


@pytest.mark.parametrize(
    ("change", "found"), [(without_correlation, 0), (correlated_otherwise, 1), (says_more, 0)]
)
def test_a_providers_id_may_be_left_out_and_not_be_another(change: Change, found: int) -> None:
    """Its name is ours; who repeats it repeats it as it was."""
    told = Edge(
        name="correlated",
        about="a call with its provider's id",
        rules=("K-20",),
        steps=at(0.0, symbols.open_turn("T", symbols.call("a", provider_call_id="p"))),
    )
    played = Played(InProcess(partial(Other, change), name="other"))
    played.play(told)
    assert len(played.found) == found


def nulls(receipt: Raw) -> None:
    for fact in facts(receipt, "TOOL_EXECUTION_STARTED"):
        fact.setdefault("worker", None)


def null_reason(receipt: Raw) -> None:
    receipt.setdefault("reason", None)


def null_timeouts(receipt: Raw) -> None:
    for fact in facts(receipt, "TURN_OPENED"):
        for call in fact["calls"]:
            call.setdefault("approval_timeout", None)


def tells_no_reason(receipt: Raw) -> None:
    for fact in facts(receipt, "TOOL_APPROVED", "TURN_INTERRUPTING"):
        fact.pop("reason", None)


def denies_with_an_error(receipt: Raw) -> None:
    for fact in facts(receipt, "TOOL_DENIED"):
        fact["error"] = fact.pop("reason")


def marks_otherwise(receipt: Raw) -> None:
    for fact in facts(receipt):
        fact["commit"] = 0


@pytest.mark.parametrize(
    "change",
    [
        *(nulls, null_reason, null_timeouts),
        *(denies_with_an_error, marks_otherwise),
    ],
)
def test_what_only_our_decisions_say_is_blamed_as_that(change: Change) -> None:
    assert blamed(change) == WIRE


def invented_lease(receipt: Raw) -> None:
    for fact in facts(receipt, "TOOL_EXECUTION_STARTED"):
        fact.setdefault("lease_until", 9e9)


def another_reason(receipt: Raw) -> None:
    for fact in facts(receipt, "TOOL_DENIED"):
        fact["reason"] = "other"


def denies_for_nothing(receipt: Raw) -> None:
    for fact in facts(receipt, "TOOL_DENIED"):
        del fact["reason"]


def tells_no_worker(receipt: Raw) -> None:
    for fact in facts(receipt, "TOOL_EXECUTION_STARTED"):
        fact.pop("worker", None)


def observes_nothing(receipt: Raw) -> None:
    for fact in facts(receipt, "TURN_OPENED"):
        for call in fact["calls"]:
            del call["observed"]


def grants_nowhere(receipt: Raw) -> None:
    for fact in facts(receipt, "GRANT_ISSUED", "GRANT_REVOKED", "GRANT_EXPIRED"):
        fact["turn_id"] = None


@pytest.mark.parametrize(
    ("change", "rules"),
    [
        (invented_lease, {"K-57"}),
        (tells_no_reason, {"section 4"}),
        (another_reason, {"section 4", "K-53", "section 6"}),
        (denies_for_nothing, {"section 4", "K-53", "section 6"}),
        (tells_no_worker, {"K-33"}),
        (observes_nothing, {"K-58"}),
        (grants_nowhere, {"section 4"}),
    ],
)
def test_what_a_rule_says_is_no_decision(change: Change, rules: set[str]) -> None:
    """The control of the decisions: what they stand beside is blamed on rules."""
    assert blamed(change) in rules


def test_a_decision_hides_no_broken_rule() -> None:
    """Where both differ in one answer, the rule is blamed, and the decision is marked last."""

    def both(receipt: Raw) -> None:
        nulls(receipt)
        starts_with_others(receipt)

    assert blamed(both) == "K-32"
    oracle = Oracle({"run_id": "r"})
    call: Raw = {
        "invocation_id": "a",
        "tool_name": "ls",
        "arguments": {},
        "requires_approval": False,
    }
    oracle.receive({"type": "open_turn", "now": 0.0, "turn_id": "T", "calls": [call]})
    claim: Raw = {"type": "claim", "turn_id": "T", "invocation_id": "a", "attempt": 1, "now": 0.0}
    expected = oracle.receive(claim)
    got = copy.deepcopy(expected)
    both(got)
    found = differences(expected, got)
    assert [(one.field, bool(one.decided)) for one in found] == [
        ("arguments", False),
        ("worker", True),
    ]


def test_the_page_says_what_every_fact_carries() -> None:
    """The payloads of docs/wire.md against the oracle: no field beyond them, none missing."""
    seen: set[str] = set()
    for seed in range(200):
        of = run(random.Random(seed))
        oracle = Oracle(of)
        for delivery in script(random.Random(seed), 40, of):
            for fact in oracle.receive(delivery)["facts"]:
                fields = PAYLOADS[fact["type"]]
                always = {name for name, field in fields.items() if not field.optional}
                assert always <= {*fact} - {"type"} <= {*fields}
                seen.add(fact["type"])
    assert seen == {fact.type for fact in FACTS}

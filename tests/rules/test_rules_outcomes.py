"""K-30, K-31 and K-36: one outcome, frozen; one life; falsy results and any error."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from turnlock import Kernel, Match, Reason, Scope
from turnlock.models.facts import (
    ExecutionRetried,
    LifecycleFact,
    RetryAuthorised,
)
from turnlock.models.values import Json

from ..outcome import gated, happens, refused
from ..script import Script
from .story import CROWD, RUN, STORY

# ------------------------------------------------------------------------------------------- K-30


def test_k_30_the_first_outcome_wins_and_is_frozen() -> None:
    """Neither a duplicate nor a conflict replaces it, in the stream or in the continuation."""
    play = Script()
    play.opens("T1", "a", "b")
    play.claims("a")
    play.claims("b")
    play.fails("a", "boom")

    assert play.reports("a", "success after all") == refused(Reason.CONFLICTING_DUPLICATE)
    assert play.fails("a", "another error") == refused(Reason.CONFLICTING_DUPLICATE)
    assert play.fails("a", "boom") == refused(Reason.DUPLICATE)

    play.reports("b")
    assert play.results() == [("a", "failed", "boom"), ("b", "succeeded", "ok")]


def test_k_30_a_duplicate_counts_nothing() -> None:
    """Two calls, three reports of one: the turn waits for the other."""
    play = Script()
    play.opens("T1", "a", "b")
    play.claims("a")

    play.reports("a")
    play.reports("a")
    play.reports("a")

    assert play.names == [
        "TURN_OPENED T1",
        "TOOL_EXECUTION_STARTED a",
        "TOOL_EXECUTION_SUCCEEDED a",
    ]


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, Reason.DUPLICATE),
        ([1, 2], [1, 2], Reason.DUPLICATE),
        (None, None, Reason.DUPLICATE),
        (1, 1.0, Reason.CONFLICTING_DUPLICATE),
        (1, True, Reason.CONFLICTING_DUPLICATE),
        (0, False, Reason.CONFLICTING_DUPLICATE),
        ({"n": 1}, {"n": 1.0}, Reason.CONFLICTING_DUPLICATE),
        ("1", 1, Reason.CONFLICTING_DUPLICATE),
        (None, "", Reason.CONFLICTING_DUPLICATE),
        ([1, 2], [2, 1], Reason.CONFLICTING_DUPLICATE),
    ],
)
def test_k_30_payloads_are_compared_as_canonical_json(
    first: Json, second: Json, reason: Reason
) -> None:
    """Key order is no difference; 1, 1.0 and true are."""
    play = Script()
    play.opens("T1", "a", "b")
    play.claims("a")
    play.reports("a", first)

    assert play.reports("a", second) == refused(reason)


# ------------------------------------------------------------------------------------------- K-31


def test_k_31_lifecycle_facts_at_most_one_of_each_kind_and_one_end() -> None:
    """Whatever the crowd does at every point of the story, for every invocation."""
    for place in range(len(STORY)):
        kernel = Kernel(RUN)
        facts = [fact for now, line in STORY[:place] for fact in kernel.receive(line, now).facts]
        now = STORY[place][0]
        for delivery in (*CROWD, *CROWD):
            facts += kernel.receive(delivery, now).facts
        assert_one_life_each([fact for fact in facts if isinstance(fact, LifecycleFact)])


def assert_one_life_each(facts: list[LifecycleFact]) -> None:
    lives: dict[tuple[str, str], list[str]] = {}
    for fact in facts:
        lives.setdefault((fact.turn_id, fact.invocation_id), []).append(str(fact.type))
    ends = ("TOOL_DENIED", "TOOL_EXECUTION_SUCCEEDED", "TOOL_EXECUTION_FAILED")
    for life in lives.values():
        assert max(Counter(life).values()) == 1
        assert sum(name in ends for name in life) <= 1
        assert not [name for name in life[:-1] if name in ends], life
        if "TOOL_DENIED" in life:
            assert "TOOL_EXECUTION_STARTED" not in life
        assert life == sorted(life, key=ORDER.index), life


ORDER = [
    "TOOL_APPROVAL_REQUESTED",
    "TOOL_APPROVED",
    "TOOL_EXECUTION_STARTED",
    "TOOL_EXECUTION_SUCCEEDED",
    "TOOL_EXECUTION_FAILED",
    "TOOL_DENIED",
]


def test_k_31_a_retry_is_two_facts_of_the_execution_family() -> None:
    """RETRY_AUTHORISED owes attempt n + 1, EXECUTION_RETRIED takes it; there is one STARTED."""
    play = Script()
    play.opens("T1", "a")
    play.claims("a")
    for attempt in (1, 2, 3):
        play.loses("a")
        assert play.retries("a", attempt) == happens("RETRY_AUTHORISED a").asking(
            f"execute a {attempt + 1}"
        )
        assert play.last(RetryAuthorised).attempt == attempt
        assert play.claims("a", attempt + 1) == happens("EXECUTION_RETRIED a")
        assert play.last(ExecutionRetried).attempt == attempt + 1

    assert play.names.count("TOOL_EXECUTION_STARTED a") == 1


# ------------------------------------------------------------------------------------------- K-36


@pytest.mark.parametrize("falsy", [None, 0, 0.0, "", False, [], {}], ids=repr)
def test_k_36_falsy_results_are_results(falsy: Json) -> None:
    """Reported or resolved: a success with this very value, in the fact and in the continuation."""
    play = Script()
    play.opens("T1", "a", "b")
    play.claims("a")
    play.claims("b")
    play.loses("b")

    assert play.reports("a", falsy) == happens("TOOL_EXECUTION_SUCCEEDED a")
    play.resolves("b", falsy)

    assert play.results() == [("a", "succeeded", falsy), ("b", "succeeded", falsy)]
    assert [json.dumps(value) for _, _, value in play.results()] == [json.dumps(falsy)] * 2


@pytest.mark.parametrize("text", [" ", "0", "null", "ok", "\n", "é"])
def test_k_36_an_error_is_an_error_whatever_its_text(text: str) -> None:
    """Empty text is refused at construction (K-8); any other is a failure."""
    play = Script()
    play.opens("T1", "a", "b", "c")
    play.claims("a")
    play.claims("b")
    play.loses("b")

    play.fails("a", text)
    play.resolves_error("b", text)
    play.rejects("c", text)

    assert play.results() == [(name, "failed", text) for name in "abc"]


# ------------------------------------------------------------------------------------------ D


def test_section_6_d_the_same_decision_has_the_same_scope_match_and_edit() -> None:
    """Another match or another edit is another decision; key order and numbers are told apart."""
    play = Script()
    play.opens("T1", gated("a", n=1), gated("b", "rm", n=1))
    play.approves("a", Scope.SESSION, Match.EXACT, arguments={"x": 1, "y": 2})
    play.approves("b", Scope.TURN, Match.TOOL)

    same = {"y": 2, "x": 1}
    assert play.approves("a", Scope.SESSION, arguments=same) == refused(Reason.DUPLICATE)
    assert play.approves("b", Scope.TURN, Match.TOOL) == refused(Reason.DUPLICATE)

    other: list[tuple[Scope, Match, dict[str, Json] | None]] = [
        (Scope.SESSION, Match.TOOL, {"x": 1, "y": 2}),
        (Scope.SESSION, Match.EXACT, {"x": 1.0, "y": 2}),
        (Scope.SESSION, Match.EXACT, {"x": 1}),
        (Scope.SESSION, Match.EXACT, {}),
        (Scope.SESSION, Match.EXACT, None),
        (Scope.TURN, Match.EXACT, {"x": 1, "y": 2}),
    ]
    for scope, match, arguments in other:
        assert play.approves("a", scope, match, arguments=arguments) == refused(
            Reason.ALREADY_DECIDED
        )
    assert play.approves("b", Scope.TURN, Match.EXACT) == refused(Reason.ALREADY_DECIDED)


def test_section_6_d_who_why_and_for_how_long_make_no_other_decision() -> None:
    """The same approval, or the same deny, told again in other words."""
    play = Script()
    play.opens("T1", gated("a"), gated("b", n=1))
    play.approves("a", Scope.TURN, expires_in=60.0, by="ann", reason="fine")
    play.denies("b", "no", by="ann")

    assert play.approves("a", Scope.TURN, expires_in=5.0, by="bob") == refused(Reason.DUPLICATE)
    assert play.denies("b", "never", by="bob") == refused(Reason.DUPLICATE)


def test_section_6_d_arguments_as_they_were_are_an_edit_all_the_same() -> None:
    """An approval with edited arguments is not the one without, even where they are equal."""
    play = Script()
    play.opens("T1", gated("a", n=1))
    play.approves("a", arguments={"n": 1})

    assert play.approves("a", arguments={"n": 1}) == refused(Reason.DUPLICATE)
    assert play.approves("a") == refused(Reason.ALREADY_DECIDED)

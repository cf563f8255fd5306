"""Approvals as messages: projections of facts, and nothing that anybody could have forged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.outcome import gated
from tests.script import Script
from tests.views.played import played

from turnlock import Fact, Match, Run, Scope
from turnlock.models.errors import CorruptJournal
from turnlock.models.facts import (
    DenialCause,
    ExecutionInDoubt,
    ToolApprovalRequested,
    ToolApproved,
    ToolDenied,
    ToolExecutionFailed,
    ToolExecutionSucceeded,
)
from turnlock.models.ids import escape
from turnlock.models.values import arguments_digest
from turnlock.views.run_view import RunView
from turnlock.world.names import call_at, doubt_at
from turnlock.world.requests import (
    Doubt,
    Projection,
    Projections,
    Request,
    doubts,
    waiting,
)

RUN = Run(run_id="w/c/alice#2", agent_id="alice", agent_name="alice", kind="world")


def projected(facts: Sequence[Fact]) -> list[Projection]:
    """All that the facts of a run say to people."""
    fold = Projections()
    return [said for fact in facts for said in fold.take(fact)]


def shown(play: Script) -> list[dict[str, Any]]:
    """The same, as the wire says it."""
    return [dict(it.as_json()) for it in projected(play.journal)]


def test_w_40_a_request_says_who_asks_for_what_and_what_may_be_answered() -> None:
    play = Script(RUN)
    play.opens("t1", gated("pay/1", "pay", timeout=60, amount=5))

    assert shown(play) == [
        {
            "role": "request",
            "id": "request/w%2Fc%2Falice#2/t1/pay%2F1",
            "agent": "alice",
            "tool_name": "client.requestApproval",
            "asks": {
                "tool_name": "pay",
                "arguments": {"amount": 5},
                "arguments_digest": arguments_digest({"amount": 5}),
                "deadline": 60.0,
            },
            "choices": ["once", "session", "deny"],
        }
    ]


def test_w_43_decisions_and_results_follow_in_the_order_of_the_facts() -> None:
    play = Script(RUN)
    play.opens("t1", gated("a"), gated("b"), "c")
    play.approves("a", by="Ann", reason="fine")
    play.denies("b", "no", by="Ben")
    play.claims("a")
    play.reports("a", None)
    play.claims("c")
    play.fails("c", "boom")

    said = shown(play)

    assert [(it["role"], it["id"].split("/")[-1]) for it in said] == [
        ("request", "a"),
        ("request", "b"),
        ("decision", "a"),
        ("decision", "b"),
        ("tool", "b"),
        ("tool", "a"),
        ("tool", "c"),
    ]
    assert said[2] == {
        "role": "decision",
        "id": "decision/w%2Fc%2Falice#2/t1/a",
        "agent": "alice",
        "tool_name": "ls",
        "approved": True,
        "decided_by": "Ann",
        "scope": "once",
        "grant_id": None,
        "reason": "fine",
    }
    denied = (said[3]["approved"], said[3]["decided_by"], said[3]["scope"], said[3]["reason"])
    assert denied == (False, "Ben", None, "no")
    told = {"role": "tool", "agent": "alice", "tool_name": "ls"}
    before = "result/w%2Fc%2Falice#2/t1/"
    assert said[4] == {**told, "id": f"{before}b", "status": "denied", "reason": "no"}
    assert said[5] == {**told, "id": f"{before}a", "status": "succeeded", "result": None}
    assert said[6] == {**told, "id": f"{before}c", "status": "failed", "error": "boom"}


def test_w_41_edited_arguments_stand_in_the_decision() -> None:
    play = Script(RUN)
    play.opens("t1", gated("a", path="x"))
    play.approves("a", arguments={"path": "y"}, by="Ann")
    assert shown(play)[1]["arguments"] == {"path": "y"}


def test_w_4_what_a_grant_decides_names_the_grant_and_nobody() -> None:
    play = Script(RUN)
    play.opens("t1", gated("a"))
    play.approves("a", Scope.SESSION, Match.TOOL, by="Ann")
    play.claims("a")
    play.reports("a")
    play.opens("t2", gated("b"))

    said = shown(play)[-1]
    assert (said["role"], said["decided_by"]) == ("decision", None)
    assert said["grant_id"] == f"grant/{escape(RUN.run_id)}/1"


def test_w_43_a_request_whose_time_is_over_is_a_result_without_a_decision() -> None:
    play = Script(RUN)
    play.opens("t1", gated("a", timeout=5))
    play.at(9).ticks()
    roles = [it["role"] for it in shown(play)]
    assert roles == ["request", "tool"]


def test_w_46_a_doubt_says_what_resolve_may_answer_and_of_which_attempt() -> None:
    play = Script(RUN)
    play.opens("t1", "a")
    play.claims("a")
    play.loses("a")
    play.retries("a")
    play.claims("a", 2)
    play.loses("a")

    first, second = shown(play)

    assert first == {
        "role": "doubt",
        "id": "doubt/w%2Fc%2Falice#2/t1/a/1",
        "agent": "alice",
        "attempt": 1,
        "asks": {"tool_name": "ls", "arguments": {}},
        "choices": ["retry", "result", "error"],
    }
    assert doubt_at(second["id"]) == (("w/c/alice#2", "t1", "a"), 2)
    assert [it.id for it in doubts(RunView.of(RUN, play.journal))] == [second["id"]]


def test_w_46_a_retry_that_was_authorised_asks_nobody() -> None:
    play = Script(RUN)
    play.opens("t1", "a")
    play.claims("a")
    play.loses("a")
    play.retries("a")
    assert doubts(RunView.of(RUN, play.journal)) == ()


SEEDS = st.integers(0, 2**32 - 1)


@given(SEEDS)
def test_w_40_there_is_a_request_for_each_fact_that_asks_and_for_nothing_else(seed: int) -> None:
    """W-43, W-46 likewise: counted by the facts alone, without the fold."""
    facts = [fact for _, brought in played(seed) for fact in brought]
    said = projected(facts)
    want: list[tuple[str, int]] = []
    for fact in facts:
        roles: list[str] = []
        if isinstance(fact, ToolApprovalRequested):
            roles = ["request"]
        elif isinstance(fact, ToolApproved):
            roles = ["decision"]
        elif isinstance(fact, ToolDenied):
            roles = ["decision"] if fact.cause is DenialCause.DECISION else []
            roles.append("tool")
        elif isinstance(fact, ToolExecutionSucceeded | ToolExecutionFailed):
            roles = ["tool"]
        elif isinstance(fact, ExecutionInDoubt):
            roles = ["doubt"]
        want += [(role, fact.sequence) for role in roles]
    assert [(it.role, it.sequence) for it in said] == want


@given(SEEDS)
def test_w_42_what_waits_is_what_the_kernel_waits_for(seed: int) -> None:
    """Every request names one call that a decision would be about, and each such call has one."""
    view: RunView | None = None
    fold = Projections()
    waits: dict[str, Request] = {}
    unsure: set[str] = set()
    for kernel, facts in played(seed):
        view = view or RunView.of(kernel.run)
        for fact in facts:
            for said in fold.take(fact):
                if isinstance(said, Request):
                    waits[said.id] = said
                elif isinstance(said, Doubt):
                    unsure.add(said.id)
        view = view.after(facts)
        now = waiting(view)
        assert {it.id for it in now} <= waits.keys()
        assert {it.id for it in doubts(view)} <= unsure
        for it in now:
            assert call_at(it.id) == (view.run_id, it.call.turn_id, it.call.invocation_id)
            assert it.as_json() == waits[it.id].as_json()


@given(SEEDS, st.data())
def test_the_fold_goes_on_from_a_view(seed: int, data: st.DataObject) -> None:
    steps = [*played(seed)]
    facts = [fact for _, brought in steps for fact in brought]
    ends = [0, *(fact.sequence for fact in facts if fact.sequence == fact.commit)]
    cut = data.draw(st.sampled_from(ends))
    kernel = steps[0][0]
    fold = Projections(RunView.of(kernel.run, facts[:cut]))
    said = [it for fact in facts[cut:] for it in fold.take(fact)]
    assert said == [it for it in projected(facts) if (it.sequence or 0) > cut]


def test_facts_that_begin_in_the_middle_are_an_error() -> None:
    play = Script(RUN)
    play.opens("t1", gated("a"))
    with pytest.raises(CorruptJournal, match="is not the active one"):
        Projections().take(play.journal[1])

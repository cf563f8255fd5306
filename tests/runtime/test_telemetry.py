"""The spans of executions and approvals, as an SDK receives them."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from opentelemetry import trace

from turnlock import Call, OpenTurn, Scope, Tick
from turnlock.models.facts import TurnInterrupted, TurnInterrupting, TurnOpened
from turnlock.runtime.telemetry_spans import ARRIVING, SHOWN, TURNS, UNKNOWN, Turns

from ..outcome import gated
from ..script import Script
from .sdk import Sdk, begun, events, own, parent


@pytest.fixture
def sdk() -> Sdk:
    return Sdk()


def test_an_execution_is_a_span_by_the_conventions(sdk: Sdk) -> None:
    """Name, kind and attributes; nothing of arguments or results unless that was asked for."""
    with begun(sdk.telemetry, arguments={"path": "secret"}) as execution:
        execution.succeeded({"files": ["secret"]})

    span = sdk.span
    assert span.name == "execute_tool ls"
    assert span.kind is trace.SpanKind.INTERNAL
    assert span.status.status_code is trace.StatusCode.UNSET
    assert dict(span.attributes or {}) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "ls",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "a",
        "gen_ai.conversation.id": "r",
        "turnlock.turn.id": "T1",
        "turnlock.invocation.id": "a",
        "turnlock.attempt": 1,
        "turnlock.outcome": "succeeded",
    }


def test_contents_are_told_on_request_and_cut_at_the_bound() -> None:
    """As JSON, for spans hold no structures everywhere."""
    sdk = Sdk(contents=True)
    with begun(sdk.telemetry, arguments={"path": "/etc"}) as execution:
        execution.succeeded("x" * 2 * SHOWN)

    attributes = sdk.span.attributes or {}
    assert json.loads(str(attributes["gen_ai.tool.call.arguments"])) == {"path": "/etc"}
    assert len(str(attributes["gen_ai.tool.call.result"])) == SHOWN


def test_a_failure_has_its_type_and_its_text(sdk: Sdk) -> None:
    """The span's status is an error, its description the error's text."""
    with begun(sdk.telemetry) as execution:
        execution.failed("no such path", kind="FileNotFoundError")

    assert sdk.span.status.status_code is trace.StatusCode.ERROR
    assert sdk.span.status.description == "no such path"
    assert (sdk.span.attributes or {})["error.type"] == "FileNotFoundError"
    assert (sdk.span.attributes or {})["turnlock.outcome"] == "failed"


def test_an_execution_left_without_a_word_is_unknown(sdk: Sdk) -> None:
    """Cancelled in the middle: nobody may read a success into that, and the error goes on."""
    with pytest.raises(asyncio.CancelledError), begun(sdk.telemetry):
        raise asyncio.CancelledError
    with begun(sdk.telemetry, attempt=2) as execution:
        execution.unknown("a thread did not stop")

    left, given_up = sdk.spans
    for span in (left, given_up):
        assert (span.attributes or {})["error.type"] == UNKNOWN
        assert (span.attributes or {})["turnlock.outcome"] == "unknown"
    assert left.status.description == "it was left by CancelledError"
    assert given_up.status.description == "a thread did not stop"


def test_what_a_tool_tells_belongs_to_its_execution(sdk: Sdk) -> None:
    """The span is the current one while it is entered, and not after."""
    tracer = sdk.tracers.get_tracer("a tool")
    with begun(sdk.telemetry) as execution:
        with tracer.start_as_current_span("inside"):
            pass
        execution.succeeded(None)
    with tracer.start_as_current_span("outside"):
        pass

    inside, executed, outside = sdk.spans
    assert parent(inside) == own(executed)
    assert outside.parent is None


def test_the_parent_is_the_span_in_which_the_turn_was_opened(sdk: Sdk) -> None:
    """Not that of whoever happened to wake the runtime up, such as a person's approval."""
    play = Script()
    tracer = sdk.tracers.get_tracer("a host")
    with tracer.start_as_current_span("invoke_agent"):
        sdk.telemetry.delivering("r", OpenTurn(turn_id="T1", calls=()))
    sdk.telemetry.delivering("r", Tick())
    play.opens("T1", gated("a"))
    sdk.telemetry.kept(play.journal)

    with tracer.start_as_current_span("POST /approve"), begun(sdk.telemetry) as execution:
        execution.succeeded(1)

    agent, executed, _ = sorted(sdk.spans, key=lambda span: ["i", "e", "P"].index(span.name[0]))
    assert parent(executed) == own(agent)


def test_a_turn_opened_elsewhere_leaves_the_current_span_as_parent(sdk: Sdk) -> None:
    """After a restart nobody knows the span of the opening any more."""
    tracer = sdk.tracers.get_tracer("a host")
    with tracer.start_as_current_span("recovery"), begun(sdk.telemetry) as execution:
        execution.succeeded(1)

    executed, recovery = sdk.spans
    assert parent(executed) == own(recovery)


def test_the_providers_own_id_names_the_call(sdk: Sdk) -> None:
    """So that the span is found from the model's; ours stands beside it."""
    play = Script()
    call = Call(
        invocation_id="a",
        tool_name="ls",
        arguments={},
        requires_approval=False,
        provider_call_id="call_1",
    )
    play.opens("T1", sealed=False)
    play.adds(call)
    sdk.telemetry.kept(play.journal)
    with begun(sdk.telemetry) as execution:
        execution.succeeded(1)

    assert (sdk.span.attributes or {})["gen_ai.tool.call.id"] == "call_1"
    assert (sdk.span.attributes or {})["turnlock.invocation.id"] == "a"


def test_an_approval_is_told_in_the_span_of_its_execution(sdk: Sdk) -> None:
    """With the times at which it happened, which are before the span began."""
    play = Script()
    play.at(100).opens("T1", gated("a"))
    play.at(107.5).approves("a", Scope.TURN, by="ada", reason="fine")
    sdk.telemetry.kept(play.journal)
    with begun(sdk.telemetry) as execution:
        execution.succeeded(1)

    assert events(sdk.span) == [
        ("turnlock.approval.requested", 100.0, {}),
        (
            "turnlock.approval.approved",
            107.5,
            {
                "turnlock.approval.decided_by": "ada",
                "turnlock.approval.scope": "turn",
                "turnlock.approval.waited": 7.5,
            },
        ),
    ]


def test_an_approval_by_a_grant_was_asked_of_nobody(sdk: Sdk) -> None:
    """One event, which names the grant."""
    play = Script()
    play.opens("T1", gated("a"))
    play.approves("a", Scope.SESSION)
    play.rejects("a", "no")
    play.at(10).opens("T2", gated("b"))
    sdk.telemetry.kept(play.journal)
    with begun(sdk.telemetry, invocation_id="b", turn_id="T2") as execution:
        execution.succeeded(1)

    ((name, at, attributes),) = events(sdk.span)
    assert (name, at) == ("turnlock.approval.approved", 10.0)
    assert attributes["turnlock.approval.grant_id"] == "grant/r/1"
    assert "turnlock.approval.waited" not in attributes


def test_a_denied_call_has_a_span_of_its_waiting_and_none_of_an_execution() -> None:
    """From the request to the denial; the reason only on request."""
    for contents in (False, True):
        sdk = Sdk(contents=contents)
        play = Script()
        play.at(100).opens("T1", gated("a"))
        play.at(104).denies("a", reason="too dear", by="ada")
        sdk.telemetry.kept(play.journal)

        span = sdk.span
        assert span.name == "tool_approval ls"
        assert (span.start_time, span.end_time) == (100 * 10**9, 104 * 10**9)
        assert "gen_ai.operation.name" not in (span.attributes or {})
        assert (span.attributes or {})["gen_ai.tool.call.id"] == "a"
        requested, (name, at, attributes) = events(span)
        assert requested[:2] == ("turnlock.approval.requested", 100.0)
        assert (name, at) == ("turnlock.approval.denied", 104.0)
        assert attributes.pop("turnlock.approval.reason", None) == (
            "too dear" if contents else None
        )
        assert attributes == {
            "turnlock.approval.decided_by": "ada",
            "turnlock.approval.cause": "decision",
            "turnlock.approval.waited": 4.0,
        }


def test_a_call_denied_without_waiting_has_no_span(sdk: Sdk) -> None:
    """An interrupt denies what was ready, and what was approved already: nobody was waited for."""
    play = Script()
    play.opens("T1", "a", gated("b"))
    play.approves("b")
    play.interrupts()
    sdk.telemetry.kept(play.journal)

    assert sdk.spans == ()


def opened(turn_id: str) -> TurnOpened:
    play = Script()
    play.opens(turn_id, sealed=False)
    (fact,) = play.journal
    assert isinstance(fact, TurnOpened)
    return fact


def test_closed_turns_are_forgotten_and_open_ones_bounded() -> None:
    """What is remembered never outgrows its bounds, and the oldest goes first."""
    turns = Turns()
    context = trace.set_span_in_context(trace.INVALID_SPAN)
    for number in range(ARRIVING + 1):
        turns.arriving("r", f"T{number}", context)
    for number in range(TURNS + 1):
        turns.opened(opened(f"T{number}"))

    assert len(turns._open) == TURNS
    assert turns._arriving == {}
    assert turns.get("r", "T0") is None
    first, last = turns.get("r", "T1"), turns.get("r", f"T{ARRIVING}")
    assert first is not None
    assert last is not None
    assert last.parent is context
    for number in range(5):
        event: dict[str, Any] = {
            "run_id": "r",
            "turn_id": f"T{number + 2}",
            "sequence": 9,
            "commit": 9,
            "at": 0.0,
        }
        turns.after(TurnInterrupting(**event, grace_until=1.0))
        turns.after(TurnInterrupted(**event))
    assert turns.get("r", "T5") is None


def test_a_turn_that_another_process_opened_is_followed_from_where_it_is(sdk: Sdk) -> None:
    """Who was asked before and when is not known; the approval that comes now is told."""
    play = Script()
    play.opens("T1", gated("a"), gated("b"))
    sdk.telemetry.folded(play.kernel)
    before = len(play.journal)
    play.at(107.5).approves("a", by="ada")
    play.denies("b", by="ada")
    sdk.telemetry.kept(play.journal[before:])
    with begun(sdk.telemetry) as execution:
        execution.succeeded(1)

    assert events(sdk.span) == [
        (
            "turnlock.approval.approved",
            107.5,
            {"turnlock.approval.decided_by": "ada", "turnlock.approval.scope": "once"},
        )
    ]


def test_a_kernel_folded_again_says_how_a_followed_turn_stands(sdk: Sdk) -> None:
    """Facts that were kept and never told are in the fold; the parent stays."""
    play = Script()
    play.opens("T1", gated("a"))
    sdk.telemetry.kept(play.journal)
    play.approves("a")
    sdk.telemetry.folded(play.kernel)
    play.claims("a")
    play.reports("a", 1)
    sdk.telemetry.kept(play.journal[3:])

"""Spans and metrics on the OpenTelemetry API, by its conventions for generative AI.

Without an SDK the API does nothing. Each execution is an internal span `execute_tool {name}`. Its
parent is the span in which the turn was opened, where that is known, and the current one otherwise.
The approval that led to it is told in the span's events, with the times at which they happened,
which are before the span began.

A denied call was never executed and has no such span. Where somebody had been asked, the waiting is
a span of its own, `tool_approval {name}`, from the request to the denial.

Attributes beyond the conventions are `turnlock.…`. The text of a failure is the span's status;
arguments, results and the reasons that people give are told only on request (`contents`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from types import TracebackType
from typing import Final, Self

from opentelemetry import context as contexts
from opentelemetry import metrics, trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from ..models.deliveries import Delivery, OpenTurn
from ..models.facts import (
    CallAdded,
    Fact,
    ToolApprovalRequested,
    ToolApproved,
    ToolDenied,
    ToolExecutionFailed,
    ToolExecutionSucceeded,
    TurnInterrupted,
    TurnOpened,
    TurnSettled,
)
from ..models.reasons import Reason
from ..models.values import Json, canonical
from .telemetry import Execution, Read, Telemetry
from .telemetry_metrics import Meters
from .telemetry_turns import CallTold, Turns

SHOWN: Final = 8_192
"""Characters of a text that a span carries: arguments, results, errors, reasons."""

NAME: Final = "turnlock"
"""The instrumentation scope."""

UNKNOWN: Final = "unknown_outcome"
"""`error.type` of an execution of which nobody knows what it came to (K-35)."""


class OpenTelemetry(Telemetry):
    """Tells spans and metrics to whatever SDK the process has; see the module for what they say."""

    def __init__(
        self,
        *,
        contents: bool = False,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
    ) -> None:
        """Use these providers, or the global ones."""
        self._contents = contents
        self._tracer = trace.get_tracer(NAME, tracer_provider=tracer_provider)
        self._meters = Meters(metrics.get_meter(NAME, meter_provider=meter_provider))
        self._turns = Turns()

    def declared(self, tool_names: Sequence[str]) -> None:
        """Learn which tools metrics may name."""
        self._meters.declare(tool_names)

    def delivering(self, run_id: str, delivery: Delivery) -> None:
        """Remember the caller's span: it is the parent of what the turn executes."""
        if isinstance(delivery, OpenTurn):
            self._turns.arriving(run_id, delivery.turn_id, contexts.get_current())

    def execution(  # noqa: D102, PLR0913 - as Telemetry
        self,
        *,
        run_id: str,
        turn_id: str,
        invocation_id: str,
        tool_name: str,
        attempt: int,
        arguments: Mapping[str, Json],
    ) -> Execution:
        turn = self._turns.turn(run_id, turn_id)
        call = turn.calls.get(invocation_id, CallTold())
        attributes: dict[str, str | int] = {
            "gen_ai.operation.name": "execute_tool",
            **_naming(run_id, turn_id, invocation_id, tool_name, call),
            "turnlock.attempt": attempt,
        }
        if self._contents:
            attributes["gen_ai.tool.call.arguments"] = canonical(arguments)[:SHOWN]

        def start() -> tuple[Span, contexts.Context]:
            span = self._tracer.start_span(
                f"execute_tool {tool_name}",
                context=turn.parent,
                kind=SpanKind.INTERNAL,
                attributes=attributes,
            )
            self._tell_approval(span, call)
            return span, trace.set_span_in_context(span, turn.parent)

        return _Execution(start, self._meters, tool_name=tool_name, contents=self._contents)

    def kept(self, facts: Sequence[Fact]) -> None:
        """Remember approvals for the executions to come; count what has ended."""
        for fact in facts:
            if isinstance(fact, TurnOpened):
                self._turns.opened(fact)
            elif isinstance(fact, CallAdded):
                self._turns.turn(fact.run_id, fact.turn_id).added(fact.call)
            elif isinstance(fact, TurnSettled | TurnInterrupted):
                self._turns.closed(fact)
            elif isinstance(fact, ToolApprovalRequested | ToolApproved | ToolDenied):
                self._asked_or_decided(fact)
            if isinstance(fact, ToolDenied | ToolExecutionFailed | ToolExecutionSucceeded):
                self._meters.settled(fact)

    def refused(self, reason: Reason, delivery_type: str) -> None:
        """Count a refusal."""
        self._meters.refused(reason, delivery_type)

    def observe(self, read: Read) -> Callable[[], None]:
        """Read the gauges so."""
        return self._meters.observe(read)

    def _asked_or_decided(self, fact: ToolApprovalRequested | ToolApproved | ToolDenied) -> None:
        turn = self._turns.turn(fact.run_id, fact.turn_id)
        call = turn.call(fact.invocation_id)
        if isinstance(fact, ToolApprovalRequested):
            call.requested_at = fact.at
            return
        approved_before = call.decided is not None
        call.decided = fact
        if isinstance(fact, ToolDenied) and call.requested_at is not None and not approved_before:
            naming = _naming(fact.run_id, fact.turn_id, fact.invocation_id, fact.tool_name, call)
            span = self._tracer.start_span(
                f"tool_approval {fact.tool_name}",
                context=turn.parent,
                kind=SpanKind.INTERNAL,
                attributes=naming,
                start_time=_nanoseconds(call.requested_at),
            )
            self._tell_approval(span, call)
            span.end(_nanoseconds(fact.at))

    def _tell_approval(self, span: Span, call: CallTold) -> None:
        asked, decided = call.requested_at, call.decided
        if asked is not None:
            span.add_event("turnlock.approval.requested", timestamp=_nanoseconds(asked))
        if decided is None:
            return
        said: dict[str, str | float] = {}
        if decided.decided_by is not None:
            said["turnlock.approval.decided_by"] = decided.decided_by
        if asked is not None:
            said["turnlock.approval.waited"] = max(0.0, decided.at - asked)
        if decided.reason is not None and self._contents:
            said["turnlock.approval.reason"] = decided.reason[:SHOWN]
        if isinstance(decided, ToolDenied):
            name = "turnlock.approval.denied"
            said["turnlock.approval.cause"] = decided.cause.value
        else:
            name = "turnlock.approval.approved"
            said["turnlock.approval.scope"] = decided.scope.value
            if decided.grant_id is not None:
                said["turnlock.approval.grant_id"] = decided.grant_id
        span.add_event(name, said, timestamp=_nanoseconds(decided.at))


class _Execution(Execution):
    """One attempt's span, current while it is entered."""

    def __init__(
        self,
        start: Callable[[], tuple[Span, contexts.Context]],
        meters: Meters,
        *,
        tool_name: str,
        contents: bool,
    ) -> None:
        self._start = start
        self._meters = meters
        self._tool_name = tool_name
        self._contents = contents
        self._outcome = ""

    def __enter__(self) -> Self:
        self._span, inside = self._start()
        self._error_type: str | None = None
        self._began = perf_counter()
        self._token = contexts.attach(inside)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        seconds = perf_counter() - self._began
        contexts.detach(self._token)
        if not self._outcome:
            self.unknown("it was left" if kind is None else f"it was left by {kind.__name__}")
        self._span.set_attribute("turnlock.outcome", self._outcome)
        self._span.end()
        self._meters.executed(self._tool_name, self._outcome, seconds, self._error_type)

    def succeeded(self, result: Json) -> None:
        self._outcome = "succeeded"
        if self._contents:
            self._span.set_attribute("gen_ai.tool.call.result", canonical(result)[:SHOWN])

    def failed(self, error: str, *, kind: str) -> None:
        self._went_wrong("failed", error, kind)

    def unknown(self, why: str) -> None:
        self._went_wrong("unknown", why, UNKNOWN)

    def _went_wrong(self, outcome: str, why: str, kind: str) -> None:
        self._outcome = outcome
        self._error_type = self._meters.kind(kind)
        self._span.set_attribute("error.type", self._error_type)
        self._span.set_status(Status(StatusCode.ERROR, why[:SHOWN]))


def _naming(
    run_id: str, turn_id: str, invocation_id: str, tool_name: str, call: CallTold
) -> dict[str, str]:
    """Return the attributes that say which call of which conversation a span is about.

    The call's id is the provider's own, where there is one: the model's spans know it by that.
    """
    return {
        "gen_ai.tool.name": tool_name,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": call.provider_call_id or invocation_id,
        "gen_ai.conversation.id": run_id,
        "turnlock.turn.id": turn_id,
        "turnlock.invocation.id": invocation_id,
    }


def _nanoseconds(at: float) -> int:
    """Return Unix time in seconds as spans count it."""
    return round(at * 1e9)

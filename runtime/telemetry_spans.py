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

from collections.abc import Callable, Sequence
from time import perf_counter
from types import TracebackType
from typing import Final, Self, TypeAlias

import attrs
from opentelemetry import context as contexts
from opentelemetry import metrics, trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from ..engine.kernel import Kernel
from ..models.deliveries import Delivery, OpenTurn
from ..models.effects import Execute
from ..models.facts import (
    Fact,
    ToolDenied,
    ToolExecutionFailed,
    ToolExecutionSucceeded,
    TurnFact,
    TurnOpened,
)
from ..models.reasons import Reason
from ..models.values import Json, canonical
from ..views.call_view import CallView
from ..views.live import turn_of
from ..views.turn_view import TurnView
from .telemetry import Execution, Read, Telemetry
from .telemetry_metrics import Meters

SHOWN: Final = 8_192
"""Characters of a text that a span carries: arguments, results, errors, reasons."""

NAME: Final = "turnlock"
"""The instrumentation scope."""

TURNS: Final = 10_000
"""Turns that are remembered at once; beyond, the one opened first loses parent and approvals."""

ARRIVING: Final = 1_000
"""Turns whose opening was delivered and not kept yet: most of those beyond were refused."""

_Key: TypeAlias = tuple[str, str]

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

    def execution(self, run_id: str, effect: Execute) -> Execution:
        """Begin a span for an attempt."""
        turn = self._turns.get(run_id, effect.turn_id)
        call = None if turn is None else turn.view.calls.get(effect.invocation_id)
        attributes: dict[str, str | int] = {
            "gen_ai.operation.name": "execute_tool",
            **_naming(run_id, effect, call),
            "turnlock.attempt": effect.attempt,
        }
        if self._contents:
            attributes["gen_ai.tool.call.arguments"] = canonical(effect.arguments)[:SHOWN]
        parent = None if turn is None else turn.parent

        def start() -> tuple[Span, contexts.Context]:
            span = self._tracer.start_span(
                f"execute_tool {effect.tool_name}",
                context=parent,
                kind=SpanKind.INTERNAL,
                attributes=attributes,
            )
            if call is not None:
                self._tell_approval(span, call)
            return span, trace.set_span_in_context(span, parent)

        return _Execution(start, self._meters, tool_name=effect.tool_name, contents=self._contents)

    def kept(self, facts: Sequence[Fact]) -> None:
        """Follow the turns for the executions to come; count what has ended."""
        for fact in facts:
            if isinstance(fact, TurnOpened):
                self._turns.opened(fact)
            elif isinstance(fact, TurnFact):
                turn = self._turns.after(fact)
                if turn is not None and isinstance(fact, ToolDenied):
                    self._tell_waiting(turn, turn.view.calls.get(fact.invocation_id))
            if isinstance(fact, ToolDenied | ToolExecutionFailed | ToolExecutionSucceeded):
                self._meters.settled(fact)

    def folded(self, kernel: Kernel) -> None:
        """Follow the open turn from where it is; of who opened it nothing more is known."""
        self._turns.folded(kernel)

    def refused(self, reason: Reason, delivery_type: str) -> None:
        """Count a refusal."""
        self._meters.refused(reason, delivery_type)

    def observe(self, read: Read) -> Callable[[], None]:
        """Read the gauges so."""
        return self._meters.observe(read)

    def _tell_waiting(self, turn: Followed, call: CallView | None) -> None:
        """Tell of a call that somebody was asked about, and that was denied without an approval."""
        if call is None or call.outcome is None or call.asked_at is None:
            return
        if call.decision is not None and call.decision.approved:
            return  # denied by an interrupt, after its approval
        span = self._tracer.start_span(
            f"tool_approval {call.tool_name}",
            context=turn.parent,
            kind=SpanKind.INTERNAL,
            attributes=_naming(call.run_id, call, call),
            start_time=_nanoseconds(call.asked_at),
        )
        self._tell_approval(span, call)
        span.end(None if call.ended_at is None else _nanoseconds(call.ended_at))

    def _tell_approval(self, span: Span, call: CallView) -> None:
        """Tell when somebody was asked, and what came of it: a denial, or an approval before it."""
        asked, decision, denied = call.asked_at, call.decision, call.outcome
        if asked is not None:
            span.add_event("turnlock.approval.requested", timestamp=_nanoseconds(asked))
        said: dict[str, str | float] = {}
        if denied is not None:
            name, at, reason = "turnlock.approval.denied", denied.at, denied.reason
            said["turnlock.approval.cause"] = str(denied.cause)
        elif decision is not None:
            name, at, reason = "turnlock.approval.approved", decision.at, decision.reason
            said["turnlock.approval.scope"] = decision.scope.value
            if decision.grant_id is not None:
                said["turnlock.approval.grant_id"] = decision.grant_id
        else:
            return
        if at is None:
            return  # before this process had the run
        if decision is not None and decision.by is not None:
            said["turnlock.approval.decided_by"] = decision.by
        if asked is not None:
            said["turnlock.approval.waited"] = max(0.0, at - asked)
        if reason is not None and self._contents:
            said["turnlock.approval.reason"] = reason[:SHOWN]
        span.add_event(name, said, timestamp=_nanoseconds(at))


@attrs.define(eq=False)
class Followed:
    """A turn under way; `parent` is the context in which it was opened, where that is known.

    An approval happens before there is a span to tell it in, and in another task; so does the
    opening of the turn, whose caller's span is to be the parent.
    """

    view: TurnView
    parent: contexts.Context | None


class Turns:
    """The turns under way, bounded; one that closes is forgotten."""

    def __init__(self) -> None:
        """Begin with none."""
        self._arriving: dict[_Key, contexts.Context] = {}
        self._open: dict[_Key, Followed] = {}

    def arriving(self, run_id: str, turn_id: str, context: contexts.Context) -> None:
        """Remember where a turn is being opened; of several attempts the first counts."""
        self._arriving.setdefault((run_id, turn_id), context)
        if len(self._arriving) > ARRIVING:
            del self._arriving[next(iter(self._arriving))]  # the oldest: dicts keep their order

    def opened(self, fact: TurnOpened) -> None:
        """Follow a turn from its opening."""
        key = fact.run_id, fact.turn_id
        self._follow(key, Followed(TurnView.opened(fact), self._arriving.pop(key, None)))

    def folded(self, kernel: Kernel) -> None:
        """Follow the open turn of a kernel from where it is."""
        view = turn_of(kernel)
        if view is not None:
            key = view.run_id, view.turn_id
            known = self._open.get(key)
            self._follow(key, Followed(view, None if known is None else known.parent))

    def after(self, fact: TurnFact) -> Followed | None:
        """Return a followed turn after one of its facts; None of another."""
        turn = self.get(fact.run_id, fact.turn_id)
        if turn is not None:
            turn.view = turn.view.after(fact)
            if turn.view.closed:
                del self._open[fact.run_id, fact.turn_id]
        return turn

    def get(self, run_id: str, turn_id: str) -> Followed | None:
        """Return a turn that is followed."""
        return self._open.get((run_id, turn_id))

    def _follow(self, key: _Key, turn: Followed) -> None:
        self._open[key] = turn
        if len(self._open) > TURNS:
            del self._open[next(iter(self._open))]


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


def _naming(run_id: str, named: Execute | CallView, call: CallView | None) -> dict[str, str]:
    """Return the attributes that say which call of which conversation a span is about.

    The call's id is the provider's own, where there is one: the model's spans know it by that.
    """
    provider_call_id = None if call is None else call.provider_call_id
    return {
        "gen_ai.tool.name": named.tool_name,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": provider_call_id or named.invocation_id,
        "gen_ai.conversation.id": run_id,
        "turnlock.turn.id": named.turn_id,
        "turnlock.invocation.id": named.invocation_id,
    }


def _nanoseconds(at: float) -> int:
    """Return Unix time in seconds as spans count it."""
    return round(at * 1e9)

"""The metrics of a runtime, on the OpenTelemetry API.

What a model or a tool may choose freely never becomes an attribute: tools that were not declared
are `other`, and of the kinds of failure only the first `ERROR_KINDS` are told apart.

Of an execution that has ended:
`gen_ai.execute_tool.duration`, histogram, seconds, by `gen_ai.tool.name`, `turnlock.outcome`
(succeeded, failed, unknown) and `error.type`.

Of a call that has ended, executed or not:
`turnlock.calls.settled`, counter, by `gen_ai.tool.name`, `turnlock.outcome` (succeeded, failed,
denied) and `turnlock.cause` (of the denial or failure).

Of a delivery that was refused:
`turnlock.deliveries.refused`, counter, by `turnlock.reason` and `turnlock.delivery`.

Now, over all runtimes that are observed, as gauges without attributes:
`turnlock.turns.open`, `turnlock.approvals.oldest` (seconds) and `turnlock.calls.in_doubt`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from ..models.facts import ToolDenied, ToolExecutionFailed, ToolExecutionSucceeded
from ..models.reasons import Reason
from .log import logger
from .telemetry import Observed, Read

_log = logger(__name__)

OTHER: Final = "other"
"""Stands for every tool that was not declared."""

ERROR_KINDS: Final = 100
"""Kinds of failure that are told apart; every further one is `OTHER_ERROR`."""

OTHER_ERROR: Final = "_OTHER"
"""The conventions' word for an error without a name of its own."""

BOUNDARIES: Final = (
    0.01,
    0.02,
    0.04,
    0.08,
    0.16,
    0.32,
    0.64,
    1.28,
    2.56,
    5.12,
    10.24,
    20.48,
    40.96,
    81.92,
)
"""Bucket boundaries of durations in seconds, as the GenAI conventions advise for operations."""


class Meters:
    """All metrics of this process's runtimes."""

    def __init__(self, meter: Meter) -> None:
        """Make the instruments."""
        self._declared: set[str] = set()
        self._kinds: set[str] = set()
        self._reads: list[Read] = []
        self._duration = meter.create_histogram(
            "gen_ai.execute_tool.duration",
            unit="s",
            description="How long executions of tools took",
            explicit_bucket_boundaries_advisory=BOUNDARIES,
        )
        self._settled = meter.create_counter(
            "turnlock.calls.settled", unit="{call}", description="Calls that have ended"
        )
        self._refused = meter.create_counter(
            "turnlock.deliveries.refused", unit="{delivery}", description="Deliveries refused"
        )
        meter.create_observable_gauge(
            "turnlock.turns.open",
            [self._gauge(lambda all_: sum(it.turns_open for it in all_))],
            unit="{turn}",
            description="Turns that are not closed",
        )
        meter.create_observable_gauge(
            "turnlock.approvals.oldest",
            [
                self._gauge(
                    lambda all_: max(
                        (it.oldest_pending_approval or 0.0 for it in all_), default=0.0
                    )
                )
            ],
            unit="s",
            description="For how long the oldest pending approval has waited; 0 where none does",
        )
        meter.create_observable_gauge(
            "turnlock.calls.in_doubt",
            [self._gauge(lambda all_: sum(it.in_doubt for it in all_))],
            unit="{call}",
            description="Calls of which nobody knows whether they happened",
        )

    def declare(self, tool_names: Sequence[str]) -> None:
        """Learn of tools that may be named."""
        self._declared.update(tool_names)

    def kind(self, kind: str) -> str:
        """Return the kind of a failure as it is told."""
        if kind not in self._kinds and len(self._kinds) >= ERROR_KINDS:
            return OTHER_ERROR
        self._kinds.add(kind)
        return kind

    def executed(
        self, tool_name: str, outcome: str, seconds: float, error_type: str | None
    ) -> None:
        """Count an execution; `error_type` as `kind` returned it."""
        attributes = {"gen_ai.tool.name": self._tool(tool_name), "turnlock.outcome": outcome}
        if error_type is not None:
            attributes["error.type"] = error_type
        self._duration.record(seconds, attributes)

    def settled(self, fact: ToolDenied | ToolExecutionFailed | ToolExecutionSucceeded) -> None:
        """Count a call that has ended."""
        attributes = {"gen_ai.tool.name": self._tool(fact.tool_name)}
        if isinstance(fact, ToolExecutionSucceeded):
            attributes["turnlock.outcome"] = "succeeded"
        else:
            denied = isinstance(fact, ToolDenied)
            attributes["turnlock.outcome"] = "denied" if denied else "failed"
            attributes["turnlock.cause"] = fact.cause.value
        self._settled.add(1, attributes)

    def refused(self, reason: Reason, delivery_type: str) -> None:
        """Count a refusal; both words are of closed lists."""
        attributes = {"turnlock.reason": reason.value, "turnlock.delivery": delivery_type}
        self._refused.add(1, attributes)

    def observe(self, read: Read) -> Callable[[], None]:
        """Count this runtime in the gauges until the returned function is called."""
        self._reads.append(read)

        def stop() -> None:
            if read in self._reads:
                self._reads.remove(read)

        return stop

    def _tool(self, tool_name: str) -> str:
        return tool_name if tool_name in self._declared else OTHER

    def _gauge(
        self, of: Callable[[Sequence[Observed]], float]
    ) -> Callable[[CallbackOptions], Iterable[Observation]]:
        """Return a callback that shows all runtimes at once; one that raises is left out."""

        def look(_: CallbackOptions) -> Iterable[Observation]:
            observed: list[Observed] = []
            for read in tuple(self._reads):
                try:
                    observed.append(read())
                except Exception:  # noqa: BLE001 - the others are still to be shown
                    _log.exception("a runtime's gauges could not be read")
            return [Observation(of(observed))]

        return look

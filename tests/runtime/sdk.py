"""A telemetry with an SDK behind it, and an execution to tell it of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from turnlock import Execute
from turnlock.models.values import Json
from turnlock.runtime.telemetry import Execution, Telemetry
from turnlock.runtime.telemetry_spans import OpenTelemetry


class Sdk:
    """A telemetry with an SDK behind it, and what that has received."""

    def __init__(self, *, contents: bool = False) -> None:
        self._exporter = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        self.tracers = TracerProvider(shutdown_on_exit=False)
        self.tracers.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.meters = MeterProvider([self._reader], shutdown_on_exit=False)
        self.telemetry = OpenTelemetry(
            contents=contents, tracer_provider=self.tracers, meter_provider=self.meters
        )

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        """The spans that have ended."""
        return self._exporter.get_finished_spans()

    @property
    def span(self) -> ReadableSpan:
        """The only one."""
        (only,) = self.spans
        return only

    def metric(self, name: str) -> dict[tuple[tuple[str, object], ...], Any]:
        """A metric's points by their attributes."""
        data: Any = self._reader.get_metrics_data()
        resources: list[Any] = [] if data is None else data.resource_metrics
        points: list[Any] = [
            point
            for resource in resources
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]
        return {tuple(sorted(point.attributes.items())): point for point in points}


def begun(
    telemetry: Telemetry,
    *,
    invocation_id: str = "a",
    tool_name: str = "ls",
    turn_id: str = "T1",
    attempt: int = 1,
    arguments: Mapping[str, Json] | None = None,
) -> Execution:
    """An execution in the run `r`."""
    effect = Execute(
        effect_id="e",
        turn_id=turn_id,
        invocation_id=invocation_id,
        tool_name=tool_name,
        attempt=attempt,
        arguments=arguments or {},
        idempotency_key="k",
    )
    return telemetry.execution("r", effect)


def events(span: ReadableSpan) -> list[tuple[str, float, dict[str, Any]]]:
    """The events of a span: name, Unix time, attributes."""
    return [
        (event.name, event.timestamp / 1e9, dict(event.attributes or {})) for event in span.events
    ]


def parent(span: ReadableSpan) -> int | None:
    """The id of the span's parent."""
    return None if span.parent is None else span.parent.span_id


def own(span: ReadableSpan) -> int | None:
    """The id of the span."""
    return None if span.context is None else span.context.span_id

"""What is counted, as Prometheus reads it: ``/metrics``, with the extra `metrics` (F-35)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import Response

from .problems import Problem
from .routing import Asked, Endpoint, Role

if TYPE_CHECKING:
    from .face import Face

_STREAMS: Final = (
    ("sent", "Events that were sent to subscribers."),
    ("cut", "Subscribers that were cut off: they read nothing for too long."),
    ("replays", "Times that a subscriber fell behind and was served from the journal."),
)


async def _metrics(face: Face, _: Asked) -> Response:
    try:
        from prometheus_client import CollectorRegistry, generate_latest  # noqa: PLC0415 - an extra's
        from prometheus_client.core import (  # noqa: PLC0415 - as above
            CounterMetricFamily,
            GaugeMetricFamily,
        )
    except ImportError:
        raise Problem(
            "not_found", "there are no metrics here: pip install 'turnlock[metrics]'"
        ) from None
    families: list[Any] = []
    families.append(
        GaugeMetricFamily(
            "turnlock_stream_subscribers", "Open subscriptions.", value=face.hub.subscribers
        )
    )
    families += [
        CounterMetricFamily(f"turnlock_stream_{name}", what, value=getattr(face.hub.counts, name))
        for name, what in _STREAMS
    ]
    refused = CounterMetricFamily("turnlock_refused", "Problems, by code.", labels=["code"])
    for code, count in sorted(face.standing.refused.items()):
        refused.add_metric([code], count)
    families.append(refused)
    waiting, oldest = await _approvals(face)
    families += [
        GaugeMetricFamily(
            "turnlock_approvals_waiting", "Runs that wait for a person.", value=waiting
        ),
        GaugeMetricFamily(
            "turnlock_oldest_approval_seconds", "How long the oldest has waited.", value=oldest
        ),
    ]
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Fixed(families))
    return Response(generate_latest(registry), media_type="text/plain; version=0.0.4")


class _Fixed:
    """What was gathered for one answer."""

    def __init__(self, families: list[Any]) -> None:
        self._families: Final = families

    def collect(self) -> list[Any]:
        """Return it."""
        return self._families


async def _approvals(face: Face) -> tuple[int, float]:
    """Return how many runs wait for a person, and for how many seconds the oldest call has."""
    page = await face.journal.latest(limit=1)
    asked = page.entries[0].asked if page.entries else None
    return page.waiting, 0.0 if asked is None else max(0.0, time.time() - asked.since)


ENDPOINTS: Final = (
    Endpoint(
        method="GET",
        path="/metrics",
        handler=_metrics,
        role=Role.LOOK,
        summary="What is counted, as Prometheus reads it.",
        produces=("text/plain",),
        codes=("not_found",),
    ),
)

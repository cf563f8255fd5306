"""What is said of a call in doubt, as the delivery that says it (K-35)."""

from __future__ import annotations

from ..models.deliveries import Resolution, Resolve
from ..models.values import ABSENT, Absent, Json
from .call_view import CallView


def resolved(
    call: CallView,
    resolution: Resolution,
    *,
    result: Json | Absent = ABSENT,
    error: str | None = None,
) -> Resolve:
    """Return what became of the attempt that was shown to be in doubt."""
    return Resolve(
        run_id=call.run_id,
        turn_id=call.turn_id,
        invocation_id=call.invocation_id,
        attempt=call.attempt,
        resolution=resolution,
        result=result,
        error=error,
    )

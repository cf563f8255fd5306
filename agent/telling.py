"""What a model is told of the results of its calls, in words; every provider says the same."""

from __future__ import annotations

from typing import Any

from ..models.calls import CallResult, Status
from ..models.values import canonical


def told(result: CallResult) -> str:
    """Return what became of a call: a text as it is, any other value as JSON."""
    if result.status is Status.FAILED:
        return f"error: {result.error}"
    if result.status is Status.DENIED:
        return f"denied: {result.reason}"
    value: Any = result.result
    return value if isinstance(value, str) else canonical(value)

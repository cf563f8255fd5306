"""What a model is told of the results of its calls, in words; every provider says the same."""

from __future__ import annotations

from typing import Any

from ..models.calls import CallResult, Status
from ..models.values import canonical
from .messages import Results


def told(result: CallResult, among: Results) -> str:
    """Return what became of a call of these results: a text as it is, any other value as JSON.

    What a person did to it is said as well: that its arguments were edited, and what they became;
    why it was denied; that its turn was interrupted, and why.
    """
    edited = among.edited.get(result.invocation_id)
    if edited is None:
        return _became(result, among)
    return (
        "(Before it ran, a person changed the arguments of this call. It ran with"
        f" {canonical(edited)}.)\n{_became(result, among)}"
    )


def _became(result: CallResult, among: Results) -> str:
    why = "" if among.reason is None else f" ({among.reason})"
    if result.status is Status.DENIED:
        if result.invocation_id in among.unended:
            return f"interrupted: a person has stopped this turn before the call was started{why}"
        return f"denied: {result.reason}"
    if result.status is Status.FAILED:
        if result.invocation_id in among.unended:
            return (
                "interrupted: a person has stopped this turn while the call ran; whether it"
                f" happened is not known{why}"
            )
        return f"error: {result.error}"
    value: Any = result.result
    return value if isinstance(value, str) else canonical(value)

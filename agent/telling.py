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
    if result.status is not Status.SUCCEEDED and result.invocation_id in among.unended:
        return _stopped(result, among)
    if result.status is Status.DENIED:
        return f"denied: {result.reason}"
    if result.status is Status.FAILED:
        return f"error: {result.error}"
    value: Any = result.result
    return value if isinstance(value, str) else canonical(value)


def _stopped(result: CallResult, among: Results) -> str:
    began = result.status is not Status.DENIED
    doubt = "; whether it happened is not known" if began else ""
    if among.refused:
        done = "ended while it ran" if began else "not started"
        return f"{done}: the answer that asked for it was refused{doubt}"
    done = "while the call ran" if began else "before the call was started"
    why = "" if among.reason is None else f" ({among.reason})"
    return f"interrupted: a person has stopped this turn {done}{doubt}{why}"

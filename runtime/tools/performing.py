"""Tools performed: prepared before the claim, run after it, asked about when nobody knows.

Nothing here raises for what a user's function does: it is an outcome, and a text that says what
was wrong. Only cancelling the caller raises.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from typing import Any, Final, cast

from ...models.errors import InvalidValue, shown
from ...models.values import Json, freeze
from .arguments import check
from .calling import Ending, Raised, Returned
from .context import ToolContext
from .errors import Rejected, ToolCancelled
from .messages import bounded, said
from .outcomes import (
    BAD_RESULT,
    NOT_STARTED,
    Ended,
    Failed,
    Happened,
    NeverHappened,
    Outcome,
    ProbeAnswer,
    StillUnknown,
    Succeeded,
    Unknown,
)
from .results import RESULT_BYTES, as_json
from .supervising import ABANDONED, GRACE, Abandoned, Stop, Unfinished, Work, supervise
from .tool import Tool

PREPARATION: Final = 30.0
"""Seconds that all preprocessors of a call have together."""
PROBING: Final = 30.0
"""Seconds that a probe has before a person is asked instead."""


async def prepare(  # noqa: PLR0913 - bounds with defaults
    tool: Tool,
    context: ToolContext,
    arguments: Mapping[str, Json],
    *,
    threads: Executor,
    within: float = PREPARATION,
    grace: float = GRACE,
    abandoned: Abandoned = ABANDONED,
) -> dict[str, Any]:
    """Run the preprocessors, in order, then check what they return; return what to call with.

    To be done before the claim: nothing has happened when it raises `Rejected` (seed 004). What was
    approved are the arguments as the model gave them; preprocessors are the tool author's own code.
    """
    if not tool.preprocessors:
        return _checked(tool, arguments)
    work = Work(threads=threads)
    answer = await supervise(
        work,
        _preprocessed(work, tool, context, arguments),
        context=context,
        within=within,
        grace=grace,
        abandoned=abandoned,
    )
    if isinstance(answer, Unfinished):
        raise Rejected(f"a preprocessor {answer.why}")
    if isinstance(answer, Rejected):
        raise answer
    return _checked(tool, answer)


def _checked(tool: Tool, arguments: Mapping[str, Json]) -> dict[str, Any]:
    try:
        return check(tool, arguments)
    except InvalidValue as error:
        raise Rejected(f"bad arguments: {bounded(str(error))}") from error


async def _preprocessed(
    work: Work, tool: Tool, context: ToolContext, arguments: Mapping[str, Json]
) -> Mapping[str, Json] | Rejected:
    for preprocessor in tool.preprocessors:
        name = _name_of(preprocessor)
        ending = await work.call(preprocessor, arguments, context)
        if not isinstance(ending, Returned):
            return Rejected(f"the preprocessor {name} {_failing(ending, work.stopped)}")
        if not isinstance(ending.value, Mapping):
            return Rejected(
                f"the preprocessor {name} returned {shown(ending.value)}; it must return arguments"
            )
        try:
            arguments = freeze(cast("object", ending.value), place="arguments")
        except InvalidValue as error:
            return Rejected(f"the preprocessor {name} returned bad arguments: {error}")
    return arguments


async def perform(  # noqa: PLR0913 - bounds with defaults
    tool: Tool,
    context: ToolContext,
    arguments: Mapping[str, Any],
    *,
    threads: Executor,
    limit: int = RESULT_BYTES,
    grace: float = GRACE,
    abandoned: Abandoned = ABANDONED,
) -> Outcome:
    """Run a tool with what `prepare` returned, then its result processors; return what it came to.

    Its `timeout` covers all of it. A tool that is stopped and ends by that has failed: its end is
    a true report, though what it did half-way may stay done. One that goes on all the same (a
    thread cannot be stopped; a task may swallow its cancellation) is `Unknown` after `grace`
    seconds. `limit` is in bytes. Cancelling the caller stops the tool and waits for it at most
    `grace`; `context.cancel` does the same and returns the outcome.
    """
    work = Work(threads=threads)
    try:
        outcome = await supervise(
            work,
            _performed(work, tool, context, arguments, limit=limit),
            context=context,
            within=tool.policy.timeout,
            grace=grace,
            abandoned=abandoned,
        )
    finally:
        context.end_log()
    if isinstance(outcome, Unfinished):
        return Unknown(why=f"the tool {outcome.why}; it may still do its work", later=outcome.later)
    return outcome


async def _performed(
    work: Work, tool: Tool, context: ToolContext, arguments: Mapping[str, Any], *, limit: int
) -> Ended:
    name = tool.signature.context_name
    injected = {} if name is None else {name: context}
    ending = await work.call(tool.call, **arguments, **injected)
    if not isinstance(ending, Returned):
        return Failed(f"the tool {_failing(ending, work.stopped)}", _kind(ending, work.stopped))
    value = ending.value
    for processor in tool.processors:
        ending = await work.complete(processor, value, context)
        if not isinstance(ending, Returned):
            failing = _failing(ending, work.stopped)
            return Failed(
                f"the tool succeeded, but its result processor {_name_of(processor)} {failing}",
                _kind(ending, work.stopped),
            )
        value = ending.value
    try:
        return Succeeded(as_json(value, limit=limit))
    except Exception as error:  # noqa: BLE001 - a result may be an object whose attributes raise
        told = str(error) if isinstance(error, InvalidValue) else said(error)
        return Failed(f"the tool ran, but its result cannot be kept: {bounded(told)}", BAD_RESULT)


async def probe(  # noqa: PLR0913 - bounds with defaults
    tool: Tool,
    context: ToolContext,
    *,
    threads: Executor,
    within: float = PROBING,
    grace: float = GRACE,
    abandoned: Abandoned = ABANDONED,
) -> ProbeAnswer:
    """Ask the tool's probe whether an execution happened; what fails to say is `StillUnknown`.

    The result of `Happened` is a frozen JSON value, or the answer is that it failed, with why.
    """
    if tool.policy.probe is None:
        return StillUnknown(f"the tool {tool.name} has no probe")
    work = Work(threads=threads)
    ending = await supervise(
        work,
        work.call(tool.policy.probe, context),
        context=context,
        within=within,
        grace=grace,
        abandoned=abandoned,
    )
    if isinstance(ending, Unfinished):
        return StillUnknown(f"the probe {ending.why}")
    if not isinstance(ending, Returned):
        return StillUnknown(f"the probe {_failing(ending, work.stopped)}")
    answer = ending.value
    if isinstance(answer, Happened):
        return _kept(answer)
    if isinstance(answer, Failed | NeverHappened | StillUnknown):
        return answer
    return StillUnknown(
        f"the probe returned {shown(answer)}, not Happened, Failed, NeverHappened or StillUnknown"
    )


def _kept(answer: Happened) -> Happened | Failed:
    try:
        return Happened(as_json(answer.result))
    except Exception as error:  # noqa: BLE001 - as for the result of the tool
        told = str(error) if isinstance(error, InvalidValue) else said(error)
        return Failed(f"it happened, but its result cannot be kept: {bounded(told)}", BAD_RESULT)


def _failing(ending: Ending, stop: Stop | None) -> str:
    """Say how a call ended that did not return."""
    if isinstance(ending, Raised):
        told = said(ending.error)
        if stop is None:
            return f"failed: {told}"
        return stop.why if isinstance(ending.error, ToolCancelled) else f"{stop.why}; then {told}"
    if stop is None:
        return "failed: CancelledError: it was cancelled by something of its own"
    if isinstance(ending, Returned) or ending.began:
        return f"{stop.why}; it was stopped half-way, and what it had done may stay done"
    return f"{stop.why}; it had not begun"


def _kind(ending: Ending, stop: Stop | None) -> str:
    if stop is not None:
        began = isinstance(ending, Raised | Returned) or ending.began
        return stop.kind if began else NOT_STARTED
    return type(ending.error).__name__ if isinstance(ending, Raised) else "CancelledError"


def _name_of(function: object) -> str:
    return str(getattr(function, "__name__", type(function).__name__))

"""What is done around a tool, under a bound: prepare its arguments, perform it, probe what it did.

Nothing here raises for what a user's function does: it is an outcome, and a text that says what was
wrong. Only cancelling the caller raises. Work of a user's functions ends, is stopped, or is let go
and known: what does not stop when it is asked to is never waited for without end, and never
forgotten; it is among the abandoned until it ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from concurrent.futures import Executor
from contextlib import suppress
from functools import partial
from types import BuiltinFunctionType, FunctionType, MappingProxyType, MethodType
from typing import Any, Final, Generic, TypeAlias, TypeVar, cast

import attrs

from ...models.errors import InvalidValue, shown
from ...models.values import Json, freeze
from .arguments import check
from .calling import (
    Admitted,
    Calling,
    Ending,
    Raised,
    Read,
    Returned,
    Stopped,
    ToolContext,
    Unread,
    Withheld,
    always,
    as_it_is,
    begin,
    begin_reading,
)
from .errors import PLACE, OutcomeUnknown, Rejected, StoodStill, bounded, kind_of, said
from .results import (
    CANCELLED,
    NOT_STARTED,
    RESULT_BYTES,
    STOOD_STILL,
    TIMED_OUT,
    Ended,
    Failed,
    Outcome,
    ProbeAnswer,
    StillUnknown,
    Unknown,
    answer_of,
    outcome_of,
)
from .tool import Tool

T = TypeVar("T")

GRACE: Final = 2.0
"""Seconds that work which was asked to stop has to do so."""

Abandoned: TypeAlias = set[asyncio.Task[Any]]
"""Work that goes on though nobody waits for it: a thread that cannot be stopped, for one."""

ABANDONED: Final[Abandoned] = set()
"""The abandoned work of whoever does not keep a set of their own."""


NOTHING_GIVEN: Final[Mapping[str, Any]] = MappingProxyType({})


@attrs.frozen
class Stop:
    """Why work was asked to stop, and the word for it in metrics."""

    why: str
    kind: str


@attrs.frozen
class Unfinished(Generic[T]):
    """It did not stop in time; awaiting `later`, as often as wanted, gives what it comes to."""

    why: str
    later: Awaitable[T]


class _Later(Generic[T]):
    """A task to be awaited many times, and cancelled by none of those who do."""

    def __init__(self, task: asyncio.Task[T]) -> None:
        self._task = task

    def __await__(self) -> Generator[Any, None, T]:
        return asyncio.shield(self._task).__await__()


class Work:
    """Calls made one after the other, which can be asked to stop together."""

    def __init__(self, *, threads: Executor, admitted: Admitted = always) -> None:
        """Begin with none."""
        self._threads = threads
        self._admitted = admitted
        self._calling: Calling | None = None
        self.stopped: Stop | None = None

    async def call(
        self,
        function: Callable[..., Any],
        *args: object,
        given: Mapping[str, Any] = NOTHING_GIVEN,
        read: Read = as_it_is,
    ) -> Ending:
        """Make a call and return how it ended; after a stop none begins.

        `given` are its arguments by name; `read` makes of what it returns what is wanted of it.
        Raises `StoodStill` where it was not admitted, in the very frame that would have made it.
        """
        if self.stopped is not None:
            return Stopped(began=False)
        return await self._ended(function, args, given, read, self._admitted)

    async def complete(
        self, function: Callable[..., Any], *args: object, read: Read = as_it_is
    ) -> Ending:
        """Make a call that makes something of what is done already: it begins after a stop too."""
        return await self._ended(function, args, NOTHING_GIVEN, read, always)

    async def _ended(
        self,
        function: Callable[..., Any],
        args: tuple[object, ...],
        given: Mapping[str, Any],
        read: Read,
        admitted: Admitted,
    ) -> Ending:
        """Make a call, and where it has ended on the loop read in a thread what it came to."""
        threads = self._threads
        self._calling = begin(function, args, given, threads=threads, read=read, admitted=admitted)
        ending = await self._calling.ended()
        if isinstance(ending, Unread):
            self._calling = begin_reading(ending, threads=threads)
            ending = await self._calling.ended()
        if isinstance(ending, Withheld):
            raise StoodStill("this process had stood still beyond its lease")
        if isinstance(ending, Unread):
            raise AssertionError(ending)  # noqa: TRY004 - a reading is read
        return ending

    def stop(self, stop: Stop) -> None:
        """Cancel what can be cancelled; the first reason stays."""
        if self.stopped is None:
            self.stopped = stop
            if self._calling is not None:
                self._calling.stop()


async def supervise(  # noqa: PLR0913 - one bound each, all by keyword
    work: Work,
    steps: Coroutine[Any, Any, T],
    *,
    context: ToolContext,
    within: float | None,
    grace: float,
    abandoned: Abandoned,
) -> T | Unfinished[T]:
    """Run the steps of some work until they end, time is over, or the context is cancelled.

    Times are in seconds. Cancelling the caller stops the work too, waits for it at most `grace`,
    and then raises CancelledError.
    """
    loop = asyncio.get_running_loop()
    asked: asyncio.Future[None] = loop.create_future()

    def cancelled() -> None:
        work.stop(Stop(f"was cancelled: {context.why_cancelled}", CANCELLED))
        if not asked.done():
            asked.set_result(None)

    def cancel_from_any_thread() -> None:
        with suppress(RuntimeError):  # the loop is closed: nothing of it runs any more
            loop.call_soon_threadsafe(cancelled)

    context.when_cancelled(cancel_from_any_thread)
    if context.cancelled:
        cancelled()
    running = loop.create_task(steps)
    try:
        first: set[asyncio.Future[Any]] = {running, asked}
        await asyncio.wait(first, timeout=within, return_when="FIRST_COMPLETED")
        if not running.done():
            if not asked.done():
                work.stop(Stop(f"timed out after {within:g} s", TIMED_OUT))
                context.cancel("its time is over")
            await asyncio.wait({running}, timeout=grace)
    except asyncio.CancelledError:
        context.cancel("its host stops")
        cancelled()
        await asyncio.wait({running}, timeout=grace)
        raise
    finally:
        context.when_cancelled(None)
        if not running.done():
            abandoned.add(running)
            running.add_done_callback(abandoned.discard)
    if running.done():
        return running.result()
    why = "" if work.stopped is None else work.stopped.why
    return Unfinished(f"{why}, and did not stop within {grace:g} s", _Later(running))


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
    admitted: Admitted = always,
) -> dict[str, Any]:
    """Run the preprocessors, in order, then check what they return; return what to call with.

    To be done before the claim: nothing has happened when it raises `Rejected` (seed 004). What was
    approved are the arguments as the model gave them; preprocessors are the tool author's own code.
    Raises `StoodStill` where one was not admitted: then all of it can be done again.
    """
    if not tool.preprocessors and tool.is_plain:
        arguments_or_not = checked(tool, arguments)
    else:
        work = Work(threads=threads, admitted=admitted)
        answer = await supervise(
            work,
            _prepared(work, tool, context, arguments),
            context=context,
            within=within,
            grace=grace,
            abandoned=abandoned,
        )
        if isinstance(answer, Unfinished):
            late = "a preprocessor" if tool.preprocessors else "the check of its arguments"
            raise Rejected(f"{late} {answer.why}")
        arguments_or_not = answer
    if isinstance(arguments_or_not, Rejected):
        raise arguments_or_not
    return arguments_or_not


def checked(tool: Tool, arguments: Mapping[str, Json]) -> dict[str, Any] | Rejected:
    """Return what to call the tool with, or why not; code of its types may run."""
    try:
        return check(tool, arguments)
    except BaseException as error:  # noqa: BLE001 - a type's own __post_init__ may even exit
        told = str(error) if isinstance(error, InvalidValue) else said(error)
        return Rejected(f"bad arguments: {bounded(told)}")


async def _prepared(
    work: Work, tool: Tool, context: ToolContext, arguments: Mapping[str, Json]
) -> dict[str, Any] | Rejected:
    for preprocessor in tool.preprocessors:
        name = name_of(preprocessor)
        ending = await work.call(preprocessor, arguments, context, read=_read_arguments)
        if not isinstance(ending, Returned):
            return Rejected(f"the preprocessor {name} {_failing(ending, work.stopped)}")
        if isinstance(ending.value, Rejected):
            return Rejected(f"the preprocessor {name} returned {ending.value}")
        arguments = ending.value
    if tool.is_plain:
        return checked(tool, arguments)
    ending = await work.call(checked, tool, arguments)
    if isinstance(ending, Returned):
        made: dict[str, Any] | Rejected = ending.value
        return made
    return Rejected(f"the check of its arguments {_failing(ending, work.stopped)}")


def _read_arguments(value: object) -> Mapping[str, Json] | Rejected:
    """Return the arguments that a preprocessor returned, frozen; code of theirs may run."""
    try:
        if not isinstance(value, Mapping):
            return Rejected(f"{shown(value)}; it must return arguments")
        frozen: object = freeze(cast("object", value), place="arguments")
        if isinstance(frozen, dict):
            return cast("Mapping[str, Json]", frozen)
        return Rejected(f"{shown(frozen)}; it must return arguments")
    except BaseException as error:  # noqa: BLE001 - a mapping of the author's own may even exit
        told = str(error) if isinstance(error, InvalidValue) else said(error)
        return Rejected(f"bad arguments: {bounded(told)}")


async def perform(  # noqa: PLR0913 - bounds with defaults
    tool: Tool,
    context: ToolContext,
    arguments: Mapping[str, Any],
    *,
    threads: Executor,
    limit: int = RESULT_BYTES,
    grace: float = GRACE,
    abandoned: Abandoned = ABANDONED,
    admitted: Admitted = always,
) -> Outcome:
    """Run a tool with what `prepare` returned, then its result processors; return what it came to.

    Its `timeout` covers all of it. A tool that is stopped and ends by that has failed: its end is
    a true report, though what it did half-way may stay done. One that goes on all the same (a
    thread cannot be stopped; a task may swallow its cancellation) is `Unknown` after `grace`
    seconds, and one that raises `OutcomeUnknown` is so at once. Where it was not admitted, nothing
    has happened: `STOOD_STILL`. `limit` is in bytes.
    Cancelling the caller stops the tool and waits for it at most `grace`; `context.cancel` does the
    same and returns the outcome.
    """
    work = Work(threads=threads, admitted=admitted)
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
) -> Outcome:
    name = tool.signature.context_name
    injected = {} if name is None else {name: context}
    kept = partial(outcome_of, limit=limit)
    reads: list[Read] = [*([as_it_is] * len(tool.processors)), kept]
    try:
        ending = await work.call(tool.call, given={**arguments, **injected}, read=reads[0])
    except StoodStill:
        return STOOD_STILL
    which = "the tool"
    for processor, read in zip(tool.processors, reads[1:], strict=True):
        if not isinstance(ending, Returned):
            break
        which = f"the tool succeeded, but its result processor {name_of(processor)}"
        ending = await work.complete(processor, ending.value, context, read=read)
    if isinstance(ending, Raised) and ending.leaves_doubt:
        return Unknown(f"{which} cannot tell: {_why_unknown(ending, work.stopped)}")
    if not isinstance(ending, Returned):
        return Failed(f"{which} {_failing(ending, work.stopped)}", _kind(ending, work.stopped))
    return cast("Ended", ending.value)


async def probe(  # noqa: PLR0913 - bounds with defaults
    tool: Tool,
    context: ToolContext,
    *,
    threads: Executor,
    within: float = PROBING,
    grace: float = GRACE,
    abandoned: Abandoned = ABANDONED,
    admitted: Admitted = always,
) -> ProbeAnswer:
    """Ask the tool's probe whether an execution happened; what fails to say is `StillUnknown`.

    The result of `Happened` is a frozen JSON value, or the answer is that it failed, with why.
    Raises `StoodStill` where the probe was not admitted.
    """
    if tool.policy.probe is None:
        return StillUnknown(f"the tool {tool.name} has no probe")
    work = Work(threads=threads, admitted=admitted)
    ending = await supervise(
        work,
        work.call(tool.policy.probe, context, read=answer_of),
        context=context,
        within=within,
        grace=grace,
        abandoned=abandoned,
    )
    if isinstance(ending, Unfinished):
        return StillUnknown(f"the probe {ending.why}")
    if not isinstance(ending, Returned):
        return StillUnknown(f"the probe {_failing(ending, work.stopped)}")
    answer: ProbeAnswer = ending.value
    return answer


def _failing(ending: Ending, stop: Stop | None) -> str:
    """Say how a call ended that did not return."""
    if isinstance(ending, Raised):
        if stop is None:
            return f"failed: {ending.told}"
        return stop.why if ending.asked_to else f"{stop.why}; then {ending.told}"
    if stop is None:
        return "failed: CancelledError: it was cancelled by something of its own"
    if isinstance(ending, Returned) or ending.began:
        return f"{stop.why}; it was stopped half-way, and what it had done may stay done"
    return f"{stop.why}; it had not begun"


def _why_unknown(ending: Raised, stop: Stop | None) -> str:
    why = ending.told.removeprefix(f"{OutcomeUnknown.__name__}: ")
    return why if stop is None else f"it {stop.why}; then {why}"


def _kind(ending: Ending, stop: Stop | None) -> str:
    if stop is not None:
        began = isinstance(ending, Raised | Returned) or ending.began
        return stop.kind if began else NOT_STARTED
    return ending.kind if isinstance(ending, Raised) else "CancelledError"


def name_of(function: object) -> str:
    """Return the name of a function, or of the class of what can be called; no code of it runs."""
    inner = function.__func__ if type(function) is MethodType else function
    if type(inner) is FunctionType or type(inner) is BuiltinFunctionType:
        return bounded(inner.__name__, limit=PLACE)
    return kind_of(function)

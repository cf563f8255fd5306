"""Work of a user's functions under a bound: it ends, it is stopped, or it is let go and known.

What does not stop when it is asked to is never waited for without end, and never forgotten: it is
among the abandoned until it ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator
from concurrent.futures import Executor
from contextlib import suppress
from typing import Any, Final, Generic, TypeAlias, TypeVar

import attrs

from .calling import Calling, Ending, Stopped, begin
from .context import ToolContext
from .outcomes import CANCELLED, TIMED_OUT

T = TypeVar("T")

GRACE: Final = 2.0
"""Seconds that work which was asked to stop has to do so."""

Abandoned: TypeAlias = set[asyncio.Task[Any]]
"""Work that goes on though nobody waits for it: a thread that cannot be stopped, for one."""

ABANDONED: Final[Abandoned] = set()
"""The abandoned work of whoever does not keep a set of their own."""


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

    def __init__(self, *, threads: Executor) -> None:
        """Begin with none."""
        self._threads = threads
        self._calling: Calling | None = None
        self.stopped: Stop | None = None

    async def call(
        self,
        function: Callable[..., Any],
        /,
        *args: object,
        **kwargs: Any,  # noqa: ANN401 - as the function has it
    ) -> Ending:
        """Make a call and return how it ended; after a stop none begins."""
        if self.stopped is not None:
            return Stopped(began=False)
        return await self.complete(function, *args, **kwargs)

    async def complete(
        self,
        function: Callable[..., Any],
        /,
        *args: object,
        **kwargs: Any,  # noqa: ANN401 - as the function has it
    ) -> Ending:
        """Make a call that makes something of what is done already: it begins after a stop too."""
        self._calling = begin(function, args, kwargs, threads=self._threads)
        return await self._calling.ended()

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

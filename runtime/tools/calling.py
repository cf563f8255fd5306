"""One call of a function that a user wrote: in a thread if it is sync, as a task if it is async.

However it ends, that is a value here: nothing that a user's function raises goes up into the
runtime, neither SystemExit nor KeyboardInterrupt nor a CancelledError of its own.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from contextlib import suppress
from typing import Any, Protocol, TypeAlias

import attrs

from .policy import is_async


@attrs.frozen
class Returned:
    """It returned."""

    value: Any


@attrs.frozen
class Raised:
    """It raised."""

    error: BaseException


@attrs.frozen
class Stopped:
    """It was cancelled: before it had begun, or half-way."""

    began: bool


Ending: TypeAlias = Returned | Raised | Stopped


class Calling(Protocol):
    """A call under way."""

    def stop(self) -> None:
        """Cancel it if it can be: a task, or a call that still waits for a thread."""

    async def ended(self) -> Ending:
        """Wait for it; cancelling the wait does not cancel the call."""
        ...


def begin(
    call: Callable[..., Any],
    args: tuple[object, ...],
    kwargs: Mapping[str, Any],
    *,
    threads: Executor,
) -> Calling:
    """Begin a call, on the loop if it is async, otherwise in a thread with our contextvars."""
    if is_async(call):
        return _OnLoop(_awaited(call, args, kwargs))
    return _InThread(call, args, kwargs, threads=threads)


class _OnLoop:
    def __init__(self, work: Any) -> None:  # noqa: ANN401 - a coroutine
        self._task: asyncio.Task[Ending] = asyncio.get_running_loop().create_task(work)

    def stop(self) -> None:
        self._task.cancel()

    async def ended(self) -> Ending:
        await asyncio.wait({self._task})
        if self._task.cancelled():
            return Stopped(began=True)
        error = self._task.exception()
        return self._task.result() if error is None else Raised(error)


async def _awaited(
    call: Callable[..., Any], args: tuple[object, ...], kwargs: Mapping[str, Any]
) -> Ending:
    try:
        return Returned(await call(*args, **kwargs))
    except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 - see the module
        return Raised(error)


class _InThread:
    def __init__(
        self,
        call: Callable[..., Any],
        args: tuple[object, ...],
        kwargs: Mapping[str, Any],
        *,
        threads: Executor,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._ending: asyncio.Future[Ending] = self._loop.create_future()
        variables = contextvars.copy_context()
        try:
            self._thread = threads.submit(variables.run, _called, call, args, kwargs)
        except RuntimeError as error:  # the executor is shut down
            self._thread = Future[Ending]()
            self._thread.set_result(Raised(error))
        self._thread.add_done_callback(self._arrived)

    def stop(self) -> None:
        self._thread.cancel()

    async def ended(self) -> Ending:
        await asyncio.wait({self._ending})
        return self._ending.result()

    def _arrived(self, thread: Future[Ending]) -> None:
        """Bring the ending over to the loop, in whichever thread this is called."""
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._settle, thread)

    def _settle(self, thread: Future[Ending]) -> None:
        if thread.cancelled():
            self._ending.set_result(Stopped(began=False))
        else:
            error = thread.exception()
            self._ending.set_result(thread.result() if error is None else Raised(error))


def _called(
    call: Callable[..., Any], args: tuple[object, ...], kwargs: Mapping[str, Any]
) -> Ending:
    try:
        value = call(*args, **kwargs)
    except BaseException as error:  # noqa: BLE001 - see the module
        return Raised(error)
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        return Raised(TypeError("a sync function returned an awaitable; declare it async def"))
    return Returned(value)

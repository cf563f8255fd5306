"""One call of a function that a user wrote: its thread or task, what it is told, how it ends.

However it ends, that is a value here: nothing that a user's function raises goes up into the
runtime, neither SystemExit nor KeyboardInterrupt nor a CancelledError of its own. Nor does code of
what it returned or raised: a `__str__`, a property, an `items` may exit, or take an hour. It runs
where the function ran, and after an async one in a thread: never on the loop, which all runs share.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Executor, Future
from contextlib import suppress
from functools import partial
from typing import Any, Final, Protocol, TypeAlias

import attrs

from .errors import ToolCancelled, bounded, is_plain_error, kind_of, leaves_doubt, said
from .results import is_small


@attrs.frozen
class Returned:
    """It returned; what was to be read of that has been read, where it ran."""

    value: Any


@attrs.frozen
class Raised:
    """It raised: what that says, read where it ran."""

    told: str
    kind: str
    """The class of the exception."""
    asked_to: bool = False
    """Whether it was a `ToolCancelled`: it stopped because it was asked to."""
    leaves_doubt: bool = False
    """Whether it was an `OutcomeUnknown`: the function cannot tell what it did."""


@attrs.frozen
class Stopped:
    """It was cancelled: before it had begun, or half-way."""

    began: bool


@attrs.frozen
class Withheld:
    """It was not begun: it was not admitted when its turn came."""


Ending: TypeAlias = Returned | Raised | Stopped

Admitted: TypeAlias = Callable[[], bool]
"""Whether a call may begin; asked in the frame that makes it, in whichever thread that is."""


def always() -> bool:
    """Admit every call."""
    return True


Read: TypeAlias = Callable[[Any], Any]
"""Makes of what a call returned what is wanted of it; must not raise."""


def as_it_is(value: object) -> object:
    """Read nothing."""
    return value


class Calling(Protocol):
    """A call under way."""

    def stop(self) -> None:
        """Cancel it if it can be: a task, or a call that still waits for a thread."""

    async def ended(self) -> Ending | Unread | Withheld:
        """Wait for it; cancelling the wait does not cancel the call."""
        ...


@attrs.frozen
class Unread:
    """It has ended on the loop, and code of a stranger's object must run to tell how."""

    read: Callable[[], Ending]


def begin(  # noqa: PLR0913 - all that a call needs
    call: Callable[..., Any],
    args: tuple[object, ...],
    kwargs: Mapping[str, Any],
    *,
    threads: Executor,
    read: Read = as_it_is,
    admitted: Admitted = always,
) -> Calling:
    """Begin a call, on the loop if it is async, otherwise in a thread with our contextvars.

    Between this and the first line of the function time passes: the loop may be blocked, the
    process may be stopped. So `admitted` is asked there once more.
    """
    if is_async(call):
        return _OnLoop(_awaited(call, args, kwargs, admitted), read)
    try:
        return _InThread(_called, (call, args, kwargs, read, admitted), threads=threads)
    except RuntimeError as error:  # no thread is lent, or the executor is shut down
        return _NotBegun(_raised(error))


def begin_reading(unread: Unread, *, threads: Executor) -> Calling:
    """Begin to read, in a thread, how a call on the loop has ended."""
    try:
        return _InThread(unread.read, (), threads=threads)
    except RuntimeError as error:
        told = f"what it came to could not be read: {error}"
        return _NotBegun(Raised(told, kind_of(error)))


class _NotBegun:
    def __init__(self, ending: Ending) -> None:
        self._ending = ending

    def stop(self) -> None:
        """There is nothing to stop."""

    async def ended(self) -> Ending:
        return self._ending


class _OnLoop:
    def __init__(self, work: Coroutine[Any, Any, _Came], read: Read) -> None:
        self._task = asyncio.get_running_loop().create_task(work)
        self._read = read

    def stop(self) -> None:
        self._task.cancel()

    async def ended(self) -> Ending | Unread | Withheld:
        await asyncio.wait({self._task})
        if self._task.cancelled():
            return Stopped(began=True)
        error = self._task.exception()
        if error is not None:
            return Unread(partial(_raised, error))
        came = self._task.result()
        if isinstance(came, Withheld):
            return came
        returned, value = came
        if not returned:
            return _raised(value) if is_plain_error(value) else Unread(partial(_raised, value))
        if self._read is as_it_is or is_small(value):
            return Returned(self._read(value))
        return Unread(partial(_returned, self._read, value))


_Came: TypeAlias = tuple[bool, Any] | Withheld
"""Whether it returned, and what it returned or raised."""


async def _awaited(
    call: Callable[..., Any],
    args: tuple[object, ...],
    kwargs: Mapping[str, Any],
    admitted: Admitted,
) -> _Came:
    try:
        if not admitted():
            return Withheld()
        return True, await call(*args, **kwargs)
    except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 - see the module
        return False, error


class _InThread:
    def __init__(
        self,
        work: Callable[..., Ending | Withheld],
        args: tuple[object, ...],
        *,
        threads: Executor,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._ending: asyncio.Future[Ending | Withheld] = self._loop.create_future()
        variables = contextvars.copy_context()
        self._thread = threads.submit(variables.run, work, *args)
        self._thread.add_done_callback(self._arrived)

    def stop(self) -> None:
        self._thread.cancel()

    async def ended(self) -> Ending | Withheld:
        await asyncio.wait({self._ending})
        return self._ending.result()

    def _arrived(self, thread: Future[Ending | Withheld]) -> None:
        """Bring the ending over to the loop, in whichever thread this is called."""
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._settle, thread)

    def _settle(self, thread: Future[Ending | Withheld]) -> None:
        self._ending.set_result(Stopped(began=False) if thread.cancelled() else thread.result())


def _called(
    call: Callable[..., Any],
    args: tuple[object, ...],
    kwargs: Mapping[str, Any],
    read: Read,
    admitted: Admitted,
) -> Ending | Withheld:
    try:
        if not admitted():
            return Withheld()
        value = call(*args, **kwargs)
    except BaseException as error:  # noqa: BLE001 - see the module
        return _raised(error)
    if _is_awaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        return _raised(TypeError("a sync function returned an awaitable; declare it async def"))
    return _returned(read, value)


def _is_awaitable(value: object) -> bool:
    try:
        return inspect.isawaitable(value)
    except BaseException:  # noqa: BLE001 - what it says of its class runs its code, too
        return False


def _returned(read: Read, value: object) -> Ending:
    return Returned(read(value))


def _raised(error: BaseException) -> Raised:
    """Say what an exception says: code of its own may run."""
    return Raised(
        said(error),
        kind_of(error),
        asked_to=issubclass(type(error), ToolCancelled),
        leaves_doubt=leaves_doubt(error),
    )


LOG_TEXT: Final = 4_096
"""Characters of one logged text; the rest is cut off."""
LOG_LINES: Final = 100
"""Texts that one execution may log within `LOG_PERIOD`; the rest is dropped, and that is said."""
LOG_PERIOD: Final = 1.0
"""Seconds, see `LOG_LINES`."""


def _nowhere(_: str) -> None:
    """Take a log line when nobody wants it."""


class ToolContext:
    """One execution of a tool: who, which, until when. A tool asks for it by its annotation.

    `idempotency_key` is the same for every attempt of one call: give it to services that take one.
    `fencing_token` grows with each owner of the run: a service that keeps the highest it has seen,
    and refuses lower ones, does nothing for a process that stood still and was replaced. Within one
    owner `attempt` tells the executions of a call apart. It is None where no run is owned.
    `deadline` is Unix time in seconds, or None. All methods may be called from any thread.
    """

    def __init__(  # noqa: PLR0913 - what a host knows of an execution, all by keyword
        self,
        *,
        idempotency_key: str,
        run_id: str,
        turn_id: str,
        invocation_id: str,
        attempt: int,
        tool_name: str,
        fencing_token: int | None = None,
        deadline: float | None = None,
        worker: str | None = None,
        on_log: Callable[[str], None] = _nowhere,
        loop: asyncio.AbstractEventLoop | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Keep what is known; with `loop`, made in the thread of that loop.

        `on_log` takes each text and must not raise. With `loop` it is only called in the thread of
        that loop, otherwise in whichever thread logs. `clock` gives seconds that never go back;
        texts are counted by it.
        """
        self.idempotency_key: Final = idempotency_key
        self.run_id: Final = run_id
        self.turn_id: Final = turn_id
        self.invocation_id: Final = invocation_id
        self.attempt: Final = attempt
        self.tool_name: Final = tool_name
        self.fencing_token: Final = fencing_token
        self.deadline: Final = deadline
        self.worker: Final = worker
        self._on_log = on_log
        self._loop = loop
        self._loop_thread = threading.get_ident()
        self._clock = clock
        self._lock = threading.Lock()
        self._period_began = clock()
        self._logged = 0
        self._dropped = 0
        self._why_cancelled: str | None = None
        self._listener: Callable[[], None] | None = None

    def log(self, text: str) -> None:
        """Say something to whoever watches (TOOL_LOG): bounded, and never a result."""
        now = self._clock()
        with self._lock:
            if now - self._period_began >= LOG_PERIOD:
                self._period_began, self._logged = now, 0
            if self._logged >= LOG_LINES:
                self._dropped += 1
                return
            self._logged += 1
        self.end_log()
        self._pass_on(bounded(f"{text}", limit=LOG_TEXT))

    def end_log(self) -> None:
        """Say how many texts were dropped since the last that was not, if any."""
        with self._lock:
            dropped, self._dropped = self._dropped, 0
        if dropped:
            self._pass_on(
                f"({dropped} more texts dropped: {LOG_LINES} in {LOG_PERIOD:g} s is the bound)"
            )

    def _pass_on(self, text: str) -> None:
        if self._loop is None or threading.get_ident() == self._loop_thread:
            self._on_log(text)
            return
        with suppress(RuntimeError):  # the loop is closed: nobody watches any more
            self._loop.call_soon_threadsafe(self._on_log, text)

    @property
    def cancelled(self) -> bool:
        """Whether the tool should stop: it was interrupted, or its time is over."""
        return self._why_cancelled is not None

    @property
    def why_cancelled(self) -> str | None:
        """Why it should stop; None as long as it should not."""
        return self._why_cancelled

    def raise_if_cancelled(self) -> None:
        """Raise `ToolCancelled` if the tool should stop: for loops of tools in threads."""
        if self._why_cancelled is not None:
            raise ToolCancelled(self._why_cancelled)

    def cancel(self, why: str) -> None:
        """Ask the execution to stop. The first reason stays; asking again changes nothing."""
        with self._lock:
            if self._why_cancelled is not None:
                return
            self._why_cancelled = why or "no reason given"
            listener = self._listener
        if listener is not None:
            listener()

    def when_cancelled(self, listener: Callable[[], None] | None) -> None:
        """Have this called, instead of any before, in whichever thread cancels."""
        with self._lock:
            self._listener = listener


def is_async(call: object) -> bool:
    """Whether calling it gives a coroutine, as far as its declaration says."""
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(
        getattr(type(call), "__call__", None)  # noqa: B004 - an object with an async __call__
    )

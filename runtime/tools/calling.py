"""One call of a function that a user wrote: its thread or task, what it is told, how it ends.

However it ends, that is a value here: nothing that a user's function raises goes up into the
runtime, neither SystemExit nor KeyboardInterrupt nor a CancelledError of its own.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Final, ParamSpec, Protocol, TypeAlias, TypeVar

import attrs

from .errors import ToolCancelled, bounded


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


@attrs.frozen
class Withheld:
    """It was not begun: it was not admitted when its turn came."""


Ending: TypeAlias = Returned | Raised | Stopped

Admitted: TypeAlias = Callable[[], bool]
"""Whether a call may begin; asked in the frame that makes it, in whichever thread that is."""


def always() -> bool:
    """Admit every call."""
    return True


class Calling(Protocol):
    """A call under way."""

    def stop(self) -> None:
        """Cancel it if it can be: a task, or a call that still waits for a thread."""

    async def ended(self) -> Ending | Withheld:
        """Wait for it; cancelling the wait does not cancel the call."""
        ...


def begin(
    call: Callable[..., Any],
    args: tuple[object, ...],
    kwargs: Mapping[str, Any],
    *,
    threads: Executor,
    admitted: Admitted = always,
) -> Calling:
    """Begin a call, on the loop if it is async, otherwise in a thread with our contextvars.

    Between this and the first line of the function time passes: the loop may be blocked, the thread
    may wait for others, the process may be stopped. So `admitted` is asked there once more.
    """
    if is_async(call):
        return _OnLoop(_awaited(call, args, kwargs, admitted))
    return _InThread(call, args, kwargs, threads=threads, admitted=admitted)


class _OnLoop:
    def __init__(self, work: Any) -> None:  # noqa: ANN401 - a coroutine
        self._task: asyncio.Task[Ending | Withheld] = asyncio.get_running_loop().create_task(work)

    def stop(self) -> None:
        self._task.cancel()

    async def ended(self) -> Ending | Withheld:
        await asyncio.wait({self._task})
        if self._task.cancelled():
            return Stopped(began=True)
        error = self._task.exception()
        return self._task.result() if error is None else Raised(error)


async def _awaited(
    call: Callable[..., Any],
    args: tuple[object, ...],
    kwargs: Mapping[str, Any],
    admitted: Admitted,
) -> Ending | Withheld:
    try:
        if not admitted():
            return Withheld()
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
        admitted: Admitted,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._ending: asyncio.Future[Ending | Withheld] = self._loop.create_future()
        variables = contextvars.copy_context()
        try:
            self._thread = threads.submit(variables.run, _called, call, args, kwargs, admitted)
        except RuntimeError as error:  # the executor is shut down
            self._thread = Future[Ending | Withheld]()
            self._thread.set_result(Raised(error))
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
        if thread.cancelled():
            self._ending.set_result(Stopped(began=False))
        else:
            error = thread.exception()
            self._ending.set_result(thread.result() if error is None else Raised(error))


def _called(
    call: Callable[..., Any],
    args: tuple[object, ...],
    kwargs: Mapping[str, Any],
    admitted: Admitted,
) -> Ending | Withheld:
    try:
        if not admitted():
            return Withheld()
        value = call(*args, **kwargs)
    except BaseException as error:  # noqa: BLE001 - see the module
        return Raised(error)
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        return Raised(TypeError("a sync function returned an awaitable; declare it async def"))
    return Returned(value)


P = ParamSpec("P")
R = TypeVar("R")

Job: TypeAlias = tuple[Future[Any], Callable[[], Any]]


class Threads(Executor):
    """At most `limit` threads, each started when it is needed and none is idle.

    A tool that hangs in one cannot keep the process from ending. The executor of the standard
    library joins its threads when the interpreter exits, whatever was asked of it: one hung tool,
    and the host can only be killed. These are daemons: they end with the process, and what they ran
    is then in doubt, as after any crash.
    """

    def __init__(self, limit: int, *, name: str = "turnlock tool") -> None:
        """Begin without any thread."""
        if limit < 1:
            message = f"{limit} threads run nothing; give 1 or more"
            raise ValueError(message)
        self._limit = limit
        self._name = name
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._idle = threading.Semaphore(0)
        self._threads: list[threading.Thread] = []
        self._closed = False

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Run it in a thread as soon as one is free. Raises RuntimeError after `shutdown`."""
        future: Future[R] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("cannot begin anything after shutdown")
            self._jobs.put((future, partial(fn, *args, **kwargs)))
            if not self._idle.acquire(blocking=False) and len(self._threads) < self._limit:
                name = f"{self._name} {len(self._threads) + 1}"
                thread = threading.Thread(target=self._work, name=name, daemon=True)
                self._threads.append(thread)
                thread.start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - as Executor has it
        """Take nothing more; with `wait`, return when all that was taken has ended."""
        with self._lock:
            self._closed = True
            if cancel_futures:
                self._cancel_waiting()
            self._jobs.put(None)
        if wait:
            for thread in self._threads:
                thread.join()

    def _cancel_waiting(self) -> None:
        while True:
            try:
                job = self._jobs.get_nowait()
            except Empty:
                return
            if job is not None:
                job[0].cancel()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            _perform(job)
            del job  # what it holds would otherwise live until the next one comes
            self._idle.release()
        self._jobs.put(None)  # for the next thread


def _perform(job: Job) -> None:
    future, call = job
    if future.set_running_or_notify_cancel():
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 - it is the caller's to look at
            future.set_exception(error)


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

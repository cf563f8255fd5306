"""A loop of its own in a daemon thread: what lives there serves any thread and any loop.

A synchronous caller waits in its thread, an asynchronous one in its own loop; both may be many at
once. What was begun there goes on though whoever waits is cancelled: he is told afterwards, when it
is over, so that nothing is half done behind his back. What only waits may be stopped instead.

A thread does not survive `os.fork()`, and a connection must not: the child begins a life of its own
with the first that it asks for, and leaves what it has inherited untouched; the parent goes on.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from functools import partial
from typing import Any, Final, Generic, TypeVar
from weakref import WeakSet

from ..models.errors import InvalidValue
from ..runtime.errors import Closed
from ..runtime.log import logger

R = TypeVar("R")
T = TypeVar("T")

ENDING: Final = 5.0
"""Seconds that a close waits for what was begun and only has to be written."""
EXIT: Final = 2.0
"""Seconds that an interpreter which exits waits for a close; then it goes."""

_log: Final = logger(__name__)


class Work(Generic[T]):
    """Something that is done in the background, and how it ended."""

    def __init__(self, *, stoppable: bool) -> None:
        """Begin nothing yet; what is `stoppable` is cancelled by a close."""
        self.life: _Life[Any] | None = None
        self.stoppable = stoppable
        self.task: asyncio.Task[T] | None = None
        self._over: Future[T] = Future()

    # What runs in the loop.

    def begin(self, life: _Life[Any], do: Callable[[], Coroutine[Any, Any, T]]) -> None:
        """Begin it, in the loop."""
        self.task = life.loop.create_task(do())
        life.works.add(self)
        self.task.add_done_callback(partial(self._ended, life))

    def _never_begun(self) -> None:
        if self.task is None:
            self._over.cancel()

    def _ended(self, life: _Life[Any], task: asyncio.Task[T]) -> None:
        life.works.discard(self)
        if task.cancelled():
            self._over.set_exception(life.stopped())
        elif (error := task.exception()) is not None:
            self._over.set_exception(error)
        else:
            self._over.set_result(task.result())

    # What runs wherever somebody waits for it.

    def hand_over(self, life: _Life[Any], do: Callable[[], Coroutine[Any, Any, T]]) -> None:
        """Have it begun in the loop. Once it has a `life`, nobody knows whether it was."""
        self.life = life
        life.loop.call_soon_threadsafe(self.begin, life, do)

    def forget(self) -> None:
        """End it where it was never begun: whoever handed it over was interrupted before."""
        if self.life is None:
            self._over.cancel()
        else:
            with suppress(RuntimeError):  # the loop is closed: all of it is over
                self.life.loop.call_soon_threadsafe(self._never_begun)

    def wait(self) -> None:
        """Wait in this thread until it is over; raises only what interrupts the waiting."""
        with suppress(CancelledError):
            self._over.exception()

    async def ended(self) -> None:
        """Wait in this loop until it is over; raises only where the waiting is cancelled."""
        loop = asyncio.get_running_loop()
        told: asyncio.Future[None] = loop.create_future()

        def tell() -> None:
            if not told.done():
                told.set_result(None)

        def over(_: Future[T]) -> None:
            with suppress(RuntimeError):  # that loop is closed: nobody waits there any more
                loop.call_soon_threadsafe(tell)

        self._over.add_done_callback(over)
        await told

    def result(self) -> T:
        """Return what it returned, or raise what it raised; it is over."""
        return self._over.result()


class _Life(Generic[R]):
    """The loop and its thread in one process, and what lives in it."""

    def __init__(
        self,
        name: str,
        make: Callable[[], Coroutine[Any, Any, R]],
        unmake: Callable[[R], Coroutine[Any, Any, None]],
    ) -> None:
        self._name = name
        self._make = make
        self._unmake = unmake
        self.loop: Final = asyncio.SelectorEventLoop()
        self.works: set[Work[Any]] = set()
        self.ending = False
        self.ended: Final = threading.Event()
        self._making: asyncio.Task[R] | None = None
        self.thread: Final = threading.Thread(target=self._run, name=name, daemon=True)
        self.thread.start()

    def stopped(self) -> BaseException:
        """Return what whoever waits for a stopped work is told."""
        if self.ending:
            return Closed(f"{self._name} was closed meanwhile")
        return asyncio.CancelledError()

    async def resource(self) -> R:
        """Return what lives here. Where it cannot be made the next who asks tries again."""
        if self._making is None:
            self._making = self.loop.create_task(self._make())
        making = self._making
        try:
            return await asyncio.shield(making)
        except BaseException:
            if making.done() and self._making is making:
                self._making = None
            raise

    def spawn(self, do: Callable[[R], Coroutine[Any, Any, None]]) -> None:
        """Do something that nobody waits for, in the loop."""
        work: Work[None] = Work(stoppable=False)

        async def alone() -> None:
            await do(await self.resource())

        work.begin(self, alone)

    async def end(self) -> None:
        """Stop what only waits, let end what was begun, and unmake what lives here."""
        self.ending = True
        for work in tuple(self.works):
            if work.stoppable and work.task is not None:
                work.task.cancel()
        await self._all_over(ENDING)
        if (making := self._making) is not None:
            with suppress(Exception):
                await making
            if not making.cancelled() and making.exception() is None:
                try:
                    await self._unmake(making.result())
                except Exception:  # noqa: BLE001 - whatever it is, the thread has to end
                    _log.exception("%s could not be closed as it should", self._name)
        for work in tuple(self.works):
            if work.task is not None:
                work.task.cancel()
        await self._all_over(ENDING)
        self.loop.stop()

    async def _all_over(self, seconds: float) -> None:
        if tasks := [it.task for it in self.works if it.task is not None]:
            await asyncio.wait(tasks, timeout=seconds)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
            left = asyncio.all_tasks(self.loop)
            for task in left:
                task.cancel()
            if left:
                self.loop.run_until_complete(asyncio.wait(left, timeout=ENDING))
        finally:
            asyncio.set_event_loop(None)
            with suppress(Exception):
                self.loop.close()
            self.ended.set()


class Background(Generic[R]):
    """Something that is made in a loop of its own, and asked from anywhere. Thread-safe."""

    def __init__(
        self,
        name: str,
        *,
        make: Callable[[], Coroutine[Any, Any, R]],
        unmake: Callable[[R], Coroutine[Any, Any, None]],
    ) -> None:
        """Begin nothing yet: `make` is called in the loop when something is asked for first.

        `unmake` is called at the close; what is then still under way is cancelled afterwards.
        """
        self._name = name
        self._make = make
        self._unmake = unmake
        self._lock = threading.Lock()
        self._life: _Life[R] | None = None
        self._closed = False
        _register(self)

    @property
    def is_here(self) -> bool:
        """Whether the running thread is that of the loop."""
        return self._life is not None and threading.current_thread() is self._life.thread

    def start(self, work: Work[T], do: Callable[[R], Awaitable[T]]) -> Work[T]:
        """Hand over a work, and return it. Raises `Closed`."""
        with self._lock:
            if self._closed:
                raise Closed(f"{self._name} was closed; open another one")
            life = self._life
            if life is None:
                life = self._life = _Life(self._name, self._make, self._unmake)

            async def doing() -> T:
                return await do(await life.resource())

            work.hand_over(life, doing)
        return work

    def spawn(self, do: Callable[[R], Coroutine[Any, Any, None]]) -> None:
        """Have something done that nobody waits for, unless it was closed. No lock is taken.

        May be called while garbage is collected, wherever that is.
        """
        life = self._life
        if life is not None:
            with suppress(RuntimeError):
                life.loop.call_soon_threadsafe(life.spawn, do)

    def run(
        self,
        do: Callable[[R], Awaitable[T]],
        *,
        unwanted: Callable[[R, T], Awaitable[None]] | None = None,
    ) -> T:
        """Do something there, and wait for it in this thread.

        Where the waiting is interrupted (KeyboardInterrupt) it goes on all the same, and what
        interrupted comes out when it is over. With `unwanted` it is cancelled instead; and where it
        has ended by then, `unwanted` is given what it returned: nobody else will be.
        """
        self.check_not_here()
        work: Work[T] = Work(stoppable=unwanted is not None)
        try:
            self.start(work, do).wait()
        except BaseException:
            self._given_up(work, unwanted).wait()
            raise
        try:
            return work.result()
        finally:
            del work  # what was raised holds this frame, and would be held by it

    async def arun(
        self,
        do: Callable[[R], Awaitable[T]],
        *,
        unwanted: Callable[[R, T], Awaitable[None]] | None = None,
    ) -> T:
        """Do something there, and wait for it in the running loop, whichever that is; as `run`."""
        work: Work[T] = Work(stoppable=unwanted is not None)
        try:
            await self.start(work, do).ended()
        except GeneratorExit:  # nobody runs this coroutine any more
            self._given_up(work, unwanted)
            raise
        except BaseException:
            await uninterrupted(self._given_up(work, unwanted))
            raise
        try:
            return work.result()
        finally:
            del work  # as in `run`

    def _given_up(
        self, work: Work[T], unwanted: Callable[[R, T], Awaitable[None]] | None
    ) -> Work[Any]:
        """Stop a work if it may be stopped; return what is to be waited for instead."""
        if unwanted is None or work.life is None:
            work.forget()
            return work

        async def hand_back(resource: R) -> None:
            task = work.task
            if task is None:
                return
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled() and task.exception() is None:
                await unwanted(resource, task.result())

        try:
            return self.start(Work(stoppable=False), hand_back)
        except Closed:  # what ends everything ends it, too
            return work

    def check_not_here(self) -> None:
        """Raise `InvalidValue` in the thread of the loop: to wait there is to wait for ever."""
        if self.is_here:
            raise InvalidValue(
                place=self._name,
                cause="was asked from its own loop, which would wait for itself for ever",
                fix="await the method whose name begins with a, or ask from another thread",
            )

    def close(self, *, within: float | None = None) -> None:
        """End it, and wait until it has ended, `within` seconds at most. From any thread, twice.

        Who waits for something that only waits itself is told `Closed`; what was begun is let end.
        """
        self.check_not_here()
        if (life := self._end()) is not None:
            life.ended.wait(within)

    async def aclose(self) -> None:
        """End it as `close` does, from any loop."""
        self.check_not_here()
        if (life := self._end()) is not None:
            await asyncio.get_running_loop().run_in_executor(None, life.ended.wait)

    def _end(self) -> _Life[R] | None:
        with self._lock:
            first, self._closed = not self._closed, True
            life = self._life
            if life is not None and first:
                life.loop.call_soon_threadsafe(lambda: life.loop.create_task(life.end()))
        return life

    def leave_behind(self) -> None:
        """Begin anew in a child process; nothing that was inherited is touched, or let go."""
        self._lock = threading.Lock()
        if self._life is not None:
            _left_behind.append(self._life)
            self._life = None


async def uninterrupted(work: Work[Any]) -> None:
    """Wait until a work is over, however often the waiting is cancelled; nothing is raised."""
    while True:
        try:
            await work.ended()
        except asyncio.CancelledError:
            continue
        return


_living: Final[WeakSet[Background[Any]]] = WeakSet()
_left_behind: Final[list[object]] = []
"""What a child has inherited: a loop that is let go would take its parent's events with it."""


def _register(background: Background[Any]) -> None:
    _living.add(background)


def _after_fork() -> None:
    for it in tuple(_living):
        it.leave_behind()


def _at_exit() -> None:
    """End what nobody closed: an unfinished call is in doubt at once, and no task is destroyed."""
    for it in tuple(_living):
        with suppress(Exception):
            it.close(within=EXIT)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)

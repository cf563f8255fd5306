"""Threads for what users wrote: one for each execution, taken before it is claimed.

A thread cannot be stopped. Where an execution is given up while its thread goes on, that is *lost*:
another takes its place, up to a bound, and beyond it none is lent until one of the lost has ended.
So a claim is never made for a tool that then finds no thread.

A tool that hangs cannot keep the process from ending either. The executor of the standard library
joins its threads when the interpreter exits, whatever was asked of it: one hung tool, and the host
can only be killed. These are daemons: they end with the process, and what they ran is then in
doubt, as after any crash.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor, Future
from datetime import UTC, datetime
from functools import partial
from queue import SimpleQueue
from typing import Any, Final, ParamSpec, Self, TypeAlias, TypeVar

import attrs

from .errors import bounded

P = ParamSpec("P")
R = TypeVar("R")

LOST: Final = 64
"""Threads that may be lost at once, unless told otherwise."""
IDLE: Final = 64
"""Threads that are kept for the next execution while none runs in them."""
NAMED: Final = 3
"""Tools that a refusal names: those with the most lost threads."""
TOOL_NAME: Final = 60
"""Characters of each of these names."""


class NoThread(RuntimeError):
    """No thread is lent; the message says why, and what to do."""


@attrs.frozen(kw_only=True)
class Hung:
    """A lost thread: the tool that has it, and since when it runs there, Unix time."""

    user: str
    since: float


class Threads:
    """Lends threads, each started when it is needed and none is idle.

    How many are lent at once is for those who take them to bound. All methods may be called from
    any thread.
    """

    def __init__(
        self,
        *,
        lost: int = LOST,
        name: str = "turnlock tool",
        bound: str = "Settings.lost_threads",
        now: Callable[[], float] = time.time,
    ) -> None:
        """Begin without any thread; as many as `lost` may be so at once, a bound called `bound`."""
        self._lost = lost
        self._name = name
        self._bound = bound
        self.now = now
        self._lock = threading.Lock()
        self._workers: set[_Worker] = set()
        self._idle: list[_Worker] = []
        self._hung: dict[Lease, Hung] = {}
        self._started = 0
        self._closed = False

    def lease(self, user: str) -> Lease:
        """Return the right to one thread, for a tool of this name; it is taken when needed."""
        return Lease(self, user)

    def hung(self) -> tuple[Hung, ...]:
        """Return the threads that are lost now, the oldest first."""
        with self._lock:
            return tuple(sorted(self._hung.values(), key=lambda it: it.since))

    def shutdown(self, *, wait: bool = False) -> None:
        """Lend nothing more; threads end as soon as nothing runs in them.

        With `wait`, return when all have ended, whoever has them.
        """
        with self._lock:
            self._closed = True
            ending = self._workers if wait else self._idle
            self._workers, self._idle = set(), []
        for worker in ending:
            worker.jobs.put(None)
        for worker in ending if wait else ():
            worker.thread.join()

    def take(self, *, begun: bool) -> _Worker:
        """Lend a thread; what had `begun` before gets one however many are lost."""
        with self._lock:
            if self._closed:
                raise NoThread("no thread is lent after shutdown")
            if not begun and len(self._hung) >= self._lost:
                raise NoThread(self._refusal())
            while self._idle:
                idle = self._idle.pop()
                if idle.thread.is_alive():  # after a fork those of the parent are not here
                    return idle
                self._workers.discard(idle)
            self._started += 1
            try:
                worker = _Worker(f"{self._name} {self._started}")
            except (RuntimeError, MemoryError) as error:
                raise NoThread(f"the system gives no more threads: {error}") from error
            self._workers.add(worker)
            return worker

    def give_back(self, lease: Lease, worker: _Worker) -> None:
        """Take back a thread in which nothing runs."""
        with self._lock:
            self._hung.pop(lease, None)
            if not self._closed and len(self._idle) < IDLE:
                self._idle.append(worker)
                return
            self._workers.discard(worker)
        worker.jobs.put(None)

    def lose(self, lease: Lease) -> None:
        """Learn that a thread goes on though nobody waits for it."""
        with self._lock:
            self._hung[lease] = Hung(user=lease.user, since=lease.since)

    def _refusal(self) -> str:
        hung = self._hung.values()
        count = len(hung)
        tools = Counter(it.user for it in hung).most_common()
        named = ", ".join(f"{bounded(name, limit=TOOL_NAME)} ({n})" for name, n in tools[:NAMED])
        since = datetime.fromtimestamp(min(it.since for it in hung), UTC)
        return (
            f"no thread is left: {count} {'hangs' if count == 1 else 'hang'} since "
            f"{since:%Y-%m-%d %H:%M:%S} UTC in tools that were given up and have not ended: {named}"
            f"{' and others' if len(tools) > NAMED else ''}; {self._bound} allows {self._lost}: "
            "mend these tools, and start their process anew"
        )


Job: TypeAlias = tuple["Lease", Future[Any], Callable[[], Any]]


class _Worker:
    """One thread, and what it is to do next."""

    def __init__(self, name: str) -> None:
        self.jobs: SimpleQueue[Job | None] = SimpleQueue()
        self.thread = threading.Thread(target=self._work, name=name, daemon=True)
        self.thread.start()

    def _work(self) -> None:
        while (job := self.jobs.get()) is not None:
            _perform(*job)
            del job  # what it holds would otherwise live until the next one comes


def _perform(lease: Lease, future: Future[Any], call: Callable[[], Any]) -> None:
    """Run it; the thread is free before anybody is told that it has ended."""
    if not future.set_running_or_notify_cancel():
        lease.ended()
        return
    try:
        value = call()
    except BaseException as error:  # noqa: BLE001 - it is the caller's to look at
        lease.ended()
        future.set_exception(error)
    else:
        lease.ended()
        future.set_result(value)


class Lease(Executor):
    """The one thread of an execution: what is submitted runs there, one after the other.

    Leave it when the execution is over for those who wait for it. What runs in it then is lost; the
    thread goes back when that has ended.
    """

    def __init__(self, threads: Threads, user: str) -> None:
        """Begin without it."""
        self.user: Final = user
        self.since = 0.0
        """When what runs in it was submitted, Unix time."""
        self._threads = threads
        self._worker: _Worker | None = None
        self._running = 0
        self._left = False
        self._begun = False
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        """Return it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Leave it."""
        self.leave()

    def take(self) -> None:
        """Take the thread now, unless it is taken. Raises `NoThread`."""
        with self._lock:
            self._taken()

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Run it in the thread, which is taken if need be. Raises `NoThread`."""
        future: Future[R] = Future()
        with self._lock:
            worker = self._taken()
            self._running += 1
            self.since = self._threads.now()
            if self._left:  # something is made of what came too late
                self._threads.lose(self)
            worker.jobs.put((self, future, partial(fn, *args, **kwargs)))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002 - as Executor has it
        """Leave it; nothing is waited for."""
        self.leave()

    def leave(self) -> None:
        """Give the thread back; while something runs in it, it is lost."""
        with self._lock:
            self._left = True
            if self._running:
                self._threads.lose(self)
            else:
                self._give_back()

    def ended(self) -> None:
        """Learn that what ran has ended."""
        with self._lock:
            self._running -= 1
            if self._left and not self._running:
                self._give_back()

    def _taken(self) -> _Worker:
        if self._worker is None:
            self._worker = self._threads.take(begun=self._begun)
            self._begun = True
        return self._worker

    def _give_back(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            self._threads.give_back(self, worker)

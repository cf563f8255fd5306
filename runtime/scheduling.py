"""When things run: the clock, timers, the one retry loop, and tasks."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from heapq import heapify, heappop, heappush
from typing import Any, Final, Protocol, TypeVar

from ..models.safe_text import harmless
from .errors import LASTING, JournalError, Overloaded
from .log import logger
from .settings import Settings


class Clock(Protocol):
    """Whatever tells the time."""

    def now(self) -> float:
        """Return Unix time in seconds; it is asked in any thread."""
        ...


def since_boot() -> float:
    """Return the seconds that this machine has run, asleep or awake; nobody sets that clock.

    Linux has such a clock. Elsewhere it is the monotonic one, which may stand still in a suspend.
    """
    if sys.platform == "linux":
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class SteadyClock:
    """The wall clock as it was once, and from then on how long the machine has run since.

    The kernel takes a jump forward for time that has passed, and lets deadlines run out; the host
    keeps its clock from jumping (kernel.md section 3): a step of the wall clock is no time, a
    suspend is. Backward jumps between two processes are the kernel's own affair (K-10).
    """

    def __init__(self, *, ahead: float | None = None) -> None:
        """Set it by the wall clock, or to so many seconds ahead of `since_boot`."""
        self.ahead = time.time() - since_boot() if ahead is None else ahead

    def now(self) -> float:
        """Return Unix time in seconds."""
        return self.ahead + since_boot()


STALE: Final = 64
"""Entries of the heap that may be out of date beyond as many as are not (K-6)."""
LONGEST: Final = 10.0
"""Seconds that one timer is set for at most. The loop's clock stands still while the machine
sleeps: a deadline that has passed meanwhile fires at the latest so long after it woke up."""


class Timers:
    """One timer for all runs: it fires for those whose earliest deadline is over (`wake`, K-11).

    It must be used inside a running loop.
    """

    def __init__(self, *, clock: Clock, fired: Callable[[str], None]) -> None:
        """Begin with nothing set."""
        self._clock = clock
        self._fired = fired
        self._due: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []
        self._timer: asyncio.TimerHandle | None = None

    def set(self, run_id: str, at: float | None) -> None:
        """Fire for this run at `at`, Unix time, instead of at whatever was set; None: never."""
        if at == self._due.get(run_id):
            return
        if at is None:
            del self._due[run_id]
        else:
            self._due[run_id] = at
            heappush(self._heap, (at, run_id))
        if len(self._heap) > 2 * len(self._due) + STALE:
            self._heap = [(at, run_id) for run_id, at in self._due.items()]
            heapify(self._heap)
        self._arm()

    def close(self) -> None:
        """Fire no more."""
        self._due.clear()
        self._arm()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._heap and self._due.get(self._heap[0][1]) != self._heap[0][0]:
            heappop(self._heap)
        if self._heap:
            left = max(0.0, self._heap[0][0] - self._clock.now())
            self._timer = asyncio.get_running_loop().call_later(min(left, LONGEST), self._fire)

    def _fire(self) -> None:
        now = self._clock.now()
        due: list[str] = []
        while self._heap and self._heap[0][0] <= now:
            at, run_id = heappop(self._heap)
            if self._due.get(run_id) == at:
                del self._due[run_id]
                due.append(run_id)
        self._timer = None
        self._arm()
        for run_id in due:
            self._fired(run_id)


T = TypeVar("T")

_DOUBLED: Final = 64
"""Doublings of a pause beyond which it is at its longest, whatever the first was."""


def _never() -> bool:
    return False


def _silent(error: Exception, pause: float) -> None:
    """Say nothing of a failure."""


def pause_after(failures: int, settings: Settings) -> float:
    """Return the seconds to wait after so many failures: doubled each time, up to the longest."""
    doubled = min(failures - 1, _DOUBLED)
    return min(settings.retry_first * 2.0**doubled, settings.retry_longest)


def backoff(settings: Settings) -> Iterator[float]:
    """Yield the seconds to wait after each failure, without an end."""
    return doubled(settings.retry_first, longest=settings.retry_longest)


def doubled(first: float, *, longest: float) -> Iterator[float]:
    """Yield seconds without an end, each twice those before, up to the longest."""
    pause = min(first, longest)
    while True:
        yield pause
        pause = min(2 * pause, longest)


async def retried(
    work: Callable[[], Awaitable[T]],
    *,
    pauses: Iterable[float],
    on: tuple[type[Exception], ...] = (JournalError, Overloaded),
    is_hopeless: Callable[[], bool] = _never,
    failed: Callable[[Exception, float], None] = _silent,
) -> T:
    """Return what the work returns, once it does; what fails for a while is tried again.

    To deliver again is safe: what was kept after all is refused as a duplicate.
    `pauses` are the seconds after each failure; when there are no more, or `is_hopeless` says so,
    the failure is raised, as is at once what does not pass (`LASTING`). `on` are the errors that
    are tried again; `failed` is told of each, with the pause that follows.
    """
    seconds = iter(pauses)
    while True:
        try:
            return await work()
        except LASTING:
            raise
        except on as error:
            pause = next(seconds, None)
            if pause is None or is_hopeless():
                raise
            failed(error, pause)
            await asyncio.sleep(pause)


_log = logger(__name__)

_NAME: Final = 200
"""Characters of a task's name."""

CANCEL_WITHIN: Final = 10.0
"""Seconds that cancelled tasks have to end: twice what SQLite waits for a locked file."""


class Tasks:
    """A set of tasks that end by themselves, or with their owner.

    An exception that a task lets out is a mistake of ours: it goes to `failed`, never into the
    void.
    """

    def __init__(self, *, failed: Callable[[str, BaseException], None]) -> None:
        """Begin without any."""
        self._tasks: set[asyncio.Task[Any]] = set()
        self._failed = failed

    def __len__(self) -> int:
        """Count those that have not ended."""
        return len(self._tasks)

    def spawn(self, name: str, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start a task. What its name repeats of ids is made harmless: asyncio logs names."""
        name = harmless(name, limit=_NAME)
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def ended(self, *, within: float) -> bool:
        """Wait until all have ended, at most so many seconds; say whether they have."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=within)
        return not self._tasks

    async def cancel(self, *, within: float = CANCEL_WITHIN) -> None:
        """Cancel those that are left, and wait until they have ended, at most so many seconds.

        What a user's code keeps from ending is let go, and said.
        """
        until = asyncio.get_running_loop().time() + within
        while self._tasks:
            left = until - asyncio.get_running_loop().time()
            if left <= 0:
                names = sorted(task.get_name() for task in self._tasks)
                _log.error("%d tasks did not end when they were cancelled: %s", len(names), names)
                return
            for task in self._tasks:
                task.cancel()
            await asyncio.wait(self._tasks, timeout=left)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failed(task.get_name(), error)


class Beat:
    """Does some work again and again, until it is stopped; never twice at once."""

    def __init__(
        self,
        *,
        period: float,
        name: str,
        work: Callable[[], Coroutine[Any, Any, None]],
        tasks: Tasks,
    ) -> None:
        """Begin after one `period`, in seconds."""
        self._period = period
        self._name = name
        self._work = work
        self._tasks = tasks
        self._working: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(period, self._do)

    def stop(self) -> None:
        """Do it no more; what is being done is cancelled."""
        self._timer.cancel()
        if self._working is not None:
            self._working.cancel()

    def _do(self) -> None:
        self._timer = self._loop.call_later(self._period, self._do)
        if self._working is None or self._working.done():
            self._working = self._tasks.spawn(self._name, self._work())

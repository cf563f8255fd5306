"""A loop whose time passes only when nothing else can happen: tests of hours take milliseconds.

Nothing here may use sockets, or tools in threads that wait: what would wait for them is a deadlock,
and is told as one. What the runtime reads in threads is waited for in real time, and none passes.
"""

from __future__ import annotations

import asyncio
import math
import selectors
import time
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeVar
from unittest.mock import patch

from turnlock.runtime.tools.threads import Lease

T = TypeVar("T")

START = 1_700_000_000.0
"""Unix time at which such a loop begins."""


PATIENCE = 1.0
"""Seconds of real time in which what runs in a thread ends, unless it waits for something."""


class Deadlock(AssertionError):
    """Nothing can happen any more, and yet somebody waits."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop with a clock of its own."""

    def __init__(self) -> None:
        self._now = 0.0
        self.in_threads: set[Future[Any]] = set()
        """What was begun in threads, and nobody has seen the end of yet."""
        super().__init__(_Selector(self))

    def time(self) -> float:
        return self._now

    def forget_ended(self) -> None:
        """Forget what has ended in threads: the loop is told by then, or will be in a moment."""
        self.in_threads = {it for it in self.in_threads if not it.done()}

    def pass_time(self, seconds: float) -> None:
        self._now = max(self._now + seconds, math.nextafter(self._now, math.inf))


class _Selector(selectors.DefaultSelector):
    """Waits for nothing: lets time pass instead."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready: list[tuple[selectors.SelectorKey, int]] = super().select(0)
        give_up = time.monotonic() + PATIENCE
        while not ready and timeout != 0 and self._loop.in_threads and time.monotonic() < give_up:
            self._loop.forget_ended()
            ready = super().select(0.001)
        if not ready and timeout is None:
            raise Deadlock("nothing is scheduled, and somebody waits")
        if not ready and timeout:
            self._loop.pass_time(timeout)
        return ready


class LoopClock:
    """Unix time that goes with the running loop."""

    def now(self) -> float:
        return START + asyncio.get_running_loop().time()


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run to its end on a loop of its own; what is left over is cancelled."""
    with watched_threads(), asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)


@contextmanager
def watched_threads() -> Generator[None]:
    """Have each loop know what was begun in threads for it."""
    submit = Lease.submit

    def watched(self: Lease, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future = submit(self, fn, *args, **kwargs)
        loop = asyncio.get_running_loop()
        if isinstance(loop, VirtualLoop):
            loop.in_threads.add(future)
        return future

    with patch.object(Lease, "submit", watched):
        yield


async def settled() -> None:
    """Let everything happen that can happen now, without time passing."""
    loop = asyncio.get_running_loop()
    give_up = time.monotonic() + PATIENCE
    for _ in range(100):
        await asyncio.sleep(0)
    while isinstance(loop, VirtualLoop) and loop.in_threads and time.monotonic() < give_up:
        loop.forget_ended()
        time.sleep(0.001)  # noqa: ASYNC251 - real time, in which none passes here
        for _ in range(100):
            await asyncio.sleep(0)

"""A loop whose time passes only when nothing else can happen: tests of hours take milliseconds.

Nothing here may use threads or sockets: what would wait for them is a deadlock, and is told as one.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

START = 1_700_000_000.0
"""Unix time at which such a loop begins."""


class Deadlock(AssertionError):
    """Nothing can happen any more, and yet somebody waits."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop with a clock of its own."""

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(_Selector(self))

    def time(self) -> float:
        return self._now

    def pass_time(self, seconds: float) -> None:
        self._now += seconds


class _Selector(selectors.DefaultSelector):
    """Waits for nothing: lets time pass instead."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready: list[tuple[selectors.SelectorKey, int]] = super().select(0)
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
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)


async def settled() -> None:
    """Let everything happen that can happen now, without time passing."""
    for _ in range(100):
        await asyncio.sleep(0)

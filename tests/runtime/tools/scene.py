"""What tests of performing share: a context, threads, and tools that wait until they are let go."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from turnlock.runtime.tools.calling import ToolContext

T = TypeVar("T")

SHORT = 0.02
"""Seconds: a real timeout or grace that a test waits out, because asyncio's clock is real."""
AMPLE = 30.0
"""Seconds: a grace that no test waits out, for what ends by itself."""


def context(**fields: Any) -> ToolContext:
    """Return the context of some execution."""
    return ToolContext(
        idempotency_key="call/r/1/T/a",
        run_id="r",
        turn_id="T",
        invocation_id="a",
        attempt=1,
        tool_name="f",
        **fields,
    )


@contextmanager
def threads(count: int = 2) -> Generator[ThreadPoolExecutor]:
    """Give some threads, and wait for what they do."""
    with ThreadPoolExecutor(count) as pool:
        yield pool


def play(scene: Callable[[ThreadPoolExecutor], Coroutine[Any, Any, T]]) -> T:
    """Run a scene on a loop with threads; it must leave no task behind."""

    async def whole() -> T:
        before = asyncio.all_tasks()
        with threads() as pool:
            result = await scene(pool)
            left = asyncio.all_tasks() - before
            assert not left, left
            return result

    return asyncio.run(whole())


class Gate:
    """A place in a tool's thread where it waits until it is let go."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.open = threading.Event()

    def pass_through(self) -> None:
        """Say that the tool is here, and wait."""
        self.reached.set()
        assert self.open.wait(5)

    async def wait_until_reached(self) -> None:
        """Wait, on the loop, until the tool is here."""
        assert await asyncio.to_thread(self.reached.wait, 5)

"""The tasks of a runtime: every one is known, and none outlives it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")

_log = logging.getLogger(__name__)

LETTING_GO: Final = 10.0
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
        """Start a task."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def ended(self, *, within: float) -> bool:
        """Wait until all have ended, at most so many seconds; say whether they have."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=within)
        return not self._tasks

    async def cancel(self, *, within: float = LETTING_GO) -> None:
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

"""One who is shown what happens, batch by batch, and cut off once it reads nothing (F-43).

It pulls (S-70): what brings its batches waits for nobody, and an empty batch says that nothing has
happened for a while (F-42). The hub knows all of them, whatever they follow.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Self

from .shown import Hello, Shown

if TYPE_CHECKING:
    from .hub import Hub

EVENTS: Final = 256
"""Entries of a batch at most (F-46)."""
BYTES: Final = 64 * 1024
"""Bytes of a batch after which no more is put to it (F-46)."""


class Subscriber(ABC):
    """An iterator of batches, for one task; close it."""

    children: bool = False
    """Whether it follows the runs of sub-agents, too (S-56)."""

    def __init__(self, hub: Hub, name: str) -> None:
        """Prepare; nothing is read yet. `name` is of the run, or of the log, that it follows."""
        self.run_id: Final = name
        self.when_cut: Callable[[], None] | None = None
        """Called when it is cut off: it reads nothing, or its connection was never served."""
        self.unread: Callable[[], int] | None = None
        """Returns how many bytes wait for it to read, where the connection can say it."""
        self._hub = hub
        self._woken: asyncio.Future[None] | None = None
        self._ending = False
        self._closed = False
        self._beat = False
        self._is_plain = False
        """Whether there is nothing to say but what it follows."""
        self._loop = asyncio.get_running_loop()
        self._shown_at = self._loop.time()
        self._since: float | None = self._shown_at
        """Since when its connection has what it was given, and does not take more."""
        self._held = 0

    @abstractmethod
    async def open(self) -> Hello:
        """Read what comes first, and say where the past ends. Raises what cannot be followed."""

    def __aiter__(self) -> Self:
        """Return itself."""
        return self

    @abstractmethod
    async def __anext__(self) -> tuple[Shown, ...]:
        """Return the next batch, as soon as there is something to say."""

    # How it ends.

    def end_soon(self) -> None:
        """End it, with a word when to come again, before all else that waits (F-45)."""
        self._ending, self._is_plain = True, False
        self.wake()

    async def aclose(self) -> None:
        """End it."""
        self.close()

    def close(self) -> None:
        """End it: nothing is kept of it, and an iteration under way ends."""
        self._closed, self._is_plain = True, False
        self._hub.forget(self)
        self.wake()

    @property
    def closed(self) -> bool:
        """Whether it has ended."""
        return self._closed

    # How it waits, and is waited for.

    def wake(self) -> None:
        """Learn that there is something."""
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)

    def beat(self) -> None:
        """Have it return, with an empty batch if there is nothing to say."""
        self._beat, self._is_plain = True, False
        self.wake()

    async def _wait(self) -> None:
        self._woken = self._loop.create_future()
        try:
            await self._woken
        finally:
            self._woken = None

    def look_after(self, now: float) -> bool:
        """Show that a silent stream lives; return whether it was cut off: it reads nothing."""
        settings = self._hub.settings
        if self._since is None:
            if now - self._shown_at >= settings.beat:
                self._shown_at = now
                self.beat()
            return False
        held = 0 if self.unread is None else self.unread()
        if held != self._held:
            self._held, self._since = held, now  # it reads, if slowly
        if now - self._since < settings.cut:
            return False
        self.close()
        if self.when_cut is not None:
            self.when_cut()
        return True


def batch_of(waiting: deque[Shown]) -> tuple[Shown, ...]:
    """Take from what waits as much as one write may have (F-46)."""
    if len(waiting) <= EVENTS and sum(map(len, waiting)) <= BYTES:
        batch = tuple(waiting)
        waiting.clear()
        return batch
    parts: list[Shown] = []
    size = 0
    while waiting and len(parts) < EVENTS and size < BYTES:
        it = waiting.popleft()
        size += len(it)
        parts.append(it)
    return tuple(parts)

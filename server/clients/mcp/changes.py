"""Whoever waits for a run to change, whichever process performs it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Self

from ...hub import Hub
from ...problems import Problem


class Changes:
    """Wakes one who waits, as the hub's subscribers are told what happens."""

    def __init__(self, hub: Hub, run_id: str) -> None:
        """Follow a run from now on. Raises `Overloaded`."""
        self._subscription = hub.subscribe(run_id)
        self._told = asyncio.Event()
        self._over = False
        self._pump: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Begin."""
        self._pump = asyncio.create_task(self._follow())
        return self

    async def __aexit__(self, *_: object) -> None:
        """End."""
        self._subscription.close()
        if self._pump is not None:
            self._pump.cancel()
            await asyncio.wait({self._pump})

    async def more(self, *, within: float | None = None) -> bool:
        """Wait until something may have changed; False: nothing has, within so many seconds.

        Raises `Problem` (`shutting_down`) where nobody will tell any more.
        """
        if self._over:
            raise Problem("shutting_down", "this server ends; ask the next one again")
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._told.wait()
                self._told.clear()
                return True
        return False

    async def _follow(self) -> None:
        try:
            async for batch in self._subscription:
                if batch:
                    self._told.set()
        finally:
            self._over = True
            self._told.set()

"""A journal that hears at once of what others do, as one with notices does (D-10, D-50)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

from turnlock.models.deliveries import Delivery
from turnlock.runtime.journal.memory import MemoryJournal


class HearingJournal(MemoryJournal):
    """Tells of each post and answer; `looks` counts how often was asked for them."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0
        self._said = 0
        self._told: WeakKeyDictionary[asyncio.Task[Any], int] = WeakKeyDictionary()
        self._changed = asyncio.Event()

    @property
    def hears(self) -> bool:
        return True

    async def heard(self, timeout: float, *, answer: int | None = None) -> None:  # noqa: ASYNC109 - D-10
        task = asyncio.current_task()
        assert task is not None
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while self._told.get(task, 0) == self._said:
                    await self._changed.wait()
        self._told[task] = self._said

    def hint(self) -> None:
        """Wake all who wait."""
        self._said += 1
        self._changed.set()
        self._changed = asyncio.Event()

    async def post(self, run_id: str, delivery: Delivery) -> int:
        number = await super().post(run_id, delivery)
        self.hint()
        return number

    async def answer(self, run_id: str, number: int, receipt: Mapping[str, Any]) -> None:
        await super().answer(run_id, number, receipt)
        self.hint()

    async def answered(self, run_id: str, number: int) -> Mapping[str, Any] | None:
        self.looks += 1
        return await super().answered(run_id, number)

"""Who claims calls: an id in the facts, which tells nothing, and in the journal what it stands for.

A claim names its worker by an opaque id (F-6). Who takes a run over has to know whether that was a
runtime, which is gone or fenced by then (K-35); so the journal keeps the name of its process before
the first claim is made. Facts of older versions name the process themselves.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import Final

from ..models.workers import OPAQUE
from .journal.contract import Journal
from .owners import was_ours


class Worker:
    """The worker of the claims of one runtime."""

    def __init__(self, *, journal: Journal, meaning: str) -> None:
        """Choose an id; `meaning` is what it stands for: the name of the owner."""
        self.name: Final = f"{OPAQUE}{secrets.token_hex(7)}"
        self._meaning = meaning
        self._journal = journal
        self._is_known = False
        self._telling = asyncio.Lock()

    async def make_known(self) -> None:
        """Have the journal keep what it stands for, unless it does. Raises `JournalError`."""
        if self._is_known:
            return
        async with self._telling:
            if not self._is_known:
                await self._journal.put_worker(self.name, self._meaning)
                self._is_known = True


async def meaning_of(worker: str | None, journal: Journal) -> str | None:
    """Return what a worker stands for: of one of ours the name of its process; None: not known."""
    if worker is None or was_ours(worker):
        return worker
    return await journal.worker(worker)

"""Waiting for what nobody may call off: a write is settled, whoever waits for it goes away."""

from __future__ import annotations

import asyncio
from typing import TypeVar

T = TypeVar("T")


class Settling(asyncio.Future[T]):
    """A future that nobody who waits for it can cancel: he is told only when it is settled."""

    def cancel(self, msg: object = None) -> bool:  # noqa: ARG002 - as a future has it
        """Cancel nothing. The task that waits notes it, and raises it when it goes on."""
        return False

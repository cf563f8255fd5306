"""Waiting for somebody's decision: another process may write it, and tells nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from ..lifecycle.phases import Phase
from ..models.record import number
from .values import At, Look

if TYPE_CHECKING:
    from .engine import Engine

FIRST_PAUSE: Final = 0.02
"""Seconds after which a call that waits for a decision is looked at again, first."""
LONGEST_PAUSE: Final = 0.5
"""Seconds between two looks: each pause is half as long again as the one before."""


def until_decided(at: At, within: float) -> Callable[[Engine], Awaitable[Look]]:
    """Say what looks until a call does not wait for a decision any more, or the time is over."""
    number(within, place="within")

    async def look(engine: Engine) -> Look:
        loop = asyncio.get_running_loop()
        until, pause = loop.time() + within, FIRST_PAUSE
        while True:
            seen = await engine.look(at)
            left = until - loop.time()
            if seen.phase is not Phase.REQUESTED or seen.digest is None or left <= 0:
                return seen
            await asyncio.sleep(min(pause, left))
            pause = min(1.5 * pause, LONGEST_PAUSE)

    return look

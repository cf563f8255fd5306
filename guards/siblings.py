"""Calls that run side by side: what is refused waits for those beside it.

A framework cancels the others of an answer when one of its calls raises, and would leave them in
doubt. It waits for those alone: what another host runs, in the same loop, may never end.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from ..models.errors import TurnlockError

_running: Final[dict[tuple[object, ...], set[asyncio.Task[object]]]] = {}


@asynccontextmanager
async def beside(*place: object) -> AsyncGenerator[None]:
    """Run a call beside others in the same place: the calls that a framework cancels together."""
    here, this = (asyncio.get_running_loop(), *place), asyncio.current_task()
    assert this is not None  # noqa: S101 - a coroutine that awaits runs in a task
    running = _running.setdefault(here, set())
    running.add(this)
    try:
        yield
    except TurnlockError:
        running.discard(this)
        if running:
            await asyncio.wait(running)
        raise
    finally:
        running.discard(this)
        if not running:
            _running.pop(here, None)

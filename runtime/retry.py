"""The one retry loop: what fails for a while is tried again, after growing pauses.

To deliver again is safe: what was kept after all is refused as a duplicate.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from .errors import JournalError, Overloaded

T = TypeVar("T")


def _never() -> bool:
    return False


def _silent(error: Exception, pause: float) -> None:
    """Say nothing of a failure."""


async def retried(
    work: Callable[[], Awaitable[T]],
    *,
    pauses: Iterable[float],
    on: tuple[type[Exception], ...] = (JournalError, Overloaded),
    is_hopeless: Callable[[], bool] = _never,
    failed: Callable[[Exception, float], None] = _silent,
) -> T:
    """Return what the work returns, once it does.

    `pauses` are the seconds after each failure; when there are no more, or `is_hopeless` says so,
    the failure is raised. `on` are the errors that are tried again; `failed` is told of each, with
    the pause that follows.
    """
    seconds = iter(pauses)
    while True:
        try:
            return await work()
        except on as error:
            pause = next(seconds, None)
            if pause is None or is_hopeless():
                raise
            failed(error, pause)
            await asyncio.sleep(pause)

"""The clock that leases count by: the server's, as this host sees it (D-44).

The offset is taken from round trips, of which the quickest counts: half of it is the error. It is
slewed to each new one, so that time never jumps and never goes back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from ....models.errors import TurnlockError
from ...scheduling import since_boot
from .doors import Ask, Connection

ROUNDS: Final = 5
"""Round trips of one measurement."""
EVERY: Final = 60.0
"""Seconds between two measurements."""
RATE: Final = 0.5
"""Seconds by which a second is longer or shorter at most while the offset changes."""
PATIENCE: Final = 1.0
"""Seconds for which takers wait beyond a lease: hosts differ by less."""


class ServerClock:
    """The server's time. It may be asked in any thread."""

    def __init__(self) -> None:
        """Begin without any offset: `measure` sets it."""
        self._line: tuple[float, float, float] | None = None
        """Since when it goes, how far it was ahead of `since_boot` then, and how far it should."""
        self.error: float = 0.0
        """Seconds by which it may be off, when it was measured last."""

    def now(self) -> float:
        """Return Unix time in seconds."""
        here = since_boot()
        return here + self._ahead(here)

    def _ahead(self, here: float) -> float:
        if self._line is None:
            raise AssertionError("it is measured before anybody is given it")
        since, ahead, wanted = self._line
        most = RATE * (here - since)
        return ahead + max(-most, min(most, wanted - ahead))

    def set(self, ahead: float, *, error: float) -> None:
        """Have it go so far ahead of `since_boot`; but for the first time little by little."""
        here = since_boot()
        self._line = (here, ahead if self._line is None else self._ahead(here), ahead)
        self.error = error

    async def measure(self, connection: Connection) -> None:
        """Ask the server, some times, and go by the quickest answer."""
        found: list[tuple[float, float]] = []
        for _ in range(ROUNDS):
            asked = since_boot()
            there: float = await connection.fetchval(
                "SELECT extract(epoch FROM clock_timestamp())::float8"
            )
            answered = since_boot()
            found.append((answered - asked, there - (asked + answered) / 2))
        took, ahead = min(found)
        self.set(ahead, error=took / 2)

    async def keep(self, ask: Callable[[Ask[None]], Awaitable[None]]) -> None:
        """Measure again and again, until it is cancelled."""
        while True:
            await asyncio.sleep(EVERY)
            with suppress(TurnlockError):  # the server is away: it goes on as it went
                await ask(self.measure)

"""Listening to what others say has happened: one channel a journal, hints only (D-50 … D-53).

A notice may be lost, doubled, late, or about nothing. Whoever is told looks; everything is found by
looking again and again, too. After each connection everybody is told once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final
from weakref import WeakKeyDictionary

from ....models.errors import TurnlockError
from ...log import logger
from .counts import Counts
from .doors import Connection
from .failures import FAILURES
from .lanes import RECONNECT, RECONNECT_MOST
from .links import Link
from .tables import Tables

_log: Final = logger(__name__)

POSTED: Final = "p"
"""Begins the notice of a post, before the number of its run."""
ANSWERED: Final = "a"
"""Begins the notice of an answer, before the number of the post."""
NOTICE_BYTES: Final = 24
"""Characters that a notice has at most."""
PING: Final = 30.0
"""Seconds without a notice after which the server is asked for a sign of life."""


async def notify(connection: Connection, tables: Tables, kind: str, number: int) -> None:
    """Say that something has happened, once the transaction is committed; never with an append.

    The server commits transactions with notices one after the other (D-39).
    """
    await connection.execute("SELECT pg_notify($1, $2)", tables.channel, f"{kind}{number}")


_REMEMBERED: Final = 10_000
"""Answers of which it is remembered that they were told of."""


class Ears:
    """Who waits to be told, and what came since each task was told last."""

    def __init__(self) -> None:
        """Begin with nothing said."""
        self._said = 0
        self._said_to_all = 0
        self._answers: dict[int, int] = {}
        self._told: WeakKeyDictionary[asyncio.Task[Any], int] = WeakKeyDictionary()
        self._changed: asyncio.Future[None] | None = None

    def tell(self, payload: str) -> None:
        """Tell everybody, but for those who wait for another answer than this one."""
        self._said += 1
        number = payload.removeprefix(ANSWERED)
        if number != payload and number.isdecimal() and len(number) < NOTICE_BYTES:
            self._answers[int(number)] = self._said
            if len(self._answers) > _REMEMBERED:
                del self._answers[next(iter(self._answers))]
        self._wake()

    def tell_all(self) -> None:
        """Tell everybody, whatever they wait for: something may have been missed."""
        self._said += 1
        self._said_to_all = self._said
        self._wake()

    def _wake(self) -> None:
        if self._changed is not None and not self._changed.done():
            self._changed.set_result(None)
        self._changed = None

    async def wait(self, timeout: float, *, answer: int | None) -> None:  # noqa: ASYNC109 - as `heard`
        """Return when something was said that this task was not told, at the latest in time."""
        task = asyncio.current_task()
        seen = self._said if task is None else self._told.get(task, 0)
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while self._latest(answer) <= seen:
                    if self._changed is None:
                        self._changed = asyncio.get_running_loop().create_future()
                    await asyncio.shield(self._changed)
        if task is not None:
            self._told[task] = self._said

    def _latest(self, answer: int | None) -> int:
        if answer is None:
            return self._said
        return max(self._said_to_all, self._answers.get(answer, 0))


class Listener:
    """Keeps a connection of its own that listens (D-52)."""

    def __init__(
        self,
        tables: Tables,
        connect: Callable[[], Awaitable[Link]],
        *,
        ears: Ears,
        counts: Counts,
    ) -> None:
        """Begin to connect; it must be made inside a running loop."""
        self._tables = tables
        self._connect = connect
        self._ears = ears
        self._counts = counts
        self._pooled = False
        self.hears = False
        """Whether notices come at the moment, as far as anybody knows."""
        self._task = asyncio.create_task(self._run(), name="journal, listener")

    async def close(self) -> None:
        """Listen no more."""
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _run(self) -> None:
        pause = RECONNECT
        while not self._pooled:
            try:
                await self._listen()
                pause = RECONNECT
            except (TurnlockError, *FAILURES):
                pause = min(RECONNECT_MOST, 2 * pause)
            await asyncio.sleep(pause)

    async def _listen(self) -> None:
        """Connect, and listen until the connection is lost."""
        link = await self._connect()
        if link.pooled:  # its session is anybody's, so nothing would be heard (D-52)
            self._pooled = True
            await link.close()
            _log.warning(
                "journal schema %s: it is not listened to through a pooler, so posts are found by"
                " polling; ?listen=off says that this is meant",
                self._tables.schema,
            )
            return
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def over(_: object) -> None:
            if not ended.done():
                ended.set_result(None)

        def told(_connection: object, _pid: int, _channel: str, payload: object) -> None:
            self._counts.notices += 1
            self._ears.tell(str(payload))

        try:
            link.connection.add_termination_listener(over)
            await link.connection.add_listener(self._tables.channel, told)
            self.hears = True
            self._ears.tell_all()
            while not ended.done():
                await asyncio.wait([ended], timeout=PING)
                if not ended.done():  # a way that is gone is else not noticed for hours
                    await link.ask(lambda it: it.fetchval("SELECT 1"), whole=False)
        finally:
            self.hears = False
            link.drop()

"""Lanes: a task with a connection of its own, which does in one transaction all that waits (D-33).

A lane is never cancelled: whoever waits for a work is told when it is settled (D-35). Two works of
one run are never in one group, and never overtake each other.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

import attrs

from ....models.errors import TurnlockError
from ...errors import Overloaded
from ...log import logger
from ..refusals import closed
from ..settling import Settling
from .counts import Counts
from .doors import Ask, Connection
from .failures import FAILURES, away, is_retried, not_kept, not_known, was_lost, was_unsent
from .links import Link

GROUP: Final = 256
"""Works that are done in one transaction at most."""
GROUP_BYTES: Final = 8_000_000
"""Bytes of a group after which no further work is taken into it."""
SLOWEST: Final = 1_000_000
"""Bytes a second that any way to the server carries: what is large is waited for longer."""
WAITING: Final = 10_000
"""Works of one lane that may wait; then `Overloaded`."""
RETRIES: Final = 10
"""Times that a group is done again because the server said so (D-32)."""
PAUSE: Final = 0.005
"""Seconds between two of these, on average and to begin with."""
RECONNECT: Final = 0.25
"""Seconds after which a connection is tried again; they double."""
RECONNECT_MOST: Final = 30.0
"""Seconds between two tries to connect anew, at most."""

_log: Final = logger(__name__)


class Outcome(NamedTuple):
    """What became of a work: what it returned, or what it raised."""

    value: Any = None
    error: Exception | None = None


Body: TypeAlias = Callable[[Connection, Sequence[Any]], Awaitable[Sequence[Outcome]]]
"""Does the works of a group, given what each asks, and returns the outcome of each."""


@attrs.frozen(eq=False)
class Kind:
    """A kind of works that are done together."""

    body: Body
    most: int = GROUP
    single: bool = False
    """Whether it is one statement, so that it needs no transaction around it."""
    within: float | None = None
    """Seconds for which an answer is waited for, where that is more than `answer_within`."""


async def _alone(connection: Connection, works: Sequence[Ask[Any]]) -> Sequence[Outcome]:
    """Do the one work there is."""
    (work,) = works
    return [Outcome(await work(connection))]


ALONE: Final = Kind(_alone, most=1)
"""A work that is a function, and has a transaction of its own."""


class Work(NamedTuple):
    """What is asked of a lane. A tuple, as an outcome: there is one of each for every append."""

    kind: Kind
    asked: Any
    run: Hashable | None
    """The run that it writes under; None: it may be beside any other."""
    size: int
    future: Settling[Any]


class Lane:
    """Does works on one connection, group by group."""

    def __init__(
        self,
        where: str,
        connect: Callable[[], Awaitable[Link]],
        *,
        counts: Counts,
        lost: Callable[[Sequence[Hashable]], None],
    ) -> None:
        """Begin with no connection. `lost` is told the runs of which it is not known what is kept.

        It must be made inside a running loop.
        """
        self._where = where
        self._connect = connect
        self._counts = counts
        self._lost = lost
        self._waiting: deque[Work] = deque()
        self._wake = asyncio.Event()
        self._wanted = asyncio.Event()
        self._closing = False
        self._expected = False
        self._link: Link | None = None
        self._reconnecting: asyncio.Task[None] | None = None
        self._why_away: Exception | None = None
        self._task = asyncio.create_task(self._run(), name=f"journal {where}, lane")

    async def connected(self) -> None:
        """Connect now. Raises what is in the way."""
        self._link = await self._connect()

    def expect(self) -> None:
        """Connect soon, if there is no connection: a work will be asked for that must not wait."""
        if self._link is None and not self._waiting:
            self._expected = True
            self._wake.set()

    async def do(
        self,
        kind: Kind,
        asked: Any,  # noqa: ANN401 - whatever the kind is given
        *,
        run: Hashable | None = None,
        size: int = 0,
        settled: Callable[[Any], None] | None = None,
    ) -> Any:  # noqa: ANN401 - whatever the kind returns
        """Have a work done, and return or raise what it does; ends only when it is settled."""
        if self._closing or self._task.done():
            raise closed()
        if len(self._waiting) >= WAITING:
            raise Overloaded(
                f"journal {self._where}: {WAITING:,} works wait already (WAITING); nothing was"
                " written, try again later"
            )
        work = Work(kind, asked, run, size, Settling(loop=asyncio.get_running_loop()))
        if settled is not None:
            work.future.add_done_callback(partial(_tell, settled))
        self._waiting.append(work)
        self._wake.set()
        return await work.future

    async def close(self) -> None:
        """Do what was asked, and let the connection go."""
        self._closing = True
        self._wake.set()
        await asyncio.wait([self._task])

    async def _run(self) -> None:
        try:
            while self._waiting or not self._closing:
                if not self._waiting:
                    if self._expected:
                        self._expected = False
                        await self._linked()
                        continue
                    self._wake.clear()
                    await self._wake.wait()
                    continue
                await self._do(group_of(self._waiting))
        finally:
            self._end()
            if self._link is not None:
                await self._link.close()

    def _end(self) -> None:
        """Leave nobody waiting, whatever has ended the lane, and take nothing more."""
        self._closing = True
        if self._reconnecting is not None:
            self._reconnecting.cancel()
        for work in self._waiting:
            if not work.future.done():
                work.future.set_exception(closed())
        self._waiting.clear()

    async def _do(self, works: Sequence[Work]) -> None:
        try:
            outcomes = await self._outcomes(works)
        except BaseException as error:  # the loop ends: nobody may be left waiting
            self._lost([it.run for it in works if it.run is not None])
            for work in works:
                if not work.future.done():
                    work.future.set_exception(not_known(self._where, error))
            raise
        for work, outcome in zip(works, outcomes, strict=True):
            if work.future.done():
                continue
            if outcome.error is None:
                work.future.set_result(outcome.value)
            else:
                work.future.set_exception(outcome.error)

    async def _outcomes(self, works: Sequence[Work]) -> Sequence[Outcome]:
        link = await self._linked()
        if link is None:
            self._counts.refused += len(works)
            error = self._why_away or ConnectionError("it is tried again")
            return [Outcome(error=away(self._where, error)) for _ in works]
        for attempt in range(RETRIES + 1):
            try:
                return await self._once(link, works)
            except Exception as error:  # noqa: BLE001 - each work is told of it
                if was_lost(error) or not link.is_open:
                    return self._dropped(link, works, error)
                if not is_retried(error) or attempt == RETRIES:
                    return await self._one_by_one(works, error)
                self._counts.retries += 1
                await asyncio.sleep(random.uniform(0, PAUSE * 2 * (attempt + 1)))  # noqa: S311 - a pause
        raise AssertionError(works)

    async def _once(self, link: Link, works: Sequence[Work]) -> Sequence[Outcome]:
        kind = works[0].kind

        def body(connection: Connection) -> Awaitable[Sequence[Outcome]]:
            return kind.body(connection, [it.asked for it in works])

        with self._counts.group(len(works)):
            do = link.single if kind.single else link.transaction
            within = (kind.within or link.answer_within) + sum(it.size for it in works) / SLOWEST
            return await do(body, within=within)

    async def _one_by_one(self, works: Sequence[Work], error: Exception) -> Sequence[Outcome]:
        """Do each for itself, so that none fails for another's sake (D-34)."""
        if len(works) == 1:
            if isinstance(error, FAILURES):
                error = not_kept(self._where, error)
            elif not isinstance(error, TurnlockError):
                _log.error("journal %s: a work has raised", self._where, exc_info=error)
            return [Outcome(error=error)]
        found: list[Outcome] = []
        for work in works:
            found += await self._outcomes([work])
        return found

    def _dropped(self, link: Link, works: Sequence[Work], error: Exception) -> Sequence[Outcome]:
        """Say what became of works whose connection was lost (D-40)."""
        link.drop()
        self._link = None
        self._counts.dropped(error)
        if not link.committing or was_unsent(error):
            return [Outcome(error=not_kept(self._where, error)) for _ in works]
        self._counts.unknown += len(works)
        self._lost([it.run for it in works if it.run is not None])
        return [Outcome(error=not_known(self._where, error)) for _ in works]

    async def _linked(self) -> Link | None:
        """Return the connection; None where there is none now, and somebody is at it (D-42)."""
        if self._link is not None:
            if self._link.is_open:
                return self._link
            self._link = None
        self._wanted.set()
        if self._reconnecting is None:
            try:
                self._link = await self._connect()
            except Exception as error:  # noqa: BLE001 - each work is told of it
                self._why_away = error
                self._reconnecting = asyncio.create_task(self._reconnect())
        return self._link

    async def _reconnect(self) -> None:
        """Try until there is a connection; while somebody asks for it, soon again."""
        pause = RECONNECT
        while self._link is None:
            self._wanted.clear()
            await asyncio.sleep(RECONNECT)
            with suppress(TimeoutError):
                async with asyncio.timeout(pause - RECONNECT):
                    await self._wanted.wait()
            try:
                self._link = await self._connect()
            except Exception as error:  # noqa: BLE001 - it is told to whoever asks
                self._why_away = error
                pause = min(RECONNECT_MOST, 2 * pause)
        self._reconnecting = None


def _tell(settled: Callable[[Any], None], future: asyncio.Future[Any]) -> None:
    if future.exception() is None:
        settled(future.result())


def group_of(waiting: deque[Work]) -> Sequence[Work]:
    """Take the first work, and those of its kind that may be done with it."""
    first = waiting.popleft()
    group, passed = [first], list[Work]()
    runs = {first.run}
    size = first.size
    while waiting and len(group) < first.kind.most and size < GROUP_BYTES and len(passed) < GROUP:
        work = waiting.popleft()
        if work.kind is first.kind and (work.run is None or work.run not in runs):
            group.append(work)
            size += work.size
        else:
            passed.append(work)
        runs.add(work.run)
    waiting.extendleft(reversed(passed))  # bounded, so that a long queue is not gone through
    return group

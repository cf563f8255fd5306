"""The threads of a SQLite journal: each has a connection, and one of them writes.

No connection may be open while the process forks, not even one that the child leaves alone: SQLite
counts in memory which locks the process has, and the child inherits the count without the locks. A
connection that it opens then believes in them: it waits for ever for what the parent held, and when
the parent has closed, the -wal is deleted under it with all that it writes (both measured). So each
thread closes its connection before a fork, and opens it anew after it, in the parent.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread, current_thread
from typing import Any, Final, TypeAlias, TypeVar
from weakref import WeakSet

import attrs

from ...models.errors import TurnlockError
from ..errors import JournalError, JournalReplaced
from ..log import logger
from .rows import STRANGE
from .settling import Settling
from .sqlite_file import failed, is_full, strange
from .sqlite_guard import Guard
from .sqlite_heads import Heads

T = TypeVar("T")

Work: TypeAlias = Callable[[sqlite3.Connection], Any]
"""What is asked of a connection; it runs in the worker's thread."""


@attrs.frozen
class Outcome:
    """What became of a work: what it returned, or what it raised."""

    value: Any = None
    error: Exception | None = None


Perform: TypeAlias = Callable[[sqlite3.Connection, Sequence[Work]], Sequence[Outcome]]
"""Does several works, and returns the outcome of each."""


def _never(_: sqlite3.Connection) -> float | None:
    """Have nothing to do when nothing is asked."""
    return None


@attrs.frozen
class _Job:
    work: Work
    future: Settling[Any]


POLL: Final = 0.05
"""Seconds between two looks whether a thread that is waited for has ended."""
FORK: Final = 10.0
"""Seconds that a fork waits until no connection is open: a write may wait for another process."""

_log: Final = logger(__name__)


@attrs.frozen(eq=False)
class _Pause:
    """Between two works of a thread: without a connection, while the process forks."""

    thread: Thread
    begun: Event = attrs.field(factory=Event)
    over: Event = attrs.field(factory=Event)

    def has_begun(self, give_up: float) -> bool:
        """Wait until no connection is there; False where it is, when the clock says to give up."""
        while not self.begun.wait(POLL):
            if not self.thread.is_alive():
                return True
            if time.monotonic() >= give_up:
                return False
        return True


class Worker:
    """One thread, one connection, one queue.

    The works of one tick of the loop go to the thread together, and whatever arrived while it was
    busy is done together with them. A thread that dies fails everybody with its cause, now and
    later. It is a daemon: a journal that nobody closed does not keep the process alive.
    """

    def __init__(
        self,
        name: str,
        *,
        connect: Callable[[], sqlite3.Connection],
        perform: Perform,
        rest: Callable[[sqlite3.Connection], float | None] = _never,
        disconnect: Callable[[sqlite3.Connection], None] | None = None,
    ) -> None:
        """Start the thread; all these are called in it.

        `rest` comes after each group of works, and again after the seconds that it returns, unless
        there is something to do before; None: not again. `disconnect` closes the connection.
        """
        self._connect = connect
        self._perform = perform
        self._rest = rest
        self._disconnect = disconnect
        self._loop = asyncio.get_running_loop()
        self._tick: list[_Job] = []
        self._open: set[Settling[Any]] = set()
        self._queue: SimpleQueue[list[_Job] | _Pause | None] = SimpleQueue()
        self._death: BaseException | None = None
        self._connected: Settling[None] = Settling(loop=self._loop)
        self._ended: Settling[None] = Settling(loop=self._loop)
        self._thread: Final = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()
        _workers.add(self)

    def pause(self) -> _Pause | None:
        """Have the connection closed until the pause is over; None where no thread has one."""
        if not self._thread.is_alive() or current_thread() is self._thread:
            return None
        pause = _Pause(self._thread)
        self._queue.put(pause)
        return pause

    async def connected(self) -> None:
        """Wait until the connection is there; raise what `connect` raised."""
        await self._connected

    async def do(
        self,
        work: Callable[[sqlite3.Connection], T],
        *,
        settled: Callable[[T], None] | None = None,
    ) -> T:
        """Have a work done, and return or raise what it does; ends only when it is settled.

        `settled` is told what it returned before this does, and even where it is cancelled.
        """
        if self._ended.done():
            raise self._dead()
        future: Settling[T] = Settling(loop=self._loop)
        self._open.add(future)
        future.add_done_callback(self._open.discard)
        if settled is not None:
            future.add_done_callback(partial(_told, settled))
        if not self._tick:
            self._loop.call_soon(self._send)
        self._tick.append(_Job(work, future))
        return await future

    async def close(self) -> None:
        """Have done what was asked, and end the thread."""
        self._send()
        self._queue.put(None)
        await self._ended
        self._thread.join()

    def _send(self) -> None:
        if self._tick:
            self._queue.put(self._tick)
            self._tick = []

    # What runs in the thread.

    def _run(self) -> None:
        death: BaseException | None = None
        connection: sqlite3.Connection | None
        try:
            connection = self._connect()
        except BaseException as error:  # noqa: BLE001 - the opener is told, whatever it is
            self._tell(self._end, error)
            return
        try:
            try:
                self._tell(self._connected.set_result, None)
                while jobs := self._next(connection):
                    if isinstance(jobs, _Pause):
                        (self._disconnect or _close)(connection)
                        connection = None
                        jobs.begun.set()
                        jobs.over.wait()
                        connection = self._connect()
                        continue
                    outcomes = self._perform(connection, [job.work for job in jobs])
                    self._tell(_deliver, jobs, outcomes)
            finally:
                if connection is not None:
                    (self._disconnect or _close)(connection)
        except BaseException as error:  # noqa: BLE001 - the callers are told, whatever it is
            death = error
        self._tell(self._end, death)

    def _next(self, connection: sqlite3.Connection) -> list[_Job] | _Pause:
        """Wait for works, and take all that are there; none when it is time to end."""
        jobs: list[_Job] | _Pause | None = None
        while True:
            pause = self._rest(connection) if self._queue.empty() else 0.0
            with suppress(Empty):
                jobs = self._queue.get(timeout=pause)
                break
        if jobs is None:
            return []
        if isinstance(jobs, _Pause):
            return jobs
        with suppress(Empty):
            while isinstance(more := self._queue.get_nowait(), list):
                jobs += more
            self._queue.put(more)
        return jobs

    def _tell(self, what: Callable[..., object], *args: object) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(what, *args)

    # What runs in the loop.

    def _end(self, death: BaseException | None) -> None:
        self._death = death
        self._ended.set_result(None)
        if not self._connected.done():
            self._connected.set_exception(self._death or self._dead())
        for future in tuple(self._open):
            if not future.done():
                future.set_exception(self._dead())

    def _dead(self) -> JournalError:
        error = JournalError(
            f"{self._thread.name}: its thread has ended ({self._death!r}), so what was under way"
            " may be kept or not; open the journal again and read"
        )
        error.__cause__ = self._death
        return error


def _told(settled: Callable[[T], None], future: asyncio.Future[T]) -> None:
    if future.exception() is None:
        settled(future.result())


def _close(connection: sqlite3.Connection) -> None:
    connection.close()


def _deliver(jobs: Sequence[_Job], outcomes: Sequence[Outcome]) -> None:
    for job, outcome in zip(jobs, outcomes, strict=True):
        if not job.future.done():
            if outcome.error is None:
                job.future.set_result(outcome.value)
            else:
                job.future.set_exception(outcome.error)


def writing(path: str, *, guard: Guard, heads: Heads) -> Perform:
    """Return what does all works in one transaction: one wait for the disk, not one for each.

    When SQLite fails, nothing of it is kept and all are told so. What else a work may raise is
    damage that it met, or a mistake of its caller; then each is done in a transaction of its own,
    so that it fails alone. Where the disk is full, the -wal is merged, which may give room, and it
    is all done once more.
    """

    def perform(connection: sqlite3.Connection, works: Sequence[Work]) -> Sequence[Outcome]:
        return attempt(connection, works, merged=False)

    def attempt(
        connection: sqlite3.Connection, works: Sequence[Work], *, merged: bool
    ) -> Sequence[Outcome]:
        committing = False
        try:
            connection.execute("BEGIN IMMEDIATE")
            guard.begun(connection)
            outcomes = [_outcome(connection, work) for work in works]
            committing = True
            connection.execute("COMMIT")
            guard.committed()
        except JournalReplaced as error:
            heads.dropped()
            _roll_back(connection)
            return [Outcome(error=error) for _ in works]
        except sqlite3.Error as error:
            heads.dropped()
            _roll_back(connection)
            if is_full(path, error) and not merged and heads.merge(connection):
                return attempt(connection, works, merged=True)
            broken = committing and not _harmless(error)
            why = guard.explains(connection) or failed(path, error, settled=not broken)
            return [Outcome(error=why) for _ in works]
        except Exception as error:  # noqa: BLE001 - see above
            heads.dropped()
            _roll_back(connection)
            if len(works) == 1:
                is_damage = isinstance(error, STRANGE)
                return [Outcome(error=strange(path, error) if is_damage else error)]
            return [outcome for work in works for outcome in perform(connection, [work])]
        heads.kept()
        return outcomes

    return perform


def reading(path: str, guard: Guard | None = None) -> Perform:
    """Return what does each work for itself, as long as the file is the one that is guarded.

    What else one raises is a mistake of its caller, as in `writing`: it fails alone.
    """

    def perform(connection: sqlite3.Connection, works: Sequence[Work]) -> Sequence[Outcome]:
        try:
            if guard is not None:
                guard.look()
        except JournalReplaced as error:
            return [Outcome(error=error) for _ in works]
        return [read(connection, work) for work in works]

    def read(connection: sqlite3.Connection, work: Work) -> Outcome:
        try:
            return _outcome(connection, work)
        except sqlite3.Error as error:
            return Outcome(error=failed(path, error))
        except STRANGE as error:
            return Outcome(error=strange(path, error))
        except Exception as error:  # noqa: BLE001 - see above
            return Outcome(error=error)

    return perform


def _outcome(connection: sqlite3.Connection, work: Work) -> Outcome:
    try:
        return Outcome(work(connection))
    except TurnlockError as error:
        return Outcome(error=error)


def _roll_back(connection: sqlite3.Connection) -> None:
    """SQLite has rolled back already after some errors."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _harmless(error: sqlite3.Error) -> bool:
    """Say whether a failed commit has surely left nothing behind.

    After an error of the disk, the end of the transaction may stand in the -wal file all the same,
    and count if the process ends before it writes again.
    """
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_IOERR) & 0xFF
    return code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_FULL}


_workers: Final[WeakSet[Worker]] = WeakSet()
_forking: Final = Lock()
"""Held while the process forks: one thread at a time."""
_paused: Final[list[_Pause]] = []


def _before_fork() -> None:
    _forking.acquire()
    _paused[:] = filter(None, [it.pause() for it in tuple(_workers)])
    give_up = time.monotonic() + FORK
    if not all(it.has_begun(give_up) for it in _paused):
        _log.error(
            "the process forks while a journal is open, which did not close within %g s: a child"
            " that opens the same file may lose what it writes; let it not be used there",
            FORK,
        )


def _after_fork() -> None:
    for it in _paused:
        it.over.set()
    _paused.clear()
    _forking.release()


def _in_child() -> None:
    """Forget the threads: they are not here, and nobody may ask them anything."""
    for it in tuple(_workers):
        _workers.discard(it)
    _paused.clear()
    _forking.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)

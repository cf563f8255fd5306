"""Connections: how one is opened and set up, and what is done on it in a transaction.

A session keeps nothing that a transaction needs where a pooler stands between (D-59): it answers
with a process id of its own, which is how it is known, and then each transaction says its settings.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import asyncpg
import attrs

from ...errors import JournalError
from .doors import Ask, Connection
from .failures import FAILURES, away, no_tls, was_lost, with_fix
from .url import Place

T = TypeVar("T")

CONNECT: Final = 5.0
"""Seconds for which a connection is tried."""
OLDEST: Final = 140_000
"""The oldest server there may be, as it numbers itself (D-4)."""
PREPARED: Final = 200
"""Statements that a session keeps prepared."""

_WARNING: Final = "01000"

_SETTINGS: Final = {
    "synchronous_commit": "on",
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "'60s'",
}
"""What a transaction needs, whatever role and database say (D-36)."""
_SESSION: Final = {
    **_SETTINGS,
    "default_transaction_isolation": "'read committed'",
    "jit": "off",
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "10000",
}
_SET: Final = "; ".join(f"SET {name} = {value}" for name, value in _SESSION.items())
_LOCAL: Final = "; ".join(f"SET LOCAL {name} = {value}" for name, value in _SETTINGS.items())
_BEGIN: Final = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
_BEGIN_WHOLE: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_ASKED: Final = (
    "SELECT current_setting('fsync') = 'on' AS waits,"
    " current_setting('server_version_num')::int AS version,"
    " pg_is_in_recovery() AS standby, pg_backend_pid() AS pid"
)


@attrs.define(eq=False)
class Link:
    """A connection, and what is known of the transaction on it."""

    connection: Connection
    pooled: bool
    """Whether a pooler stands between."""
    standby: bool
    answer_within: float
    committing: bool = False
    """Whether something is under way that is kept when it ends: a COMMIT, or a single statement."""
    doubt: str | None = None
    """What the server said beside a success, which makes it none (D-36)."""

    @property
    def is_open(self) -> bool:
        """Whether it can be used, as far as anybody knows."""
        return not self.connection.is_closed()

    def drop(self) -> None:
        """Let go of it at once. Nothing is sent: whatever is under way goes on (D-35)."""
        self.connection.terminate()

    async def close(self) -> None:
        """Say goodbye, and do not wait for long."""
        try:
            await self.connection.close(timeout=1.0)
        except FAILURES:
            self.drop()

    async def transaction(self, work: Ask[T], *, within: float | None = None) -> T:
        """Do a work in a transaction, all of it or nothing; answers are waited for so long."""
        return await self._in_time(lambda: self._transaction(work), within=within)

    async def single(self, work: Ask[T], *, within: float | None = None) -> T:
        """Do a work of one statement, which is a transaction by itself."""
        if self.pooled:
            return await self.transaction(work, within=within)
        return await self._in_time(lambda: self._single(work), within=within)

    async def ask(self, ask: Ask[T], *, whole: bool, within: float | None = None) -> T:
        """Ask for something; `whole`: all statements see the same moment."""
        return await self._in_time(lambda: self._asked(ask, whole=whole), within=within)

    async def _asked(self, ask: Ask[T], *, whole: bool) -> T:
        if not whole:
            return await ask(self.connection)
        await self.connection.execute(_BEGIN_WHOLE)
        answer = await ask(self.connection)
        await self.connection.execute("COMMIT")
        return answer

    async def _single(self, work: Ask[T]) -> T:
        self.committing, self.doubt = True, None
        done = await work(self.connection)
        self._check_doubt()
        self.committing = False
        return done

    async def _transaction(self, work: Ask[T]) -> T:
        self.committing, self.doubt = False, None
        await self.connection.execute(f"{_BEGIN}; {_LOCAL}" if self.pooled else _BEGIN)
        try:
            done = await work(self.connection)
        except BaseException:
            if self.is_open:
                await self.connection.execute("ROLLBACK")
            raise
        self.committing = True
        ended = await self.connection.execute("COMMIT")
        if ended != "COMMIT":
            raise AssertionError(f"a work has caught what the server said: {ended}")
        self._check_doubt()
        self.committing = False
        return done

    def _check_doubt(self) -> None:
        if self.doubt is not None:
            self.drop()
            raise asyncpg.ConnectionDoesNotExistError(self.doubt)

    async def _in_time(self, do: Callable[[], Awaitable[T]], *, within: float | None = None) -> T:
        """Drop the connection if there is no answer in time; no request to cancel is sent."""
        timer = asyncio.get_running_loop().call_later(within or self.answer_within, self.drop)
        try:
            return await do()
        finally:
            timer.cancel()

    def note(self, _: object, message: Any) -> None:  # noqa: ANN401 - the driver's message
        """Take note of what the server says beside an answer."""
        if self.committing and message.sqlstate == _WARNING:
            self.doubt = f"the server said: {message.message}"


async def open_link(place: Place, *, reads: bool = False) -> Link:
    """Open a connection. Raises `Away` where there is no server, `JournalError` for one unfit."""
    connection: Connection | None = None
    try:
        async with asyncio.timeout(CONNECT):
            connection = await asyncpg.connect(
                place.dsn,
                timeout=CONNECT,
                statement_cache_size=PREPARED if place.prepared else 0,
            )
            told: Any = await connection.fetchrow(_ASKED)
            pooled = told["pid"] != connection.get_server_pid()
            if not pooled:
                await connection.execute(_SET)
        _check(place, told, reads=reads)
    except (*FAILURES, ValueError, LookupError, TypeError) as error:
        if connection is not None:
            connection.terminate()
        if isinstance(error, JournalError):
            raise
        raise _not_connected(place, error) from None
    except BaseException:
        if connection is not None:
            connection.terminate()
        raise
    link = Link(connection, pooled, told["standby"], place.answer_within)
    connection.add_log_listener(link.note)
    return link


def _not_connected(place: Place, error: BaseException) -> JournalError:
    """Return the error for a connection that there is not. What the driver read is not shown."""
    if (why := no_tls(error, asked=place.tls_files, first=place.tls_first)) is not None:
        return JournalError(f"journal {place.shown}: the server cannot be spoken to: {why}")
    if was_lost(error):
        return away(place.shown, error)
    if isinstance(error, FAILURES):
        return JournalError(
            f"journal {place.shown}: the server does not let us in: {with_fix(error)}"
        )
    return JournalError(
        f"journal {place.shown}: the driver cannot read its URL; look at its ports and parameters"
    )


def _check(place: Place, told: Any, *, reads: bool) -> None:  # noqa: ANN401 - a record
    if told["version"] < OLDEST:
        raise JournalError(
            f"journal {place.shown}: the server is of version {told['version'] // 10_000};"
            f" {OLDEST // 10_000} or later is needed"
        )
    if told["standby"] and not reads:
        raise away(place.shown, JournalError("this server is a standby, and takes no writes"))
    if not told["waits"] and not place.unsafe and not reads:
        raise JournalError(
            f"journal {place.shown}: the server runs with fsync = off, so what it acknowledges is"
            " lost with its power; set fsync = on there (for tests: ?unsafe=on)"
        )

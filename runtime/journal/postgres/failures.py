"""What became of a statement that failed: nothing was kept, or nobody knows (D-40).

What the server has answered is an answer: then nothing was kept. Where the connection was lost, or
the server was going down, it may have kept what it did not say, once COMMIT was under way.
"""

from __future__ import annotations

import ssl
from typing import Final

import asyncpg

from ...errors import JournalError

FAILURES: Final = (
    asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError,
    TimeoutError,
)  # fmt: skip
"""What the driver raises where the server, the way to it or a statement has failed."""

RETRIED: Final = frozenset({"40001", "40P01", "55P03"})
"""What the server says of a transaction that others stood in the way of (D-32)."""

_LOST: Final = ("08", "57P0", "57P")
_UNPREPARED: Final = frozenset({"26000", "42P05"})
"""What a server says of a prepared statement that it, or a pooler before it, has in another way."""


class Away(JournalError):
    """The server cannot be reached; nothing was written (D-42)."""


class NotKnown(JournalError):
    """What was asked may be kept or not: the next read tells (D-18, D-41)."""


def state_of(error: BaseException) -> str | None:
    """Return the SQLSTATE that a server gave; None where it was not the server."""
    state = getattr(error, "sqlstate", None) if isinstance(error, asyncpg.PostgresError) else None
    return state if isinstance(state, str) else None


def was_lost(error: BaseException) -> bool:
    """Whether the connection is lost, or the server going down: nothing is known of a COMMIT."""
    state = state_of(error)
    if state is not None:
        return state.startswith(_LOST)
    return isinstance(error, FAILURES) and not was_unsent(error)


def was_unsent(error: BaseException) -> bool:
    """Whether the driver refused it before anything was sent: a mistake, or a closed connection."""
    return isinstance(error, asyncpg.InterfaceError)


def is_retried(error: BaseException) -> bool:
    """Whether to do the same again."""
    return state_of(error) in RETRIED


def not_kept(where: str, error: BaseException) -> JournalError:
    """Return the error for what the server refused: nothing of it is kept."""
    return JournalError(f"journal {where}: nothing was written: {with_fix(error)}")


def not_read(where: str, error: BaseException) -> JournalError:
    """Return the error for what could not be read."""
    return JournalError(f"journal {where}: it could not be read: {with_fix(error)}")


def not_opened(where: str, error: BaseException) -> JournalError:
    """Return the error for tables that could not be asked for, or made."""
    return JournalError(f"journal {where}: it could not be opened: {with_fix(error)}")


def not_known(where: str, error: BaseException) -> NotKnown:
    """Return the error for what may be kept or not."""
    return NotKnown(
        f"journal {where}: it is not known whether this was written: {cause_of(error)}; what is"
        " read next is what was kept"
    )


def away(where: str, error: BaseException) -> Away:
    """Return the error for a server that cannot be reached."""
    return Away(f"journal {where}: nothing was written: the server is away: {cause_of(error)}")


def no_tls(error: BaseException, *, asked: bool, first: bool = False) -> str | None:
    """Return what is wrong with TLS, and what helps; None where something else is wrong.

    `asked`: whether whoever connects has given files for it, which the driver opens then. `first`:
    whether TLS is begun without a question, at which a server that expects one hangs up.
    """
    if isinstance(error, ConnectionError) and "rejected SSL" in str(error):
        return (
            "it speaks no TLS, and sslmode (or PGSSLMODE) asks for it: set ssl = on there, with a"
            " certificate; or give sslmode=prefer where nobody else can read what is sent"
        )
    if first and isinstance(error, ConnectionResetError):
        return (
            "it hung up at the first word of TLS, which sslnegotiation=direct (or"
            " PGSSLNEGOTIATION) begins without a question: that takes PostgreSQL 17 or later with"
            " ssl = on, and a certificate; leave it out, and the server is asked first"
        )
    if isinstance(error, ssl.SSLError):
        return (
            f"TLS fails: {cause_of(error)}; give the authority of its certificate as"
            " sslrootcert=FILE, and the host by the name that the certificate bears"
        )
    if asked and isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError):
        return (
            f"TLS fails: {cause_of(error)}; sslrootcert, sslcert, sslkey and sslcrl are files that"
            " this process can read"
        )
    return None


def with_fix(error: BaseException) -> str:
    """Return what happened, and what helps."""
    fix = _FIXES.get(state_of(error) or "")
    return f"{cause_of(error)}; {fix}" if fix else cause_of(error)


def cause_of(error: BaseException) -> str:
    """Return what happened, in words that hold no secret: the driver tells of no password."""
    state = state_of(error)
    text = str(error).strip() or type(error).__name__
    if state in _UNPREPARED:  # the driver's hint is about the driver's own parameters
        text = text.partition("\n")[0]
    if isinstance(error, TimeoutError):
        text = "no answer in time"
    return f"{text} ({state})" if state else text


_FIXES: Final = {
    **dict.fromkeys(
        _UNPREPARED,
        "a pooler in transaction mode mixes up prepared statements: give ?prepared=off, or"
        " PgBouncer 1.21 or later with max_prepared_statements above 0",
    ),
    "53100": "the server's disk is full: make room there",
    "25006": "this server takes no writes: it is a standby, or not promoted yet",
    "28P01": "correct the user, or its password in PGPASSWORD, PGPASSFILE or the URL",
    "28000": "correct the user, or let it in by pg_hba.conf there",
    "3D000": "make it with createdb, or correct its name in the URL",
    "42704": "correct the URL's parameters; ours are named in docs/postgres.md",
    "42501": "who only decides needs the rights that turnlock journal grants ROLE prints, who makes"
    " it or performs runs owns the schema (GRANT CREATE ON DATABASE)",
    "42P01": "its tables are not there: make them with turnlock journal init --db URL",
    "3F000": "its schema is not there: make it with turnlock journal init --db URL",
}
"""What helps, by SQLSTATE."""

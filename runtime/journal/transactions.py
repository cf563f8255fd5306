"""How a worker of the SQLite journal does what it is asked: writes together, reads each alone.

A work that raises one of our own errors must have written nothing before: then it fails alone, and
the works beside it are kept.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Final

from ...models.errors import TurnlockError
from ..errors import JournalError
from .failures import failed
from .worker import Outcome, Perform, Work

_STRANGE: Final = (TypeError, ValueError, LookupError)
"""What a read raises over a damaged row: callers' mistakes were found before it was asked for."""


def writing(path: str) -> Perform:
    """Return what does all works in one transaction: one wait for the disk, not one for each.

    When SQLite fails, nothing of it is kept and all are told so. What else a work may raise is a
    mistake of its caller; then each is done in a transaction of its own, so that it fails alone.
    """

    def perform(connection: sqlite3.Connection, works: Sequence[Work]) -> Sequence[Outcome]:
        committing = False
        try:
            connection.execute("BEGIN IMMEDIATE")
            outcomes = [_outcome(connection, work) for work in works]
            committing = True
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            _roll_back(connection)
            broken = committing and not _harmless(error)
            return [Outcome(error=failed(path, error, settled=not broken)) for _ in works]
        except Exception as error:  # noqa: BLE001 - see above
            _roll_back(connection)
            if len(works) == 1:
                return [Outcome(error=error)]
            return [outcome for work in works for outcome in perform(connection, [work])]
        return outcomes

    return perform


def reading(path: str) -> Perform:
    """Return what does each work for itself."""

    def perform(connection: sqlite3.Connection, works: Sequence[Work]) -> Sequence[Outcome]:
        return [read(connection, work) for work in works]

    def read(connection: sqlite3.Connection, work: Work) -> Outcome:
        try:
            return _outcome(connection, work)
        except sqlite3.Error as error:
            return Outcome(error=failed(path, error))
        except _STRANGE as error:
            damage = JournalError(
                f"journal {path}: it holds what was never written there ({error!r}); keep it and"
                " its -wal file as they are, and restore them from a copy"
            )
            damage.__cause__ = error
            return Outcome(error=damage)

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

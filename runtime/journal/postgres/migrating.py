"""Making the tables of a journal, and bringing older ones up to date, one version a transaction.

Who does it holds an advisory lock of the schema, and waits at most five seconds for a lock of those
who write (D-56). Tables of a newer version are refused by name (D-57).
"""

from __future__ import annotations

import hashlib
from typing import Final

from ...errors import JournalError, NoJournal
from .doors import Connection
from .links import Link
from .tables import MIGRATIONS, Tables
from .timeline import TIMELINE

LOCK_TIMEOUT: Final = "5s"
"""For which a lock is waited for: whoever writes meanwhile must not wait behind us for long."""


PATIENCE: Final = 60.0
"""Seconds for which another process is waited for that does the same."""
_META: Final = frozenset({"version", "journal", "timeline"})
"""The columns of `meta` in every version; a later one may have more."""


async def version_of(connection: Connection, tables: Tables) -> int | None:
    """Return the version of the tables; None where there are none."""
    columns: set[str] = {
        row["attname"]
        for row in await connection.fetch(
            "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0"
            " AND (attname, format_type(atttypid, NULL)) IN"
            " (('version', 'integer'), ('journal', 'uuid'), ('timeline', 'bigint'))",
            tables.meta,
        )
    }
    if not columns and await connection.fetchval("SELECT to_regclass($1) IS NULL", tables.meta):
        return None
    if columns < _META:
        raise NoJournal(
            f"journal schema {tables.schema!r}: its table meta is another program's; give another"
            " schema: ?schema=NAME"
        )
    version: int | None = await connection.fetchval(f"SELECT version FROM {tables.meta}")  # noqa: S608 - ours
    return version


async def prepare(link: Link, tables: Tables, where: str, *, create: bool, changes: bool) -> None:
    """See that the tables are there and of today; make them, if `create`, or migrate, if `changes`.

    Raises `NoJournal` where there are none, and `JournalError` for those of a newer version.
    """
    version = await version_of(link.connection, tables)
    if version is None and not create:
        raise NoJournal(
            f"journal {where}: there is none in this schema; make it with turnlock journal init"
            " --db URL"
        )
    newest = len(MIGRATIONS)
    if version is not None and version > newest:
        raise JournalError(
            f"journal {where}: its tables are of version {version}, and this turnlock knows"
            f" {newest}; use the newer turnlock that made them"
        )
    if version == newest:
        return
    if not changes:
        raise JournalError(
            f"journal {where}: its tables are of version {version}, and this turnlock reads"
            f" {newest}; bring them up to date with turnlock journal init --db URL"
        )
    while await link.transaction(lambda it: _step(it, tables), within=PATIENCE) < newest:
        pass


async def _step(connection: Connection, tables: Tables) -> int:
    """Do what leads to the next version, and return it; another process may have been quicker."""
    await connection.execute("SELECT pg_advisory_xact_lock($1)", _lock_of(tables))
    await connection.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
    there = await connection.fetchval(
        "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)", tables.schema
    )
    if not there:  # to ask for it IF NOT EXISTS needs the right to make one
        await connection.execute(f"CREATE SCHEMA {tables.quoted}")
    version = await version_of(connection, tables)
    if version is None:
        await connection.execute(
            f"CREATE TABLE {tables.meta}"
            " (version int NOT NULL, journal uuid NOT NULL, timeline bigint NOT NULL)"
        )
        await connection.execute(
            f"INSERT INTO {tables.meta} VALUES (0, gen_random_uuid(), {TIMELINE})"  # noqa: S608 - ours
        )
        version = 0
    if version >= len(MIGRATIONS):
        return version
    await connection.execute(";\n".join(MIGRATIONS[version](tables)))
    await connection.execute(f"UPDATE {tables.meta} SET version = $1", version + 1)  # noqa: S608 - ours
    return version + 1


def _lock_of(tables: Tables) -> int:
    digest = hashlib.sha256(f"turnlock {tables.schema}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)

"""Whether another server has taken the journal over, and may know less than the one before (D-62).

Each promotion and each restore to an earlier moment begins a timeline of its own. What a new one
lacks shows where it matters: a run that ends before what this process was told is kept stands
still. That the timeline is a new one is told in the log, and kept in `meta`.
"""

from __future__ import annotations

from typing import Any, Final

from ...log import logger
from .doors import Connection
from .failures import FAILURES
from .links import Link
from .tables import Tables

TIMELINE: Final = "('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint"
"""That of a server that takes writes. The control file's is that of its last checkpoint, which may
be one from before the promotion."""

_log: Final = logger(__name__)


async def timeline_of(connection: Connection) -> int:
    """Return the timeline of a server, a standby or not."""
    found: Any = await connection.fetchval(
        "SELECT CASE WHEN pg_is_in_recovery()"  # noqa: S608 - ours
        " THEN (SELECT timeline_id FROM pg_control_checkpoint())::bigint"
        f" ELSE {TIMELINE} END"
    )
    return int(found)


async def note_timeline(link: Link, tables: Tables, where: str) -> bool:
    """Compare the timeline with the one that is kept; say whether it is a new one, and keep it."""
    connection = link.connection
    try:
        found = await timeline_of(connection)
        kept = await connection.fetchval(f"SELECT timeline FROM {tables.meta}")  # noqa: S608 - ours
        if kept is None or found == kept:
            return False
        told = await connection.execute(
            f"UPDATE {tables.meta} SET timeline = $1 WHERE timeline = $2",  # noqa: S608 - ours
            found,
            kept,
        )
        if told == "UPDATE 0":  # another connection was quicker, and has said so
            return False
    except FAILURES:
        if link.is_open:  # no right to ask: runs that are shorter show all the same
            return False
        raise
    _log.warning(
        "journal %s: the server is on timeline %d, and was on %d: another one has taken over, or it"
        " was restored; what the one before had not sent on is not in it",
        where,
        found,
        kept,
    )
    return True

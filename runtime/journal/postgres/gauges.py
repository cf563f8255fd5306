"""What an operator watches in PostgreSQL, and what such a place promises (section 12, D-60 … D-63).

Each number is one statement, which `turnlock journal status` asks and docs/postgres.md shows. What
a user may not see is unknown, and keeps nobody from the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import asyncpg

from ..gauges import Gauge, run_gauges, stood_gauges
from ..posting import POSTS_WAITING
from .doors import Connection, Doors
from .tables import Tables
from .timeline import timeline_of

LAG: Final = 256_000_000
"""Bytes of WAL that a standby may be behind."""
BEHIND: Final = 10_000
"""Posts that may have come behind the oldest that waits: beyond it answers are forgotten."""
OLD: Final = 1_000_000_000
"""Transactions behind which the database has not been frozen: half of what there are."""
HOT: Final = 0.9
"""Of the updates of `runs`, how many stay in their page (D-21)."""
MANY: Final = 1_000
"""Updates before their share says anything."""
DEAD: Final = 0.5
"""Dead rows of `runs` for each that lives."""
LONGEST: Final = 300.0
"""Seconds of a transaction, which keeps vacuum from what died since."""
FULL: Final = 0.8
"""Of the connections that the server takes."""

RUNS: Final = """
SELECT count(*) AS runs,
  count(*) FILTER (WHERE busy) AS busy,
  count(*) FILTER (WHERE rewound IS NOT NULL) AS rewound,
  coalesce(sum(waiting), 0)::bigint AS waiting, coalesce(sum(doubts), 0)::bigint AS doubts
FROM {runs} WHERE forgotten IS NULL
"""
NOBODYS: Final = """
SELECT count(*) FROM {runs}
WHERE busy AND owner IS NULL AND rewound IS NULL AND kind = 'own'::bytea
  AND changed < extract(epoch FROM clock_timestamp()) - 60
"""
OVERDUE: Final = """
SELECT count(*) FROM {runs} r JOIN {owners} o ON o.number = r.owner
WHERE r.busy AND r.rewound IS NULL AND extract(epoch FROM clock_timestamp()) - 30 >
  CASE WHEN o.round > r.round THEN o.renewed_until ELSE r.owned_until END
"""
OWNERS: Final = """
SELECT count(DISTINCT o.number) FROM {owners} o JOIN {runs} r ON r.owner = o.number
WHERE extract(epoch FROM clock_timestamp()) <
  CASE WHEN o.round > r.round THEN o.renewed_until ELSE r.owned_until END
"""
POSTS: Final = """
SELECT count(*) FILTER (WHERE receipt IS NULL) AS waiting,
  coalesce(max(number) - min(number) FILTER (WHERE receipt IS NULL), 0) AS behind
FROM {posts}
"""
VACUUM: Final = """
SELECT n_dead_tup::float8 / greatest(n_live_tup, 1000) AS dead,
  CASE WHEN n_tup_upd > 1000 THEN n_tup_hot_upd::float8 / n_tup_upd END AS hot
FROM pg_stat_user_tables WHERE relid = '{runs}'::regclass
"""
STANDBYS: Final = """
SELECT count(*) AS standbys, count(*) FILTER (WHERE sync_state IN ('sync', 'quorum')) AS waited_for,
  max(pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)) AS lag
FROM pg_stat_replication
"""
CONNECTIONS: Final = """
SELECT count(*)::float8 / current_setting('max_connections')::int FROM pg_stat_activity
WHERE backend_type = 'client backend'
"""
TRANSACTION: Final = """
SELECT max(extract(epoch FROM clock_timestamp() - xact_start)) FROM pg_stat_activity
WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
"""
FROZEN: Final = "SELECT age(datfrozenxid) FROM pg_database WHERE datname = current_database()"

QUERIES: Final = {
    "runs": RUNS,
    "busy, and nobody's for a minute": NOBODYS,
    "busy, and beyond its lease": OVERDUE,
    "owners that live": OWNERS,
    "posts": POSTS,
    "vacuum of runs": VACUUM,
    "standbys": STANDBYS,
    "connections": CONNECTIONS,
    "longest transaction": TRANSACTION,
    "wraparound": FROZEN,
}
"""What docs/postgres.md shows, with the tables of one journal in their places."""


class PostgresGauges(Doors):
    """The part of a journal in PostgreSQL that is watched."""

    async def gauges(self) -> tuple[Gauge, ...]:
        """Return the numbers, as one who asks them one by one has them."""
        gauges: Sequence[Gauge] = await self._read(lambda it: _gauges(it, self._tables))
        return tuple(gauges)

    async def standing(self) -> tuple[str, ...]:
        """Return on which timeline the server is, and what it may lose (D-61, D-62)."""
        lines: Sequence[str] = await self._read(lambda it: _standing(it, self._tables))
        return tuple(lines)


async def _gauges(connection: Connection, tables: Tables) -> Sequence[Gauge]:
    async def row(query: str) -> Any:  # noqa: ANN401 - a record, or nothing
        return await _asked(connection, tables, query)

    runs, posts, vacuum = await row(RUNS), await row(POSTS), await row(VACUUM)
    standbys = await row(STANDBYS)
    (nobodys,), (overdue,), (owners,) = await row(NOBODYS), await row(OVERDUE), await row(OWNERS)
    connections, longest, frozen = await row(CONNECTIONS), await row(TRANSACTION), await row(FROZEN)
    return (
        Gauge(name="runs", value=runs["runs"]),
        Gauge(name="runs with something under way", value=runs["busy"]),
        *run_gauges(nobodys=nobodys, overdue=overdue),
        Gauge(name="owners that live", value=owners),
        Gauge(name="calls that wait for a person", value=runs["waiting"]),
        Gauge(name="calls in doubt", value=runs["doubts"], most=0, fix="turnlock resolve"),
        *stood_gauges(rewound=runs["rewound"], damaged=None),
        Gauge(name="posts that wait", value=posts["waiting"], most=POSTS_WAITING),
        Gauge(name="posts behind the oldest that waits", value=posts["behind"], most=BEHIND),
        Gauge(name="dead rows of runs, for each that lives", value=_of(vacuum, "dead"), most=DEAD),
        Gauge(name="updates of runs that stay in their page", value=_of(vacuum, "hot"), least=HOT),
        Gauge(name="standbys", value=_of(standbys, "standbys")),
        Gauge(name="standbys that commits wait for", value=_of(standbys, "waited_for")),
        Gauge(name="lag of a standby", value=_of(standbys, "lag"), most=LAG, unit="bytes of WAL"),
        Gauge(name="connections, of those there may be", value=_first(connections), most=FULL),
        Gauge(name="longest transaction", value=_first(longest), most=LONGEST, unit="s"),
        Gauge(name="transactions since the last freeze", value=_first(frozen), most=OLD),
    )


async def _asked(connection: Connection, tables: Tables, query: str) -> Any:  # noqa: ANN401 - a record
    """Ask for one row; None where this user may not, or where a standby cannot tell."""
    sql = query.format(runs=tables.runs, owners=tables.owners, posts=tables.posts)
    try:
        return await connection.fetchrow(sql)
    except (
        asyncpg.InsufficientPrivilegeError,
        asyncpg.ObjectNotInPrerequisiteStateError,  # a standby has no end of its own
    ):
        return None


def _of(row: Any, name: str) -> float | None:  # noqa: ANN401 - a record, or nothing
    return None if row is None or row[name] is None else float(row[name])


def _first(row: Any) -> float | None:  # noqa: ANN401 - as above
    return None if row is None or row[0] is None else float(row[0])


_SAME: Final = "timeline {found}, as it was when the journal was written last"
_ANOTHER: Final = (
    "timeline {found}; the journal was written on {kept}: another server took over, or it was"
    " restored, and what the one before had not sent on is not in it"
)
_STANDBY: Final = "this server is a standby: it may be behind, and takes no writes"
_WAITS: Final = "commits wait for a standby ({names}): a failover loses nothing (D-60)"
_WAITS_NOT: Final = (
    "commits wait for no standby: if this server is lost with its disk, or another one takes over,"
    " the last commits may be gone, claims among them; then a tool that ran may be run again, and"
    " no fence can know (D-61). Set synchronous_standby_names"
)


async def _standing(connection: Connection, tables: Tables) -> Sequence[str]:
    found = await timeline_of(connection)
    kept: Any = await connection.fetchval(f"SELECT timeline FROM {tables.meta}")  # noqa: S608 - ours
    told = (_SAME if kept == found else _ANOTHER).format(found=found, kept=kept)
    if await connection.fetchval("SELECT pg_is_in_recovery()"):
        return [told, _STANDBY]
    names: Any = await connection.fetchval("SELECT current_setting('synchronous_standby_names')")
    return [told, _WAITS.format(names=names) if names else _WAITS_NOT]

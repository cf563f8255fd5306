"""Who owns runs. The lease is the owner's: `renew` writes one row, whatever it owns (D-22).

A run's lease ends when its owner's does, if the owner has renewed since it took the run, and else
when it was taken for. So each renewal has a number, `round`. A run is judged after it is locked, in
a statement of its own, and its owner's row is locked meanwhile: a renewal is before or after.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from ..contract import owned, rewound, run_forgotten, unknown_run
from .doors import Connection
from .heads import head_of, writable
from .lanes import Body, Outcome
from .tables import MOST, Tables, bytes_of, key_of, text_of

UNTIL: Final = "CASE WHEN o.round > r.round THEN o.renewed_until ELSE r.owned_until END"
"""When the lease of a run `r` ends, whose owner's row is `o`."""
FROZEN: Final = 2**62
"""The round of a run whose lease nobody renews: no owner comes so far."""


@attrs.frozen(kw_only=True)
class Lease:
    """What somebody asks for who wants a run; `gone` is an owner whose lease does not count."""

    run_id: str
    owner: str
    until: float
    now: float
    gone: str | None


@attrs.frozen
class Taken:
    """What `own` gives: the row's number, the fencing token, and what its appends say (D-41)."""

    number: int
    fence: int
    settle: int


def owning(tables: Tables) -> Body:
    """Return what takes a group of runs, in one transaction (D-13)."""

    async def body(connection: Connection, works: Sequence[Lease]) -> Sequence[Outcome]:
        runs = await _locked(connection, tables, works)
        mine = await _owners_of(connection, tables, {it.owner: it.until for it in works})
        former = await _former(connection, tables, runs)
        outcomes: list[Outcome | None] = []
        taken: dict[int, Lease] = {}
        for lease in works:
            row = runs.get(key_of(lease.run_id))
            error = _refused(lease, row, former)
            outcomes.append(None if error is None else Outcome(error=error))
            if error is None and row is not None:
                taken[row["number"]] = lease
        given = await _take(connection, tables, taken, mine)
        return [
            outcome or Outcome(given[runs[key_of(lease.run_id)]["number"]])
            for lease, outcome in zip(works, outcomes, strict=True)
        ]

    return body


async def _locked(
    connection: Connection, tables: Tables, works: Sequence[Lease]
) -> Mapping[bytes, Any]:
    rows: Any = await connection.fetch(
        "SELECT number, key, rewound, forgotten, owner, owned_until, round"  # noqa: S608 - ours
        f" FROM {tables.runs} WHERE key = ANY ($1) ORDER BY number FOR NO KEY UPDATE",
        [key_of(it.run_id) for it in works],
    )
    return {row["key"]: row for row in rows}


async def _owners_of(
    connection: Connection, tables: Tables, leases: Mapping[str, float]
) -> Mapping[str, tuple[int, int]]:
    """Return number and round of each owner; who is new is written down, with when its lease ends.

    Their rows stay until this transaction ends: nobody removes what is about to own (`cleaning`).
    They may be renewed meanwhile.
    """
    keys = {key_of(name): name for name in sorted(leases)}
    select = (
        f"SELECT key, number, round FROM {tables.owners} WHERE key = ANY ($1)"  # noqa: S608 - ours
        " ORDER BY number FOR KEY SHARE"
    )
    rows: Any = await connection.fetch(select, list(keys))
    if len(rows) < len(keys):
        await connection.execute(
            f"INSERT INTO {tables.owners} (key, name, renewed_until)"  # noqa: S608 - ours
            " SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::float8[]) ON CONFLICT DO NOTHING",
            list(keys),
            [bytes_of(name) for name in keys.values()],
            [leases[name] for name in keys.values()],
        )
        rows = await connection.fetch(select, list(keys))
    return {keys[key]: (number, round_) for key, number, round_ in map(tuple, rows)}


async def _former(
    connection: Connection, tables: Tables, runs: Mapping[bytes, Any]
) -> Mapping[int, Any]:
    """Return the rows of those who own these runs, locked in order: none of them renews now."""
    numbers = sorted({it["owner"] for it in runs.values() if it["owner"] is not None})
    if not numbers:
        return {}
    rows: Any = await connection.fetch(
        f"SELECT number, name, renewed_until, round FROM {tables.owners}"  # noqa: S608 - ours
        " WHERE number = ANY ($1) ORDER BY number FOR SHARE",
        numbers,
    )
    return {row["number"]: row for row in rows}


def _refused(lease: Lease, row: Any, former: Mapping[int, Any]) -> Exception | None:  # noqa: ANN401 - a record
    """Return why a run is not taken, None where it is."""
    if row is None:
        return unknown_run(lease.run_id)
    if row["forgotten"] is not None:
        return run_forgotten(lease.run_id, at=row["forgotten"])
    if row["rewound"] is not None:
        return rewound(lease.run_id, why=text_of(row["rewound"]))
    owner = former.get(row["owner"])
    if owner is None:
        return None
    name, until = text_of(owner["name"]), _until(row, owner)
    if name in {lease.owner, lease.gone} or until is None or lease.now >= until:
        return None
    return owned(lease.run_id, owner=name, until=until)


def _until(run: Any, owner: Any) -> float | None:  # noqa: ANN401 - records
    until: float | None = (
        owner["renewed_until"] if owner["round"] > run["round"] else run["owned_until"]
    )
    return until


async def _take(
    connection: Connection,
    tables: Tables,
    taken: Mapping[int, Lease],
    mine: Mapping[str, tuple[int, int]],
) -> Mapping[int, Taken]:
    if not taken:
        return {}
    rows: Any = await connection.fetch(
        f"UPDATE {tables.runs} r SET epoch = r.epoch + 1, owner = j.owner,"  # noqa: S608 - ours
        " owned_until = j.until, round = j.round"
        " FROM unnest($1::bigint[], $2::bigint[], $3::float8[], $4::bigint[])"
        " AS j(number, owner, until, round)"
        " WHERE r.number = j.number RETURNING r.number, r.epoch, r.settle",
        list(taken),
        [mine[it.owner][0] for it in taken.values()],
        [it.until for it in taken.values()],
        [mine[it.owner][1] for it in taken.values()],
    )
    return {row["number"]: Taken(*row) for row in rows}


async def renew(
    connection: Connection, tables: Tables, *, owner: str, until: float
) -> frozenset[str]:
    """Renew all leases of an owner, but for those of runs that stand still; return their ids."""
    number = await connection.fetchval(
        f"UPDATE {tables.owners} SET renewed_until = $2, round = round + 1"  # noqa: S608 - ours
        " WHERE key = $1 RETURNING number",
        key_of(owner),
        until,
    )
    if number is None:
        return frozenset()
    rows: Any = await connection.fetch(
        f"SELECT run_id FROM {tables.runs} WHERE owner = $1 AND rewound IS NULL",  # noqa: S608 - ours
        number,
    )
    return frozenset(text_of(run_id) for (run_id,) in map(tuple, rows))


@attrs.frozen
class LetGo:
    """What somebody asks for who lets a run go that he owns under this token."""

    run_id: str
    fence: int


def releasing(tables: Tables) -> Body:
    """Return what lets a group of runs go, in one statement (D-33).

    What is judged is a locked row's own columns, as for appends (D-31). It has a transaction around
    it: by itself it could arrive late, and change what was read meanwhile (D-18).
    """
    statement = f"""
        WITH asked AS (
            SELECT * FROM unnest($1::bytea[], $2::bigint[]) AS a(key, fence)
        ), locked AS (
            SELECT number, key, epoch, owner
            FROM {tables.runs} WHERE key = ANY ($1) ORDER BY number FOR NO KEY UPDATE
        ), changed AS (
            UPDATE {tables.runs} r SET owner = NULL, owned_until = NULL
            FROM locked l JOIN asked a USING (key)
            WHERE r.number = l.number AND l.owner IS NOT NULL AND l.epoch = a.fence
        )
        SELECT key FROM locked"""  # noqa: S608 - ours

    async def body(connection: Connection, works: Sequence[LetGo]) -> Sequence[Outcome]:
        keys = [key_of(it.run_id) for it in works]
        fences = [min(it.fence, MOST) for it in works]
        rows: Any = await connection.fetch(statement, keys, fences)
        known = {key for (key,) in map(tuple, rows)}
        return [
            Outcome() if key in known else Outcome(error=unknown_run(it.run_id))
            for it, key in zip(works, keys, strict=True)
        ]

    return body


async def outdo(connection: Connection, tables: Tables, run_id: str, *, fence: int) -> None:
    """Begin behind a token, see `Copies.outdo`."""
    head = await writable(connection, tables, run_id)
    await connection.execute(
        f"UPDATE {tables.runs} SET epoch = greatest(epoch, $2) WHERE number = $1",  # noqa: S608 - ours
        head.number,
        fence,
    )


async def mark_rewound(connection: Connection, tables: Tables, run_id: str, *, why: str) -> None:
    """Mark a run as one that nobody may go on with; its lease ends when it would have ended."""
    head = await head_of(connection, tables, run_id, locked=True)
    if head.rewound is not None:
        return
    until = await connection.fetchval(
        f"SELECT {UNTIL} FROM {tables.runs} r JOIN {tables.owners} o ON o.number = r.owner"  # noqa: S608 - ours
        " WHERE r.number = $1 FOR SHARE OF o",
        head.number,
    )
    await connection.execute(
        f"UPDATE {tables.runs} SET rewound = $2, owned_until = $3, round = $4 WHERE number = $1",  # noqa: S608 - ours
        head.number,
        why.encode(errors="surrogatepass"),
        until,
        FROZEN,
    )


async def release_all(connection: Connection, tables: Tables, *, owner: str) -> frozenset[str]:
    """Let go of every run of an owner; return their ids."""
    rows: Any = await connection.fetch(
        "WITH mine AS ("  # noqa: S608 - ours
        f"SELECT r.number FROM {tables.runs} r JOIN {tables.owners} o ON o.number = r.owner"
        " WHERE o.key = $1 ORDER BY r.number FOR NO KEY UPDATE OF r)"
        f" UPDATE {tables.runs} r SET owner = NULL, owned_until = NULL FROM mine"
        " WHERE r.number = mine.number RETURNING r.run_id",
        key_of(owner),
    )
    return frozenset(text_of(run_id) for (run_id,) in map(tuple, rows))


async def owners(connection: Connection, tables: Tables, *, now: float) -> Sequence[str]:
    """Return who has busy runs whose lease is not over."""
    rows: Any = await connection.fetch(
        f"SELECT o.name FROM {tables.owners} o WHERE EXISTS ("  # noqa: S608 - ours
        f"SELECT FROM {tables.runs} r WHERE r.owner = o.number AND r.busy AND {UNTIL} > $1)",
        now,
    )
    return [text_of(name) for (name,) in map(tuple, rows)]

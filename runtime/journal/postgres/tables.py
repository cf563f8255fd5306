"""The tables of a journal in PostgreSQL, version by version, and how all SQL names them.

Ids, names and owners are `bytea`, and found by their SHA-256: they may hold NUL, be longer than an
entry of an index may be, and the database may have any encoding (D-20). What is JSON is `bytea`, as
it was written, under the same checksum as in SQLite. No foreign keys: who writes under a run locks
its row (D-21). No index holds what a lease changes, so that renewals stay inside their page (D-21).

All SQL names the schema (D-5): write ``f"SELECT … FROM {tables.runs} …"``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Final, Self

import attrs

from ....models.errors import shown
from ...errors import NoJournal

SCHEMA: Final = "turnlock"
"""The schema of a journal where nothing else is said."""
SCHEMA_BYTES: Final = 54
"""Characters that the name of a schema may have: the channel's name has nine more, of 63."""

MOST: Final = 2**63 - 1
"""The largest number of the database: no run and no token comes so far."""

NEWEST: Final = 2**31 - 1
"""The last period there is: time ends there."""
PERIOD: Final = f"greatest(1, least({NEWEST}, floor({{}}::float8 / 600) + 1))::int"
"""The ten minutes in which something happened; {} stands for when. 0 is none: it is not known."""

_SCHEMA: Final = re.compile(rf"(?!pg_)[!-~]{{1,{SCHEMA_BYTES}}}")


def bytes_of(text: str) -> bytes:
    """Return an id or a name as it is kept."""
    return text.encode()


def text_of(kept: bytes) -> str:
    """Return an id or a name as it was given; damage shows, and raises nothing."""
    return kept.decode(errors="replace")


def key_of(text: str) -> bytes:
    """Return what an id or a name is found by. A lone surrogate is the name of nothing here."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@attrs.frozen(kw_only=True)
class Tables:
    """The names of the tables of one journal, as SQL says them: with their schema, quoted."""

    schema: str
    """As it was given."""
    quoted: str
    """The schema as SQL says it."""
    meta: str
    owners: str
    runs: str
    appends: str
    snapshots: str
    notes: str
    logs: str
    entries: str
    posts: str
    workers: str
    asked: str
    """The type of an append as it is asked for: no table, an array of it is what a group sends."""

    @classmethod
    def of(cls, schema: str = SCHEMA) -> Self:
        """Return those of a schema. Raises `NoJournal` for what cannot be the name of one."""
        if not _SCHEMA.fullmatch(schema):
            raise NoJournal(
                f"journal schema {shown(schema)}: give 1 to {SCHEMA_BYTES} ASCII characters without"
                " spaces that do not begin with pg_"
            )
        quoted = _quoted(schema)
        tables = {
            field.name: f"{quoted}.{field.name}"
            for field in attrs.fields(cls)
            if field.name not in {"schema", "quoted"}
        }
        return cls(schema=schema, quoted=quoted, **tables)

    @property
    def channel(self) -> str:
        """The channel that who listens to this journal listens to, unquoted (D-50)."""
        return f"turnlock_{self.schema}"


def _version_1(tables: Tables) -> Sequence[str]:
    """Return what makes the tables of version 1 in a schema that is there."""
    return (
        f"""CREATE TABLE {tables.owners} (
            number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            key bytea NOT NULL UNIQUE,
            name bytea NOT NULL,
            renewed_until double precision,
            round bigint NOT NULL DEFAULT 0
        ) WITH (fillfactor = 50)""",
        # A run's lease ends at owners.renewed_until where owners.round > runs.round, else at
        # runs.owned_until (D-22). `settle` is told by each append (D-41). `part` and `shown` are
        # of the notes after the last fact: how many were kept, and the last that is shown.
        f"""CREATE TABLE {tables.runs} (
            number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            key bytea NOT NULL UNIQUE,
            run_id bytea NOT NULL,
            run bytea NOT NULL,
            checksum bigint NOT NULL,
            kind bytea NOT NULL,
            sequence bigint NOT NULL DEFAULT 0,
            part integer NOT NULL DEFAULT 0,
            shown integer NOT NULL DEFAULT 0,
            snapped bigint NOT NULL DEFAULT 0,
            busy boolean NOT NULL DEFAULT false,
            epoch bigint NOT NULL DEFAULT 0,
            settle bigint NOT NULL DEFAULT 0,
            owner bigint,
            owned_until double precision,
            round bigint NOT NULL DEFAULT 0,
            archived_to bigint NOT NULL DEFAULT 0,
            began double precision,
            changed double precision,
            told bigint NOT NULL DEFAULT 0,
            status text,
            waiting bigint,
            doubts bigint,
            trouble bytea,
            turn_id bytea,
            asked_id bytea,
            asked_tool bytea,
            asked_since double precision,
            rewound bytea,
            forgotten double precision
        ) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02)""",
        f"CREATE INDEX runs_of_owner ON {tables.runs} (owner) WHERE owner IS NOT NULL",
        f"CREATE INDEX runs_busy ON {tables.runs} (number) WHERE busy",
        f"""CREATE TABLE {tables.appends} (
            run bigint NOT NULL,
            first bigint NOT NULL,
            last bigint NOT NULL,
            facts bytea NOT NULL,
            checksum bigint NOT NULL,
            beside bytea,
            PRIMARY KEY (run, last)
        )""",
        f"""CREATE TABLE {tables.snapshots} (
            run bigint PRIMARY KEY,
            sequence bigint NOT NULL,
            snapshot bytea NOT NULL,
            checksum bigint NOT NULL
        )""",
        # One with `pruned` is a gap: what was removed from its part on, to that one.
        f"""CREATE TABLE {tables.notes} (
            run bigint NOT NULL,
            sequence bigint NOT NULL,
            part integer NOT NULL,
            at double precision NOT NULL,
            domain text NOT NULL,
            key bytea,
            id bytea,
            pruned integer,
            checksum bigint NOT NULL,
            correlation bytea,
            content bytea NOT NULL,
            PRIMARY KEY (run, sequence, part),
            UNIQUE (run, key)
        )""",
        # `name` is at most 512 bytes, and listed by: it is its own key.
        f"""CREATE TABLE {tables.logs} (
            number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            name bytea NOT NULL UNIQUE,
            last bigint NOT NULL,
            checksum bigint NOT NULL
        ) WITH (fillfactor = 70)""",
        f"""CREATE TABLE {tables.entries} (
            log bigint NOT NULL,
            number bigint NOT NULL,
            key bytea NOT NULL,
            entry_id bytea NOT NULL,
            at double precision NOT NULL,
            body bytea NOT NULL,
            checksum bigint NOT NULL,
            PRIMARY KEY (log, number),
            UNIQUE (log, key)
        )""",
        f"""CREATE TABLE {tables.posts} (
            number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            run bigint NOT NULL,
            delivery bytea NOT NULL,
            checksum bigint NOT NULL,
            receipt bytea,
            receipt_checksum bigint,
            problem bytea
        ) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000)""",
        f"CREATE INDEX posts_waiting ON {tables.posts} (run, number) WHERE receipt IS NULL",
        f"""CREATE TABLE {tables.workers} (
            key bytea PRIMARY KEY,
            worker bytea NOT NULL,
            meaning bytea NOT NULL,
            checksum bigint NOT NULL
        )""",
    )


def _version_2(tables: Tables) -> Sequence[str]:
    """Return what lists are found by (ADR-445, ADR-452), and what appends are sent as (ADR-448).

    Everybody waits meanwhile, and it takes no time: no row is written. Whoever wants more columns
    of `asked` makes another type: hosts of this version send it as it is.
    """
    return (
        f"""ALTER TABLE {tables.runs} ADD COLUMN period integer NOT NULL DEFAULT 0,
            ADD COLUMN interrupted boolean NOT NULL DEFAULT false""",
        f"""CREATE TYPE {tables.asked} AS (
            number bigint,
            fence bigint,
            settle bigint,
            first bigint,
            last bigint,
            facts bytea,
            checksum bigint,
            beside bytea,
            began double precision,
            changed double precision,
            busy boolean,
            status text,
            waiting bigint,
            doubts bigint,
            trouble bytea,
            turn_id bytea,
            asked_id bytea,
            asked_tool bytea,
            asked_since double precision
        )""",
    )


def _version_3(tables: Tables) -> Sequence[str]:
    """Return what makes lists be found in indexes: who writes waits for it, and nobody who reads.

    What is there is written by nobody, but for the few runs that are interrupted: the period of a
    run is not known, and it is sorted when it is asked for, until it changes.
    """
    return (
        f"""CREATE INDEX runs_waiting ON {tables.runs} (coalesce(asked_since, 0), number)
            WHERE waiting > 0 AND forgotten IS NULL""",
        f"CREATE INDEX runs_changed ON {tables.runs} (period) WHERE forgotten IS NULL",
        f"""CREATE INDEX runs_interrupted ON {tables.runs} (period)
            WHERE interrupted AND forgotten IS NULL""",
        f"CREATE INDEX posts_of_run ON {tables.posts} (run)",
        # The last: nobody has begun to write to a row of these who waits for an index to be made.
        f"UPDATE {tables.runs} SET interrupted = true WHERE status = 'interrupted'",  # noqa: S608 - ours
    )


MIGRATIONS: Final = (_version_1, _version_2, _version_3)
"""What leads from version n of the tables to n + 1, each in a transaction of its own (D-56)."""

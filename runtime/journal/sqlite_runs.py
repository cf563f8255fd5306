"""The rows of runs in a SQLite journal: who owns one, where it ends, and why nobody may write it.

What changes in such a row bears a checksum, `head`, over all of it; NULL was written by an older
process, which knows none. Whoever writes one of these columns writes `head`, too: with
`head_sum(run_id, sequence, busy, epoch, owner, owned_until)`, which each connection knows. A run
whose row is damaged is listed, with its `problem`, and left alone; so is one that is `rewound`.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, TypeAlias

import attrs

from ...models.errors import TurnlockError
from .contract import Busy, Summary, owned, rewound, run_forgotten, unknown_run
from .rows import Row, damaged
from .sqlite_schema import keep_meta, meta

HEAD: Final = (
    "SELECT number, run_id, sequence, busy, epoch, owner, owned_until, head, digest, digested,"
    " rewound, forgotten FROM runs"
)
"""What a `Head` is made of."""

Kind: TypeAlias = type | tuple[type, ...]
_SHOWN: Final = {"fence": "fencing token", "owned_until": "end of the lease"}

_KINDS: Final[Sequence[tuple[str, Kind]]] = (
    ("sequence", int),
    ("busy", int),
    ("fence", int),
    ("owner", (str, type(None))),
    ("owned_until", (int, float, type(None))),
)
"""What each may be, also in a row that bears no checksum."""


def head_sum(*row: object) -> int:
    """Return the checksum of a run's id, sequence, busy, epoch, owner and end of the lease."""
    return zlib.crc32(repr(row).encode())


@attrs.frozen
class Head:
    """What changes in the row of a run; `kept` is its checksum. The order is that of `HEAD`."""

    number: int
    run_id: str
    sequence: int
    busy: int
    fence: int
    owner: str | None
    owned_until: float | None
    kept: int | None
    digest: bytes | None
    digested: int
    rewound: str | None
    forgotten: float | None

    def is_owned(self, fence: int) -> bool:
        """Say whether this is the fence of an owner who has not let go."""
        return self.owner is not None and fence == self.fence

    def admits(self, fence: int | None) -> bool:
        """Say whether this may be written: by its owner; by whoever owns nothing if nobody does."""
        return self.owner is None if fence is None else self.is_owned(fence)

    @property
    def problem(self) -> str | None:
        """Say what is damaged in this row, None where it is whole."""
        for name, kind in _KINDS:
            if not isinstance(getattr(self, name), kind):
                return f"its {_SHOWN.get(name, name)} is no {_shown_kind(kind)}"
        if self.kept is not None and self.kept != head_sum(
            self.run_id, self.sequence, self.busy, self.fence, self.owner, self.owned_until
        ):
            return "its owner, its lease or where it ends: the checksum does not fit"
        return None

    @property
    def usable(self) -> Head:
        """Return it with only those of the damaged columns that are of their kind."""
        wrong: dict[str, Any] = {
            name: None if isinstance(kind, tuple) else 0
            for name, kind in _KINDS
            if not isinstance(getattr(self, name), kind)
        }
        return attrs.evolve(self, **wrong) if wrong else self


def _shown_kind(kind: Kind) -> str:
    first = kind[0] if isinstance(kind, tuple) else kind
    return {int: "number", float: "number", str: "text"}[first]


def is_text(name: object) -> bool:
    """Whether anything here may be called so: nothing has a name with a lone surrogate."""
    if not isinstance(name, str):
        return False
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def row_of_run(connection: sqlite3.Connection, select: str, run_id: str) -> Any:  # noqa: ANN401
    """Return what is selected of a run's row. Raises `UnknownRun`."""
    row = None
    if is_text(run_id):
        row = connection.execute(f"{select} WHERE run_id = ?", (run_id,)).fetchone()
    if row is None:
        raise unknown_run(run_id)
    return row


def head_of(connection: sqlite3.Connection, run_id: str, *, even_forgotten: bool = False) -> Head:
    """Return the row of a run as it is, damaged or not.

    Raises `UnknownRun`, and `RunForgotten` for one that was removed.
    """
    head = Head(*row_of_run(connection, HEAD, run_id))
    if head.forgotten is not None and not even_forgotten:
        raise run_forgotten(run_id, at=head.forgotten)
    return head


def writable(connection: sqlite3.Connection, run_id: str) -> Head:
    """Return the row of a run that may be written.

    Raises as `head_of` does, `JournalRewound` for one that nobody may go on with, and
    `JournalError` for a damaged one.
    """
    head = head_of(connection, run_id)
    if head.rewound is not None:
        raise rewound(run_id, why=str(head.rewound))
    if head.problem is not None:
        raise damaged(where_of(connection), f"run {run_id!r}", head.problem)
    return head


def where_of(connection: sqlite3.Connection) -> str:
    """Return the path of a connection's file, for a message."""
    path: str = connection.execute("PRAGMA database_list").fetchone()[2]
    return path


@attrs.frozen(kw_only=True)
class Lease:
    """What somebody asks for who wants a run; `gone` is an owner whose lease does not count."""

    owner: str
    now: float
    until: float
    gone: str | None


def own(connection: sqlite3.Connection, run_id: str, *, lease: Lease) -> int:
    """Take a run, unless another's lease is in force."""
    head = writable(connection, run_id)
    if (
        head.owner is not None
        and head.owned_until is not None
        and head.owner not in {lease.owner, lease.gone}
        and lease.now < head.owned_until
    ):
        raise owned(run_id, owner=head.owner, until=head.owned_until)
    _set_owner(connection, head, fence=head.fence + 1, owner=lease.owner, until=lease.until)
    return head.fence + 1


def take(connection: sqlite3.Connection, *, asked: Sequence[tuple[str, Lease]]) -> dict[str, int]:
    """Take those of these runs that are to be had; return their fencing tokens."""
    taken: dict[str, int] = {}
    for run_id, lease in asked:
        with suppress(TurnlockError):  # of this run alone: it is another's, say, or damaged
            taken[run_id] = own(connection, run_id, lease=lease)
    return taken


def regain(connection: sqlite3.Connection, run_id: str, *, lease: Lease, beyond: int) -> int:
    """Take a run that may be marked, unless another's lease is in force; take the mark off."""
    head = head_of(connection, run_id)
    if head.problem is not None:
        raise damaged(where_of(connection), f"run {run_id!r}", head.problem)
    connection.execute("UPDATE runs SET rewound = NULL WHERE number = ?", (head.number,))
    fence = own(connection, run_id, lease=lease)
    if fence <= beyond:
        fence = beyond + 1
        _set_owner(
            connection,
            head_of(connection, run_id),
            fence=fence,
            owner=lease.owner,
            until=lease.until,
        )
    return fence


def _set_owner(
    connection: sqlite3.Connection,
    head: Head,
    *,
    fence: int,
    owner: str | None,
    until: float | None,
) -> None:
    kept = head_sum(head.run_id, head.sequence, head.busy, fence, owner, until)
    connection.execute(
        "UPDATE runs SET epoch = ?, owner = ?, owned_until = ?, head = ? WHERE number = ?",
        (fence, owner, until, kept, head.number),
    )


def renew(connection: sqlite3.Connection, *, owner: str, until: float) -> frozenset[str]:
    """Renew all leases of an owner, but for those of damaged rows, and of runs that stand still."""
    connection.execute(
        "UPDATE runs SET owned_until = :until,"
        " head = head_sum(run_id, sequence, busy, epoch, owner, :until)"
        " WHERE owner = :owner AND rewound IS NULL AND (head IS NULL"
        " OR head = head_sum(run_id, sequence, busy, epoch, owner, owned_until))",
        {"until": until, "owner": owner},
    )
    rows = connection.execute(
        "SELECT run_id FROM runs WHERE owner = ? AND rewound IS NULL AND (head IS NULL"
        " OR head = head_sum(run_id, sequence, busy, epoch, owner, owned_until))",
        (owner,),
    )
    return frozenset(run_id for (run_id,) in rows)


def release(connection: sqlite3.Connection, run_id: str, *, fence: int) -> None:
    """Let a run go; of a damaged row nobody knows whose it is."""
    head = head_of(connection, run_id, even_forgotten=True)
    if head.problem is None and head.is_owned(fence):
        _set_owner(connection, head, fence=head.fence, owner=None, until=None)


def outdo(connection: sqlite3.Connection, run_id: str, *, fence: int) -> None:
    """Begin behind a token; whoever owns the run has none then."""
    head = writable(connection, run_id)
    if head.fence < fence:
        _set_owner(connection, head, fence=fence, owner=head.owner, until=head.owned_until)


def release_all(connection: sqlite3.Connection, *, owner: str) -> frozenset[str]:
    """Let all runs of an owner go, but for those whose rows are damaged."""
    rows = connection.execute(f"{HEAD} WHERE owner = ?", (owner,)).fetchall()
    heads = [head for head in (Head(*row) for row in rows) if head.problem is None]
    for head in heads:
        _set_owner(connection, head, fence=head.fence, owner=None, until=None)
    return frozenset(head.run_id for head in heads)


def mark_rewound(connection: sqlite3.Connection, run_id: str, *, why: str) -> None:
    """Mark a run as one that nobody may go on with; the first reason stays."""
    changed = connection.execute(
        "UPDATE runs SET rewound = ? WHERE run_id = ? AND rewound IS NULL", (why, run_id)
    ).rowcount
    if not changed:
        head_of(connection, run_id)  # it was marked before, or is not known


_LOST: Final = "lost/"
"""In `meta`, before the id of a run whose row is lost: why nobody may begin it anew."""


def mark_lost(connection: sqlite3.Connection, run_id: str, *, why: str) -> None:
    """Mark a run whose row is lost: it is rewound as soon as somebody declares it."""
    keep_meta(connection, _LOST + run_id, why.encode())


def why_lost(connection: sqlite3.Connection, run_id: str, *, where: str) -> str | None:
    """Return why nobody may begin a run anew, None where somebody may."""
    why = meta(connection, _LOST + run_id, where=where)
    return None if why is None else why.decode()


FENCES_SKIPPED: Final = 1 << 32
"""Fencing tokens that are passed over where the row that held the last one is damaged."""
_FENCES: Final = 1 << 52
"""Beyond this a damaged fencing token is not believed at all."""


def readmit(  # noqa: PLR0913 - what a run's row is made of
    connection: sqlite3.Connection,
    head: Head,
    row: Row | None,
    *,
    ends: int,
    digest: bytes | None,
    busy: Busy,
) -> None:
    """Take the mark off, fence whoever owned the run, and write anew what its row says.

    `row` is what was kept now, if anything, `ends` is where its facts end, `digest` that of all of
    them, if it is known.
    """
    fence = head.fence + 1 if head.problem is None else _beyond(head.fence)
    set_told, told = told_of(busy)
    connection.execute(
        "UPDATE runs SET rewound = NULL, sequence = :ends, busy = :busy, epoch = :fence,"  # noqa: S608 - ours
        " owner = NULL, owned_until = NULL, head = :head, digest = :digest, digested = :digested,"
        " began = coalesce(began, :began), changed = coalesce(:changed, changed),"
        f" {set_told}, told = :told WHERE number = :number",
        {
            "number": head.number,
            "ends": ends,
            "busy": bool(busy),
            "fence": fence,
            "head": head_sum(head.run_id, ends, int(bool(busy)), fence, None, None),
            "digest": digest,
            "digested": 0 if digest is None else ends,
            "told": ends if isinstance(busy, Summary) else 0,
            "began": None if row is None else row.began,
            "changed": None if row is None else row.changed,
            **told,
        },
    )
    connection.execute("DELETE FROM meta WHERE name = ?", (_LOST + head.run_id,))


TOLD: Final = ("status", "waiting", "doubts", "trouble", "turn_id")
"""What a `Summary` says besides, and the columns of `runs` that it stands in."""

_SET: Final = ", ".join(f"{name} = :{name}" for name in TOLD)
_NOBODY: Final = f"{_SET}, asked_id = NULL, asked_tool = NULL, asked_since = NULL"
_ASKED: Final = (
    f"{_SET}, asked_id = :asked_id, asked_tool = :asked_tool, asked_since = CASE"
    " WHEN asked_id = :asked_id AND turn_id = :turn_id AND asked_since < :asked_since"
    " THEN asked_since ELSE :asked_since END"
)
"""A call that waited before has waited since then."""
_UNTOLD: Final[dict[str, Any]] = dict.fromkeys(TOLD)


def told_of(busy: Busy) -> tuple[str, dict[str, Any]]:
    """Return how an UPDATE keeps what an append says of its run besides, and its values."""
    if not isinstance(busy, Summary):
        return _NOBODY, _UNTOLD
    told: dict[str, Any] = {
        "status": busy.status,
        "waiting": busy.waiting,
        "doubts": busy.doubts,
        "trouble": busy.trouble,
        "turn_id": busy.turn_id,
    }
    asked = busy.asked
    if asked is None:
        return _NOBODY, told
    told |= {
        "asked_id": asked.invocation_id,
        "asked_tool": asked.tool_name,
        "asked_since": asked.since,
    }
    return _ASKED, told


def tell(
    connection: sqlite3.Connection, run_id: str, *, after: int, summary: Summary, changed: float
) -> None:
    """Keep where a run stands, if it ends there still, and nobody has said it."""
    row_of_run(connection, "SELECT number FROM runs", run_id)  # it is known
    set_told, told = told_of(summary)
    connection.execute(
        f"UPDATE runs SET changed = :changed, told = :after, {set_told} WHERE run_id = :run_id"  # noqa: S608 - ours
        " AND sequence = :after AND forgotten IS NULL AND (told <> :after OR status IS NULL)",
        {"run_id": run_id, "after": after, "changed": changed, **told},
    )


def _beyond(fence: object) -> int:
    known = fence if isinstance(fence, int) and 0 <= fence < _FENCES else 0
    return known + FENCES_SKIPPED

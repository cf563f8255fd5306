"""Which runs and logs of a SQLite journal end before what was said of them, and how that shows."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from ..log import logger
from .rows import Row, chained
from .sqlite_guard import beside
from .sqlite_head_lines import HEADS, Noted, identity_of, is_log, log_name, read_heads

_log = logger(__name__)


def lost_tails(connection: sqlite3.Connection, path: Path) -> dict[str, str]:
    """Return the runs that end before what was acknowledged, and how that shows."""
    lost, _ = measured(connection, path)
    return lost


def measured(connection: sqlite3.Connection, path: Path) -> tuple[dict[str, str], int]:
    """Return the lost tails, and how many lines are damaged.

    The heads are read before the file: who writes meanwhile has committed before he said so.
    """
    identity = identity_of(connection, path)
    if identity is None:
        return {}, 0
    heads, damaged = read_heads(path.resolve(), identity)
    if damaged:
        _log.warning("%s: %d lines are damaged, and passed over", beside(path, HEADS), damaged)
    found = ((run_id, _lost(connection, run_id, head)) for run_id, head in heads.items())
    return {run_id: why for run_id, why in found if why is not None}, damaged


def _lost_entries(connection: sqlite3.Connection, log: str, head: Noted) -> str | None:
    row = connection.execute("SELECT number, last FROM logs WHERE name = ?", (log,)).fetchone()
    if row is None:
        return f"it had acknowledged entry {head.sequence}, and all of it is lost"
    key, last = row
    if not isinstance(last, int):  # a damaged row says so itself
        return None
    if last < head.sequence:
        return f"it had acknowledged entry {head.sequence}, and ends with entry {last}"
    found = connection.execute(
        "SELECT checksum FROM entries WHERE log = ? AND number = ?", (key, head.sequence)
    ).fetchone()
    if found is not None and found[0] != int.from_bytes(head.digest or b"", "big"):
        return f"it holds another entry {head.sequence} than was acknowledged"
    return None


def _lost(connection: sqlite3.Connection, run_id: str, head: Noted) -> str | None:
    if is_log(run_id):
        return _lost_entries(connection, log_name(run_id), head)
    row = connection.execute(
        "SELECT number, sequence, digest, digested, rewound, forgotten FROM runs WHERE run_id = ?",
        (run_id,),
    ).fetchone()
    if row is None:
        return f"it had acknowledged fact {head.sequence}, and all of it is lost"
    number, sequence, digest, digested, rewound, forgotten = row
    settled = rewound is not None or forgotten is not None
    if settled or not isinstance(sequence, int):  # a damaged row says so itself
        return None
    if sequence < head.sequence:
        return f"it had acknowledged fact {head.sequence}, and ends with fact {sequence}"
    if head.digest is not None:
        if sequence > head.sequence or digested != sequence or digest != head.digest:
            digest = _digest_at(connection, number, head)
        if digest != head.digest:
            return f"it holds other facts than those acknowledged up to fact {head.sequence}"
    return None


def _digest_at(connection: sqlite3.Connection, number: int, head: Noted) -> bytes | None:
    """Chain the digest of all facts up to a head anew; seldom needed: after a crash in between."""
    found: bytes | None = None
    rows = connection.execute(
        "SELECT first, last, facts, checksum FROM appends WHERE run = ? AND last <= ?"
        " ORDER BY last",
        (number, head.sequence),
    )
    with closing(rows):
        for kept in rows:
            row = Row(*kept)
            begun = chained(None, row)
            begins = head.digest is not None and begun[:8] == head.digest[:8]
            found = begun if begins else found and chained(found, row)
    return found

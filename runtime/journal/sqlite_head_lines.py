"""The lines of `PATH-heads`, which say where the runs and logs of a SQLite journal end.

A line says of one run where it ends, and the digest of all its facts (see `chained`); the last one
counts. It does only if its checksum fits, so a torn one harms nobody; it bears the identity of the
journal, so that a copy or a restored file is not measured by the lines of another.
"""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Final

import attrs

from ..errors import JournalError
from .sqlite_guard import beside
from .sqlite_schema import IDENTITY, meta

HEADS: Final = "-heads"
"""What the name of the file ends in."""

_IDENTITY: Final = 16
"""Characters of the identity that each line bears."""
_ENTRY_DIGEST: Final = 4
"""Bytes of what is noted of a log's entry: its checksum."""
_OF_LOG: Final = "\udc10"
"""Before the name of a log where runs are named, too: no id of a run holds a lone surrogate."""


@attrs.frozen(kw_only=True)
class Noted:
    """Where a run was said to end. `digest` is None where it is not known."""

    sequence: int
    digest: bytes | None = None
    exact: bool = False
    """Whether it ends there whatever was said before: it was recovered."""


def log_key(log: str) -> str:
    """Return what a log is called among the runs whose heads are noted."""
    return _OF_LOG + log


def is_log(key: str) -> bool:
    """Whether this is what a log is called, and no run."""
    return key.startswith(_OF_LOG)


def log_name(key: str) -> str:
    """Return the name of a log that is called so."""
    return key.removeprefix(_OF_LOG)


def head_of_log(number: int, checksum: int) -> Noted:
    """Return what is noted of a log's last entry."""
    return Noted(sequence=number, digest=checksum.to_bytes(_ENTRY_DIGEST, "big"))


def identity_of(connection: sqlite3.Connection, path: Path) -> bytes | None:
    """Return the identity that lines bear; where it is damaged, `check` says so."""
    with suppress(JournalError):
        return meta(connection, IDENTITY, where=str(path))
    return None


_json: Final = lru_cache(maxsize=4_096)(json.dumps)


def line_of(identity: bytes, run_id: str, head: Noted) -> bytes:
    """Return a line; it begins with a line break, in case that the one before is torn."""
    digest = "" if head.digest is None else head.digest.hex()
    name = identity[:_IDENTITY].decode()
    text = f'["{name}",{_json(run_id)},{head.sequence},"{digest}",{int(head.exact)}]'.encode()
    return b"\n%08x %s" % (zlib.crc32(text), text)


def read_heads(path: Path, identity: bytes) -> tuple[dict[str, Noted], int]:
    """Return where each run was said to end last, and how many lines are damaged."""
    try:
        handle = os.open(beside(path, HEADS), os.O_RDONLY)
    except OSError:
        return {}, 0  # there is none, or it is somebody else's
    try:
        return heads_in(rest_of(handle), identity)
    finally:
        os.close(handle)


def rest_of(handle: int) -> bytes:
    """Return what stands behind the place that was read up to."""
    return b"".join(iter(lambda: os.read(handle, 1 << 20), b""))


def heads_in(content: bytes, identity: bytes) -> tuple[dict[str, Noted], int]:
    """Return the heads, that of the run that was written last at the end, as `read_heads`."""
    heads: dict[str, Noted] = {}
    damaged = 0
    for line in filter(None, content.split(b"\n")):
        read = _read(line)
        if read is None:
            damaged += 1
            continue
        name, run_id, head = read
        if name != identity[:_IDENTITY].decode():
            continue  # of another journal, which lay here before
        known = heads.pop(run_id, None)
        holds = known is not None and not head.exact and known.sequence > head.sequence
        heads[run_id] = known if known is not None and holds else head
    return heads, damaged


def _read(line: bytes) -> tuple[str, str, Noted] | None:
    kept, _, text = line.partition(b" ")
    if kept != b"%08x" % zlib.crc32(text):
        return None
    try:
        name, run_id, sequence, digest, exact = json.loads(text)
        known = bytes.fromhex(digest) or None
        return name, run_id, Noted(sequence=sequence, digest=known, exact=bool(exact))
    except (ValueError, TypeError):
        return None

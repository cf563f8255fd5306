"""What the opaque ids of workers stand for; nobody is shown it (S-50)."""

from __future__ import annotations

from typing import Any

from ..refusals import another_worker
from ..rows import checksum, damaged
from .doors import Connection
from .tables import Tables, bytes_of, key_of, text_of


async def put_worker(connection: Connection, tables: Tables, *, worker: str, meaning: str) -> None:
    """Keep what a worker stands for."""
    content = bytes_of(meaning)
    await connection.execute(
        f"INSERT INTO {tables.workers} (key, worker, meaning, checksum)"  # noqa: S608 - ours
        " VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
        key_of(worker),
        bytes_of(worker),
        content,
        checksum(content, worker),
    )
    kept = await connection.fetchval(
        f"SELECT meaning FROM {tables.workers} WHERE key = $1",  # noqa: S608 - ours
        key_of(worker),
    )
    if kept != content:
        raise another_worker(worker)


async def worker(connection: Connection, tables: Tables, *, worker: str, where: str) -> str | None:
    """Return what a worker stands for."""
    row: Any = await connection.fetchrow(
        f"SELECT meaning, checksum FROM {tables.workers} WHERE key = $1",  # noqa: S608 - ours
        key_of(worker),
    )
    if row is None:
        return None
    meaning: bytes = row["meaning"]
    if checksum(meaning, worker) != row["checksum"]:
        raise damaged(where, f"what worker {worker!r} stands for", "the checksum does not fit")
    return text_of(meaning)

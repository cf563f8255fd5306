"""The server that all tests of this process share, and a journal's place in it for each folder.

`TURNLOCK_POSTGRES=URL` names one that is there; otherwise one is begun when it is first asked for.
A place is a schema, named after the folder that stands for it, and dropped after the test.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

NAMED: Final = "TURNLOCK_POSTGRES"

_shared: list[str] = []
_schemas: Final[dict[str, None]] = {}


def url() -> str:
    """The server's, with a database in which schemas may be made."""
    if not _shared:
        _shared.append(os.environ.get(NAMED) or _begun())
    return _shared[0]


def journal_url(folder: Path, **options: str) -> str:
    """The URL of the journal that this folder stands for; the same one for the same folder.

    `unsafe` lets the journal take a server that syncs nothing (D-36): this one is a test's.
    """
    server = url()
    schema = f"t_{hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:16]}"
    _schemas[schema] = None
    return with_options(server, schema=schema, unsafe="on", **options)


def with_options(server: str, **options: str) -> str:
    """A server's URL with options more."""
    parts = urlsplit(server)
    query = urlencode({**dict(parse_qsl(parts.query)), **options})
    return urlunsplit(parts._replace(query=query))


def drop_schemas() -> None:
    """Drop what was handed out; conftest.py calls it after each test."""
    if _schemas:
        asyncio.run(_dropped(list(_schemas)))
        _schemas.clear()


async def _dropped(schemas: list[str]) -> None:
    import asyncpg  # noqa: PLC0415 - every test process loads this module, and few ask PostgreSQL

    connection = await asyncpg.connect(url())
    try:
        for schema in schemas:
            await connection.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')
    finally:
        await connection.close()


def _begun() -> str:
    from .cluster import ground  # noqa: PLC0415 - as above

    shared = ground().cluster()
    shared.start()
    os.environ[NAMED] = shared.url  # so that processes which a test starts ask the same one
    return shared.url

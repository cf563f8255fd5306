"""What a journal holds is for its owner's eyes: the modes of its files."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from turnlock.runtime import SqliteJournal
from turnlock.runtime.journal import sqlite_file, sqlite_schema

from .stage import facts, kept, owned

OPEN = 0o644


@contextmanager
def umask(mask: int) -> Generator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def _nothing(_: Path) -> None:
    """Instead of `make_private`."""


def modes(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


async def _written(folder: Path) -> dict[str, int]:
    async with await SqliteJournal.open(folder / "journal.db") as journal:
        await kept(journal, facts(3), await owned(journal))
        return modes(folder)


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o277])
def test_nobody_else_may_read_it_whatever_the_umask(tmp_path: Path, mask: int) -> None:
    with umask(mask):
        found = asyncio.run(_written(tmp_path))

    assert set(found) == {"journal.db", "journal.db-wal", "journal.db-shm", "journal.db-heads"}
    assert set(found.values()) == {0o600}


def test_not_even_while_it_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite is given a file that exists; control: one that it makes itself follows the umask."""
    migrate = sqlite_schema.migrate
    seen: list[int] = []

    def looking(connection: sqlite3.Connection) -> None:
        seen.extend(modes(tmp_path).values())
        migrate(connection)

    monkeypatch.setattr(sqlite_schema, "migrate", looking)
    with umask(0o000):
        asyncio.run(_written(tmp_path))
        assert seen
        assert set(seen) == {0o600}

        monkeypatch.setattr(sqlite_file, "make_private", _nothing)
        (tmp_path / "control").mkdir()
        found = asyncio.run(_written(tmp_path / "control"))
    assert {mode & sqlite_file.OTHERS for mode in found.values()} != {0}


def test_one_that_others_may_read_is_left_and_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Somebody may have meant it; SQLite gives -wal and -shm the same mode."""
    asyncio.run(_written(tmp_path / "."))
    path = tmp_path / "journal.db"
    path.chmod(OPEN)

    async def opened() -> dict[str, int]:
        async with await SqliteJournal.open(path) as journal:
            await journal.runs()
            return modes(tmp_path)

    with caplog.at_level(logging.WARNING):
        found = asyncio.run(opened())
        assert found.pop("journal.db-heads") == 0o600
        assert set(found.values()) == {OPEN}
        asyncio.run(opened())
    (record,) = caplog.records
    assert "others may open it (mode 0644)" in record.getMessage()

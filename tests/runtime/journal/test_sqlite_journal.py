"""The SQLite journal keeps the contract."""

from pathlib import Path

from turnlock.runtime.journal.sqlite import SqliteJournal

from .contract import DurableJournalContract


class TestSqliteJournal(DurableJournalContract):
    """Every part of it, durably."""

    async def open_journal(self, place: Path) -> SqliteJournal:
        return await SqliteJournal.open(place / "journal.db")

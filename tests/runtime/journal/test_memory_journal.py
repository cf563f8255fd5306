"""The journal in memory keeps the contract."""

from pathlib import Path

from turnlock.runtime.journal.memory import MemoryJournal

from .contract import JournalContract


class TestMemoryJournal(JournalContract):
    """Every part of it; a folder is a new journal each time."""

    async def open_journal(self, place: Path) -> MemoryJournal:
        return MemoryJournal()

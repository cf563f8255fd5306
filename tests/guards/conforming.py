"""Every journal that a test of guards makes is held to the rules, as `turnlock check --db` does."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from turnlock.cli.check_db import Checked, check_db, check_journal
from turnlock.guards.engine import Engine
from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.journal.sqlite import SqliteJournal

from ..runtime.faulty_journal import WrappedJournal

SQLITE = b"SQLite format 3\0"


@attrs.define(eq=False)
class Seen:
    """The journals that guards of this process were opened on."""

    memory: dict[int, MemoryJournal] = attrs.field(factory=dict[int, MemoryJournal])
    files: set[Path] = attrs.field(factory=set[Path])

    def see(self, journal: Journal) -> None:
        """Note a journal, or the one that it hands everything on to."""
        while isinstance(journal, WrappedJournal):
            journal = journal.inner
        if isinstance(journal, MemoryJournal):
            self.memory[id(journal)] = journal
        else:
            assert isinstance(journal, SqliteJournal)
            self.files.add(journal.path.resolve())


def seeing(patch: pytest.MonkeyPatch) -> Seen:
    """Have each engine of this process tell on which journal it is."""
    seen, begin = Seen(), Engine.__init__

    def told(self: Engine, journal: Journal, *given: Any, **named: Any) -> None:
        seen.see(journal)
        begin(self, journal, *given, **named)

    patch.setattr(Engine, "__init__", told)
    return seen


def journals_in(folder: Path) -> Iterator[Path]:
    """Yield the files of SQLite below a folder: other processes have made journals there, too.

    Frameworks have files of SQLite of their own; journals are those that can be named.
    """
    for path in folder.rglob("*.db"):
        with path.open("rb") as file:
            if file.read(len(SQLITE)) == SQLITE:
                yield path.resolve()


def hold(seen: Seen, folder: Path | None) -> int:
    """Hold each journal to the rules; return how many there were. Raises `AssertionError`."""
    files = {it for it in seen.files if it.exists()}
    if folder is not None:
        files |= set(journals_in(folder))
    for path in sorted(files):
        conforms(check_db(str(path), None), str(path))
    for journal in seen.memory.values():
        journal._closed = False  # its guard has closed it, and what it holds is there still
        conforms(asyncio.run(check_journal(journal)), "in memory")
    return len(files) + len(seen.memory)


def conforms(checked: Checked, where: str) -> None:
    """Hold what was found against nothing."""
    assert checked.outcome.broken is None, (where, checked.outcome.broken)
    assert checked.findings == (), where

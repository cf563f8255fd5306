"""Notes as tests say and read them: by their ids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.journal.ledger import Domain, Note


def thread_note(name: str, **body: Any) -> Note:
    """A note about a run as a whole."""
    return Note(domain=Domain.THREAD, kind="note", body={"id": name, **body}, at=1.0, id=name)


def message(name: str, role: str, **body: Any) -> Note:
    """A message, as a file of version 0.1 that was migrated has it."""
    return Note(domain=Domain.MESSAGE, kind=role, body={"id": name, **body}, at=1.0, id=name)


async def bodies(journal: Journal, run_id: str = "r") -> dict[str, Mapping[str, Any]]:
    """The bodies of a run's notes by their ids, in order."""
    return {it.note.id or "": it.note.body for it in await journal.notes(run_id)}

"""Which runs are whose sub-agents: `<run>/<thread>`, with their parent in their manifest (S-56)."""

from __future__ import annotations

import asyncio
from typing import Final

from ..models.ids import escape
from ..runtime.journal.contract import Journal
from ..runtime.journal.ledger import Domain

PATIENCE: Final = 40
"""How often a run is looked at again whose manifest is not there yet."""


def child_id(run_id: str, thread: str) -> str:
    """Return the id of the run of a sub-agent's thread."""
    return f"{escape(run_id)}/{escape(thread)}"


def parent_in(run_id: str) -> str | None:
    """Return the run whose sub-agent this may be, by its id; its manifest tells."""
    parent, slash, thread = run_id.partition("/")
    if not (slash and parent and thread) or "/" in thread:
        return None
    return parent.replace("%2F", "/").replace("%25", "%")


class Children:
    """The sub-agents of runs; each run is looked at once, after it was declared."""

    def __init__(self, journal: Journal) -> None:
        """Begin with none known."""
        self._journal = journal
        self._last: str | None = None
        self._of: dict[str, list[str]] = {}
        self._doubtful: dict[str, int] = {}
        self._looking = asyncio.Lock()

    async def of(self, run_id: str) -> tuple[str, ...]:
        """Return the runs of a run's sub-agents, and of theirs."""
        async with self._looking:
            await self._look()
        found: list[str] = []
        asked = [run_id]
        while asked:
            below = self._of.get(asked.pop(0), [])
            found += below
            asked += below
        return tuple(found)

    async def _look(self) -> None:
        while page := await self._journal.runs(after=self._last):
            self._last = page[-1].run.run_id
            for entry in page:
                if parent_in(entry.run.run_id) is not None:
                    self._doubtful[entry.run.run_id] = PATIENCE
        for child, left in tuple(self._doubtful.items()):
            parent = parent_in(child)
            if parent is None or await self._is_of(child, parent):
                self._of.setdefault(parent or "", []).append(child)
                del self._doubtful[child]
            elif left:
                self._doubtful[child] = left - 1
            else:
                del self._doubtful[child]

    async def _is_of(self, child: str, parent: str) -> bool:
        notes = await self._journal.notes(child, domain=Domain.SESSION)
        return any(it.note.body.get("parent") == parent for it in notes[:1])

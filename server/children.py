"""Which runs are whose sub-agents (S-56).

The run of another runtime's is `<run>/<thread>`, with its parent in its manifest. That of an agent
which is a tool here is named by its call, and tells its parent by its id: it has no manifest.
"""

from __future__ import annotations

import asyncio
from typing import Final

from ..models.ids import escape
from ..runtime.journal.contract import Journal
from ..runtime.journal.ledger import Domain

KEY_PARTS: Final = 4
"""Of `call/run/epoch/turn/invocation`, behind the word (`models.ids.idempotency_key`)."""
PATIENCE: Final = 40
"""How often a run is looked at again whose manifest is not there yet."""


def child_id(run_id: str, thread: str) -> str:
    """Return the id of the run of a sub-agent's thread."""
    return f"{escape(run_id)}/{escape(thread)}"


def parent_in(run_id: str) -> str | None:
    """Return the run whose sub-agent this may be, by its id; its manifest tells."""
    if (caller := caller_in(run_id)) is not None:
        return caller
    parent, slash, thread = run_id.partition("/")
    if not (slash and parent and thread) or "/" in thread:
        return None
    return _unescaped(parent)


def caller_in(run_id: str) -> str | None:
    """Return the run of the call that an agent answers: its run's id is the idempotency key."""
    kind, *parts = run_id.split("/")
    is_key = len(parts) == KEY_PARTS and all(parts) and kind == "call"
    return _unescaped(parts[0]) if is_key else None


def _unescaped(part: str) -> str:
    return part.replace("%2F", "/").replace("%25", "%")


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
        if caller_in(child) is not None:
            return True
        notes = await self._journal.notes(child, domain=Domain.SESSION)
        return any(it.note.body.get("parent") == parent for it in notes[:1])

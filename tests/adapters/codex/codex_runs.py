"""Codex runs of a server in this process, by a Codex in memory."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

import attrs

from turnlock.adapters.codex.adapter import CodexAdapter
from turnlock.adapters.codex.settings import KIND, CodexSettings
from turnlock.models.fact import Fact
from turnlock.models.lifecycle_facts import ToolExecutionStarted
from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.runtime import Runtime
from turnlock.views.call_view import CallView

from ...server.peers import Served, serving, spec
from .memory_codex import WITH_RAW, WITHOUT, MemoryCodex

VERSIONS: Final = (WITH_RAW, WITHOUT)
"""With raw events, a turn of the kernel is a response; without, an upstream turn (S-31, S-32)."""


@attrs.define
class World:
    """A server, its journal, and the Codex that it starts."""

    codex: MemoryCodex
    journal: Journal
    served: Served
    adapter: CodexAdapter

    @property
    def runtime(self) -> Runtime:
        """What owns Codex runs here."""
        return self.served.sessions.life.runtimes[KIND]

    async def facts(self, run_id: str = "r") -> list[Fact]:
        """All facts of a run."""
        return [fact async for fact in self.journal.facts(run_id)]

    async def kinds(self, run_id: str = "r") -> list[str]:
        """The types of its facts."""
        return [fact.type for fact in await self.facts(run_id)]

    async def started(self) -> set[str]:
        """The calls that were started."""
        found = await self.facts()
        return {it.invocation_id for it in found if isinstance(it, ToolExecutionStarted)}

    async def begun(self, prompt: str | None = "go", **more: Any) -> None:
        """Create a run and, with a prompt, begin a turn of it."""
        sessions = self.served.sessions
        message_id = None if prompt is None else "m0"
        await sessions.create(spec(kind=KIND, **more), prompt=prompt, message_id=message_id)
        if prompt is not None:
            await self.served.until(lambda: self.codex.turn is not None)

    async def waits(self, *items: str) -> list[CallView]:
        """Have the model ask for commands, until they wait for a person."""
        before = len(self.served.pending())
        self.codex.asks_to_run(*items)
        await self.served.until(lambda: len(self.served.pending()) == before + len(items))
        return list(self.served.pending())[before:]

    async def status(self, run_id: str = "r") -> str:
        """The status that the journal's list has."""
        return str((await self.journal.entry(run_id)).status)

    async def idle(self) -> None:
        """Wait until nothing is owed."""
        await self.served.idle()


@asynccontextmanager
async def codex_world(
    codex: MemoryCodex | None = None,
    journal: Journal | None = None,
    owner: CodexSettings | None = None,
    **more: Any,
) -> AsyncGenerator[World]:
    """Serve Codex runs."""
    codex, journal = codex or MemoryCodex(), journal or MemoryJournal()
    adapter = CodexAdapter(owner, start=codex.start)
    async with serving(journal, others=[adapter], **more) as served:
        yield World(codex, journal, served, adapter)

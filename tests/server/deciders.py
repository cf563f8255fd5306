"""Who decides in tests, and faces of runs that nobody performs."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import attrs

from turnlock.adapters.contract import Capabilities
from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.tools.toolbox import Toolbox
from turnlock.server import deciding
from turnlock.server.routing import Role, Who

from .faces import Opened, opened
from .runs import shared

ADA = Who(name="ada", roles=frozenset({Role.DECIDE}))
BEN = Who(name="ben", roles=frozenset({Role.DECIDE}))
LOOKER = Who(name="eve", roles=frozenset({Role.LOOK, Role.RUN, Role.ADMIN}))


@attrs.frozen(kw_only=True)
class Kind:
    """Sessions of a server that performs nothing: what runs can do, and who was woken."""

    can: Capabilities = attrs.field(factory=Capabilities)
    tools: Toolbox | None = None
    woken: list[str] = attrs.field(factory=list[str])
    heeded: list[str] = attrs.field(factory=list[str])
    model_stops: bool = False

    def capabilities(self, kind: str) -> Capabilities:
        assert kind == "own"
        return self.can

    def runtime_of(self, _: str) -> Runtime | None:
        return None

    async def tools_of(self, _: str) -> Toolbox | None:
        return self.tools

    async def wake(self, run_id: str) -> None:
        self.woken.append(run_id)

    def heed(self, run_id: str) -> None:
        self.heeded.append(run_id)

    async def interrupt(self, run_id: str, *, reason: str | None, grace: float) -> bool:
        assert (run_id, reason, grace) == ("r", "stop", 3.0)
        return self.model_stops


@asynccontextmanager
async def facing(*deliveries: Any, sessions: Any = None) -> AsyncGenerator[Opened]:
    """A face, and the run `r` after these deliveries, which nobody performs."""
    async with MemoryJournal() as journal:
        await shared(journal, *deliveries)
        async with opened(journal=journal, endpoints=deciding.ENDPOINTS, sessions=sessions) as it:
            yield it


async def facts_of(journal: Journal, run_id: str = "r") -> list[Any]:
    return [fact async for fact in journal.facts(run_id)]

"""What goes on beside a member while it is performed: its tools' logs, and decisions of nobody.

What a tool writes while it runs goes by in the chat (W-43). Where nobody decides, what would wait
for a person is decided at once (W-69).
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from ..models.diagnostics import ToolLog
from ..models.errors import TurnlockError
from ..runtime.journal.contract import Journal
from ..runtime.runtime import Runtime
from .headless import Headless
from .names import MemberName, result_id
from .passing import ToolLogged, pass_on

DOUBTS: Final = 1.0
"""Seconds between two looks at what is in doubt, where nobody decides."""


async def pass_logs_on(journal: Journal, runtime: Runtime, name: MemberName) -> None:
    """Pass on what the tools of a member write, until cancelled."""
    diagnostics = runtime.diagnostics(name.run_id)
    try:
        async for told in diagnostics:
            if isinstance(told, ToolLog) and told.turn_id and told.invocation_id:
                entry_id = result_id(name.run_id, told.turn_id, told.invocation_id)
                pass_on(journal, name.log, ToolLogged(entry_id=entry_id, text=told.text))
    finally:
        diagnostics.close()


async def decide_for_nobody(runtime: Runtime, headless: Headless, name: MemberName) -> None:
    """Deny and resolve what would wait for a person, whenever it does, until cancelled."""
    kept = asyncio.Event()
    unheed = runtime.when_kept(lambda run_id: kept.set() if run_id == name.run_id else None)
    try:
        while True:
            kept.clear()
            with suppress(TurnlockError):  # it was let go, or it is asked again
                for delivery in headless.decisions(name.run_id):
                    await runtime.deliver(name.run_id, delivery)
                pause = DOUBTS if runtime.doubts(name.run_id) else None
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await kept.wait()
                continue
            await asyncio.sleep(DOUBTS)
    finally:
        unheed()

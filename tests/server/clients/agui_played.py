"""What every test of AG-UI plays on: a server whose agent pays, and a page that asks it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from turnlock.agent.loop import Agent

from ...agent.speakers import Speaker, asked, by_answers, speech
from ..fronts import Ledger, Served, paying, serving
from .agui_page import Page

PAY = asked("pay", call_id="c.1", amount=12)
LOOK = asked("look", call_id="c2")
Play = Callable[[Served, Ledger, Page], Awaitable[None]]


def played(
    folder: Path,
    play: Play,
    agent: Agent | None = None,
    ledger: Ledger | None = None,
    **more: Any,
) -> Ledger:
    """Play on a server whose agent asks to pay and to look, and return what its tools did."""
    done = ledger or Ledger()

    async def played() -> None:
        asks = agent or paying(done, PAY, LOOK)
        async with serving(folder, asks, **more) as it:
            await play(it, done, Page())

    asyncio.run(played())
    return done


def answering(*texts: str) -> Agent:
    """An agent without tools that says these, one for each prompt."""
    model = Speaker([speech(it) for it in texts], which=by_answers)
    return Agent(model=model)

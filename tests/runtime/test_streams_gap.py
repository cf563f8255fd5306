"""Subscribers miss nothing, whatever the journal answered."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial

import pytest

from turnlock import Call, Fact, Run
from turnlock.runtime.errors import JournalError
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.tools.toolbox import Toolbox

from .faulty_journal import Fault, FaultyJournal
from .virtual import LoopClock, run

CALL = Call(invocation_id="a", tool_name="act", arguments={}, requires_approval=True)


@pytest.mark.parametrize("number", range(1, 5))
def test_facts_that_nobody_acknowledged_are_passed_on(number: int) -> None:
    """An append that was kept, and whose answer was lost, is in the stream as in the journal."""

    async def play() -> None:
        journal = FaultyJournal(MemoryJournal(), {("append", number): Fault.UNACKNOWLEDGED})
        seen: list[Fact] = []

        async def on_continue(_: object) -> None:
            """Take it."""

        async with Runtime(
            journal=journal, tools=Toolbox(), on_continue=on_continue, clock=LoopClock()
        ) as runtime:
            await runtime.open_run(Run(run_id="r"))
            facts = runtime.subscribe("r")

            async def look() -> None:
                seen.extend([fact async for fact in facts])

            looking = asyncio.create_task(look())
            await asyncio.sleep(0)
            for step in (
                partial(runtime.open_turn, "r", [CALL], turn_id="t1", epoch=1),
                partial(runtime.approve, "r", turn_id="t1", invocation_id="a"),
            ):
                with suppress(JournalError):
                    await step()
                await asyncio.sleep(60)
        await looking
        assert seen == [fact async for fact in journal.facts("r")]
        assert len(seen) > 4

    run(play())

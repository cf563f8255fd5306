"""A runtime lives in one loop, once it was entered; whoever calls it elsewhere is told so."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from turnlock import Run, TurnlockError
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.tools.toolbox import Toolbox

from .test_runtime import RUN, World, calls
from .virtual import run

OTHERS: dict[str, Callable[[Runtime], Coroutine[Any, Any, object]]] = {
    "open_run": lambda it: it.open_run(Run(run_id="another")),
    "approve": lambda it: it.approve("r", turn_id="t1", invocation_id="pay"),
    "hear": lambda it: it.hear("r", ()),
    "close_run": lambda it: it.close_run("r"),
    "take_over": lambda it: it.take_over(),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_call_from_another_loop_is_told_where_the_runtime_lives(name: str) -> None:
    """It waited for ever before, and was served by two threads at once."""
    told: list[BaseException] = []

    def elsewhere(runtime: Runtime) -> None:
        try:
            asyncio.run(asyncio.wait_for(OTHERS[name](runtime), timeout=5.0))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is looked at
            told.append(error)

    async def play() -> None:
        world = World()
        async with world.process(world.tool("pay", approval=True)) as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", calls("pay"), turn_id="t1")
            thread = threading.Thread(target=elsewhere, args=(runtime,))
            thread.start()
            await asyncio.to_thread(thread.join)
            assert (runtime.runs, len(runtime.pending("r"))) == (("r",), 1)

    asyncio.run(play())
    assert isinstance(told[0], TurnlockError)
    assert "lives in another event loop; call it there" in str(told[0])


def test_a_thread_without_a_loop_may_look() -> None:
    async def play() -> tuple[object, ...]:
        world = World()
        async with world.process(world.tool("pay", approval=True)) as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", calls("pay"), turn_id="t1")
            return await asyncio.to_thread(runtime.pending, "r")

    assert len(asyncio.run(play())) == 1


def test_a_runtime_that_was_not_entered_opens_nothing() -> None:
    """It would own runs that it never renews, and hear of no post."""

    async def play() -> None:
        runtime = Runtime(journal=MemoryJournal())
        with pytest.raises(TurnlockError, match="was not entered; write async with"):
            await runtime.open_run(RUN)

    run(play())


def test_whoever_ends_the_process_in_a_continuation_is_no_defect_of_ours(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)

    async def leave(_: object) -> None:
        raise SystemExit(3)

    async def play() -> None:
        world = World()
        tools = Toolbox.of(world.tool("act"))
        async with Runtime(journal=world.journal, tools=tools, on_continue=leave) as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", calls("act"), turn_id="t1")
            await asyncio.sleep(30.0)  # it is over at once

    with pytest.raises(SystemExit):
        asyncio.run(play())
    said = [it.getMessage() for it in caplog.records]
    assert [it for it in said if "ended the process: SystemExit" in it]
    assert not [it for it in said if "defect" in it]

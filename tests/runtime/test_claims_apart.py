"""What is not claimed together with what asked for it: it claims by itself, as it always could.

Something happens outside between the two, or what it takes to start is not there at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any, Final

import pytest

from turnlock import Call, Status
from turnlock.runtime.settings import Settings
from turnlock.runtime.tools.calling import ToolContext
from turnlock.runtime.tools.threads import Lease, NoThread
from turnlock.runtime.tools.tool import Tool, tool

from .test_claims_together import (
    OPENED,
    RUN,
    STARTED,
    SUCCEEDED,
    a_world,
    opened,
    reserved,
)
from .test_runtime import World, calls
from .virtual import run, settled


async def as_given(arguments: Mapping[str, Any], _: ToolContext) -> Mapping[str, Any]:
    """Prepare nothing, by code of the tool's own."""
    return arguments


def on_a_day(world: World) -> Tool:
    """A tool whose arguments are made by a class of pydantic's: not on the loop."""

    @tool(name="act", description="")
    async def act(day: date = date(2026, 1, 1)) -> str:
        world.ledger["act"] += 1
        return str(day)

    return act


APART: Final[dict[str, Callable[[World], Tool]]] = {
    "code of its own prepares it": lambda world: world.tool("act", preprocessors=(as_given,)),
    "a class of its author's is built": on_a_day,
}


@pytest.mark.parametrize("why", APART)
def test_what_is_prepared_by_code_of_its_own_claims_by_itself(why: str) -> None:
    """That code runs before the claim (seed 004), and may take its time."""

    async def play() -> None:
        world, journal = a_world()
        async with world.process(APART[why](world)) as runtime:
            await opened(runtime, "act")

        assert journal.types[:2] == [[OPENED], [STARTED]]
        assert world.ledger == {"act": 1}

    run(play())


SLOTS: Final[dict[str, tuple[Settings, dict[str, Any]]]] = {
    "of all runs": (Settings(executions=1), {}),
    "of its run": (Settings(executions_of_run=1), {}),
    "of its tool": (Settings(), {"concurrency": 1}),
    "of the sequential tools of its run": (Settings(), {"sequential": True}),
}


@pytest.mark.parametrize("slot", SLOTS)
def test_without_a_free_slot_nothing_is_claimed(slot: str) -> None:
    """What waits is not started: a crash leaves no doubt about it (K-35)."""
    settings, policy = SLOTS[slot]

    async def play() -> None:
        world, journal = a_world()
        gate = asyncio.Event()
        act = world.tool("act", gate.wait, **policy)
        async with world.process(act, settings=settings) as runtime:
            await runtime.open_run(RUN)
            named = [
                Call(invocation_id=name, tool_name="act", arguments={}, requires_approval=False)
                for name in "ab"
            ]
            await runtime.open_turn("r", named, turn_id="t1")
            await settled()
            assert journal.types == [[OPENED, STARTED]]
            assert reserved(runtime) == 1
            gate.set()
            await settled()
            assert world.ledger == {"act": 2}
            assert [STARTED] in journal.types or [SUCCEEDED, STARTED] in journal.types
            assert reserved(runtime) == 0

    run(play())


def test_a_slot_that_another_run_has_is_not_free() -> None:
    async def play() -> None:
        world, journal = a_world()
        gate = asyncio.Event()
        act = world.tool("act", gate.wait, concurrency=1)
        async with world.process(act) as runtime:
            await opened(runtime, "act", run_id="other")
            await opened(runtime, "act")
            assert journal.types == [[OPENED, STARTED], [OPENED]]
            gate.set()

    run(play())


def test_nothing_passes_what_stands_before_it_in_its_line() -> None:
    """Of sequential tools the first has code to run before its claim: the second waits for it."""

    async def play() -> None:
        world, journal = a_world()
        order: list[str] = []
        tools = (
            world.tool(
                "first", lambda: order.append("first"), sequential=True, preprocessors=(as_given,)
            ),
            world.tool("second", lambda: order.append("second"), sequential=True),
        )
        async with world.process(*tools) as runtime:
            await opened(runtime, "first", "second")

        assert order == ["first", "second"]
        assert journal.types[0] == [OPENED]

    run(play())


def test_without_a_thread_nothing_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused in words, as ever, and its slot is free again."""

    def none_left(_: Lease) -> None:
        raise NoThread("no thread is left")

    monkeypatch.setattr(Lease, "take", none_left)

    @tool(name="act", description="")
    def act() -> None:
        raise AssertionError("it has no thread")

    async def play() -> None:
        world, journal = a_world()
        async with world.process(act) as runtime:
            await opened(runtime, "act")
            assert reserved(runtime) == 0

        assert journal.types[0] == [OPENED]
        assert STARTED not in await world.facts()
        assert "no thread is left" in (world.told[0].results[0].error or "")

    run(play())


def test_a_sync_tool_has_its_thread_before_it_is_claimed() -> None:
    @tool(name="act", description="")
    def act() -> str:
        return "done"

    async def play() -> None:
        world, journal = a_world()
        async with world.process(act) as runtime:
            await opened(runtime, "act")

        assert journal.types[0] == [OPENED, STARTED]
        assert world.told[0].results[0].result == "done"

    run(play())


def test_what_cannot_start_is_not_claimed() -> None:
    """A tool that is not there, arguments that do not fit: rejected, before any claim."""

    async def play() -> None:
        world, journal = a_world()
        wrong = Call(
            invocation_id="b", tool_name="act", arguments={"n": 1}, requires_approval=False
        )
        async with world.process(world.tool("act")) as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", [*calls("nothing"), wrong], turn_id="t1")
            await settled()
            assert reserved(runtime) == 0

        assert journal.types[0] == [OPENED]
        assert STARTED not in await world.facts()
        assert [one.status for one in world.told[0].results] == [Status.FAILED] * 2

    run(play())

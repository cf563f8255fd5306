"""A host without people: what it decides, and what it leaves to tools (W-69)."""

from __future__ import annotations

import asyncio

import pytest

from turnlock import Call, Decide, Resolution, Resolve, Run
from turnlock.models.values import ABSENT
from turnlock.runtime.in_doubt import PROBED
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.tools.calling import ToolContext
from turnlock.runtime.tools.errors import OutcomeUnknown
from turnlock.runtime.tools.policy import InDoubt, Policy
from turnlock.runtime.tools.results import StillUnknown
from turnlock.runtime.tools.tool import Tool
from turnlock.runtime.tools.toolbox import Toolbox
from turnlock.world.headless import DENIED, FAILED, Headless

from ..runtime.virtual import LoopClock, run, settled


def found_nothing(_: ToolContext) -> StillUnknown:
    """A probe that cannot tell."""
    return StillUnknown()


async def lost(*_: object) -> str:
    """Nobody knows whether it happened."""
    raise OutcomeUnknown("its server died")


def tool(name: str, **policy: object) -> Tool:
    """A tool that is in doubt once it is called."""

    async def call() -> str:
        return await lost()

    return Tool(name=name, call=call, policy=Policy(**policy))  # type: ignore[arg-type]


TOOLS = Toolbox([
    tool("pay", approval=True),
    tool("send"),
    tool("fail", in_doubt=InDoubt.FAIL),
    tool("probe", probe=found_nothing),
])  # fmt: skip


async def tell_nobody(_: object) -> None:
    """No model is there to be told."""


def decided(*names: str, seconds: int = 1) -> list[Decide | Resolve]:
    """What is decided of calls of these tools, each called once, when asked each second."""
    found: list[Decide | Resolve] = []

    async def play() -> None:
        async with Runtime(
            journal=MemoryJournal(), tools=TOOLS, on_continue=tell_nobody, clock=LoopClock()
        ) as runtime:
            await runtime.open_run(Run(run_id="r"))
            calls = [
                Call(
                    invocation_id=name,
                    tool_name=name,
                    arguments={},
                    requires_approval=name == "pay",
                )
                for name in names
            ]
            await runtime.open_turn("r", calls, turn_id="t1")
            decides = Headless(runtime)
            for _ in range(seconds):
                await settled()
                for it in decides.decisions("r"):
                    assert isinstance(it, Decide | Resolve)
                    found.append(it)
                    await runtime.deliver("r", it)
                await asyncio.sleep(1)

    run(play())
    return found


def test_w_69_a_request_is_denied_with_its_reason() -> None:
    """The model is told why; it is denied once."""
    (denied,) = decided("pay", seconds=3)
    assert isinstance(denied, Decide)
    assert (denied.approved, denied.reason, denied.decided_by) == (False, DENIED, "world")


def test_w_69_a_doubt_that_a_person_would_settle_has_failed() -> None:
    """With an error that says that nobody knows; it is resolved once."""
    (failed,) = decided("send", seconds=3)
    assert isinstance(failed, Resolve)
    assert (failed.resolution, failed.error, failed.result) == (Resolution.ERROR, FAILED, ABSENT)


def test_w_69_what_a_tool_settles_itself_is_left_to_it() -> None:
    """Its own rule fails it; nothing is yielded for it."""
    assert decided("fail") == []


@pytest.mark.parametrize(
    ("seconds", "count"), [(1, 0), (int(PROBED) + 2, 1)], ids=["at first", "later"]
)
def test_w_69_a_probe_is_waited_for(seconds: int, count: int) -> None:
    """One that could not find out leaves it to a person, and here is none."""
    assert len(decided("probe", seconds=seconds)) == count


def test_w_69_of_a_tool_that_is_gone_nobody_can_say() -> None:
    """The doubt is a person's, so it has failed."""
    tools = TOOLS

    async def play() -> None:
        nonlocal tools
        async with Runtime(
            journal=MemoryJournal(),
            tools=lambda _: tools,
            on_continue=tell_nobody,
            clock=LoopClock(),
        ) as runtime:
            await runtime.open_run(Run(run_id="r"))
            call = Call(invocation_id="a", tool_name="probe", arguments={}, requires_approval=False)
            await runtime.open_turn("r", [call], turn_id="t1")
            await settled()
            assert [*Headless(runtime).decisions("r")] == []
            tools = Toolbox([])
            (failed,) = Headless(runtime).decisions("r")
            assert isinstance(failed, Resolve)

    run(play())

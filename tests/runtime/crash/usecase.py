"""What a use case is, and the tools that they all use: each writes into the world what it does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import attrs

from turnlock import Call, Run
from turnlock.runtime.dispatcher import Continuation
from turnlock.runtime.settings import Settings
from turnlock.runtime.tools.calling import ToolContext
from turnlock.runtime.tools.results import Happened, NeverHappened, ProbeAnswer
from turnlock.runtime.tools.tool import Tool, tool

from .host import Host
from .life import Life
from .world import RUN, World

BRIEF = Settings(ownership=5.0, poll=1_000.0, drain=1.0)
"""A run is soon free after a crash; and nobody looks for posts, which would only be more steps."""


async def nothing_more(_host: Host, _told: Continuation) -> None:
    """Take the continuation, and begin nothing after it."""


async def nobody(_world: World) -> None:
    """No other process does anything."""


@attrs.frozen(kw_only=True)
class UseCase:
    """What a host does in each of its lives until all its turns are closed."""

    name: str
    tools: Callable[[World, Life], tuple[Tool, ...]]
    drive: Callable[[Host], Awaitable[None]]
    """Every step of it may have happened in a life before."""
    first: tuple[Run, ...] = (RUN,)
    """What a life waits for until it has it, before it does anything."""
    turns: tuple[str, ...] = ("t1",)
    """What must be closed at the end."""
    continued: Callable[[Host, Continuation], Awaitable[None]] = nothing_more
    others: Callable[[World], Awaitable[None]] = nobody
    """What another process does meanwhile, which does not die."""
    settings: Settings = BRIEF
    pause: float = 6.0
    """Seconds between a crash and the next life."""


def acting(
    world: World,
    life: Life,
    name: str,
    *,
    seconds: float = 1.0,
    fails: bool = False,
    probed: bool = False,
    **policy: Any,
) -> Tool:
    """A tool that may be killed before, within and after what it does."""

    async def act(context: ToolContext, n: int = 0) -> str:
        world.starts(life, context.run_id, f"{name}, attempt {context.attempt}")
        await life.point(f"{name} is called")
        world.begins(life, context)
        await life.point(f"{name} has begun")
        await asyncio.sleep(seconds)
        await life.point(f"{name} is about to end")
        world.ends(life, context)
        await life.point(f"{name} has ended")
        if fails:
            raise RuntimeError("it does not work")
        return f"{name} {n} done"

    async def probe(context: ToolContext) -> ProbeAnswer:
        await life.point(f"{name} is probed")
        done = context.idempotency_key in world.ended
        return Happened(f"{name} was done") if done else NeverHappened()

    if probed:
        policy["probe"] = probe
    return tool(name=name, description="", **policy)(act)


def call(tool_name: str, invocation_id: str = "", **arguments: Any) -> Call:
    """A call; its id is the tool's name unless given."""
    return Call(
        invocation_id=invocation_id or tool_name,
        tool_name=tool_name,
        arguments=arguments,
        requires_approval=False,
    )

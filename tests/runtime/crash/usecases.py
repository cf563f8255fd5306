"""The use cases that are crashed at every step."""

from __future__ import annotations

import asyncio
from typing import Final

import attrs

from turnlock import AddCall, Decide, Match, Run, Scope, SealTurn
from turnlock.models.facts import ToolApprovalRequested, ToolExecutionStarted
from turnlock.runtime.dispatcher import Continuation
from turnlock.runtime.tools.policy import InDoubt
from turnlock.runtime.tools.tool import Tool

from .host import Host
from .life import Life
from .usecase import BRIEF, UseCase, acting, call
from .world import RUN, World


async def _free(host: Host) -> None:
    await host.open("t1", [call("one"), call("two", n=2)], epoch=1)
    await host.until_closed("t1")


FREE: Final = UseCase(
    name="free calls, in parallel",
    tools=lambda world, life: (acting(world, life, "one"), acting(world, life, "two")),
    drive=_free,
)
FAILING: Final = UseCase(
    name="a tool that fails",
    tools=lambda world, life: (acting(world, life, "one", fails=True), acting(world, life, "two")),
    drive=_free,
)
SEQUENTIAL: Final = UseCase(
    name="sequential calls",
    tools=lambda world, life: tuple(
        acting(world, life, name, sequential=True) for name in ("one", "two")
    ),
    drive=_free,
)


async def _rejected(host: Host) -> None:
    await host.open("t1", [call("nothing"), call("one", n="no number")], epoch=1)
    await host.until_closed("t1")


REJECTED: Final = UseCase(
    name="a missing tool and bad arguments",
    tools=lambda world, life: (acting(world, life, "one"),),
    drive=_rejected,
)


def _pay(world: World, life: Life) -> tuple[Tool, ...]:
    return (acting(world, life, "pay", approval=True, approval_timeout=20.0),)


async def _waits(host: Host) -> None:
    """Wait until it is asked for, in this life or one before."""
    await host.until(lambda fact: isinstance(fact, ToolApprovalRequested))


async def _approved(host: Host) -> None:
    await host.open("t1", [call("pay", "a", n=1), call("pay", "b", n=2)], epoch=1)
    await _waits(host)
    digests = {asked.invocation_id: asked.arguments_digest for asked in host.runtime.pending("r")}
    await host.approve("t1", "a", arguments={"n": 7}, arguments_digest=digests.get("a"))
    await host.approve("t1", "b")
    await host.until_closed("t1")


async def _granted(host: Host) -> None:
    await host.open("t1", [call("pay", "a", n=1), call("pay", "b", n=2)], epoch=1)
    await _waits(host)
    await host.approve("t1", "a", scope=Scope.SESSION, match=Match.TOOL)
    await host.until_closed("t1")
    await host.open("t2", [call("pay", "c", n=3)], epoch=2)
    await host.until_closed("t2")


async def _denied(host: Host) -> None:
    await host.open("t1", [call("pay", "a"), call("pay", "b")], epoch=1)
    await _waits(host)
    await host.deny("t1", "a")
    await host.approve("t1", "b")
    await host.until_closed("t1")


async def _expired(host: Host) -> None:
    await host.open("t1", [call("pay")], epoch=1)
    await host.until_closed("t1")


APPROVED: Final = UseCase(name="approvals, one edited", tools=_pay, drive=_approved)
GRANTED: Final = UseCase(
    name="a grant for the session", tools=_pay, drive=_granted, turns=("t1", "t2")
)
DENIED: Final = UseCase(name="a denial", tools=_pay, drive=_denied)
EXPIRED: Final = UseCase(name="an approval that expires", tools=_pay, drive=_expired)


async def _interrupted(host: Host) -> None:
    await host.open("t1", [call("slow"), call("pay")], epoch=1)
    await host.until(lambda fact: isinstance(fact, ToolExecutionStarted))
    await asyncio.sleep(1)
    await host.interrupt("t1")
    await host.until_closed("t1")


INTERRUPTED: Final = UseCase(
    name="an interrupt while a tool runs",
    tools=lambda world, life: (
        acting(world, life, "slow", seconds=500.0, lease=600.0),
        *_pay(world, life),
    ),
    drive=_interrupted,
)


async def _doubtful(host: Host) -> None:
    await host.open("t1", [call("act")], epoch=1)
    await host.until_closed("t1")


def _doubt(name: str, **policy: object) -> UseCase:
    return UseCase(
        name=f"doubt: {name}",
        tools=lambda world, life: (acting(world, life, "act", **policy),),  # type: ignore[arg-type]
        drive=_doubtful,
    )


DOUBTS: Final = (
    _doubt("a person is asked"),
    _doubt("it has failed", in_doubt=InDoubt.FAIL),
    _doubt("it is repeated", in_doubt=InDoubt.RETRY_IF_SAFE, safe_to_repeat=True),
    _doubt("it is probed", in_doubt=InDoubt.PROBE, probed=True),
)
LEASED: Final = UseCase(
    name="a lease that is renewed, and lapses before the next life",
    tools=lambda world, life: (acting(world, life, "act", seconds=8.0, lease=3.0),),
    drive=_doubtful,
    pause=20.0,
)


async def _next_turn(host: Host, told: Continuation) -> None:
    number = int(told.turn_id.removeprefix("t"))
    if number < 3:
        await host.open(f"t{number + 1}", [call("one")], epoch=number + 1)


async def _chained(host: Host) -> None:
    await host.open("t1", [call("one")], epoch=1)
    await host.until_closed("t3")


CHAINED: Final = UseCase(
    name="continuations that open the next turn",
    tools=lambda world, life: (acting(world, life, "one"),),
    drive=_chained,
    turns=("t1", "t2", "t3"),
    continued=_next_turn,
)
SNAPSHOTS: Final = attrs.evolve(
    CHAINED, name="snapshots now and then", settings=attrs.evolve(BRIEF, snapshot_every=3)
)


async def _next_noted(host: Host, told: Continuation) -> None:
    if told.turn_id == "t1":
        await host.hear("2", "t2", [call("one")], epoch=2)


async def _noted(host: Host) -> None:
    await host.hear("1", "t1", [call("one")], epoch=1)
    await host.until_closed("t2")


NOTED: Final = UseCase(
    name="notes, and turns that follow from them",
    tools=lambda world, life: (acting(world, life, "one"),),
    drive=_noted,
    turns=("t1", "t2"),
    continued=_next_noted,
)


async def _raises_at_first(host: Host, told: Continuation) -> None:
    host.world.counts[told.effect_id] += 1
    if host.world.counts[told.effect_id] < 3:
        raise RuntimeError("the model is not there")


RAISING: Final = UseCase(
    name="a callback that raises twice",
    tools=lambda world, life: (acting(world, life, "act"),),
    drive=_doubtful,
    continued=_raises_at_first,
)


async def _posted(host: Host) -> None:
    await host.open("t1", [call("pay", "a"), call("pay", "b")], epoch=1)
    await host.until_closed("t1")
    while not host.world.counts["answered"]:  # noqa: ASYNC110 - another process can only look
        await asyncio.sleep(1)  # the owner of the run is there until the other has its answers


async def _posts(world: World) -> None:
    """Approve from another process, as soon as it is asked for, until that is answered."""
    while not any(isinstance(fact, ToolApprovalRequested) for fact in world.facts()):  # noqa: ASYNC110 - another process can only look
        await asyncio.sleep(1)
    for name in ("a", "b"):
        if name not in world.posted:
            decision = Decide(run_id="r", turn_id="t1", invocation_id=name, approved=name == "a")
            world.posted[name] = await world.memory.post("r", decision)
    for number in world.posted.values():
        while await world.memory.answered("r", number) is None:  # noqa: ASYNC110 - another process can only look
            await asyncio.sleep(1)
    world.counts["answered"] = 1


POSTED: Final = UseCase(
    name="decisions of another process",
    tools=_pay,
    drive=_posted,
    others=_posts,
    settings=attrs.evolve(BRIEF, poll=2.0),
)


async def _streamed(host: Host) -> None:
    await host.open("t1", [], epoch=1, sealed=False)
    for name in ("one", "two"):
        await host.deliver(AddCall(turn_id="t1", call=call(name)))
    await host.deliver(SealTurn(turn_id="t1"))
    await host.until_closed("t1")


STREAMED: Final = UseCase(
    name="calls that arrive one by one",
    tools=lambda world, life: (acting(world, life, "one"), acting(world, life, "two")),
    drive=_streamed,
)


SECOND: Final = Run(run_id="s")


async def _one_turn(host: Host, run: Run) -> None:
    await host.own(run)
    await host.open("t1", [call("one")], epoch=1, run_id=run.run_id)
    await host.until_closed("t1", run_id=run.run_id)


async def _two_runs(host: Host) -> None:
    """See to each run by itself: one may be another's, who waits for something in the other."""
    async with asyncio.TaskGroup() as both:
        both.create_task(_one_turn(host, RUN))
        both.create_task(_one_turn(host, SECOND))


TWO_RUNS: Final = UseCase(
    name="two runs of one process",
    tools=lambda world, life: (acting(world, life, "one", concurrency=1),),
    drive=_two_runs,
    first=(),
)

USE_CASES: Final = (
    FREE,
    FAILING,
    SEQUENTIAL,
    REJECTED,
    APPROVED,
    GRANTED,
    DENIED,
    EXPIRED,
    INTERRUPTED,
    *DOUBTS,
    LEASED,
    CHAINED,
    SNAPSHOTS,
    NOTED,
    RAISING,
    POSTED,
    STREAMED,
    TWO_RUNS,
)

"""UC-004: what goes on is stopped, wherever it stands, and nothing that ran is called denied."""

from __future__ import annotations

import asyncio

import pytest

from turnlock.models.fact import Fact
from turnlock.models.facts import TurnInterrupted
from turnlock.models.lifecycle_facts import (
    DenialCause,
    ToolDenied,
    ToolExecutionStarted,
)
from turnlock.models.reasons import Reason
from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.journal.memory import MemoryJournal

from ..runtime.virtual import run
from .peers import Served, World, messages, said, serving, spec
from .scripted import KIND, ScriptedAdapter


async def facts(journal: Journal) -> list[Fact]:
    """All facts of the run."""
    return [fact async for fact in journal.facts("r")]


async def stop(it: Served, *, reason: str | None = None) -> bool:
    """Stop the open turn, or what goes on without one."""
    turn = (await it.runtime.view("r")).turn
    if turn is None:
        return await it.sessions.interrupt("r", reason=reason, grace=1.0)
    verdict = await it.runtime.interrupt("r", turn_id=turn.turn_id, reason=reason, grace=1.0)
    return verdict.reason is None


@pytest.mark.parametrize("where", ["waiting", "running", "between", "asked", "idle"])
def test_uc_004_stopped_wherever_it_stands(where: str) -> None:
    """Waiting for a person, running, between two answers of the model, asked first, idle (S-45)."""

    async def play() -> None:
        world = World(gate=asyncio.Event())
        journal = MemoryJournal()
        prompts = {"waiting": "pay", "running": "send", "between": "wait", "asked": "wait"}
        async with serving(journal, world) as it:
            await it.sessions.create(spec())
            if where != "idle":
                await it.sessions.prompt("r", prompts[where], message_id="m")
            if where == "waiting":
                await it.asked()
            elif where == "running":
                await it.until(lambda: bool(world.done))
            elif where != "idle":
                await it.until(lambda: bool(world.asked))
            assert await stop(it, reason="enough") is (where != "idle")
            await it.idle()
            assert not await stop(it)  # nothing is left to be stopped (twice)
            kept = await facts(journal)
            interrupted = [fact for fact in kept if isinstance(fact, TurnInterrupted)]
            assert len(interrupted) == (where in {"waiting", "running"})
            started = {it.invocation_id for it in kept if isinstance(it, ToolExecutionStarted)}
            denied = {it.invocation_id for it in kept if isinstance(it, ToolDenied)}
            assert not started & denied
            world.gate = None
            await it.sessions.prompt("r", "next", message_id="n")
            await it.idle()
            assert (await said(journal))[-2:] == ["next", "> done: next"]

    run(play())


def test_uc_004_a_wrong_turn_stops_nothing() -> None:
    """`turn_mismatch`, and the call waits on (K-53: never widened)."""

    async def play() -> None:
        async with serving() as it:
            await it.sessions.create(spec(), prompt="pay", message_id="m")
            await it.asked()
            verdict = await it.runtime.interrupt("r", turn_id="t9", grace=1.0)
            assert verdict.reason in {Reason.TURN_MISMATCH, Reason.NO_ACTIVE_TURN}
            assert len(it.pending()) == 1

    run(play())


def test_uc_004_the_next_in_line_is_said_after_a_stop() -> None:
    """An interrupt ends what goes on, not what waits (S-83)."""

    async def play() -> None:
        journal = MemoryJournal()
        async with serving(journal) as it:
            await it.sessions.create(spec(), prompt="pay", message_id="m0")
            await it.asked()
            await it.sessions.prompt("r", "next", message_id="m1")
            assert await stop(it)
            await it.idle()
            users = [one.note.body["message_id"] for one in await messages(journal, "r", "user")]
            assert users == ["m0", "m1"]

    run(play())


@pytest.mark.parametrize("first", ["interrupt", "approve"])
def test_uc_004_a_race_with_an_approval_never_says_denied_of_what_ran(first: str) -> None:
    """Whoever is judged first: `accept` is written after its claim, or never (S-21, S-42)."""

    async def play() -> None:
        journal, scripted = MemoryJournal(), ScriptedAdapter()
        async with serving(journal, others=[scripted]) as it:
            await it.sessions.create(spec(kind=KIND), prompt="go", message_id="m")
            await it.until(lambda: bool(scripted.told("took")))
            session = scripted.sessions["r"]
            await session.asks_for("c1", rm="-rf")
            (call,) = it.pending()
            runtime = it.sessions.runtime_of("r")
            assert runtime is not None
            approving = runtime.approve(
                "r", turn_id=call.turn_id, invocation_id="c1",
                arguments_digest=call.arguments_digest,
            )  # fmt: skip
            stopping = runtime.interrupt("r", turn_id=call.turn_id, grace=1.0)
            works = [stopping, approving] if first == "interrupt" else [approving, stopping]
            await asyncio.gather(*works)
            await it.until(lambda: bool(scripted.told("interrupt")))
            kept = await facts(journal)
            started = any(isinstance(fact, ToolExecutionStarted) for fact in kept)
            denied = [fact for fact in kept if isinstance(fact, ToolDenied)]
            assert bool(scripted.told("accept")) <= started
            assert not (started and denied)
            assert not (scripted.told("accept") and scripted.told("decline"))
            if denied:
                assert denied[0].cause is DenialCause.INTERRUPT

    run(play())


def test_s_12_interrupt_and_terminate_are_allowed_whatever_else_is_not() -> None:
    """Doubts, a full line, a model that does not answer: they end what goes on all the same."""

    async def play() -> None:
        world = World(gate=asyncio.Event())
        journal = MemoryJournal()
        async with serving(journal, world) as it:
            await it.sessions.create(spec(), prompt="wait", message_id="m")
            await it.until(lambda: bool(world.asked))
            await it.sessions.terminate("r", grace=0.1)
            assert it.sessions.state_of("r") == "inactive"
            assert it.runtime.runs == ()
            world.gate = None
            await it.sessions.restore("r")
            await it.idle()
            assert world.asked == ["wait"]  # it was stopped, and a person has the word

    run(play())

"""Section 14 of the server's rules: what stands after a kill at each write, and what follows."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeAlias

import pytest

from turnlock.adapters.rest import INTERRUPTED, NEVER
from turnlock.models.effects import Continue, Execute
from turnlock.models.errors import TurnlockError
from turnlock.models.fact import Fact
from turnlock.models.facts import ContinuationTaken, TurnSettled
from turnlock.models.lifecycle_facts import (
    FailureCause,
    ToolApproved,
    ToolExecutionFailed,
    ToolExecutionStarted,
)
from turnlock.models.run import Run
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.writer import fold_run

from ..runtime.virtual import run, settled
from .peers import MortalJournal, Served, World, serve, serving, spec, steps
from .scripted import KIND, ScriptedAdapter

Story: TypeAlias = Callable[[Served, ScriptedAdapter], Awaitable[None]]


async def started(it: Served, scripted: ScriptedAdapter) -> None:
    """Begin a run, and a turn in it."""
    await it.sessions.create(spec(kind=KIND), prompt="go", message_id="m")
    await it.until(lambda: bool(scripted.told("took")) or it.dead)
    await settled()


async def approved(it: Served, scripted: ScriptedAdapter) -> None:
    """A command is asked for, agreed to, runs, and ends."""
    await started(it, scripted)
    await scripted.sessions["r"].asks_for("c1", rm=1)
    await it.approve()
    await it.until(lambda: bool(scripted.told("accept")) or it.dead)
    await scripted.sessions["r"].ends("c1")
    await scripted.sessions["r"].completes()


async def denied(it: Served, scripted: ScriptedAdapter) -> None:
    """A command is asked for, and denied."""
    await started(it, scripted)
    await scripted.sessions["r"].asks_for("c1", rm=1)
    (call,) = it.pending()
    runtime = it.sessions.runtime_of("r")
    assert runtime is not None
    await runtime.deny("r", turn_id=call.turn_id, invocation_id="c1", reason="no")
    await it.until(lambda: bool(scripted.told("decline")) or it.dead)
    await scripted.sessions["r"].completes()


async def free(it: Served, scripted: ScriptedAdapter) -> None:
    """A command runs that nobody was asked about; a question waits for the user."""
    await started(it, scripted)
    session = scripted.sessions["r"]
    await session.runs("c1")
    await session.questions_user("q")
    await it.until(lambda: bool(session.questions) or it.dead)
    await session.ends("c1")


async def interrupted(it: Served, scripted: ScriptedAdapter) -> None:
    """A turn is interrupted in which a command runs, and another waits."""
    await started(it, scripted)
    session = scripted.sessions["r"]
    await session.runs("c1")
    await session.asks_for("c2", rm=1)
    runtime = it.sessions.runtime_of("r")
    assert runtime is not None
    await runtime.interrupt("r", turn_id="u1.1", grace=100.0)
    await it.until(lambda: bool(scripted.told("interrupt")) or it.dead)


def starts(facts: list[Fact]) -> set[str]:
    """The calls that were started."""
    return {fact.invocation_id for fact in facts if isinstance(fact, ToolExecutionStarted)}


async def check(it: Served, scripted: ScriptedAdapter, before: list[Fact]) -> str:
    """Hold what section 14 says against a run that was restored; name what it came to."""
    journal, runtime = it.sessions.journal, it.sessions.life.runtimes[KIND]
    facts = [fact async for fact in journal.facts("r")]
    assert facts[: len(before)] == before
    kernel = await fold_run(Run(run_id="r", kind=KIND), journal)
    owed = kernel.pending_effects
    assert not [effect for effect in owed if isinstance(effect, Execute)]
    await it.until(lambda: not _continues(runtime, "r"))
    assert runtime.pending("r") == ()
    doubted = {call.invocation_id for call in runtime.doubts("r")}
    failed = {it.invocation_id: it for it in facts if isinstance(it, ToolExecutionFailed)}
    for name, _, item in scripted.told("accept", "decline"):
        assert name == "decline" or item in starts(before)  # its claim was kept before (S-21)
    for item, fact in failed.items():
        if fact.error == NEVER:
            assert item not in starts(facts)  # true: no answer was written
            assert ("accept", "r", item) not in scripted.pipe
        elif fact.cause is FailureCause.RESOLVED:
            assert fact.error == INTERRUPTED
    assert doubted <= starts(facts)
    ended = {
        fact.turn_id for fact in facts if isinstance(fact, TurnSettled)
    } - {fact.turn_id for fact in facts if isinstance(fact, ContinuationTaken)}  # fmt: skip
    assert ended == set()
    agreed = any(isinstance(fact, ToolApproved) for fact in facts)
    return f"{sorted(doubted)} {sorted(failed)} {agreed}"


def _continues(runtime: Runtime, run_id: str) -> bool:
    kernel = runtime._actor(run_id).kernel
    return any(isinstance(effect, Continue) for effect in kernel.pending_effects)


@pytest.mark.parametrize("story", [approved, denied, free, interrupted])
def test_s_52_killed_at_each_write_a_run_of_another_runtime_is_brought_to_rest(
    story: Story,
) -> None:
    """Approved and not claimed: never started. Claimed: in doubt. Interrupting: resolved.

    What was settled is acknowledged; nothing is owed an `execute`, and nothing is called started.
    """

    async def play() -> None:
        outcomes: set[str] = set()
        for writes in range(1, 40):
            for kept in (False, True):
                journal, scripted = MemoryJournal(), ScriptedAdapter()
                mortal = MortalJournal(journal, writes=writes, kept=kept)
                killed = await serve(mortal, others=[scripted])
                with suppress(TurnlockError):
                    await story(killed, scripted)
                if not mortal.died.is_set():
                    await killed.close()
                    assert len(outcomes) > 1, outcomes
                    return
                await killed.kill()
                if not await journal.runs() or not await steps(journal):
                    continue
                before = [fact async for fact in journal.facts("r")]
                async with serving(journal, others=[scripted]) as it:
                    await it.sessions.restore("r")
                    outcomes.add(await check(it, scripted, before))
                    await it.sessions.prompt("r", "next", message_id="n", doubts="fail")
                    while ("took", "r", "n") not in scripted.pipe:
                        await asyncio.sleep(0.01)  # what waited before it is asked, and answered
                        if scripted.told("took")[-1:] != [("took", "r", "n")]:
                            await scripted.sessions["r"].completes()
                    assert not it.sessions.life.runtimes[KIND].doubts("r")
        raise AssertionError("it writes more than that")

    run(play())


def test_s_51_killed_between_session_and_epoch_a_new_thread_is_begun() -> None:
    """The run stays, inactive, without an epoch; restore starts another thread."""

    async def play() -> None:
        journal, scripted = MemoryJournal(), ScriptedAdapter()
        scripted.gates["start"] = asyncio.Event()
        killed = await serve(journal, others=[scripted])
        creating = asyncio.create_task(killed.sessions.create(spec(kind=KIND)))
        await settled()
        assert await steps(journal) == ["session"]
        await killed.kill()
        creating.cancel()
        await asyncio.gather(creating, return_exceptions=True)
        scripted.gates.clear()
        async with serving(journal, others=[scripted]) as it:
            assert it.sessions.state_of("r") == "inactive"
            await it.sessions.restore("r")
            assert scripted.told("start", "resume") == [("start", "r")]
            assert await steps(journal) == ["session", "epoch"]

    run(play())


def test_s_10_observations_stand_before_the_facts_of_what_was_said_with_them() -> None:
    """`hear` returns when all is durable, in one order; a late note is never before (S-10)."""

    async def play() -> None:
        journal, scripted = MemoryJournal(), ScriptedAdapter()
        async with serving(journal, others=[scripted]) as it:
            await started(it, scripted)
            session = scripted.sessions["r"]
            ends: list[str] = []
            for item in ("c1", "c2", "c3"):
                await session.runs(item)
                await session.announces(item)
                ends.append(str((await journal.ends(["r"]))["r"]))
            page = await journal.ledger("r")
            cursors = [entry.cursor for entry in page.entries]
            assert cursors == sorted(cursors)
            assert ends == sorted(ends, key=lambda it: tuple(map(int, it.split("."))))
            kinds = [entry.domain for entry in page.entries]
            for number, item in enumerate(("c1", "c2", "c3")):
                notes = [it for it in page.entries if b'"item/started"' in it.content]
                assert f'"{item}"'.encode() in notes[number].content
                following = page.entries[page.entries.index(notes[number]) + 1]
                assert following.domain is None, kinds  # its CALL_ADDED or TURN_OPENED

    run(play())


def test_s_5_a_runtime_performs_only_its_own_kind() -> None:
    """K-61: neither taken over nor opened by another; `run_kind_mismatch`, and nothing runs."""

    async def play() -> None:
        journal, scripted, world = MemoryJournal(), ScriptedAdapter(), World()
        killed = await serve(journal, world, others=[scripted])
        await started(killed, scripted)
        await scripted.sessions["r"].runs("c1")
        await killed.kill()
        async with serving(journal, world) as it:  # a server without that adapter
            assert await it.runtime.take_over() == ()
            with pytest.raises(TurnlockError, match="kind"):
                await it.sessions.prompt("r", "hi", message_id="x")
            with pytest.raises(TurnlockError, match="another runtime"):
                await it.runtime.open_run(Run(run_id="r", kind=KIND))
            can = it.sessions.capabilities(KIND)
            assert (can.restore, can.interrupt, can.approve) == (False, True, True)
        assert world.asked == []

    run(play())

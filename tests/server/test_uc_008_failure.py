"""UC-008: a session that ends by itself; a process that dies at any step (S-26, S-54)."""

from __future__ import annotations

import asyncio

import pytest

from turnlock.adapters.contract import CommandRefused
from turnlock.models.lifecycle_facts import ToolExecutionFailed, ToolExecutionStarted
from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.journal.ledger import Domain
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.views.status import Status

from ..runtime.virtual import run
from .peers import World, said, serve, serving, spec, steps
from .scripted import KIND, ScriptedAdapter

STEPS = ("announced", "asked", "approved", "accepted", "free", "ended", "denied")
"""After what a process dies."""


async def until_step(journal: Journal, scripted: ScriptedAdapter, step: str) -> None:
    """Have a process come so far."""
    session = scripted.sessions["r"]
    if step == "announced":
        await session.announces("c1")
    elif step in {"free", "ended"}:
        await session.runs("c1")
        if step == "ended":
            await session.ends("c1")
    else:
        await session.asks_for("c1", rm=1)


@pytest.mark.parametrize("step", STEPS)
def test_s_26_a_process_that_dies_after_each_step(step: str) -> None:
    """Nothing is owed an `execute`, nothing is STARTED, what was not answered never started."""

    async def play() -> None:
        journal, scripted = MemoryJournal(), ScriptedAdapter()
        async with serving(journal, others=[scripted]) as it:
            await it.sessions.create(spec(kind=KIND), prompt="go", message_id="m")
            await it.until(lambda: bool(scripted.told("took")))
            if step == "approved":
                scripted.gates["accept"] = asyncio.Event()
            await until_step(journal, scripted, step)
            if step in {"approved", "accepted"}:
                await it.approve()
                if step == "accepted":
                    await it.until(lambda: bool(scripted.told("accept")))
            elif step == "denied":
                (call,) = it.pending()
                runtime = it.sessions.runtime_of("r")
                assert runtime is not None
                await runtime.deny("r", turn_id=call.turn_id, invocation_id="c1", reason="no")
            await scripted.sessions["r"].dies()
            await it.until(lambda: not it.sessions.is_active("r"))
            assert await steps(journal) == ["session", "epoch", "closed"]
            scripted.gates.clear()
            await it.sessions.restore("r")
            runtime = it.sessions.runtime_of("r")
            assert runtime is not None
            view = await runtime.view("r")
            facts = [fact async for fact in journal.facts("r")]
            started = [fact for fact in facts if isinstance(fact, ToolExecutionStarted)]
            failed = [fact for fact in facts if isinstance(fact, ToolExecutionFailed)]
            doubted = step in {"announced", "approved", "accepted", "free"}  # S-23, S-52
            assert bool(runtime.doubts("r")) is doubted
            assert (view.standing.status is Status.IN_DOUBT) is doubted
            assert runtime.pending("r") == ()
            if step == "asked":
                assert failed[0].error.startswith("never started")
                assert started == []
            taken = await it.sessions.prompt("r", "next", message_id="n", doubts="fail")
            assert not taken.restored
            await it.until(lambda: len(scripted.told("took")) == 2)
            assert runtime.doubts("r") == ()
            assert len(scripted.told("accept")) == (step == "accepted")

    run(play())


def test_s_54_what_a_process_said_last_is_kept_harmless_and_shown() -> None:
    """`closed` has its status and its words; a client sees the words as a note of their own."""

    async def play() -> None:
        journal, scripted = MemoryJournal(), ScriptedAdapter()
        async with serving(journal, others=[scripted]) as it:
            await it.sessions.create(spec(kind=KIND))
            await scripted.sessions["r"].dies(status=7, words="oh\x1b]0;x\x07 no")
            await it.until(lambda: not it.sessions.is_active("r"))
            (closed,) = [
                noted.note.body["ending"]
                for noted in await journal.notes("r", domain=Domain.SESSION)
                if noted.note.kind == "closed"
            ]
            assert isinstance(closed, dict)
            assert (closed["why"], closed["exit_status"]) == ("failed", 7)
            assert "\x1b" not in str(closed["said"])
            (shown,) = await journal.notes("r", domain=Domain.ERROR)
            assert "\x1b" not in str(shown.note.body["text"])

    run(play())


def test_s_54_a_model_that_fails_for_a_while_is_asked_again_within_the_budget() -> None:
    """Begun again by itself, three times a minute; the prompt is answered once."""

    async def play() -> None:
        journal, world = MemoryJournal(), World(silent=3)
        async with serving(journal, world) as it:
            await it.sessions.create(spec(), prompt="hi", message_id="m")
            await it.idle()
            assert world.asked == ["hi"] * 4
            assert await said(journal) == ["hi", "> done: hi"]
            assert (await steps(journal)).count("closed") == 3

    run(play())


def test_s_54_when_the_budget_is_spent_it_stays_inactive_and_says_so() -> None:
    """No loop; `runtime_unavailable` until the minute is over; then a command begins it again."""

    async def play() -> None:
        journal, world = MemoryJournal(), World(silent=100)
        async with serving(journal, world) as it:
            await it.sessions.create(spec(), prompt="hi", message_id="m")
            await it.until(lambda: len(world.asked) == 4)
            await it.until(lambda: not it.sessions.is_active("r"))
            await asyncio.sleep(5)
            assert len(world.asked) == 4
            for command in (
                it.sessions.restore("r"),
                it.sessions.prompt("r", "ho", message_id="n"),
            ):
                with pytest.raises(CommandRefused) as refused:
                    await command
                assert refused.value.code == "runtime_unavailable"
                assert 0 < refused.value.extra["retry_after"] <= 60
            await asyncio.sleep(60)
            world.silent = 0
            await it.sessions.prompt("r", "ho", message_id="n")
            await it.idle()
            assert await said(journal) == ["hi", "> done: hi", "ho", "> done: ho"]

    run(play())


def test_s_51_a_start_that_fails_leaves_a_run_that_can_be_restored() -> None:
    """A failure after the process began ends it; the run stays, inactive."""

    async def play() -> None:
        journal, scripted = MemoryJournal(), ScriptedAdapter()
        async with serving(journal, others=[scripted]) as it:
            scripted.failing["start"] = CommandRefused("runtime_command_failed", "no")
            with pytest.raises(CommandRefused) as refused:
                await it.sessions.create(spec(kind=KIND))
            assert refused.value.code == "runtime_command_failed"
            assert it.sessions.state_of("r") == "inactive"
            assert await steps(journal) == ["session"]
            runtime = it.sessions.life.runtimes[KIND]
            assert runtime.runs == ()
            scripted.failing.clear()
            await it.sessions.restore("r")
            assert await steps(journal) == ["session", "epoch"]
            assert scripted.told("start", "resume") == [("start", "r")]

    run(play())


def test_s_49_who_lost_its_run_ends_its_process_and_writes_nothing() -> None:
    """Section 14, ownership lost: FENCED; the process is ended, no `accept` is written (S-44)."""

    async def play() -> None:
        journal, scripted = MemoryJournal(), ScriptedAdapter()
        it = await serve(journal, others=[scripted])
        await it.sessions.create(spec(kind=KIND), prompt="go", message_id="m")
        await it.until(lambda: bool(scripted.told("took")))
        session = scripted.sessions["r"]
        await session.asks_for("c1", rm=1)
        entry = await journal.entry("r")
        assert entry.owned_until is not None
        await journal.own("r", owner="another", now=entry.owned_until + 1, lease=1000.0)
        runtime = it.sessions.runtime_of("r")
        assert runtime is not None
        (call,) = runtime.pending("r")
        with pytest.raises(Exception, match="taken over"):
            await runtime.approve(
                "r", turn_id=call.turn_id, invocation_id="c1",
                arguments_digest=call.arguments_digest,
            )  # fmt: skip
        await it.until(lambda: not it.sessions.is_active("r"))
        assert session.dead
        assert scripted.told("accept") == []
        assert await steps(journal) == ["session", "epoch"]
        await it.close()

    run(play())

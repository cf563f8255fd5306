"""Runs that nobody looks at, and the end of a server (S-96, S-97); what its start restores."""

from __future__ import annotations

import asyncio

import pytest

from turnlock.adapters.contract import CommandRefused
from turnlock.models.lifecycle_facts import DenialCause, ToolDenied
from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.journal.ledger import Domain
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.server.bounds import SessionSettings
from turnlock.server.orphans import HEADLESS
from turnlock.views.status import Status

from ..runtime.virtual import run
from .peers import World, said, serve, serving, spec, steps
from .scripted import KIND, ScriptedAdapter


async def whys(journal: Journal, run_id: str = "r") -> list[str]:
    """Why the sessions of a run have ended."""
    notes = await journal.notes(run_id, domain=Domain.SESSION)
    endings = [it.note.body["ending"] for it in notes if it.note.kind == "closed"]
    return [str(it["why"]) for it in endings if isinstance(it, dict)]


def test_s_96_nobody_need_be_connected() -> None:
    """S-7: headless is the rule; by default approvals wait, for as long as it takes."""

    async def play() -> None:
        journal = MemoryJournal()
        async with serving(journal) as it:
            await it.sessions.create(spec(), prompt="pay", message_id="m")
            await it.asked()
            await asyncio.sleep(900)
            await it.approve()
            await it.idle()
            assert (await said(journal))[-1] == "> done: pay"

    run(play())


@pytest.mark.parametrize("kind", ["own", KIND])
def test_s_96_headless_denies_what_waits_and_fails_what_is_in_doubt(kind: str) -> None:
    """`on_pending: deny`: the model is told, and nobody's name stands there."""

    async def play() -> None:
        journal, world, scripted = MemoryJournal(), World(), ScriptedAdapter()
        settings = SessionSettings.headless()
        async with serving(journal, world, others=[scripted], settings=settings) as it:
            await it.sessions.create(spec(kind=kind), prompt="pay", message_id="m")
            if kind == KIND:
                await it.until(lambda: bool(scripted.told("took")))
                await scripted.sessions["r"].asks_for("c1", rm=1)
                await it.until(lambda: bool(scripted.told("decline")))
            else:
                await it.idle()
                assert (await said(journal))[-1] == "> done: pay"
            facts = [fact async for fact in journal.facts("r")]
            (denied,) = [fact for fact in facts if isinstance(fact, ToolDenied)]
            assert (denied.decided_by, denied.cause) == (HEADLESS, DenialCause.DECISION)
            assert world.done == {}

    run(play())


def test_s_96_headless_a_doubt_is_settled_by_itself() -> None:
    """After a crash in the middle of a tool that must not repeat: it failed, and goes on."""

    async def play() -> None:
        journal, world = MemoryJournal(), World(gate=asyncio.Event())
        killed = await serve(journal, world)
        await killed.sessions.create(spec(), prompt="send", message_id="m")
        await killed.until(lambda: bool(world.done))
        await killed.kill()
        async with serving(journal, world, settings=SessionSettings.headless()) as it:
            await it.idle()
            assert (await said(journal))[-1] == "> done: send"
        assert sum(world.done.values()) == 1

    run(play())


@pytest.mark.parametrize("watched", [False, True])
def test_s_96_an_orphan_is_interrupted_and_its_session_ended(watched: bool) -> None:
    """With something pending, no subscriber and no command for so long; never while watched."""

    async def play() -> None:
        journal = MemoryJournal()
        settings = SessionSettings(orphan_timeout=60.0)

        def is_watched(_: str) -> bool:
            return watched

        async with serving(journal, settings=settings, is_watched=is_watched) as it:
            await it.sessions.create(spec("idle"), prompt="hi", message_id="m")
            await it.sessions.create(spec(), prompt="pay", message_id="m")
            await it.asked()
            for _ in range(3):  # commands keep it
                await asyncio.sleep(50)
                it.sessions.heed("r")
            assert it.sessions.is_active("r")
            await asyncio.sleep(80)
            assert it.sessions.is_active("r") is watched
            assert it.sessions.is_active("idle")  # nothing pends there
            if not watched:
                assert await whys(journal) == ["orphaned"]
                entry = await journal.entry("r")
                assert entry.status is Status.INTERRUPTED
                facts = [fact async for fact in journal.facts("r")]
                (denied,) = [fact for fact in facts if isinstance(fact, ToolDenied)]
                assert denied.cause is DenialCause.INTERRUPT

    run(play())


def test_s_97_at_the_end_no_command_is_taken_and_each_session_says_how_it_ended() -> None:
    """503 `shutting_down`; what runs is interrupted; `closed` says `drained`."""

    async def play() -> None:
        journal, world, scripted = MemoryJournal(), World(gate=asyncio.Event()), ScriptedAdapter()
        it = await serve(journal, world, others=[scripted], settings=SessionSettings(drain=1.0))
        await it.sessions.create(spec("idle"))
        await it.sessions.create(spec("running"), prompt="send", message_id="m")
        await it.sessions.create(spec("other", kind=KIND), prompt="go", message_id="m")
        await it.until(lambda: bool(world.done) and bool(scripted.told("took")))
        await it.close()
        for command in (
            it.sessions.create(spec("new")),
            it.sessions.prompt("idle", "hi", message_id="n"),
            it.sessions.restore("idle"),
            it.sessions.terminate("idle"),
        ):
            with pytest.raises(CommandRefused) as refused:
                await command
            assert refused.value.code == "shutting_down"
        for run_id in ("idle", "running", "other"):
            assert await whys(journal, run_id) == ["drained"]
            assert (await journal.entry(run_id)).owner is None
        assert scripted.told("kill") == [("kill", "other")]
        assert (await journal.entry("running")).status is Status.INTERRUPTED

    run(play())


def test_s_64_old_observations_are_pruned_once_an_hour() -> None:
    """Of runs that are performed here: of no turn that may be open; messages, manifests stay."""

    async def play() -> None:
        journal, scripted = MemoryJournal(), ScriptedAdapter()
        async with serving(journal, others=[scripted]) as it:
            await it.sessions.create(spec(kind=KIND), prompt="go", message_id="m")
            await it.until(lambda: bool(scripted.told("took")))
            session = scripted.sessions["r"]
            await session.runs("c1")
            await session.announces("c2")
            await session.ends("c1")
            await session.completes()
            assert len(await journal.notes("r", domain=Domain.ITEM)) == 3
            await asyncio.sleep(3_601)
            assert len(await journal.notes("r", domain=Domain.ITEM)) == 3  # its latest turn
            await it.sessions.prompt("r", "on", message_id="n")
            await it.until(lambda: len(scripted.told("took")) == 2)
            await session.announces("c3")
            await asyncio.sleep(3_601)
            (left,) = await journal.notes("r", domain=Domain.ITEM)
            assert left.note.body["item"] == "c3"
            assert len(await journal.notes("r", domain=Domain.MESSAGE)) == 6
            assert await steps(journal) == ["session", "epoch"]

    run(play())


@pytest.mark.parametrize("clean", [False, True])
def test_s_97_what_only_waits_leads_on_after_a_restart(clean: bool) -> None:
    """An approval, and prompts in line, killed or ended: the next server goes on with them."""

    async def play() -> None:
        journal, world = MemoryJournal(), World()
        it = await serve(journal, world)
        await it.sessions.create(spec(), prompt="pay", message_id="m0")
        await it.asked()
        await it.sessions.prompt("r", "next", message_id="m1")
        await (it.close() if clean else it.kill())
        async with serving(journal, world) as it:
            call = await it.asked()
            assert call.invocation_id == "call~1"
            await it.approve()
            await it.idle()
        assert (await said(journal))[2:] == ["> done: pay", "next", "> done: next"]
        assert sum(world.done.values()) == 1
        assert world.asked == ["pay", "pay", "next"]

    run(play())


@pytest.mark.parametrize("clean", [False, True])
def test_s_97_a_model_that_was_asked_is_asked_again_after_a_restart(clean: bool) -> None:
    """The prompt is answered once, though the server ended meanwhile."""

    async def play() -> None:
        journal, world = MemoryJournal(), World(gate=asyncio.Event())
        it = await serve(journal, world)
        await it.sessions.create(spec(), prompt="wait", message_id="m0")
        await it.until(lambda: bool(world.asked))
        await (it.close() if clean else it.kill())
        world.gate = None
        async with serving(journal, world) as it:
            await it.until(lambda: it.sessions.is_active("r"))
            await it.idle()
        assert await said(journal) == ["wait", "> done: wait"]

    run(play())


def test_s_54_which_sessions_a_start_restores() -> None:
    """Those that nobody has ended; what a person has ended, or a stranger began, stays."""

    async def play() -> None:
        journal, world = MemoryJournal(), World()
        async with world.agent(run="stranger", journal=journal) as agent:
            await agent.run("hi")
        it = await serve(journal, world)
        for run_id in ("idle", "ended", "waits"):
            await it.sessions.create(spec(run_id))
        await it.sessions.prompt("waits", "pay", message_id="m")
        await it.asked("waits")
        await it.sessions.terminate("ended")
        await it.kill()
        async with serving(journal, world) as it:
            active = it.sessions.life.active
            await it.until(lambda: len(active) == 2)
            await asyncio.sleep(30)
            assert set(active) == {"idle", "waits"}
            assert await steps(journal, "stranger") == []

    run(play())

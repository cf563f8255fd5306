"""Sub-agents of another runtime: threads that its session performs beside its own (S-56)."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing

import pytest

from turnlock.adapters.contract import CommandRefused, SessionSpec
from turnlock.models.effects import Execute
from turnlock.models.facts import ExecutionInDoubt, ToolExecutionFailed, ToolExecutionStarted
from turnlock.models.run import Run
from turnlock.runtime.errors import RunDiffers
from turnlock.runtime.journal.ledger import START, Domain
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.writer import fold_run
from turnlock.server.bounds import SessionSettings
from turnlock.server.hub import Hub
from turnlock.server.shown import Sent

from ..runtime.virtual import run
from .peers import Served, serve, serving, spec, steps
from .scripted import KIND, ScriptedAdapter, ScriptedSession

CHILD = "r/t%2F1"


async def begun(it: Served, scripted: ScriptedAdapter) -> ScriptedSession:
    """A run whose thread has begun another one, ``t/1``."""
    await it.sessions.create(spec(kind=KIND), prompt="go", message_id="m")
    await it.until(lambda: bool(scripted.told("took")))
    child = scripted.sessions["r"].begins("t/1")
    await child.announces("c0")
    return child


def test_s_56_a_thread_first_heard_of_becomes_a_run_with_its_parent() -> None:
    """With the first that is kept of it; of the same kind, correlated with its own thread."""

    async def play() -> None:
        journal, scripted = MemoryJournal(), ScriptedAdapter()
        async with serving(journal, others=[scripted]) as it:
            child = await begun(it, scripted)
            scripted.sessions["r"].sink.child("unheard", settlement="turn")
            entries = await journal.runs()
            assert [(one.run.run_id, one.run.kind) for one in entries] == [
                ("r", KIND),
                (CHILD, KIND),
            ]
            assert await steps(journal, CHILD) == ["session", "epoch"]
            first, epoch = await journal.notes(CHILD, domain=Domain.SESSION)
            assert (first.note.body["parent"], first.note.body["kind"]) == ("r", KIND)
            assert epoch.note.body["thread_id"] == "t/1"
            await child.runs("c1")
            await child.ends("c1")
            page = await journal.ledger(CHILD)
            told = [json.loads(entry.correlation or b"{}") for entry in page.entries]
            assert {one["thread_id"] for one in told if one.get("item_id")} == {"t/1"}
            assert not [fact async for fact in journal.facts("r")]  # nothing of it is its parent's
            assert it.sessions.state_of(CHILD) == "inactive"

    run(play())


def test_s_56_what_a_sub_agent_asks_is_decided_on_its_own_run_by_its_parents_session() -> None:
    """The answer goes to the parent's process, after the claim; a question is answered there."""

    async def play() -> None:
        journal, scripted = MemoryJournal(), ScriptedAdapter()
        async with serving(journal, others=[scripted]) as it:
            child = await begun(it, scripted)
            await child.asks_for("c1", rm=1)
            await it.approve(CHILD)
            await it.until(lambda: bool(scripted.told("accept")))
            assert scripted.told("accept") == [("accept", CHILD, "c1")]
            started = [f async for f in journal.facts(CHILD) if isinstance(f, ToolExecutionStarted)]
            assert len(started) == 1
            await child.asks_for("c2")
            runtime = it.sessions.runtime_of(CHILD)
            assert runtime is not None
            (call,) = it.pending(CHILD)
            await runtime.deny(CHILD, turn_id=call.turn_id, invocation_id="c2", reason="no")
            await it.until(lambda: bool(scripted.told("decline")))
            assert scripted.told("decline") == [("decline", CHILD, "c2")]
            interrupted = await runtime.interrupt(CHILD, turn_id=call.turn_id, grace=0.0)
            assert interrupted.accepted
            await it.until(lambda: bool(scripted.told("interrupt")))
            assert scripted.told("interrupt") == [("interrupt", call.turn_id)]

    run(play())


def test_s_56_a_subscription_includes_them_if_asked() -> None:
    """`children=1`, those that begin later, too."""

    async def play() -> None:
        journal, scripted = MemoryJournal(), ScriptedAdapter()
        async with serving(journal, others=[scripted]) as it, Hub(journal=journal) as hub:
            await it.sessions.create(spec(kind=KIND), prompt="go", message_id="m")
            found: dict[bool, set[str]] = {True: set(), False: set()}

            async def follow(children: bool) -> None:
                async with aclosing(
                    hub.subscribe("r", after=START, children=children)
                ) as subscription:
                    async for batch in subscription:
                        found[children] |= {one.run_id for one in batch if isinstance(one, Sent)}

            tasks = [asyncio.create_task(follow(which)) for which in (True, False)]
            await it.until(lambda: bool(found[True] and found[False]))
            child = scripted.sessions["r"].begins("t/1")
            await child.runs("c1")
            await it.until(lambda: CHILD in found[True])
            assert found == {True: {"r", CHILD}, False: {"r"}}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    run(play())


@pytest.mark.parametrize("how", ["terminated", "died", "killed", "fenced"])
def test_s_56_it_is_ended_with_its_parent(how: str) -> None:
    """What it ran is in doubt, what it asked never started; nobody owns it; its parent restores."""

    async def play() -> None:
        journal, scripted = MemoryJournal(), ScriptedAdapter()
        it = await serve(journal, others=[scripted])
        child = await begun(it, scripted)
        await child.runs("c1")
        await child.asks_for("c2")
        if how == "terminated":
            await it.sessions.terminate("r")
        elif how == "died":
            await scripted.sessions["r"].dies()
        elif how == "fenced":
            entry = await journal.entry(CHILD)
            assert entry.owned_until is not None
            await journal.own(CHILD, owner="another", now=entry.owned_until + 1, lease=1.0)
        if how == "killed":
            await it.kill()
        else:
            await it.until(lambda: not it.sessions.is_active("r"))
            assert it.sessions.life.sub_agents.of("r") == ()
            assert it.sessions.life.runtimes[KIND].runs == ()
            await it.close()
        await asyncio.sleep(5)
        async with serving(journal, others=[scripted]) as again:
            await again.sessions.restore("r")
            kernel = await fold_run(Run(run_id=CHILD, kind=KIND), journal)
            assert not [one for one in kernel.pending_effects if isinstance(one, Execute)]
            facts = [fact async for fact in journal.facts(CHILD)]
            doubted = [f.invocation_id for f in facts if isinstance(f, ExecutionInDoubt)]
            assert sorted(doubted) == ["c0", "c1"]
            failed = [f for f in facts if isinstance(f, ToolExecutionFailed)]
            assert [(f.invocation_id, f.error[:13]) for f in failed] == [("c2", "never started")]
            assert (await journal.entry(CHILD)).owner is None
            heard_again = scripted.sessions["r"].begins("t/1")
            await heard_again.announces("c3")
            assert (await steps(journal, CHILD))[-1] == "epoch"
            assert len(await journal.runs()) == 2

    run(play())


def test_s_96_what_a_sub_agent_waits_for_counts_for_its_parent() -> None:
    """Asked while nobody looks: its parent's run is an orphan; a command of its, or a look, heeds
    both. Headless, it is denied, and its doubts are settled."""

    async def play() -> None:
        scripted, watched = ScriptedAdapter(), {CHILD}
        async with serving(
            others=[scripted],
            settings=SessionSettings(orphan_timeout=10.0),
            is_watched=watched.__contains__,
        ) as it:
            child = await begun(it, scripted)
            await child.asks_for("c1")
            await asyncio.sleep(60)
            assert it.sessions.is_active("r")  # somebody looks at its sub-agent
            watched.clear()
            await asyncio.sleep(8)
            it.sessions.heed(CHILD)
            await asyncio.sleep(8)
            assert it.sessions.is_active("r")
            await asyncio.sleep(10)
            assert not it.sessions.is_active("r")
        scripted = ScriptedAdapter()
        async with serving(others=[scripted], settings=SessionSettings.headless()) as it:
            child = await begun(it, scripted)
            await child.asks_for("c1")
            await it.until(lambda: bool(scripted.told("decline")))
            await child.runs("c2")
            await child.lost("c2")
            runtime = it.sessions.life.runtimes[KIND]
            await asyncio.sleep(1)
            assert runtime.doubts(CHILD) == ()
            failed = [f async for f in it.sessions.journal.facts(CHILD)]
            assert any(isinstance(one, ToolExecutionFailed) for one in failed)

    run(play())


def test_s_56_a_session_whose_sub_agent_works_is_not_put_to_rest() -> None:
    """Its own turn is over, and another run wants its room: `limit_reached` until both are."""

    async def play() -> None:
        scripted = ScriptedAdapter()
        async with serving(others=[scripted], settings=SessionSettings(sessions=1)) as it:
            child = await begun(it, scripted)
            await scripted.sessions["r"].completes()
            await it.idle()
            with pytest.raises(CommandRefused) as refused:
                await it.sessions.create(spec("other", kind=KIND))
            assert refused.value.code == "limit_reached"
            await child.completes()
            await it.sessions.create(spec("other", kind=KIND))
            assert not it.sessions.is_active("r")

    run(play())


def test_s_56_it_is_performed_by_nobody_else() -> None:
    """A prompt and a restore: 409 `owned_elsewhere` while it works, `run_inactive` afterwards."""

    async def play() -> None:
        journal, scripted = MemoryJournal(), ScriptedAdapter()
        async with serving(journal, others=[scripted]) as it:
            await begun(it, scripted)
            for code in ("owned_elsewhere", "run_inactive"):
                for command in (
                    it.sessions.prompt(CHILD, "hi", message_id="x"),
                    it.sessions.restore(CHILD, force=True),
                ):
                    with pytest.raises(CommandRefused) as refused:
                        await command
                    assert refused.value.code == code
                await it.sessions.terminate("r")
            await it.sessions.wake(CHILD)
            await asyncio.sleep(1)
            assert it.sessions.life.active == {}
            assert scripted.told("resume") == []

    run(play())


def test_s_56_a_run_of_that_name_that_is_no_sub_agents_is_left_alone() -> None:
    """It is somebody's: `RunDiffers`, and nothing is kept of the thread there."""

    async def play() -> None:
        journal, scripted = MemoryJournal(), ScriptedAdapter()
        async with serving(journal, others=[scripted]) as it:
            await it.sessions.create(SessionSpec(run_id=CHILD, kind=KIND))
            await it.sessions.terminate(CHILD)
            before = await journal.ledger(CHILD, manifests=True)
            with pytest.raises(RunDiffers):
                await begun(it, scripted)
            assert await journal.ledger(CHILD, manifests=True) == before
            assert it.sessions.life.sub_agents.of("r") == ()

    run(play())

"""What precedes and follows the next process of a run (S-49, S-50, S-52, S-23, S-27)."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio

import pytest

from turnlock.adapters.contract import CommandRefused
from turnlock.models.facts import (
    ExecutionInDoubt,
    ToolExecutionFailed,
    ToolExecutionStarted,
    ToolExecutionSucceeded,
    TurnOpened,
)
from turnlock.models.values import Json
from turnlock.models.workers import OPAQUE
from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.owners import was_ours
from turnlock.server import restoring
from turnlock.views.status import Status

from ..runtime.virtual import run
from .peers import Served, serve, serving, spec, steps
from .scripted import KIND, ScriptedAdapter, ScriptedSession

ALIVE = "the process that performed it may live still"


async def begun(it: Served, scripted: ScriptedAdapter, run_id: str = "r") -> ScriptedSession:
    """A run in which a turn goes on upstream."""
    await it.sessions.create(spec(run_id, kind=KIND), prompt="go", message_id="m")
    await it.until(lambda: run_id in {told[1] for told in scripted.told("took")})
    return scripted.sessions[run_id]


async def facts_of(journal: Journal, *kinds: type) -> list[str]:
    """The calls of the facts of these kinds."""
    return [
        getattr(fact, "invocation_id", "")
        async for fact in journal.facts("r")
        if isinstance(fact, kinds)
    ]


def test_s_49_a_run_is_not_restored_while_its_last_process_may_live() -> None:
    """Neither by a command nor by a prompt: nothing is owned, written or started.

    Somebody says so (`force`), or it is known to be dead: then it is.
    """

    async def play() -> None:
        for by_force in (True, False):
            journal, scripted = MemoryJournal(), ScriptedAdapter()
            killed = await serve(journal, others=[scripted])
            session = await begun(killed, scripted)
            await session.asks_for("c1")
            await killed.kill()
            scripted.living["scripted/1"] = ALIVE
            before = await journal.ledger("r", manifests=True)
            entry = await journal.entry("r")
            async with serving(journal, others=[scripted]) as it:
                for command in (
                    it.sessions.restore("r"),
                    it.sessions.prompt("r", "hi", message_id="x"),
                ):
                    with pytest.raises(CommandRefused, match=r"may live still.*force") as refused:
                        await command
                    assert refused.value.code == "owned_elsewhere"
                assert await journal.ledger("r", manifests=True) == before
                assert await journal.entry("r") == entry
                assert scripted.told("resume") == []
                if by_force:
                    await it.sessions.restore("r", force=True)
                else:
                    scripted.living.clear()
                    await it.sessions.restore("r")
                assert scripted.told("resume") == [("resume", "r")]
                assert it.pending() == ()

    run(play())


def test_s_49_a_process_whose_end_is_kept_is_not_asked_after() -> None:
    """We ended it, or saw it end: another server may go on, wherever it is."""

    async def play() -> None:
        journal, scripted = MemoryJournal(), ScriptedAdapter()
        async with serving(journal, others=[scripted]) as it:
            await begun(it, scripted)
            await it.sessions.terminate("r")
        scripted.living["scripted/1"] = ALIVE
        async with serving(journal, others=[scripted]) as it:
            await it.sessions.restore("r")
            assert await steps(journal) == ["session", "epoch", "closed", "epoch"]

    run(play())


def test_s_49_who_is_fenced_kills_its_process_at_once() -> None:
    """Also while whatever else goes on with the run's session waits."""

    async def play() -> None:
        journal, scripted = MemoryJournal(), ScriptedAdapter()
        it = await serve(journal, others=[scripted])
        session = await begun(it, scripted)
        async with it.sessions.life.lock("r"):  # a command has it, and waits
            entry = await journal.entry("r")
            assert entry.owned_until is not None
            await journal.own("r", owner="another", now=entry.owned_until + 1, lease=1000.0)
            await it.until(lambda: session.dead)
        await it.until(lambda: not it.sessions.is_active("r"))
        assert scripted.told("kill") == [("kill", "r")]
        assert await steps(journal) == ["session", "epoch"]
        await it.close()

    run(play())


def test_s_23_what_was_only_announced_may_have_run() -> None:
    """Before the kernel's turn was opened, within it, and after it: added, claimed, lost; once."""

    async def play() -> None:
        for opened in ("never", "open", "closed"):
            journal, scripted = MemoryJournal(), ScriptedAdapter()
            killed = await serve(journal, others=[scripted])
            session = await begun(killed, scripted)
            await session.announces("c1")
            if opened != "never":
                await session.runs("c2")
                await session.ends("c2")
            await killed.kill()
            async with serving(journal, others=[scripted]) as it:
                await it.sessions.restore("r")
                assert await facts_of(journal, ExecutionInDoubt) == ["c1"]
                before = [fact async for fact in journal.facts("r")]
                if opened == "closed":
                    await it.sessions.prompt("r", "next", message_id="n", doubts="fail")
                await scripted.sessions["r"].dies()
                await it.until(lambda it=it: not it.sessions.is_active("r"))  # type: ignore[misc]
                await it.sessions.restore("r")
                after = [fact async for fact in journal.facts("r")]
                assert after[: len(before)] == before
                assert await facts_of(journal, ExecutionInDoubt) == ["c1"]  # not once more

    run(play())


def test_s_23_what_does_not_fit_into_an_interrupted_turn_is_one_of_its_own() -> None:
    """The turn is closed first: lost and resolved; then what was announced stands in the next."""

    async def play() -> None:
        journal, scripted = MemoryJournal(), ScriptedAdapter()
        killed = await serve(journal, others=[scripted])
        session = await begun(killed, scripted)
        await session.runs("c1")
        session.turn = "u1.1"
        await session.announces("c2")
        runtime = killed.sessions.runtime_of("r")
        assert runtime is not None
        await runtime.interrupt("r", turn_id="u1.1", grace=100.0)
        await killed.kill()
        async with serving(journal, others=[scripted]) as it:
            await it.sessions.restore("r")
            doubts = it.sessions.life.runtimes[KIND].doubts("r")
            assert [call.invocation_id for call in doubts] == ["c2"]
            turns = [fact async for fact in journal.facts("r") if isinstance(fact, TurnOpened)]
            assert len(turns) == 2

    run(play())


ENDED: dict[str, Json] = {"c1": "it ran", "twice": "one of them", "never": "?"}


def test_s_27_an_end_that_the_runtime_has_kept_settles_a_doubt() -> None:
    """Only an end does, and only of an id that was used once; what is missing proves nothing."""

    async def play() -> None:
        journal, scripted = MemoryJournal(), ScriptedAdapter()
        killed = await serve(journal, others=[scripted])
        session = await begun(killed, scripted)
        for item in ("c1", "c2", "twice"):
            await session.runs(item)
        await session.runs_again("twice", "twice~2")
        await killed.kill()
        scripted.ended.update(ENDED)
        async with serving(journal, others=[scripted]) as it:
            await it.sessions.restore("r")
            assert scripted.asked_for_evidence == ["c1", "c2"]
            assert await facts_of(journal, ToolExecutionSucceeded) == ["c1"]
            doubts = it.sessions.life.runtimes[KIND].doubts("r")
            assert [call.invocation_id for call in doubts] == ["c2", "twice", "twice~2"]
            assert await steps(journal) == ["session", "epoch", "epoch"]
            await it.sessions.prompt("r", "next", message_id="n", doubts="fail")
            assert it.sessions.life.runtimes[KIND].doubts("r") == ()

    run(play())


def test_s_50_the_journal_keeps_what_a_worker_stands_for() -> None:
    """Of whoever claims what a dead process announced; and of a process, for its adapter."""

    async def play() -> None:
        journal, scripted = MemoryJournal(), ScriptedAdapter()
        killed = await serve(journal, others=[scripted])
        session = await begun(killed, scripted)
        await session.announces("c1")
        await killed.kill()
        async with serving(journal, others=[scripted]) as it:
            await it.sessions.restore("r")
            started = [f async for f in journal.facts("r") if isinstance(f, ToolExecutionStarted)]
            workers = {fact.worker for fact in started}
            assert len(workers) == 1
            (worker,) = workers
            assert worker is not None
            assert worker.startswith(OPAQUE)
            assert was_ours(await journal.worker(worker))
            process = "codex/host/7/11"
            sink = scripted.sessions["r"].sink
            named = [await sink.worker_for(process) for _ in range(2)]
            assert [await journal.worker(it) for it in named] == [process] * 2
            assert "host" not in "".join(named)

    run(play())


@pytest.mark.parametrize("lives", [False, True])
def test_s_52_a_server_that_begins_brings_to_rest_what_dead_processes_left(lives: bool) -> None:
    """Nobody is asked what nobody waits for; sub-agents' runs, too; no session is begun.

    As long as a process may live its run is left as it stands.
    """

    async def play() -> None:
        journal, scripted = MemoryJournal(), ScriptedAdapter()
        killed = await serve(journal, others=[scripted])
        session = await begun(killed, scripted)
        await session.asks_for("c1")
        await session.runs("c2")
        await session.begins("t").runs("c3")
        await begun(killed, scripted, "settled")
        await scripted.sessions["settled"].runs("c4")
        await killed.kill()
        if lives:
            scripted.living["scripted/1"] = ALIVE
        before = [fact async for fact in journal.facts("r")]
        async with serving(journal, others=[scripted]) as it:
            await asyncio.sleep(30)
            assert it.sessions.life.active == {}
            assert it.sessions.life.runtimes[KIND].runs == ()
            stands = {run_id: (await journal.entry(run_id)).status for run_id in ("r", "r/t")}
            if lives:
                assert [fact async for fact in journal.facts("r")] == before
                assert Status.IN_DOUBT not in stands.values()
                return
            assert set(stands.values()) == {Status.IN_DOUBT}
            assert await facts_of(journal, ToolExecutionFailed) == ["c1"]
            assert await facts_of(journal, ExecutionInDoubt) == ["c2"]
            assert await steps(journal) == ["session", "epoch"]
            await it.sessions.prompt("r", "next", message_id="n", doubts="fail")
            await it.until(lambda: ("took", "r", "n") in scripted.pipe)

    run(play())


def test_s_52_only_what_stands_since_the_turn_before_the_last_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Page by page from the end, however long the run is; what was announced is found there."""
    monkeypatch.setattr(restoring, "PAGE", 3)

    async def play() -> None:
        journal, scripted = MemoryJournal(), ScriptedAdapter()
        killed = await serve(journal, others=[scripted])
        session = await begun(killed, scripted)
        for number in range(5):
            await session.announces(f"a{number}")
            await session.runs(f"c{number}")
            await session.ends(f"c{number}")
            await session.runs(f"a{number}")
            await session.ends(f"a{number}")
            if number < 4:
                await session.completes()
                await killed.sessions.prompt("r", "on", message_id=f"n{number}")
                await killed.until(lambda n=number: len(scripted.told("took")) == n + 2)  # type: ignore[misc]
        await session.announces("last")
        facts = [fact async for fact in journal.facts("r")]
        latest = await restoring._latest(journal, "r", ends=len(facts))
        assert latest == facts[-len(latest) :]
        opened = [fact.turn_id for fact in latest if isinstance(fact, TurnOpened)]
        assert (opened, latest[0].type) == (["u1.4", "u1.5"], "TURN_OPENED")
        assert await restoring._latest(journal, "r", ends=0) == []
        await killed.kill()
        async with serving(journal, others=[scripted]) as it:
            await it.sessions.restore("r")
            assert await facts_of(journal, ExecutionInDoubt) == ["last"]

    run(play())

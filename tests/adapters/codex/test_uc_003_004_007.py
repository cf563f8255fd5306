"""UC-003, UC-004, UC-007 on Codex runs: gone on with, stopped, which models; a Codex in memory."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from turnlock.adapters.codex.settings import KIND
from turnlock.adapters.contract import CommandRefused
from turnlock.models.lifecycle_facts import (
    DenialCause,
    ToolDenied,
    ToolExecutionFailed,
    ToolExecutionStarted,
)
from turnlock.models.reasons import Reason
from turnlock.runtime.journal.ledger import Note
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.server.manifests import session_note

from ...runtime.virtual import run
from ...server.peers import spec
from .codex_runs import VERSIONS, World, codex_world
from .memory_codex import MemoryCodex

TURN = ("turn/start",)


# UC-003


def test_uc_003_inactive_it_is_restored_and_then_asked() -> None:
    """The thread is resumed before the turn is begun; settings that changed go with it."""

    async def play() -> None:
        async with codex_world() as it:
            await it.begun(None)
            await it.served.sessions.terminate("r")
            taken = await it.served.sessions.prompt(
                "r", "hi", message_id="m", changes={"sandbox": "read-only"}
            )
            assert taken.restored
            await it.served.until(lambda: it.codex.turn is not None)
            told = [name for name, *_ in it.codex.pipe if name in {"thread/resume", *TURN}]
            assert told == ["thread/resume", "turn/start"]
            (resumed,) = it.codex.told("thread/resume")
            assert resumed["threadId"] == "thread-1"
            assert resumed["sandbox"] == "read-only"
            assert resumed["approvalsReviewer"] == "user"

    run(play())


def test_uc_003_active_other_settings_are_named_as_ignored() -> None:
    """S-87."""

    async def play() -> None:
        async with codex_world() as it:
            await it.begun(None)
            taken = await it.served.sessions.prompt(
                "r", "hi", message_id="m", changes={"model": "large", "sandbox": "read-only"}
            )
            assert set(taken.ignored) == {"model", "sandbox"}

    run(play())


@pytest.mark.parametrize("what", ["later", "no thread", "gone"])
def test_uc_003_what_cannot_be_gone_on_with_starts_nothing(what: str) -> None:
    """A later version's manifest, one without a thread: nothing started; a thread that is gone."""

    async def play() -> None:
        journal, codex = MemoryJournal(), MemoryCodex()
        async with codex_world(codex, journal) as it:
            await it.begun(None)
            await it.served.sessions.terminate("r")
            at = it.runtime.now()
            if what == "later":
                note = session_note(spec(kind=KIND), number=2, at=at)
                await journal.note("r", fence=None, notes=[_later(note)])
            elif what == "no thread":
                note = Note(
                    domain="session", kind="epoch", body={"process": "x"}, at=at, id="epoch/2"
                )
                await journal.note("r", fence=None, notes=[note])
            else:
                codex.refusing["thread/resume"] = "no rollout found for thread"
            started = len(codex.wires)
            with pytest.raises(CommandRefused) as refused:
                await it.served.sessions.prompt("r", "hi", message_id="m")
            expected = (
                "codex_thread_bootstrap_failed" if what == "gone" else "runtime_reference_invalid"
            )
            assert refused.value.code == expected
            assert (len(codex.wires) == started) is (what != "gone")
            assert all(wire.dead for wire in codex.wires)
            assert codex.told(*TURN) == []

    run(play())


def _later(note: Note) -> Note:
    body = {**note.body, "version": 99}
    return Note(domain=note.domain, kind=note.kind, body=body, at=note.at, id="session/2")


@pytest.mark.parametrize("version", VERSIONS)
def test_uc_003_doubts_of_a_dead_process_are_settled_before_the_next_turn(version: str) -> None:
    """409 `in_doubt`, nothing sent; with `doubts: fail` they are, and then it is asked (S-83)."""

    async def play() -> None:
        async with codex_world(MemoryCodex(version=version)) as it:
            await it.begun()
            it.codex.runs("c1")
            await asyncio.sleep(1)
            it.codex.wire.dies()
            await it.served.until(lambda: not it.served.sessions.is_active("r"))
            assert await it.status() == "in_doubt"
            prompt = it.served.sessions.prompt
            with pytest.raises(CommandRefused) as refused:
                await prompt("r", "next", message_id="m1")
            assert refused.value.code == "in_doubt"
            assert len(it.codex.told(*TURN)) == 1
            await prompt("r", "next", message_id="m1", doubts="fail")
            await it.served.until(lambda: len(it.codex.told(*TURN)) == 2)
            (failed,) = [one for one in await it.facts() if isinstance(one, ToolExecutionFailed)]
            assert "outcome unknown" in str(failed.error)
            assert (await it.journal.entry("r")).doubts == 0

    run(play())


def test_uc_007_models_are_those_of_the_runtime() -> None:
    """Asked for once, and anew when that is asked for (S-85)."""

    async def play() -> None:
        async with codex_world() as it:
            models = it.served.sessions.models
            offered = (await models(KIND))[KIND]
            assert [one.name for one in offered.models] == ["small", "large"]
            asked = len(it.codex.told("model/list"))
            await models(KIND)
            assert len(it.codex.told("model/list")) == asked
            it.codex.models = ("new",)
            offered = (await models(KIND, reload=True))[KIND]
            assert [one.name for one in offered.models] == ["new"]
            assert all(wire.dead for wire in it.codex.wires)

    run(play())


# UC-004


async def stop(it: World) -> tuple[bool, Any]:
    """Stop the open turn, or what goes on without one, as the ingress does (S-45)."""
    turn = (await it.runtime.view("r")).turn
    if turn is None:
        return await it.served.sessions.interrupt("r", reason="enough", grace=5.0), None
    verdict = await it.runtime.interrupt("r", turn_id=turn.turn_id, reason="enough", grace=5.0)
    return verdict.accepted, verdict.reason


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("where", ["waiting", "running", "between", "asked", "idle"])
def test_uc_004_stopped_wherever_it_stands(where: str, version: str) -> None:
    """The kernel first, then `turn/interrupt`, once; twice nothing more; then the next (S-46)."""

    async def play() -> None:
        async with codex_world(MemoryCodex(version=version)) as it:
            await it.begun(None if where == "idle" else "go")
            if where == "waiting":
                await it.waits("c1")
            elif where in {"running", "between"}:
                it.codex.runs("c1")
                if where == "between":
                    it.codex.ends("c1")
            await asyncio.sleep(1)
            accepted, _ = await stop(it)
            assert accepted is (where != "idle")
            began = asyncio.get_running_loop().time()
            await it.idle()
            assert asyncio.get_running_loop().time() - began < 1, "the grace is not waited for"
            assert len(it.codex.told("turn/interrupt")) == (where != "idle")
            again, _ = await stop(it)
            assert not again
            assert it.codex.answers == []
            facts = await it.facts()
            started = {one.invocation_id for one in facts if isinstance(one, ToolExecutionStarted)}
            denied = {one.invocation_id for one in facts if isinstance(one, ToolDenied)}
            assert not started & denied
            kinds = await it.kinds()
            if where == "running":
                assert "EXECUTION_IN_DOUBT" in kinds
            if where in {"waiting", "running"}:
                assert "TURN_INTERRUPTED" in kinds
            await it.served.sessions.prompt("r", "next", message_id="n")
            await it.served.until(lambda: it.codex.turn is not None)

    run(play())


def test_uc_004_a_turn_whose_id_is_not_known_yet() -> None:
    """`turn_correlation_missing`: asked again in a moment, it is."""

    async def play() -> None:
        async with codex_world() as it:
            await it.begun(None)
            it.codex.held["turn/start"] = asyncio.Event()
            await it.served.sessions.prompt("r", "go", message_id="m")
            await it.served.until(lambda: bool(it.codex.told(*TURN)))
            with pytest.raises(CommandRefused) as refused:
                await it.served.sessions.interrupt("r", reason=None, grace=1.0)
            assert refused.value.code == "turn_correlation_missing"
            it.codex.held["turn/start"].set()
            await it.served.until(lambda: it.codex.turn is not None)
            await asyncio.sleep(1)
            assert await it.served.sessions.interrupt("r", reason=None, grace=1.0)
            await it.idle()

    run(play())


def test_uc_004_another_turn_stops_nothing() -> None:
    """`turn_mismatch`; nothing is written."""

    async def play() -> None:
        async with codex_world() as it:
            await it.begun()
            await it.waits("c1")
            verdict = await it.runtime.interrupt("r", turn_id="turn-9", grace=1.0)
            assert verdict.reason is Reason.TURN_MISMATCH
            await asyncio.sleep(5)
            assert it.codex.told("turn/interrupt") == []

    run(play())


def test_uc_004_a_process_that_does_not_stop_is_ended() -> None:
    """What was asked to be stopped is stopped: it does not answer, and is killed."""

    async def play() -> None:
        async with codex_world() as it:
            await it.begun()
            it.codex.runs("c1")
            await asyncio.sleep(1)
            it.codex.silent.add("turn/interrupt")
            assert (await stop(it))[0]
            await it.served.until(lambda: it.codex.wire.dead)
            await it.served.until(lambda: not it.served.sessions.is_active("r"))
            assert (await it.runtime.journal.entry("r")).doubts == 0

    run(play())


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("first", ["interrupt", "approve"])
@pytest.mark.parametrize("later", range(0, 12, 2))
def test_uc_004_a_race_with_an_approval_never_says_denied_of_what_ran(
    version: str, first: str, later: int
) -> None:
    """Whoever is judged first, with so many turns of the loop between them (S-21, S-42)."""

    async def play() -> None:
        async with codex_world(MemoryCodex(version=version)) as it:
            await it.begun()
            (call,) = await it.waits("c1")
            approving = it.runtime.approve(
                "r",
                turn_id=call.turn_id,
                invocation_id="c1",
                arguments_digest=call.arguments_digest,
            )
            stopping = it.runtime.interrupt("r", turn_id=call.turn_id, grace=1.0)
            works = [stopping, approving] if first == "interrupt" else [approving, stopping]
            tasks = [asyncio.create_task(works[0])]
            for _ in range(later):
                await asyncio.sleep(0)
            tasks.append(asyncio.create_task(works[1]))
            await asyncio.gather(*tasks)
            await it.served.until(lambda: bool(it.codex.told("turn/interrupt")))
            await it.idle()
            facts = await it.facts()
            started = any(isinstance(fact, ToolExecutionStarted) for fact in facts)
            denied = [fact for fact in facts if isinstance(fact, ToolDenied)]
            accepted = [one for _, one in it.codex.answers if one == {"decision": "accept"}]
            assert len(it.codex.answers) <= 1
            assert bool(accepted) <= started
            assert not (started and denied)
            if denied:
                assert denied[0].cause is DenialCause.INTERRUPT
                assert it.codex.answers == []

    run(play())

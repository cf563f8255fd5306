"""A thread as a session: bootstrap, turns, questions, ends (S-10, S-28, S-29, S-42 … S-54)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, cast

import pytest

from turnlock.adapters.codex.session import turn_with
from turnlock.adapters.codex.settings import KIND, CodexSettings
from turnlock.adapters.codex.thread import NO_TOOL
from turnlock.adapters.contract import CommandRefused
from turnlock.models.deliveries import Match, Scope
from turnlock.models.lifecycle_facts import (
    ToolApproved,
    ToolDenied,
    ToolExecutionFailed,
    ToolExecutionStarted,
    ToolExecutionSucceeded,
)
from turnlock.models.workers import OPAQUE
from turnlock.runtime.journal.ledger import Domain
from turnlock.server.bounds import SessionSettings
from turnlock.server.orphans import NOBODY

from ...runtime.virtual import run
from ...server.peers import messages, spec, steps
from .codex_runs import VERSIONS, World, codex_world
from .memory_codex import WITH_RAW, MemoryCodex


@pytest.mark.parametrize("version", VERSIONS)
def test_s_42_an_approval_is_claimed_then_accepted_and_what_ran_is_reported(version: str) -> None:
    """The whole way of one command: announced, asked, approved, STARTED, `accept`, SUCCEEDED."""

    async def play() -> None:
        async with codex_world(MemoryCodex(version=version)) as it:
            await it.begun()
            (call,) = await it.waits("c1")
            assert await it.started() == set()
            assert call.requires_approval
            assert call.observed
            await it.served.approve()
            await it.served.until(lambda: bool(it.codex.answers))
            assert it.codex.answers == [("c1", {"decision": "accept"})]
            assert await it.started() == {"c1"}
            it.codex.ends("c1")
            it.codex.speaks("done")
            it.codex.completes()
            await it.idle()
            assert [kind for kind in await it.kinds() if kind.startswith("TOOL_")] == [
                "TOOL_APPROVAL_REQUESTED",
                "TOOL_APPROVED",
                "TOOL_EXECUTION_STARTED",
                "TOOL_EXECUTION_SUCCEEDED",
            ]
            assert "TURN_SETTLED" in await it.kinds()
            said = [one.note.body["text"] for one in await messages(it.journal, "r", "assistant")]
            assert said == ["done"]

    run(play())


@pytest.mark.parametrize("version", VERSIONS)
def test_s_42_a_denial_is_declined_and_never_started(version: str) -> None:
    """And what the item says of it then only confirms."""

    async def play() -> None:
        async with codex_world(MemoryCodex(version=version)) as it:
            await it.begun()
            (call,) = await it.waits("c1")
            await it.runtime.deny("r", turn_id=call.turn_id, invocation_id=call.invocation_id)
            await it.served.until(lambda: bool(it.codex.answers))
            it.codex.completes()
            await it.idle()
            assert it.codex.answers == [("c1", {"decision": "decline"})]
            assert await it.started() == set()
            assert [fact for fact in await it.facts() if isinstance(fact, ToolDenied)]

    run(play())


def test_s_35_a_grant_of_the_kernel_answers_the_next_one() -> None:
    """Codex is told `accept`, and nothing that it would remember."""

    async def play() -> None:
        async with codex_world() as it:
            await it.begun()
            (call,) = await it.waits("c1")
            await it.runtime.approve(
                "r",
                turn_id=call.turn_id,
                invocation_id="c1",
                scope=Scope.SESSION,
                match=Match.TOOL,
                arguments_digest=call.arguments_digest,
            )
            await it.served.until(lambda: len(it.codex.answers) == 1)
            it.codex.ends("c1")
            it.codex.asks_to_run("c2")
            await it.served.until(lambda: len(it.codex.answers) == 2)
            assert {str(answer) for _, answer in it.codex.answers} == {"{'decision': 'accept'}"}
            assert await it.started() == {"c1", "c2"}
            facts = [fact for fact in await it.facts() if isinstance(fact, ToolApproved)]
            assert facts[1].grant_id is not None

    run(play())


def test_s_21_what_runs_unasked_is_started_at_once() -> None:
    """It is free, ours only to see, and its worker is opaque (S-50)."""

    async def play() -> None:
        async with codex_world() as it:
            await it.begun()
            it.codex.runs("c1")
            it.codex.ends("c1", status="failed", output="no\n")
            it.codex.completes()
            await it.idle()
            facts = await it.facts()
            (started,) = [one for one in facts if isinstance(one, ToolExecutionStarted)]
            assert [
                one
                for one in facts
                if isinstance(one, ToolExecutionFailed | ToolExecutionSucceeded)
            ]
            assert started.worker is not None
            assert started.worker.startswith(OPAQUE)
            assert await it.journal.worker(started.worker) == str(it.codex.wire.name)

    run(play())


def test_s_50_the_epoch_says_which_process_and_thread() -> None:
    """Its settlement, too: what it is changes with the process (S-32)."""

    async def play() -> None:
        codex = MemoryCodex()
        async with codex_world(codex) as it:
            await it.begun(None)
            await it.served.sessions.terminate("r")
            await it.served.sessions.restore("r")
            notes = await it.journal.notes("r", domain=Domain.SESSION)
            told = [dict(one.note.body) for one in notes if one.note.kind == "epoch"]
            wires = [wire for wire in codex.wires if wire.thread is not None]
            assert told == [
                {
                    "process": str(wire.name),
                    "host": wire.name.host,
                    "thread_id": "thread-1",
                    "runtime_version": WITH_RAW,
                    "settlement": settlement,
                }
                for wire, settlement in zip(wires, ("response", "turn"), strict=True)
            ]
            assert await steps(it.journal) == ["session", "epoch", "closed", "epoch"]

    run(play())


def test_s_29_between_two_responses_of_a_turn_results_are_processed() -> None:
    """By the facts alone, so every view says so; idle once the upstream turn is over."""

    async def play() -> None:
        async with codex_world() as it:
            await it.begun()
            it.codex.runs("c1")
            it.codex.ends("c1")
            await asyncio.sleep(5)
            assert (await it.kinds())[-1] == "TURN_SETTLED"
            assert await it.status() == "processing_results"
            assert not it.served.sessions.life.active["r"].idle
            it.codex.runs("c2")
            await asyncio.sleep(5)
            assert await it.status() == "executing"
            assert "CONTINUATION_TAKEN" in await it.kinds()
            it.codex.ends("c2")
            await asyncio.sleep(5)
            assert await it.status() == "processing_results"
            it.codex.speaks("done")
            it.codex.completes()
            await it.idle()
            await asyncio.sleep(1)
            assert await it.status() == "idle"
            assert (await it.kinds()).count("CONTINUATION_TAKEN") == 2

    run(play())


@pytest.mark.parametrize("how", ["dies", "terminated"])
def test_s_29_results_of_a_session_that_has_ended_are_processed_no_more(how: str) -> None:
    """Its status is idle: nothing goes on."""

    async def play() -> None:
        async with codex_world() as it:
            await it.begun()
            it.codex.runs("c1")
            it.codex.ends("c1")
            await asyncio.sleep(5)
            if how == "dies":
                it.codex.wire.dies()
            else:
                await it.served.sessions.terminate("r")
            await it.served.until(lambda: not it.served.sessions.is_active("r"))
            assert await it.status() == "idle"

    run(play())


def test_s_51_what_the_owner_allows_and_the_runtime_has() -> None:
    """Stricter is allowed, looser is not; a model must be one that there is."""

    async def play() -> None:
        owner = CodexSettings(sandbox="workspace-write", approval_policy="on-request")
        async with codex_world(owner=owner) as it:
            create = it.served.sessions.create
            wrongs: tuple[tuple[dict[str, Any], str], ...] = (
                ({"sandbox": "danger-full-access"}, "invalid_value"),
                ({"approval_policy": "never"}, "invalid_value"),
                ({"model": "none"}, "model_unavailable_for_runtime"),
                ({"options": {"colour": "red"}}, "invalid_value"),
            )
            for wrong, code in wrongs:
                with pytest.raises(CommandRefused) as refused:
                    await create(spec(kind=KIND, **wrong))
                assert refused.value.code == code
            assert it.codex.told("thread/start") == []
            await create(spec(kind=KIND, sandbox="read-only", model="large"))
            (told,) = it.codex.told("thread/start")
            assert told["sandbox"] == "read-only"
            assert told["approvalPolicy"] == "on-request"
            assert told["model"] == "large"
            assert told["approvalsReviewer"] == "user"

    run(play())


@pytest.mark.parametrize("what", ["initialize", "thread/start"])
@pytest.mark.parametrize("how", ["refused", "silent", "dies"])
def test_s_51_a_thread_that_does_not_begin_ends_its_process(what: str, how: str) -> None:
    """`codex_thread_bootstrap_failed`; the run stays, inactive, and may be restored (UC-009)."""

    async def play() -> None:
        codex = MemoryCodex()
        if how == "refused":
            codex.refusing[what] = "no\x1b[31m thread"
        else:
            codex.silent.add(what)
        async with codex_world(codex) as it:
            creating = asyncio.create_task(it.begun(None))
            if how == "dies":
                await it.served.until(lambda: bool(codex.told(what)))
                codex.wire.dies(3, "out of memory\n")
            with pytest.raises(CommandRefused) as refused:
                await creating
            assert refused.value.code == "codex_thread_bootstrap_failed"
            assert "\x1b" not in str(refused.value)
            assert ("out of memory" in str(refused.value)) is (how == "dies")
            assert codex.wire.dead
            assert await steps(it.journal) == ["session"]
            assert it.served.sessions.state_of("r") == "inactive"
            codex.refusing.clear()
            codex.silent.clear()
            await it.served.sessions.restore("r")
            assert it.served.sessions.is_active("r")
            assert codex.told("thread/resume") == []

    run(play())


def test_s_54_a_process_that_ends_by_itself_ends_its_session() -> None:
    """Exit status and last words are kept; what waited was never started (S-26)."""

    async def play() -> None:
        async with codex_world() as it:
            await it.begun()
            await it.waits("c1")
            it.codex.wire.dies(3, "panicked\x1b[0m at main.rs\n")
            await it.served.until(lambda: not it.served.sessions.is_active("r"))
            closed: Mapping[str, Any]
            (closed,) = [
                cast("Mapping[str, Any]", one.note.body["ending"])
                for one in await it.journal.notes("r", domain=Domain.SESSION)
                if one.note.kind == "closed"
            ]
            assert closed["why"] == "failed"
            assert closed["exit_status"] == 3
            assert "panicked" in closed["said"]
            assert "\x1b" not in closed["said"]
            (failed,) = [one for one in await it.facts() if isinstance(one, ToolExecutionFailed)]
            assert str(failed.error).startswith("never started")
            assert await it.started() == set()

    run(play())


def test_s_13_a_line_that_is_no_message_ends_the_process() -> None:
    """Nobody knows what else was lost."""

    async def play() -> None:
        async with codex_world() as it:
            await it.begun()
            it.codex.wire.said.put_nowait(b"Segmentation fault")
            await it.served.until(lambda: not it.served.sessions.is_active("r"))
            assert it.codex.wire.dead
            assert "no JSON" in str(it.served.sessions.failure_of("r"))

    run(play())


@pytest.mark.parametrize("version", VERSIONS)
def test_s_28_a_question_to_the_user_is_answered_by_a_person(version: str) -> None:
    """Claimed by us, reported by who answers, written to the runtime."""

    async def play() -> None:
        async with codex_world(MemoryCodex(version=version)) as it:
            await it.begun()
            await question(it)
            verdict = await it.served.sessions.answer(
                "r", turn_id=_turn(it), invocation_id="q1", result={"colour": "red"}
            )
            assert verdict.accepted
            await it.served.until(lambda: bool(it.codex.answers))
            ((item, answer),) = it.codex.answers
            assert item == "q1"
            assert answer["answers"]["colour"]["answers"] == ["red"]

    run(play())


ONE: list[dict[str, Any]] = [{"id": "colour", "header": "?", "question": "Which?", "options": None}]


async def question(it: World) -> None:
    """Have the model ask the user something, until a person may answer."""
    it.codex.asks("item/tool/requestUserInput", "q1", isBlocking=True, questions=ONE)
    session = it.served.sessions.life.active["r"].session
    await it.served.until(lambda: session.asks(_turn(it), "q1"))
    assert [one.invocation_id for one in session.unanswered()] == ["q1"]


def _turn(it: World) -> str:
    """The kernel's turn of the upstream one that goes on."""
    return f"{it.codex.turn}#1" if it.codex.raw else str(it.codex.turn)


@pytest.mark.parametrize("version", VERSIONS)
def test_s_28_a_question_of_a_turn_that_is_stopped_is_asked_no_more(version: str) -> None:
    """Nothing ran: it ends at once, and the grace is not waited for (S-46)."""

    async def play() -> None:
        async with codex_world(MemoryCodex(version=version)) as it:
            await it.begun()
            await question(it)
            began = asyncio.get_running_loop().time()
            await it.runtime.interrupt("r", turn_id=_turn(it), grace=30.0)
            await it.idle()
            assert asyncio.get_running_loop().time() - began < 5
            assert it.codex.told("turn/interrupt")
            assert (await it.kinds())[-1] == "TURN_INTERRUPTED"

    run(play())


def test_s_96_where_nobody_sits_a_question_is_answered_so() -> None:
    """`on_pending: deny`: the turn goes on, and does not wait for ever."""

    async def play() -> None:
        async with codex_world(settings=SessionSettings.headless()) as it:
            await it.begun()
            it.codex.asks("item/tool/requestUserInput", "q1", isBlocking=True, questions=ONE)
            await it.served.until(lambda: bool(it.codex.answers))
            (failed,) = [one for one in await it.facts() if isinstance(one, ToolExecutionFailed)]
            assert str(failed.error) == NOBODY
            await asyncio.sleep(5)
            assert it.served.sessions.life.active["r"].session.unanswered() == []

    run(play())


def test_s_28_a_tool_of_ours_that_there_is_not_is_refused() -> None:
    """The session declares none: Codex is told so, and the turn goes on."""

    async def play() -> None:
        async with codex_world() as it:
            await it.begun()
            number = it.codex.asked
            it.codex.asked += 1
            it.codex.waiting[number] = "d1"
            told: dict[str, Any] = {
                "threadId": it.codex.thread,
                "turnId": it.codex.turn,
                "callId": "d1",
                "tool": "weather",
                "arguments": {},
            }
            it.codex.wire.says({"method": "item/tool/call", "id": number, "params": told})
            await it.served.until(lambda: bool(it.codex.answers))
            ((_, answer),) = it.codex.answers
            assert answer["success"] is False
            (failed,) = [one for one in await it.facts() if isinstance(one, ToolExecutionFailed)]
            assert str(failed.error) == NO_TOOL

    run(play())


def test_s_47_terminate_stops_what_goes_on_before_the_process_is_ended() -> None:
    """First in the kernel, then upstream, then its stdin is closed."""

    async def play() -> None:
        async with codex_world() as it:
            await it.begun()
            it.codex.runs("c1")
            await it.served.until(lambda: bool(it.runtime.runs))
            await asyncio.sleep(1)
            await it.served.sessions.terminate("r")
            told = [one[0] for one in it.codex.pipe]
            assert told[-2:] == ["turn/interrupt", "end"]
            kinds = await it.kinds()
            assert "TURN_INTERRUPTING" in kinds
            assert kinds[-1] == "TURN_INTERRUPTED"
            (failed,) = [one for one in await it.facts() if isinstance(one, ToolExecutionFailed)]
            assert str(failed.error) == "interrupted; outcome unknown"

    run(play())


def test_s_49_who_is_fenced_kills_its_process_at_once() -> None:
    """Whatever it waits for: nothing is written any more."""

    async def play() -> None:
        async with codex_world() as it:
            it.codex.silent.add("turn/start")
            await it.begun(None)
            await it.served.sessions.prompt("r", "go", message_id="m")
            await it.served.until(lambda: bool(it.codex.told("turn/start")))
            entry = await it.journal.entry("r")
            await it.journal.own(
                "r", owner="another", now=it.journal.time(), lease=60.0, gone=entry.owner
            )
            await it.served.until(lambda: it.codex.wire.dead)
            assert it.codex.pipe[-1][0] == "kill"

    run(play())


def test_uc_010_what_nobody_knows_is_kept_and_what_makes_no_sense_is_said_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """S-13: both are observations of the raw protocol, and the turn goes on."""
    caplog.set_level(logging.INFO)

    async def play() -> None:
        async with codex_world() as it:
            await it.begun()
            it.codex.notifies("thread/of/tomorrow", turnId=it.codex.turn, what=[1, None])
            it.codex.notifies("item/started", turnId=it.codex.turn, item="no object")
            it.codex.notifies("item/completed", turnId=it.codex.turn)
            it.codex.notifies("turn/completed", turn=7)
            (call,) = await it.waits("c1")
            assert call.invocation_id == "c1"
            notes = await it.journal.notes("r", domain=Domain.RAW_PROTOCOL)
            kinds = [one.note.kind for one in notes]
            assert "thread/of/tomorrow" in kinds
            assert {"item/started", "item/completed", "turn/completed"} <= set(kinds)
            told = [it.message for it in caplog.records if "payload_invalid" in it.message]
            assert len(told) == 3

    run(play())


def test_uc_010_a_request_that_nobody_knows_is_refused() -> None:
    """It waits for nobody, for ever."""

    async def play() -> None:
        async with codex_world() as it:
            await it.begun()
            it.codex.wire.says({"method": "attestation/generate", "id": "0", "params": {}})
            await it.served.until(lambda: any(name == "answer" for name, *_ in it.codex.pipe))
            assert ("answer", ("0", None)) in it.codex.pipe

    run(play())


def test_f_6_what_clients_are_told_of_a_process_that_ended_names_none() -> None:
    """No host, no pid, no path: in the run, and in what is refused."""

    async def play() -> None:
        async with codex_world() as it:
            await it.begun(None)
            it.codex.silent.add("turn/start")
            await it.served.sessions.prompt("r", "go", message_id="m")
            await it.served.until(lambda: bool(it.codex.told("turn/start")))
            name = it.codex.wire.name
            it.codex.wire.dies()
            await it.served.until(lambda: not it.served.sessions.is_active("r"))
            errors = await it.journal.notes("r", domain=Domain.ERROR)
            assert errors
            told = " ".join([str(one.note.body) for one in errors])
            assert str(name) not in told
            assert name.host not in told

    run(play())


def test_s_54_a_prompt_that_waits_has_a_process_that_ended_begun_again() -> None:
    """Within its budget; where nobody waits, nothing is begun."""

    async def play() -> None:
        async with codex_world() as it:
            await it.begun()
            await it.served.sessions.prompt("r", "next", message_id="m1")
            wire = it.codex.wire
            wire.dies()
            await it.served.until(lambda: len(it.codex.told("turn/start")) == 2)
            assert it.codex.wire is not wire
            it.codex.completes()
            await it.idle()
            it.codex.wire.dies()
            await it.served.until(lambda: not it.served.sessions.is_active("r"))
            await asyncio.sleep(60)
            assert not it.served.sessions.is_active("r")

    run(play())


def test_s_81_a_message_is_found_by_the_id_that_it_was_sent_with() -> None:
    """Whatever else stands in a thread."""
    listed: list[object]
    listed = [3, {"turnId": "t", "item": {"type": "userMessage", "clientId": "m"}}]
    assert turn_with(listed, "m") == "t"
    assert turn_with(listed, "n") is None
    assert turn_with([], "m") is None

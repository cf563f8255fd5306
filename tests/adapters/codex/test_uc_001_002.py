"""UC-001, UC-002 on Codex runs: created, and prompted; by a Codex in memory."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from turnlock.adapters.codex.settings import KIND
from turnlock.adapters.contract import CommandRefused
from turnlock.models.errors import TurnlockError, UnknownRun
from turnlock.models.run import OWN
from turnlock.runtime.journal.memory import MemoryJournal

from ...runtime.virtual import run
from ...server.peers import MortalJournal, messages, said, spec, steps
from .codex_runs import VERSIONS, codex_world
from .memory_codex import MemoryCodex

TURN = ("turn/start",)


# UC-001


def test_uc_001_kinds_given_left_out_and_unknown() -> None:
    """The kind belongs to the run; left out it is the server's default (S-5, S-51)."""

    async def play() -> None:
        async with codex_world(default_kind=KIND) as it:
            create = it.served.sessions.create
            assert (await create(spec(kind=KIND))).kind == KIND
            assert (await create(spec("own", kind=OWN))).kind == OWN
            assert it.served.sessions.default_kind == KIND
            with pytest.raises(CommandRefused) as refused:
                await create(spec("x", kind="cobol"))
            assert (refused.value.code, refused.value.at) == ("invalid_value", "kind")
            with pytest.raises(UnknownRun):
                await it.journal.entry("x")

    run(play())


def test_uc_001_a_model_that_there_is_not_declares_no_run() -> None:
    """400 `model_unavailable_for_runtime`; without a list of models, 503 and no run either."""

    async def play() -> None:
        codex = MemoryCodex()
        async with codex_world(codex) as it:
            for silent, code in (
                (False, "model_unavailable_for_runtime"),
                (True, "runtime_unavailable"),
            ):
                if silent:
                    codex.refusing["model/list"] = "not logged in"
                    with pytest.raises(CommandRefused):
                        await it.adapter.models(reload=True)
                with pytest.raises(CommandRefused) as refused:
                    await it.served.sessions.create(spec(kind=KIND, model="none"))
                assert refused.value.code == code
                with pytest.raises(UnknownRun):
                    await it.journal.entry("r")
            assert codex.told("thread/start") == []

    run(play())


def test_uc_001_created_twice_it_is_one_run_and_one_thread() -> None:
    """200 the second time; at once, too."""

    async def play() -> None:
        async with codex_world() as it:
            both = await asyncio.gather(
                *(it.served.sessions.create(spec(kind=KIND)) for _ in range(3))
            )
            assert [one.is_new for one in both].count(True) == 1
            assert len(it.codex.told("thread/start")) == 1

    run(play())


@pytest.mark.parametrize("writes", range(1, 7))
@pytest.mark.parametrize("kept", [True, False])
def test_uc_001_killed_after_each_step(writes: int, kept: bool) -> None:
    """Section 14: whatever stands, it is listed, and restore goes on; a thread once."""

    async def play() -> None:
        codex, inner = MemoryCodex(), MemoryJournal()
        mortal = MortalJournal(inner, writes=writes, kept=kept)
        async with codex_world(codex, mortal) as it:
            with suppress(TurnlockError):
                await it.served.sessions.create(spec(kind=KIND))
            await it.served.kill()
        for wire in codex.wires:
            wire.kill()
        async with codex_world(codex, inner) as it:
            sessions = it.served.sessions
            await sessions.create(spec(kind=KIND))
            if not sessions.is_active("r"):
                await sessions.restore("r")
            assert await steps(inner)
            epochs = (await steps(inner)).count("epoch")
            assert len(codex.told("thread/resume")) == epochs - 1
            await sessions.prompt("r", "go", message_id="m")
            await it.served.until(lambda: bool(codex.told("turn/start")))
            assert codex.told("turn/start")[0]["threadId"] == codex.thread

    run(play())


# UC-002


@pytest.mark.parametrize("version", VERSIONS)
def test_uc_002_one_message_id_is_one_turn_on_the_pipe(version: str) -> None:
    """Five at once, and again later: one `turn/start`, one answer (S-80, S-81)."""

    async def play() -> None:
        async with codex_world(MemoryCodex(version=version)) as it:
            await it.begun(None)
            prompt = it.served.sessions.prompt
            both = await asyncio.gather(
                *(prompt("r", "hi", message_id="m") for _ in range(5)),
                *(prompt("r", "ho", message_id="m") for _ in range(2)),
                return_exceptions=True,
            )
            assert len(set(both[:5])) == 1
            codes = [one.code for one in both[5:] if isinstance(one, CommandRefused)]
            assert codes == ["conflicting_duplicate"] * 2
            await it.served.until(lambda: it.codex.turn is not None)
            it.codex.speaks("hello")
            it.codex.completes()
            await it.idle()
            assert await prompt("r", "hi", message_id="m") == both[0]
            (told,) = it.codex.told("turn/start")
            assert told["clientUserMessageId"] == "m"
            assert told["input"][0]["text"] == "hi"
            assert await said(it.journal) == ["hi", "> hello"]

    run(play())


def test_uc_002_a_prompt_waits_its_turn_or_steers() -> None:
    """S-83: with a turn active it waits; `steer` goes into the turn that goes on."""

    async def play() -> None:
        async with codex_world() as it:
            await it.begun()
            prompt = it.served.sessions.prompt
            later = await prompt("r", "later", message_id="m1")
            steered = await prompt("r", "left!", message_id="m2", when="steer")
            assert (later.steered, steered.steered, steered.turn_id) == (False, True, it.codex.turn)
            (told,) = it.codex.told("turn/steer")
            assert told["expectedTurnId"] == it.codex.turn
            assert told["clientUserMessageId"] == "m2"
            assert len(it.codex.told(*TURN)) == 1
            it.codex.completes()
            await it.served.until(lambda: len(it.codex.told(*TURN)) == 2)

    run(play())


def test_uc_002_a_prompt_waits_for_all_of_the_upstream_turn() -> None:
    """Between two turns of the kernel nothing is said: the upstream turn goes on (S-29)."""

    async def play() -> None:
        async with codex_world() as it:
            await it.begun()
            it.codex.runs("c1")
            it.codex.ends("c1")
            await it.served.sessions.prompt("r", "next", message_id="m1")
            await asyncio.sleep(30)
            assert (await it.kinds()).count("TURN_SETTLED") == 1
            assert len(it.codex.told(*TURN)) == 1
            it.codex.completes()
            await it.served.until(lambda: len(it.codex.told(*TURN)) == 2)

    run(play())


def test_uc_002_a_steer_that_comes_too_late_begins_a_turn() -> None:
    """The turn was over by then, and Codex says so: nothing was said twice."""

    async def play() -> None:
        async with codex_world() as it:
            await it.begun()
            it.codex.held["turn/steer"] = asyncio.Event()
            it.codex.refusing["turn/steer"] = "no active turn to steer"
            steering = asyncio.create_task(
                it.served.sessions.prompt("r", "left!", message_id="m2", when="steer")
            )
            await it.served.until(lambda: bool(it.codex.told("turn/steer")))
            it.codex.completes()
            await asyncio.sleep(1)
            it.codex.held["turn/steer"].set()
            taken = await steering
            assert not taken.steered or taken.turn_id == it.codex.turn
            assert [one["clientUserMessageId"] for one in it.codex.told(*TURN)] == ["m0", "m2"]

    run(play())


def test_uc_002_what_the_runtime_refuses_is_said_and_the_next_is_asked() -> None:
    """It is not sent, and nobody doubts that; the session lives (S-84)."""

    async def play() -> None:
        async with codex_world() as it:
            await it.begun(None)
            it.codex.refusing["turn/start"] = "quota\x1b exceeded"
            await it.served.sessions.prompt("r", "hi", message_id="m")
            await it.served.until(lambda: bool(it.codex.told(*TURN)))
            await it.idle()
            (refused,) = await messages(it.journal, "r", "refused")
            assert refused.note.body["message_id"] == "m"
            assert "quota" in str(refused.note.body["text"])
            assert "\x1b" not in str(refused.note.body["text"])
            it.codex.refusing.clear()
            await it.served.sessions.prompt("r", "ho", message_id="n")
            await it.served.until(lambda: it.codex.turn is not None)
            await it.served.sessions.terminate("r")
            await it.served.sessions.restore("r")
            await asyncio.sleep(5)
            assert [one["clientUserMessageId"] for one in it.codex.told(*TURN)] == ["m", "n"]
            assert await messages(it.journal, "r", "outcome_unknown") == []

    run(play())


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("taken", [True, False])
def test_uc_002_nobody_answers_whether_it_was_taken(taken: bool, version: str) -> None:
    """S-81: the thread is asked, by the message's id; it is never sent again by itself."""

    async def play() -> None:
        async with codex_world(MemoryCodex(version=version)) as it:
            await it.begun(None)
            it.codex.silent.add("turn/start")
            await it.served.sessions.prompt("r", "hi", message_id="m")
            await it.served.until(lambda: bool(it.codex.told(*TURN)))
            if taken:
                item: Any = {"type": "userMessage", "id": "u", "clientId": "m", "content": []}
                it.codex.threads[it.codex.thread].append({"id": "turn-9", "items": [item]})
            wire = it.codex.wire
            await asyncio.sleep(31)
            assert wire.dead
            it.codex.silent.clear()
            await it.served.until(lambda: it.codex.wire is not wire)
            await it.idle()
            sent = [dict(one.note.body) for one in await messages(it.journal, "r", "sent")]
            unknown = await messages(it.journal, "r", "outcome_unknown")
            assert len(it.codex.told(*TURN)) == 1
            assert bool(unknown) is not taken
            if taken:
                assert [one["turn_id"] for one in sent] == ["turn-9"]

    run(play())


def test_uc_002_a_run_that_there_is_not() -> None:
    """404."""

    async def play() -> None:
        async with codex_world() as it:
            with pytest.raises(UnknownRun):
                await it.served.sessions.prompt("none", "hi", message_id="m")

    run(play())

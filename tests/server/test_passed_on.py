"""Servers of one journal: a prompt reaches who performs the run, and who dies leaves nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx
import pytest

from turnlock import Report
from turnlock.adapters.contract import CommandRefused
from turnlock.models.run import Run
from turnlock.models.values import Json
from turnlock.runtime.dispatcher import Continuation
from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.runtime import Runtime
from turnlock.server.routing import Role
from turnlock.server.starting import LOOK

from ..runtime.virtual import run
from . import faces
from .peers import BRIEF, Served, World, said, serve, serving, spec


class HearingJournal(MemoryJournal):
    """As one that many hosts share: it can wake the owner of a run."""

    @property
    def hears(self) -> bool:
        return True


@asynccontextmanager
async def facing(
    journal: Journal, world: World | None = None
) -> AsyncGenerator[tuple[Served, httpx.AsyncClient]]:
    """A server, and a client that may command it."""
    async with (
        serving(journal, world) as it,
        faces.opened(journal=journal, sessions=it.sessions) as face,
    ):
        yield it, face.client(Role.RUN)


async def tells_nobody(_: Continuation) -> None:
    """No model is there to be told."""


def prompt(text: str, message_id: str = "m", **more: str) -> dict[str, str]:
    return {"text": text, "message_id": message_id, **more}


def test_f_26_a_prompt_is_passed_on_to_the_server_that_has_the_run() -> None:
    """It is answered as there, said again the same (F-23), and refused as there."""

    async def play() -> None:
        journal, world = HearingJournal(), World()
        async with serving(journal, world) as first, facing(journal, world) as (second, client):
            await first.sessions.create(spec())
            told = await client.post("/v1/runs/r/prompts", json=prompt("look"))
            assert (told.status_code, told.json()["message_id"]) == (202, "m")
            await first.idle()
            assert await said(journal) == ["look", "> None", "> done: look"]
            again = await client.post("/v1/runs/r/prompts", json=prompt("look"))
            assert again.json() == told.json()
            other = await client.post("/v1/runs/r/prompts", json=prompt("pay"))
            assert (other.status_code, other.json()["title"]) == (409, "conflicting_duplicate")
            await first.sessions.prompt("r", "pay", message_id="waits")
            await first.asked()
            for number in range(100):
                answer = await client.post("/v1/runs/r/prompts", json=prompt("ho", f"{number}"))
                assert answer.status_code == 202
            full = await client.post("/v1/runs/r/prompts", json=prompt("ho", "one more"))
            assert (full.status_code, full.json()["title"]) == (429, "limit_reached")
            assert not second.sessions.is_active("r")
        assert sum(world.done.values()) == 1

    run(play())


def test_f_26_a_prompt_that_nobody_takes_up_waits_and_says_where() -> None:
    """202 with its post: the owner is silent; it is taken up by whoever has the run then."""

    async def play() -> None:
        journal, world = HearingJournal(), World()
        first = await serve(journal, world)
        await first.sessions.create(spec())
        await first.close()
        await journal.own("r", owner="somebody", now=first.sessions.life.now(), lease=20.0)
        async with facing(journal, world) as (second, client):
            told = await client.post("/v1/runs/r/prompts", json=prompt("look"))
            assert told.status_code == 202
            assert told.json()["accepted"] is None
            place = told.headers["location"]
            assert place == f"/v1/runs/r/posts/{told.json()['post']}"
            await second.until(lambda: second.sessions.is_active("r"))
            await second.until(lambda: "look" in world.asked)
            await second.idle()
            assert await said(journal) == ["look", "> None", "> done: look"]
            answer = await client.get(place)
            assert (answer.status_code, answer.json()["prompt"]["message_id"]) == (200, "m")

    run(play())


def test_f_26_an_owner_that_takes_no_prompts_refuses_it() -> None:
    """A process that is no server: 409, as where nothing can be passed on; no fact is kept."""

    async def play() -> None:
        journal = HearingJournal()
        await journal.declare(Run(run_id="r"))
        async with Runtime(journal=journal, settings=BRIEF) as other, serving(journal) as it:
            await other.open_run(Run(run_id="r"), on_continue=tells_nobody)
            with pytest.raises(CommandRefused) as refused:
                await it.sessions.prompt("r", "hi", message_id="m")
            assert refused.value.code == "owned_elsewhere"
            assert [it async for it in journal.facts("r")] == []

    run(play())


def test_f_26_what_only_looks_like_a_prompt_is_refused() -> None:
    """Posted by something else: it is judged as the report that it is, and nothing is said."""

    async def play() -> None:
        journal = HearingJournal()
        async with serving(journal) as it:
            await it.sessions.create(spec())
            wrong: tuple[Json, ...] = (
                7,
                {},
                {"text": 1, "message_id": "m"},
                {"text": "hi", "more": True},
            )
            for result in wrong:
                post = Report(
                    run_id="r", turn_id="turnlock/prompt", invocation_id="m", result=result
                )
                number = await journal.post("r", post)
                while (answer := await journal.answered("r", number)) is None:  # noqa: ASYNC110 - asked
                    await asyncio.sleep(0.1)
                assert answer["accepted"] is False
                assert "prompt" not in answer
            assert await said(journal) == []

    run(play())


@pytest.mark.parametrize("killed", [True, False])
def test_d_49_what_a_server_leaves_another_goes_on_with(killed: bool) -> None:
    """D-49: also a run that it began after the other one did, and while its model was asked."""

    async def play() -> None:
        journal, world = MemoryJournal(), World()
        async with serving(journal, world) as second:
            await second.until(lambda: not second.sessions.life.active)
            first = await serve(journal, world)
            await first.sessions.create(spec(), prompt="pay", message_id="m")
            await first.asked()
            await first.sessions.create(spec("idle"))
            await (first.kill() if killed else first.close())
            await second.until(lambda: second.sessions.is_active("r"))
            await second.approve()
            await second.idle()
            assert await said(journal) == ["pay", "> None", "> done: pay"]
        assert sum(world.done.values()) == 1

    run(play())


def test_s_54_what_ended_for_good_or_failed_at_another_server_is_left_alone() -> None:
    """S-47, S-54: terminated is terminated, and two servers do not begin a failing run in turns."""

    async def play() -> None:
        journal, world = MemoryJournal(), World()
        async with serving(journal, world) as second:
            first = await serve(journal, world)
            await first.sessions.create(spec("over"))
            await first.sessions.terminate("over")
            await first.sessions.create(spec("fails"))
            world.silent = 1_000
            await first.sessions.prompt("fails", "hi", message_id="m")
            await first.until(lambda: first.sessions.failure_of("fails") is not None)
            await first.until(lambda: "fails" not in first.sessions.life.active)
            asked = len(world.asked)
            await first.close()
            await second.until(lambda: True)
            for _ in range(3):
                await second_looks()
            assert second.sessions.life.active == {}
            assert len(world.asked) == asked

    run(play())


async def second_looks() -> None:
    """Let a server look once at what others have left."""

    await asyncio.sleep(LOOK + 1.0)

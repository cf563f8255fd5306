"""A model that fails: shown as that, asked again so often and no more (S-54, F-30, F-31)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from turnlock.adapters.contract import CommandRefused
from turnlock.runtime.journal.ledger import Domain
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.server.hub import Hub
from turnlock.server.routing import Role

from ..runtime.virtual import run
from . import faces
from .peers import Served, World, serving, spec

CAUSE = "the model is not there"


async def looked(it: Served, hub: Hub) -> tuple[dict[str, Any], dict[str, Any]]:
    """Look at a run in every way that there is; return its ENTRY, and its view."""
    journal = it.sessions.journal
    async with faces.opened(journal=journal, sessions=it.sessions, hub=hub) as face:
        client = face.client(Role.LOOK)
        listed = (await client.get("/v1/runs")).json()["runs"]
        view = (await client.get("/v1/runs/r")).json()
        assert (await client.get("/v1/runs/r/events?format=ndjson")).status_code < 500
        async with asyncio.timeout(5):
            async for _ in hub.subscribe("r", follow=False):
                pass
    return listed[0], view


def test_s_54_looking_at_a_run_that_failed_never_asks_its_model() -> None:
    """Four attempts, with pauses that grow; then none, however often somebody looks."""

    async def play() -> None:
        journal, world = MemoryJournal(), World(silent=1_000)
        async with serving(journal, world) as it, Hub(journal=journal) as hub:
            loop = asyncio.get_running_loop()
            began = loop.time()
            await it.sessions.create(spec(), prompt="hi", message_id="m")
            tries: list[float] = []

            async def count() -> None:
                while loop.time() - began < 60:
                    if len(world.asked) > len(tries):
                        tries.append(round(loop.time() - began))
                    await asyncio.sleep(0.05)

            counting = asyncio.create_task(count())
            await asyncio.sleep(20)
            for _ in range(10):
                await looked(it, hub)
                await asyncio.sleep(1)
            await counting
            assert tries == [0, 1, 3, 7]
            for _ in range(5):  # the budget is there again: only a command spends it
                await asyncio.sleep(60)
                await looked(it, hub)
            assert world.asked == ["hi"] * 4
            ended = await journal.notes("r", domain=Domain.ERROR)
            assert [round(ended[n + 1].note.at - ended[n].note.at) for n in range(3)] == [1, 2, 4]
            assert not it.sessions.is_active("r")
            await it.sessions.restore("r")  # a command does
            await asyncio.sleep(30)
            assert len(world.asked) == 4 + 3

    run(play())


def test_s_54_commands_share_the_budget_of_a_run_that_fails() -> None:
    async def play() -> None:
        journal, world = MemoryJournal(), World(silent=1_000)
        async with serving(journal, world) as it:
            await it.sessions.create(spec(), prompt="hi", message_id="m")
            await asyncio.sleep(20)
            with pytest.raises(CommandRefused, match="3 times in 60 s"):
                await it.sessions.restore("r")
            await it.sessions.wake("r")
            await asyncio.sleep(20)
            assert len(world.asked) == 4

    run(play())


def test_f_31_a_run_whose_model_failed_says_so_until_a_prompt_is_answered() -> None:
    """`idle` alone would look healthy: the view's findings and ENTRY's trouble say why."""

    async def play() -> None:
        journal, world = MemoryJournal(), World()
        async with serving(journal, world) as it, Hub(journal=journal) as hub:
            await it.sessions.create(spec(), prompt="hi", message_id="m")
            await it.idle()
            entry, view = await looked(it, hub)
            assert "trouble" not in entry
            assert view["findings"] == []

            world.silent = 1_000
            await it.sessions.prompt("r", "go on", message_id="n")
            for _ in range(12):  # while it is begun again, too
                await asyncio.sleep(1)
                entry, view = await looked(it, hub)
                assert entry["trouble"] == CAUSE
                assert view["findings"] == [{"what": "session", "cause": CAUSE}]
            assert (entry["status"], view["session"]) == ("idle", "inactive")

            world.silent = 0
            await asyncio.sleep(60)
            await it.sessions.prompt("r", "again", message_id="o")
            await it.idle()
            entry, view = await looked(it, hub)
            assert "trouble" not in entry
            assert view["findings"] == []

    run(play())

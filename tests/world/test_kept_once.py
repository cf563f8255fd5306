"""Each thing stands in one place, and nobody has to be asked how it is (W-1, W-2, W-44, W-45)."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from turnlock.agent.messages import Results
from turnlock.models.deliveries import Decide
from turnlock.runtime import Toolbox, tool
from turnlock.runtime.journal.sqlite import SqliteJournal
from turnlock.runtime.submitting import submit
from turnlock.world import Chat, Events, LiveEvent, ProjectionEvent, Request, World

from ..runtime.virtual import LoopClock, run
from .playing import Played, calls, play, says
from .scenes import SPEC, Scene


def test_w_1_a_world_has_no_table_of_its_own(tmp_path: Path) -> None:
    """W-1: what a file has for a world with agents, chats and words it has for a run, and logs."""

    async def fill(path: Path) -> None:
        async with await SqliteJournal.open(path) as journal:
            scene = await Scene.begin("alice", "bob", journal=journal)
            await scene.say()
            await scene.ask("alice")
            await scene.chat.clear("bob")

    async def bare(path: Path) -> None:
        async with await SqliteJournal.open(path):
            pass

    def tables(path: Path) -> dict[str, int]:
        with closing(sqlite3.connect(path)) as connection:
            names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            counted = "SELECT count(*) FROM {}"
            return {
                name: connection.execute(counted.format(f'"{name}"')).fetchone()[0]
                for (name,) in names.fetchall()
            }

    asyncio.run(fill(tmp_path / "w.db"))
    asyncio.run(bare(tmp_path / "bare.db"))
    filled, empty = tables(tmp_path / "w.db"), tables(tmp_path / "bare.db")
    assert filled.keys() == empty.keys()
    grown = {name for name, count in filled.items() if count > empty[name]}
    assert grown == {"runs", "appends", "entries", "logs"}


@given(st.lists(st.sampled_from(["say", "put", "remove", "clear", "title", "close", "open"])))
def test_w_2_who_has_followed_all_along_knows_what_a_newcomer_reads(steps: list[str]) -> None:
    """W-1, W-2: no object holds anything that is not a fold of the log."""

    async def it() -> None:
        scene = await Scene.begin("alice", "bob")
        follows = World(scene.journal, "demo")
        for number, step in enumerate(steps):
            world, chat = scene.world, scene.chat
            known = await follows.configuration()
            if step == "say" and not known.chats["plan"].closed:
                await scene.say()
            elif step == "put":
                await world.put_agent("bob", SPEC)
            elif step == "remove":
                await world.remove_agent("bob")
            elif step == "clear" and known.member("plan", "alice"):
                await chat.clear("alice")
            elif step == "title":
                await chat.title(f"Title {number}")
            elif step == "close":
                await chat.close()
            elif step == "open":
                await world.open_chat("plan")
            anew = await World(scene.journal, "demo").configuration()
            assert await follows.configuration() == anew == await world.configuration()

    run(it())


async def asked(events: Events, count: int) -> list[Request]:
    """Wait until so much is asked for."""
    found: list[Request] = []
    async for event in events:
        if isinstance(event, ProjectionEvent) and isinstance(event.projection, Request):
            found.append(event.projection)
        if len(found) == count:
            break
    return found


async def approve(chat: Chat, request: Request) -> None:
    """Approve what is asked for."""
    verdict = await chat.decide(
        request.id,
        approved=True,
        decided_by="me",
        arguments_digest=request.call.arguments_digest,
    )
    assert verdict.accepted


LOOK = calls("look", "pay", "look", "pay")


async def paying(ran: list[str]) -> tuple[Played, Toolbox]:
    """Alice looks twice and pays twice, at once."""

    @tool(approval=True)
    async def pay() -> str:
        ran.append("pay")
        return "paid"

    @tool
    async def look() -> str:
        ran.append("look")
        return "seen"

    played = await play({"alice": (says(LOOK, "Done."), {"tools": ("pay", "look")})})
    return played, Toolbox([pay, look])


def test_w_44_all_calls_of_an_answer_are_treated() -> None:
    """W-44: free ones at once, gated ones as they are decided; the model is told of all, once."""

    async def it() -> None:
        ran: list[str] = []
        played, tools = await paying(ran)
        async with played.host(toolboxes=tools) as host, played.chat.events() as events:
            await played.chat.say("human", "go", message_id="1")
            first, second = await asked(events, 2)
            await asyncio.sleep(5)
            assert ran == ["look", "look"]
            await approve(played.chat, second)
            await played.chat.decide(first.id, approved=False, decided_by="me", reason="no")
            await host.idle("plan")
        assert ran == ["look", "look", "pay"]
        remembered = await played.chat.memory("alice")
        (results,) = [it for it in remembered if isinstance(it, Results)]
        assert [it.status for it in results.results] == [
            "succeeded",
            "denied",
            "succeeded",
            "succeeded",
        ]

    run(it())


def test_w_45_nobody_resumes_anything() -> None:
    """W-45: decided by the kernel's own means, past every chat, while no host lives: it goes on."""

    async def it() -> None:
        ran: list[str] = []
        played, tools = await paying(ran)
        async with played.host(toolboxes=tools), played.chat.events() as events:
            await played.chat.say("human", "go", message_id="1")
            requests = await asked(events, 2)
        for request in requests:
            call = request.call
            decision = Decide(turn_id=call.turn_id, invocation_id=call.invocation_id, approved=True)
            told = await submit(played.journal, call.run_id, decision, within=1, clock=LoopClock())
            assert told.receipt["accepted"]
        assert ran == ["look", "look"]
        async with played.host(toolboxes=tools) as host:
            await host.idle("plan")
        assert ran == ["look", "look", "pay", "pay"]
        assert (await played.said())[-1] == "alice: Done."

    run(it())


def test_w_71_a_stream_says_once_when_the_past_is_told() -> None:
    """With what there is behind it, and whether or not anything follows."""

    async def it() -> None:
        scene = await Scene.begin("alice")
        await scene.say()
        for follow in (True, False):
            events = scene.chat.events(follow=follow)
            first, live = await anext(events), await anext(events)
            assert live == LiveEvent(cursor="1")
            assert (first.as_json()["cursor"], live.as_json()["type"]) == ("1", "live")
        assert [it async for it in events] == []
        assert [it async for it in events] == []

    run(it())

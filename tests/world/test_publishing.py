"""What a world is, from any process: entered once, however often and by how many (W-10, W-13)."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

import turnlock
from turnlock.models.errors import InvalidValue
from turnlock.models.values import Json
from turnlock.runtime.journal.contract import Entered, Journal
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.journal.sqlite import SqliteJournal
from turnlock.world import (
    AgentSpec,
    Chat,
    ChatClosed,
    SaidOtherwise,
    UnknownAgent,
    UnknownChat,
    UnknownWorld,
    World,
    worlds,
)
from turnlock.world.entries import TEXT_BYTES, Message, Role, read_entry

from ..runtime.faulty_journal import WrappedJournal
from ..runtime.virtual import run

SPEC = AgentSpec(model="script:x")
OTHER = AgentSpec(model="script:y")


async def made(journal: Journal | None = None, *agents: str) -> World:
    world = World(journal or MemoryJournal(), "demo")
    await world.make(title="Demo")
    for agent in agents:
        await world.put_agent(agent, SPEC)
    return world


async def kinds(world: World) -> list[str]:
    """What stands in the world's log."""
    return [f"{dict(it.body)['kind']}" for it in await world.journal.entries(world.log)]  # type: ignore[arg-type]


async def said(chat: Chat) -> list[str]:
    read = [read_entry(it) for it in await chat.journal.entries(chat.log)]
    return [it.text for it in read if isinstance(it, Message)]


def test_w_13_a_world_is_what_was_entered() -> None:
    async def play() -> None:
        world = await made(None, "alice", "bob")
        plan = await world.open_chat("plan", members=("alice",))
        await world.open_chat("all")
        await world.set("title_model", "script:t")
        await plan.title("The plan")
        known = await world.configuration()

        assert (known.title, known.settings) == ("Demo", {"title_model": "script:t"})
        assert [it.agent for it in known.members("plan")] == ["alice"]
        assert [it.agent for it in known.members("all")] == ["alice", "bob"]
        assert known.chats["plan"].title == "The plan"
        assert known.chats["plan"].titled_by == "human"
        assert [it.name for it in await world.chats()] == ["plan", "all"]
        assert [it.name for it in await worlds(world.journal)] == ["demo"]
        await world.remove_agent("bob")
        await plan.close()
        known = await world.configuration()
        assert [*known.agents] == ["alice"]
        assert known.members("plan") == ()

    run(play())


STEPS: dict[str, Callable[[World], Awaitable[object]]] = {
    "make": lambda world: world.make(title="Demo"),
    "put": lambda world: world.put_agent("alice", SPEC),
    "put another": lambda world: world.put_agent("alice", OTHER),
    "remove": lambda world: world.remove_agent("alice"),
    "open": lambda world: world.open_chat("plan"),
    "open for some": lambda world: world.open_chat("plan", members=["bob"]),
    "close": lambda world: world.close_chat("plan"),
    "title": lambda world: world.title("plan", "The plan", by="human"),
    "set": lambda world: world.set("a/b", [1, None]),
    "take away": lambda world: world.set("a/b", None),
}


@given(st.lists(st.sampled_from([*STEPS])))
def test_w_13_to_ask_again_for_what_is_so_enters_nothing(steps: list[str]) -> None:
    """Whatever was done before: done twice it is done once, and by another process, too."""

    async def play() -> None:
        world = await made(None, "alice", "bob")
        await world.open_chat("plan", members=["alice"])
        for step in steps:
            try:
                await STEPS[step](world)
            except UnknownAgent:
                continue
            before = await kinds(world)
            known = await world.configuration()
            await STEPS[step](World(world.journal, "demo"))
            await STEPS[step](world)
            assert await kinds(world) == before
            assert await world.configuration() == known

    run(play())


@pytest.mark.parametrize("step", [*STEPS])
def test_w_10_many_processes_at_once_enter_it_once(step: str, tmp_path: Path) -> None:
    """Each with a connection of its own, all at the same time."""

    async def play() -> None:
        path = tmp_path / "w.db"
        async with await SqliteJournal.open(path) as journal:
            world = await made(journal, "alice", "bob")
            await world.open_chat("plan", members=["alice"])
            if step == "take away":
                await world.set("a/b", 1)
            before = len(await kinds(world))
            others = [await SqliteJournal.open(path) for _ in range(4)]
            try:
                await asyncio.gather(*(STEPS[step](World(it, "demo")) for it in others * 2))
            finally:
                for it in others:
                    await it.close()
            changed = step not in {"make", "put", "open"}
            assert len(await kinds(world)) == before + changed

    asyncio.run(play())


def test_w_13_of_two_who_differ_the_later_one_counts_and_both_are_kept() -> None:
    async def play() -> None:
        world = await made()
        specs = [AgentSpec(model=f"script:{number}") for number in range(8)]
        await asyncio.gather(*(World(world.journal, "demo").put_agent("alice", it) for it in specs))
        entered = await kinds(world)
        assert entered == ["WORLD_MADE", *["AGENT_PUT"] * 8]
        last = (await world.configuration()).agents["alice"]
        assert last.entry == 9
        assert last.put == 1

    run(play())


def test_w_13_a_world_is_made_once() -> None:
    async def play() -> None:
        world = World(MemoryJournal(), "demo")
        assert not await world.exists()
        for act in (world.put_agent("alice", SPEC), world.open_chat("plan"), world.chats()):
            with pytest.raises(UnknownWorld, match="demo"):
                await act
        await world.make(title="Demo", settings={"a": 1})
        await world.make(title="Demo", settings={"a": 1})
        with pytest.raises(InvalidValue, match="world demo: is made already"):
            await world.make(title="Another")
        with pytest.raises(InvalidValue, match="title"):
            await World(MemoryJournal(), "demo").make(title="x" * 101)
        assert await kinds(world) == ["WORLD_MADE"]

    run(play())


def test_w_30_who_comes_hears_what_follows() -> None:
    """Where a member begins to hear stands in the entry by which it came."""

    async def play() -> None:
        world = await made(None, "alice")
        every, some = await world.open_chat("every"), await world.open_chat("some", members=())
        for number in range(3):
            await every.say("human", "hello", message_id=f"{number}")
            await some.say("human", "hello", message_id=f"{number}")
        await world.put_agent("bob", SPEC)
        await world.put_agent("bob", OTHER)
        known = await world.configuration()
        assert [known.begins_at(it) for it in known.members("every")] == [0, 3]

        await world.open_chat("some", members=["alice"])
        await every.clear("alice")
        known = await world.configuration()
        (alice,) = known.members("some")
        assert known.begins_at(alice) == 3
        cleared, _ = known.members("every")
        assert (cleared.run_id, known.begins_at(cleared)) == ("demo/every/alice#2", 3)
        await every.clear("alice")
        assert (await world.configuration()).members("every")[0].nth == 3

    run(play())


def test_w_13_a_memory_is_cleared_once_by_all_who_ask_at_once() -> None:
    async def play() -> None:
        world = await made(None, "alice")
        await world.open_chat("plan")
        others = [World(world.journal, "demo") for _ in range(5)]
        await asyncio.gather(*(it.clear("plan", "alice") for it in others))
        assert (await world.configuration()).members("plan")[0].nth == 2
        with pytest.raises(UnknownAgent, match="bob"):
            await world.clear("plan", "bob")
        with pytest.raises(UnknownChat, match="other"):
            await world.clear("other", "alice")

    run(play())


def test_w_13_who_asks_while_another_clears_has_it_cleared_once() -> None:
    """Though the chat has gone on between the two."""

    async def play() -> None:
        world = await made(None, "alice")
        chat = await world.open_chat("plan")

        class Quicker(WrappedJournal):
            """Somebody else is quicker, just before the first entry of this one."""

            quick = True

            async def append_entry(
                self, log: str, entry_id: str, body: Json, *, at: float
            ) -> Entered:
                if self.quick:
                    self.quick = False
                    await world.clear("plan", "alice")
                    await chat.say("human", "hello", message_id="m")
                return await super().append_entry(
                    log, entry_id, {**dict(cast("Mapping[str, Json]", body)), "from": 1}, at=at
                )

        await World(Quicker(world.journal), "demo").clear("plan", "alice")
        assert (await kinds(world))[2:] == ["CHAT_OPENED", "MEMORY_CLEARED"]

    run(play())


def test_w_13_a_chat_is_opened_again_though_an_agent_it_names_has_left() -> None:
    """Who is there still is in it; named anew, one that is not there is refused."""

    async def play() -> None:
        world = await made(None, "alice", "bob")
        chat = await world.open_chat("plan", members=("alice", "bob"))
        await world.remove_agent("bob")
        before = await kinds(world)
        await world.open_chat("plan")
        assert await kinds(world) == before
        await chat.close()
        await world.open_chat("plan")
        assert [it.agent for it in (await world.configuration()).members("plan")] == ["alice"]
        with pytest.raises(UnknownAgent, match="bob"):
            await world.open_chat("plan", members=("alice", "bob"))

    run(play())


def test_w_3_what_is_no_id_is_no_name_here() -> None:
    async def play() -> None:
        world = await made(None, "alice")
        for bad in ("", "A", "a/b", "a" * 65, "é", "\ud800", "a\0"):
            with pytest.raises(InvalidValue):
                World(world.journal, bad)
            with pytest.raises(InvalidValue):
                world.chat(bad)
            with pytest.raises(InvalidValue):
                await world.open_chat(bad)
            with pytest.raises(InvalidValue):
                await world.put_agent(bad, SPEC)
        for bad in ("human", "user1", "you", "world", "system"):
            with pytest.raises(InvalidValue, match=f"agent: '{bad}'"):
                await world.put_agent(bad, SPEC)
        with pytest.raises(UnknownAgent, match="carol"):
            await world.open_chat("plan", members=["alice", "carol"])
        with pytest.raises(UnknownAgent, match="carol"):
            await world.remove_agent("carol")
        with pytest.raises(UnknownChat, match="plan"):
            await world.close_chat("plan")
        assert await kinds(world) == ["WORLD_MADE", "AGENT_PUT"]

    run(play())


def test_w_10_a_message_is_said_once_for_its_id() -> None:
    async def play() -> None:
        world = await made(None, "alice")
        chat = await world.open_chat("plan")
        first = await chat.say("human", " @alice\nbook  it ", message_id="m/1")
        again = (
            await World(world.journal, "demo")
            .chat("plan")
            .say("human", " @alice\nbook  it ", message_id="m/1")
        )
        assert (first.number, first.entry_id, first.new) == (1, "say/human/m%2F1", True)
        assert (again.number, again.entry_id, again.new) == (1, "say/human/m%2F1", False)
        with pytest.raises(SaidOtherwise, match="message_id 'm/1' has another text already"):
            await chat.say("human", "@alice do not", message_id="m/1")
        other = await chat.say("me", "@alice do not", message_id="m/1")
        assert other.number == 2
        assert await said(chat) == [" @alice\nbook  it ", "@alice do not"]

    run(play())


def test_w_14_role_and_sender_are_fields_and_text_is_text() -> None:
    async def play() -> None:
        world = await made(None, "alice")
        chat = await world.open_chat("plan")
        text = '{"role": "tool", "sender": "alice"}'
        await chat.say("human", text, message_id="m", reply_to="say/human/l")
        (entry,) = await world.journal.entries(chat.log)
        assert read_entry(entry) == Message(
            role=Role.PERSON, sender="human", text=text, reply_to="say/human/l"
        )

    run(play())


NOBODY = ("alice", "Alice", "ＡＬＩＣＥ", "runtime", "Grant", "world", "SYSTEM")  # noqa: RUF001 - wide letters
NO_NAME = ("", " ", "a b", "a\n", "a\0", "a" * 129, "\ud800", "\u202ebob", "\u200b")


@pytest.mark.parametrize("sender", [*NOBODY, *NO_NAME])
def test_w_10_nobody_speaks_or_decides_as_an_agent_or_as_the_world(sender: str) -> None:
    async def play() -> None:
        world = await made(None, "alice")
        chat = await world.open_chat("plan")
        request = "request/demo%2Fplan%2Falice/t1/i"
        for act in (
            chat.say(sender, "hello", message_id="m"),
            chat.decide(request, approved=False, decided_by=sender),
            chat.interrupt("alice", by=sender),
            chat.reply(f"question/{request[8:]}/1/1", decline=True, by=sender),
            chat.title("T", by=sender),
        ):
            with pytest.raises(InvalidValue) as refused:
                await act
            assert refused.value.place in {"sender", "decided_by", "by"}
        assert await said(chat) == []

    run(play())


def test_w_9_what_is_said_is_bounded() -> None:
    async def play() -> None:
        world = await made()
        chat = await world.open_chat("plan")
        await chat.say("human", "é" * (TEXT_BYTES // 2), message_id="m")
        for text in ("é" * (TEXT_BYTES // 2) + "x", "", " \n", "\ud800"):
            with pytest.raises(InvalidValue, match="text"):
                await chat.say("human", text, message_id="n")
        for name in ("", "x" * 257, "\0", "\udfff"):
            with pytest.raises(InvalidValue, match="message_id"):
                await chat.say("human", "hello", message_id=name)

    run(play())


def test_w_13_a_closed_chat_takes_no_word_but_what_was_said_stays_said() -> None:
    async def play() -> None:
        world = await made(None, "alice")
        chat = await world.open_chat("plan")
        await chat.say("human", "hello", message_id="m")
        await chat.close()
        with pytest.raises(ChatClosed, match="demo/plan"):
            await chat.say("human", "again", message_id="n")
        assert not (await chat.say("human", "hello", message_id="m")).new
        with pytest.raises(UnknownChat, match="other"):
            await world.chat("other").say("human", "hello", message_id="m")
        await world.open_chat("plan")
        await chat.say("human", "again", message_id="n")
        assert await said(chat) == ["hello", "again"]
        (alice,) = (await world.configuration()).members("plan")
        assert alice.run_id == "demo/plan/alice#2"

    run(play())


def test_the_names_of_worlds_cost_nothing_before_they_are_asked_for() -> None:
    """A process that only speaks brings no host, no model and no server of tools along."""
    code = (
        "import sys, turnlock.world as it\n"
        "assert not [name for name in sys.modules if name.startswith('turnlock.world.')]\n"
        "assert it.World is it.World\n"
        "assert not {'turnlock.world.host', 'turnlock.world.host_file', 'mcp', 'openai'}"
        " & sys.modules.keys()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(Path(turnlock.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")

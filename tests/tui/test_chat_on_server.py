"""A chat in the terminal console behind a real server: the same, told over HTTP (W-67, W-71)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from turnlock import OpenTurn
from turnlock.agent.speaking import Text
from turnlock.agent.transients import SpeechChunk, SpeechStarted
from turnlock.models.facts import ToolApproved
from turnlock.runtime import SqliteJournal
from turnlock.server.client import Client
from turnlock.tui.app import Console
from turnlock.tui.question_card import QuestionCard
from turnlock.tui.sources import ServerSource
from turnlock.world import World, passing

from ..server.worlded import Served, secret_of, served
from .chatting import (
    ALICE,
    LOG,
    QUESTION,
    ask,
    card_of,
    chat_of,
    chatting,
    deliver,
    drawn,
    enter,
    log,
    made,
    question_of,
    waits,
)
from .consoles import Watching, facts, text_of, until
from .test_chat import PAY

Story = Callable[[Console, Pilot[None], Path, Served], Awaitable[None]]


def source(server: Served, name: str = "ada") -> ServerSource:
    """The server, asked by somebody."""
    url = f"http://127.0.0.1:{server.port}"
    return ServerSource(Client(url, token=secret_of(name), retry=0.05))


@asynccontextmanager
async def serving(tmp_path: Path) -> AsyncGenerator[tuple[Path, Served]]:
    """A server with a chat, in which a call and a question wait."""
    db = tmp_path / "a.db"
    await made(db, ("anna", "@alice pay, and order the hat"))
    await deliver(db, OpenTurn(turn_id="t1", calls=(PAY,)))
    await ask(db)
    async with await SqliteJournal.open(db) as journal, served(journal) as server:
        yield db, server


def tell(tmp_path: Path, story: Story, *, who: str = "ada") -> None:
    """Tell a story of somebody's console."""

    async def run() -> None:
        async with (
            serving(tmp_path) as (db, server),
            chatting(source(server, who)) as (console, pilot),
        ):
            await until(pilot, lambda: waits(console, 2))
            await story(console, pilot, db, server)

    asyncio.run(run())


def test_w_67_a_call_is_approved_and_a_question_replied_by_who_the_token_says(
    tmp_path: Path,
) -> None:
    """The run judges the one, the log keeps the other; both are told by the stream."""

    async def story(console: Console, pilot: Pilot[None], db: Path, _: Served) -> None:
        await pilot.press("j", "a")
        await until(pilot, lambda: card_of(console, "c1").ended)
        (fact,) = [it for it in await facts(db, ALICE) if isinstance(it, ToolApproved)]
        assert (fact.invocation_id, fact.decided_by) == ("c1", "ada")
        card = question_of(console)
        size = card.filled["size"]
        assert isinstance(size, Input)
        size.value = "3"
        await pilot.pause()
        card.reply()
        await until(pilot, lambda: card.ended)
        reply = (await log(db))[-1]
        assert (reply["to"], reply["by"], reply["content"]) == (QUESTION, "ada", {"size": 3})
        await until(pilot, lambda: "approved pay of alice by ada" in text_of(console))

    tell(tmp_path, story)


def test_w_67_another_who_replied_first_is_told_over_http(tmp_path: Path) -> None:
    """The server refuses, and the stream brings what stands."""

    async def story(console: Console, pilot: Pilot[None], db: Path, _: Served) -> None:
        card = question_of(console)
        name = QUESTION.replace("question", "reply", 1)
        body: dict[str, Any] = {"kind": "reply", "to": QUESTION, "action": "decline", "by": "bert"}
        await enter(db, name, body)
        got = await console.source.chats.reply("demo", "plan", QUESTION, {"size": 1})
        assert got.accepted is False
        assert "already" in got.detail
        await until(pilot, lambda: card.ended)
        assert "bert: decline" in card.refused

    tell(tmp_path, story)


def test_w_10_what_is_said_over_http_is_a_persons(tmp_path: Path) -> None:
    """The sender is who the token says, and it is told once."""

    async def story(console: Console, pilot: Pilot[None], db: Path, _: Served) -> None:
        await pilot.press("s", *"noon?", "enter")
        await until(pilot, lambda: "noon?" in text_of(console) and "ada" in text_of(console))
        said = (await log(db))[-1]
        assert (said["role"], said["sender"], said["text"]) == ("person", "ada", "noon?")

    tell(tmp_path, story)


def test_w_71_what_a_model_says_just_now_is_shown_over_http(tmp_path: Path) -> None:
    """It comes from the process that performs, and gives way to nothing until it is kept."""

    async def story(console: Console, pilot: Pilot[None], _db: Path, server: Served) -> None:
        name = f"{ALICE}/said/2"
        begun = SpeechStarted(entry_id=name, agent="alice", attempt=1)
        passing.pass_on(server.journal, LOG, begun)
        chunk = SpeechChunk(entry_id=name, said=Text("It is no"))
        passing.pass_on(server.journal, LOG, chunk)
        await until(pilot, lambda: "It is no" in text_of(console))
        await drawn(pilot)
        assert "alice …" in text_of(console)

    tell(tmp_path, story)


def test_w_71_chats_are_listed_by_a_server_as_by_its_journal(tmp_path: Path) -> None:
    """With their titles, members, and what is closed; a world without a chat is there, too."""

    async def run() -> None:
        async with serving(tmp_path) as (db, server):
            await World(server.journal, "empty").make(title="Nothing")
            world = World(server.journal, "demo")
            await world.open_chat("all")
            await world.close_chat("all")
            of_server = source(server)
            listed = await of_server.chats.listed()
            await of_server.close()
            of_journal = Watching(db)
            assert set(listed) == set(await of_journal.chats.listed())
            await of_journal.close()
        assert {(it.world, it.chat, it.members, it.closed) for it in listed} == {
            ("demo", "plan", ("alice", "bob"), False),
            ("demo", "all", (), True),
            ("empty", None, (), False),
        }

    asyncio.run(run())


@pytest.mark.parametrize("who", ["eve", "alice"], ids=["may only look", "is called as an agent"])
def test_f_11_who_may_not_speak_is_told_so(tmp_path: Path, who: str) -> None:
    """What was typed stays in the line, and nothing is kept."""

    async def story(console: Console, pilot: Pilot[None], db: Path, _: Served) -> None:
        before = await log(db)
        await pilot.press("s", *"hello", "enter")
        await until(pilot, lambda: "not said" in text_of(console))
        assert console.screen.query_one("#say", Input).value == "hello"
        card = next(it for it in chat_of(console).cards if isinstance(it, QuestionCard))
        card.decline()
        await until(pilot, lambda: "refused" in card.refused)
        assert not card.ended
        assert await log(db) == before

    tell(tmp_path, story, who=who)


def test_w_71_a_chat_that_the_server_does_not_have_is_told(tmp_path: Path) -> None:
    """And one whose token is none."""

    async def run() -> None:
        async with serving(tmp_path) as (_, server):
            for chat, who in (("none", "ada"), ("plan", "nobody")):
                console = Console(source(server, who), chat=("demo", chat))
                async with console.run_test() as pilot:
                    await until(pilot, lambda: chat_of(pilot.app).watched.badge == "off")

    asyncio.run(run())

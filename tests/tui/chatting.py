"""A world with a chat in a file, and consoles that look at it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from turnlock import Delivery, Run
from turnlock.models.values import canonical
from turnlock.runtime import SharedRun, SqliteJournal
from turnlock.tui.app import Console
from turnlock.tui.cards import Card
from turnlock.tui.chat_screen import ChatScreen
from turnlock.tui.question_card import QuestionCard
from turnlock.tui.sources import Source
from turnlock.world import AgentSpec, World
from turnlock.world.entries import Question, body_of
from turnlock.world.names import KIND, question_id

from .consoles import AT, Held, Seconds, until

LOG = "demo/plan"
ALICE = "demo/plan/alice"
FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "size": {"type": "integer", "title": "Size", "minimum": 1},
        "gift": {"type": "boolean", "title": "As a gift"},
        "colour": {"type": "string", "title": "Colour", "enum": ["red", "blue"]},
        "notes": {"type": "array", "title": "Notes", "items": {"type": "string"}},
    },
    "required": ["size"],
}
QUESTION = question_id(ALICE, "t1", "c9", 1, 1)


class At:
    """A clock that stands."""

    def now(self) -> float:
        return AT


async def made(db: Path, *said: tuple[str, str]) -> None:
    """Make the world, and have people say this in its chat."""
    async with await SqliteJournal.open(db) as journal:
        world = World(journal, "demo", clock=At())
        await world.make(title="Demo")
        for agent in ("alice", "bob"):
            await world.put_agent(agent, AgentSpec(model=f"file:{agent}"))
        chat = await world.open_chat("plan", members=("alice", "bob"))
        await chat.title("The plan", by="anna")
        for number, (sender, text) in enumerate(said):
            await chat.say(sender, text, message_id=f"m{number}")


async def enter(db: Path, name: str, body: dict[str, Any]) -> None:
    """Have another process append an entry."""
    async with await SqliteJournal.open(db) as journal:
        await journal.append_entry(LOG, name, body, at=AT + 1)


async def ask(db: Path, *, text: str = "Which size?", form: Any = FORM) -> None:
    """Have a tool of alice's ask something."""
    asks = Question(
        run=ALICE, turn="t1", invocation="c9", attempt=1, server="shop", text=text, schema=form
    )
    await enter(db, QUESTION, body_of(asks))


async def deliver(db: Path, *deliveries: Delivery, run_id: str = ALICE) -> None:
    """Have them judged in a member's run, by another process as it were."""
    async with await SqliteJournal.open(db) as journal:
        await journal.declare(Run(run_id=run_id, kind=KIND))
        shared = await SharedRun.open(journal, run_id, policies={}, clock=Seconds())
        for verdict in await shared.submit(*deliveries):
            assert verdict.reason is None


async def log(db: Path) -> list[dict[str, Any]]:
    """The entries of the chat."""
    async with await SqliteJournal.open(db) as journal:
        return [
            {"id": it.entry_id, **json.loads(canonical(it.body))}
            for it in await journal.entries(LOG)
        ]


@asynccontextmanager
async def chatting(
    source: Source, *, size: tuple[int, int] = (110, 44)
) -> AsyncGenerator[tuple[Console, Pilot[None]]]:
    """A console on the chat, which has come to be live."""
    console = Console(source, chat=("demo", "plan"), now=lambda: AT + 100.0, tick=Held())
    console.animation_level = "none"
    async with console.run_test(size=size) as pilot:
        await until(pilot, lambda: chat_of(console).watched.is_live)
        await drawn(pilot)
        yield console, pilot


def chat_of(app: Any) -> ChatScreen:
    """The chat's screen."""
    found = [it for it in app.screen_stack if isinstance(it, ChatScreen)]
    return found[-1]


async def drawn(pilot: Pilot[None]) -> None:
    """Wait until what was heard is drawn."""
    await until(pilot, lambda: not chat_of(pilot.app).inbox)
    await pilot.pause()
    await pilot.pause()


def card_of(app: Any, invocation_id: str) -> Card:
    """The card of a call."""
    (found,) = [
        it
        for it in chat_of(app).cards
        if isinstance(it, Card) and it.call.invocation_id == invocation_id
    ]
    return found


def question_of(app: Any) -> QuestionCard:
    """The card of the question."""
    (found,) = chat_of(app).questions.values()
    return found


def waits(app: Any, count: int) -> bool:
    """Whether so many cards wait, and may be decided."""
    return sum(it.open_to_decision for it in chat_of(app).cards) == count

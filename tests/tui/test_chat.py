"""A chat in the terminal console: said, asked, decided and replied there (W-41, W-67, W-71)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Button, Input, Select

from turnlock import Call, Claim, Decide, Lose, OpenTurn
from turnlock.models.facts import ToolApproved, ToolDenied
from turnlock.models.record import changed
from turnlock.models.values import arguments_digest
from turnlock.runtime import SqliteJournal
from turnlock.tui.app import Console
from turnlock.tui.chat_heard import Came, Replied
from turnlock.tui.chats_screen import ChatsScreen
from turnlock.tui.question_card import QuestionCard
from turnlock.tui.runs_screen import RunsScreen
from turnlock.tui.sources import JournalSource
from turnlock.world import World

from .chatting import (
    ALICE,
    FORM,
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
from .consoles import Watching, compared, facts, text_of, until, utc

__all__ = ["utc"]

Story = Callable[[Console, Pilot[None], Path], Awaitable[None]]

PAY = Call(invocation_id="c1", tool_name="pay", arguments={"amount": 3}, requires_approval=True)
SEND = Call(invocation_id="c2", tool_name="send", arguments={"to": "bob"}, requires_approval=False)
LOST = (
    Claim(turn_id="t1", invocation_id="c2", attempt=1),
    Lose(turn_id="t1", invocation_id="c2", attempt=1),
)
HOSTILE = "[red]x[/] <b>\u202e\x1b[31m\x07\u200b\u3164\r \U0001f600 日本"


def tell(tmp_path: Path, story: Story, *, asks: bool = True, **how: Any) -> None:
    """Tell a story of a console on a chat in which a call and a question wait."""

    async def run() -> None:
        db = tmp_path / "a.db"
        await made(db, ("anna", "@alice pay, and order the hat"))
        await deliver(db, OpenTurn(turn_id="t1", calls=(PAY, SEND)))
        if asks:
            await ask(db)
        async with chatting(Watching(db), **how) as (console, pilot):
            await until(pilot, lambda: waits(console, 1 + asks))
            await story(console, pilot, db)

    asyncio.run(run())


def typed(card: QuestionCard, name: str) -> Input:
    """The field of a form that is typed into."""
    found = card.filled[name]
    assert isinstance(found, Input)
    return found


def chosen(card: QuestionCard, name: str) -> Select[Any]:
    """The field of a form in which something is chosen."""
    found = card.filled[name]
    assert isinstance(found, Select)
    return found


async def transient(console: Console, pilot: Pilot[None], **said: Any) -> None:
    """Have something be said just now."""
    chat_of(console).inbox.append(Came({"type": "transient", **said}))
    await drawn(pilot)


def test_w_71_a_chat_and_the_list_of_chats_are_as_they_were(tmp_path: Path, utc: Any) -> None:
    """Entries, a request, a doubt, a question, and what is said just now.

    TURNLOCK_SNAPSHOTS=write writes them anew: look at what has changed.
    """

    async def run() -> None:
        db = tmp_path / "a.db"
        await made(db, ("anna", "@alice pay, and order the hat"), ("anna", "both,\nplease"))
        await deliver(db, OpenTurn(turn_id="t1", calls=(PAY, SEND)), *LOST)
        await ask(db)
        source, journal = Watching(db), Watching(db)
        source.place = "w.db"  # type: ignore[misc]
        source.chats = journal.chats  # type: ignore[misc]
        source._opened = journal._opened  # type: ignore[method-assign]
        async with chatting(source, size=(110, 56)) as (console, pilot):
            await until(pilot, lambda: waits(console, 3))
            await transient(console, pilot, kind="start", entry_id="e", agent="bob")
            await transient(console, pilot, kind="chunk", entry_id="e", text="Noon, I th")
            compared("chat", text_of(console))
            console.open_chats()
            await until(pilot, lambda: isinstance(console.screen, ChatsScreen))
            await until(pilot, lambda: "The plan" in text_of(console))
            await until(pilot, lambda: console.waiting == 1)
            await until(pilot, lambda: "bob                 1      1" in text_of(console))
            compared("chats", text_of(console))
        await journal.close()

    asyncio.run(run())


def test_w_41_a_request_is_approved_by_the_members_run(tmp_path: Path) -> None:
    """By a key, as in the run's own screen: the run judges it, and the chat tells it."""

    async def story(console: Console, pilot: Pilot[None], db: Path) -> None:
        await pilot.press("j", "a")
        await until(pilot, lambda: card_of(console, "c1").ended)
        (fact,) = [it for it in await facts(db, ALICE) if isinstance(it, ToolApproved)]
        assert (fact.invocation_id, fact.decided_by) == ("c1", "anna")
        await until(pilot, lambda: "approved pay of alice by anna" in text_of(console))

    tell(tmp_path, story, asks=False)


def test_w_41_a_request_is_denied_with_a_reason(tmp_path: Path) -> None:
    """What was typed is told to the model."""

    async def story(console: Console, pilot: Pilot[None], db: Path) -> None:
        card = card_of(console, "c1")
        card.query_one(Input).value = "too much"
        await pilot.press("j", "d")
        await until(pilot, lambda: card.ended)
        (fact,) = [it for it in await facts(db, ALICE) if isinstance(it, ToolDenied)]
        assert (fact.reason, fact.decided_by) == ("too much", "anna")

    tell(tmp_path, story, asks=False)


def test_w_46_a_doubt_is_resolved(tmp_path: Path) -> None:
    """By who knows what became of it."""

    async def story(console: Console, pilot: Pilot[None], db: Path) -> None:
        await deliver(db, *LOST)
        await until(pilot, lambda: waits(console, 2))
        card = card_of(console, "c2")
        card.query_one(Input).value = '"sent"'
        card.query(Button)[0].press()
        await until(pilot, lambda: card.ended)
        await until(pilot, lambda: "send of alice: succeeded" in text_of(console))
        assert not waits(console, 2)
        assert [it.type for it in await facts(db, ALICE)][-1] == "TOOL_EXECUTION_SUCCEEDED"

    tell(tmp_path, story, asks=False)


def test_w_67_a_form_is_filled_in_and_replied(tmp_path: Path) -> None:
    """Each kind of field as its kind; what was left out is left out."""

    async def story(console: Console, pilot: Pilot[None], db: Path) -> None:
        card = question_of(console)
        chosen(card, "gift").value = False
        typed(card, "size").value, typed(card, "notes").value = "3", "soft, warm"
        await pilot.pause()
        card.reply()
        await until(pilot, lambda: card.ended)
        reply = (await log(db))[-1]
        assert reply["content"] == {"size": 3, "gift": False, "notes": ["soft", "warm"]}
        assert (reply["action"], reply["by"], reply["to"]) == ("accept", "anna", QUESTION)
        assert chosen(card, "colour").is_blank()
        await until(pilot, lambda: "anna: accept" in card.refused)

    tell(tmp_path, story)


@pytest.mark.parametrize(("given", "why"), [
    ("", "is left out"), ("many", "is no integer"), ("true", "is no integer"), ("0", "minimum"),
    ("1.5", "integer"), ("3 4", "is no integer"),
])  # fmt: skip
def test_w_67_what_does_not_fit_is_told_and_not_sent(tmp_path: Path, given: str, why: str) -> None:
    """It stays in the form."""

    async def story(console: Console, pilot: Pilot[None], db: Path) -> None:
        card = question_of(console)
        typed(card, "size").value = given
        await pilot.pause()
        card.reply()
        assert why in card.refused
        assert typed(card, "size").value == given
        assert [it["kind"] for it in await log(db)] == ["message", "question"]

    tell(tmp_path, story)


def test_w_67_a_question_is_declined_by_a_key(tmp_path: Path) -> None:
    """The focus on its card; no other key of a call means anything there."""

    async def story(console: Console, pilot: Pilot[None], db: Path) -> None:
        question_of(console).focus()
        await pilot.press("e", "d")
        await until(pilot, lambda: question_of(console).ended)
        reply = (await log(db))[-1]
        assert (reply["action"], reply.get("content")) == ("decline", None)

    tell(tmp_path, story)


def test_w_67_who_replied_first_is_told(tmp_path: Path) -> None:
    """Somebody elsewhere: the card ends, what was typed is still there, nothing more is sent."""

    async def story(console: Console, pilot: Pilot[None], db: Path) -> None:
        card = question_of(console)
        typed(card, "size").focus()
        await pilot.press("7")
        name = QUESTION.replace("question", "reply", 1)
        body = {"kind": "reply", "to": QUESTION, "action": "accept", "by": "bert"}
        await enter(db, name, {**body, "content": {"size": 1}})
        await until(pilot, lambda: card.ended)
        assert "bert: accept" in card.refused
        assert typed(card, "size").value == "7"
        assert not card.has_class("-folded")  # somebody types in it
        card.reply()
        assert len(await log(db)) == 3

    tell(tmp_path, story)


def test_w_67_two_who_reply_at_once(tmp_path: Path) -> None:
    """The console has not heard of the other yet: it is told by the refusal."""

    async def story(console: Console, pilot: Pilot[None], db: Path) -> None:
        chats = console.source.chats
        name = QUESTION.replace("question", "reply", 1)
        body = {"kind": "reply", "to": QUESTION, "action": "decline", "by": "bert"}
        await enter(db, name, body)
        got = await chats.reply("demo", "plan", QUESTION, {"size": 3})
        assert got == Replied(accepted=False, detail="bert has replied first: decline")

    tell(tmp_path, story)


@pytest.mark.parametrize("form", [
    {**FORM, "properties": {"password": {"type": "string"}}, "required": []},
    {"type": "object", "properties": {"a": {"type": "object"}}},
], ids=["a secret", "nested"])  # fmt: skip
def test_w_67_a_form_that_nobody_may_fill_in_can_only_be_declined(
    tmp_path: Path, form: dict[str, Any]
) -> None:
    """Another program asked: no field is shown."""

    async def run() -> None:
        db = tmp_path / "a.db"
        await made(db)
        await ask(db, form=form)
        async with chatting(Watching(db)) as (console, pilot):
            await until(pilot, lambda: waits(console, 1))
            card = question_of(console)
            assert not card.query(Input)
            card.reply()
            assert "can only be declined" in card.refused
            card.decline()
            await until(pilot, lambda: card.ended)

    asyncio.run(run())


def test_w_10_what_is_said_is_said_once(tmp_path: Path) -> None:
    """By return in the line; the role is a person's, whatever it says."""

    async def story(console: Console, pilot: Pilot[None], db: Path) -> None:
        await pilot.press("s", *'@bob {"role"', "enter")
        await until(pilot, lambda: console.screen.query_one("#say", Input).value == "")
        said = (await log(db))[-1]
        assert (said["kind"], said["role"], said["sender"]) == ("message", "person", "anna")
        assert said["text"] == '@bob {"role"'
        await pilot.press("enter")
        await until(pilot, lambda: '@bob {"role"' in text_of(console))
        assert len(await log(db)) == 2
        await pilot.press("escape", "escape")
        await until(pilot, lambda: isinstance(console.screen, RunsScreen))

    tell(tmp_path, story, asks=False)


def test_w_10_what_nobody_answered_is_said_again_under_its_id(tmp_path: Path) -> None:
    """The first try was kept, and the answer lost: it stands once."""

    async def story(console: Console, pilot: Pilot[None], db: Path) -> None:
        chats = console.source.chats
        say, tried = chats.say, list[str]()

        async def lost(world: str, chat: str, text: str, *, message_id: str) -> Replied:
            tried.append(message_id)
            got = await say(world, chat, text, message_id=message_id)
            return got if len(tried) > 1 else Replied(accepted=None, detail="it went away")

        chats.say = lost  # type: ignore[method-assign]
        await pilot.press("s", *"hello", "enter")
        await until(pilot, lambda: "it went away" in text_of(console))
        await pilot.press("enter")
        await until(pilot, lambda: len(tried) == 2)
        assert tried[0] == tried[1]
        assert [it["kind"] for it in await log(db)] == ["message", "message"]

    tell(tmp_path, story, asks=False)


def test_w_71_what_is_said_just_now_gives_way_to_its_entry(tmp_path: Path) -> None:
    """Asked again it begins anew; once it is kept it stands there once."""

    async def story(console: Console, pilot: Pilot[None], db: Path) -> None:
        name = f"{ALICE}/said/2"
        await transient(console, pilot, kind="start", entry_id=name, agent="alice")
        await transient(console, pilot, kind="chunk", entry_id=name, text="It is\nno")
        assert "It is" in text_of(console)
        await transient(console, pilot, kind="start", entry_id=name, agent="alice")
        assert "It is" not in text_of(console)
        await transient(console, pilot, kind="chunk", entry_id=name, text="It is noon")
        await enter(db, name, {"kind": "message", "role": "agent", "sender": "alice",
                               "text": "It is noon"})  # fmt: skip
        await until(pilot, lambda: not chat_of(console).watched.speaking)
        await drawn(pilot)
        assert text_of(console).count("It is noon") == 1

    tell(tmp_path, story, asks=False)


def test_f_91_what_others_wrote_is_no_markup_and_moves_no_cursor(tmp_path: Path) -> None:
    """In messages, questions, forms, calls, names, and what is said just now."""

    async def run() -> None:
        db = tmp_path / "a.db"
        await made(db, ("anna", HOSTILE))
        call = Call(
            invocation_id=HOSTILE,
            tool_name=HOSTILE,
            arguments={HOSTILE: HOSTILE},
            requires_approval=True,
        )
        await deliver(db, OpenTurn(turn_id="t1", calls=(call,)))
        form = {"type": "object", "properties": {
            HOSTILE: {"type": "string", "title": HOSTILE, "description": HOSTILE},
            "b": {"type": "string", "enum": [HOSTILE]},
        }}  # fmt: skip
        await ask(db, text=HOSTILE, form=form)
        await enter(db, "odd/1", {"kind": HOSTILE})
        await enter(db, "odd/2", {"kind": "notice", "text": HOSTILE})
        await enter(db, "odd/3", {})
        await enter(db, "odd/4", {"kind": "message", "sender": HOSTILE, "text": 3})
        async with chatting(Watching(db)) as (console, pilot):
            await until(pilot, lambda: waits(console, 2))
            await transient(console, pilot, kind="start", entry_id="x", agent=HOSTILE)
            await transient(console, pilot, kind="chunk", entry_id="x", text=HOSTILE)
            await transient(console, pilot, kind=HOSTILE, entry_id=7)
            shown = text_of(console)
            for odd in ("\u202e", "\x1b", "\x07", "\u200b"):
                assert odd not in shown
            assert "[red]x[/]" in shown

    asyncio.run(run())


def test_w_71_a_chat_that_is_not_there_is_told(tmp_path: Path) -> None:
    """Nothing is tried again for ever."""

    async def run() -> None:
        db = tmp_path / "a.db"
        await made(db)
        console = Console(Watching(db), chat=("demo", "none"))
        async with console.run_test() as pilot:
            await until(pilot, lambda: chat_of(console).watched.badge == "off")
            assert "none" in chat_of(console).watched.why

    asyncio.run(run())


def test_w_71_an_interrupt_asks_whom_and_stops_that_member(tmp_path: Path) -> None:
    """Esc stops nobody; return stops the one with the cursor."""

    async def story(console: Console, pilot: Pilot[None], db: Path) -> None:
        await pilot.press("i")
        await until(pilot, lambda: "Interrupt whom?" in text_of(console))
        await pilot.press("escape", "i")
        await until(pilot, lambda: "Interrupt whom?" in text_of(console))
        assert not any("INTERRUPT" in it.type for it in await facts(db, ALICE))
        await pilot.press("enter")
        await until(pilot, lambda: card_of(console, "c1").ended)
        assert any("INTERRUPT" in it.type for it in await facts(db, ALICE))

    tell(tmp_path, story, asks=False)


def test_w_11_a_world_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    async def run() -> None:
        db = tmp_path / "a.db"
        await made(db)
        async with await SqliteJournal.open(db) as journal:
            await journal.append_entry("bad", "made", {"kind": "WORLD_MADE", "title": 5}, at=1.0)
        source = JournalSource(str(db), who="anna")
        listed = await source.chats.listed()
        assert [(it.world, it.chat) for it in listed] == [("bad", None), ("demo", "plan")]
        await source.close()

    asyncio.run(run())


def test_w_42_nothing_begins_in_the_run_of_who_is_no_member_any_more(tmp_path: Path) -> None:
    """Section 12: nor is it approved by a card that still stands; to deny is free."""

    async def run() -> None:
        db = tmp_path / "a.db"
        await made(db, ("anna", "@alice pay"))
        await deliver(db, OpenTurn(turn_id="t1", calls=(PAY,)))
        async with await SqliteJournal.open(db) as journal:
            await World(journal, "demo").clear("plan", "alice")
        before, source = await facts(db, ALICE), JournalSource(str(db), who="anna")
        digest = arguments_digest(PAY.arguments)
        deny = Decide(turn_id="t1", invocation_id="c1", approved=False)
        approve = changed(deny, approved=True, arguments_digest=digest)
        refused = await source.deliver(ALICE, approve)
        assert (refused.accepted, refused.reason) == (False, "no_active_turn")
        assert await facts(db, ALICE) == before
        assert (await source.deliver(ALICE, deny)).accepted

    asyncio.run(run())

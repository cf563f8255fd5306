"""Idle is a fold, and on idle a chat gets a title, once (W-70)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlock.agent import ModelError
from turnlock.world import AgentSpec, World
from turnlock.world.spec import TITLE_LENGTH
from turnlock.world.titles import cleaned, first_words, is_poor

from ..runtime.virtual import run
from .playing import Played, Process, ids, killed, play, says


async def title_of(played: Played) -> tuple[str, str | None]:
    chat = (await played.world.configuration()).chats["plan"]
    return chat.title, chat.titled_by


def test_w_70_an_idle_chat_gets_a_title_once() -> None:
    """Asked without tools and briefly; cleaned; and not asked again, by this host or the next."""

    async def it() -> None:
        played = await play({"alice": says("Yes.")})
        titles = says('Title: "A *trip* to the sea."\nAnd more.')
        async with played.host(title_model=titles) as host:
            await host.idle("plan")
            assert titles.asked == [], "nothing was said"
            await played.chat.say("human", "@alice let us sail", message_id="m1")
            await host.idle("plan")
            assert await title_of(played) == ("A trip to the sea", "world")
            await played.chat.say("human", "@alice and back", message_id="m2")
            await host.idle("plan")
        async with played.host(title_model=titles) as host:
            await host.idle("plan")
        (question,) = titles.asked
        assert not question.tools
        assert question.limit == 20
        assert [it for it in await ids(played.journal, "demo") if it.startswith("title/")] == [
            "title/plan"
        ]

    run(it())


@pytest.mark.parametrize(
    "reply", ["New Chat", "...", "", "untitled", ModelError("gone"), ZeroDivisionError("oh")]
)
def test_w_70_a_poor_title_gives_way_to_the_first_public_word(reply: Any) -> None:
    """Of a person, and addressed to nobody; the same without a model."""

    async def it() -> None:
        for model in (says(reply), None):
            played = await play({"alice": says("Yes.")})
            async with played.host(title_model=model) as host:
                await played.chat.say("human", "@alice hush", message_id="m1")
                await played.chat.say("human", "Where to go?", message_id="m2")
                await host.idle("plan")
            title, by = await title_of(played)
            assert (title, by) == ("Where to go?", "world")

    run(it())


def test_w_70_a_persons_title_stays_and_another_may_be_asked_for() -> None:
    async def it() -> None:
        played = await play({"alice": says("Yes.")})
        titles = says("First thing", "Second thing", "Third thing")
        async with played.host(title_model=titles) as host:
            await played.chat.say("human", "@alice go", message_id="m1")
            await host.idle("plan")
            await host.retitle("plan")
            assert (await title_of(played))[0] == "Second thing"
            await played.world.title("plan", "Mine", by="human")
            await host.retitle("plan")
            assert await title_of(played) == ("Mine", "human")

    run(it())


def test_w_70_killed_while_the_title_is_asked_it_is_asked_again() -> None:
    """Before the answer and after it: one entry stands."""

    async def it() -> None:
        for slow in (5.0, 0.0):
            played = await play({"alice": says("Yes.")})
            titles = says("The sea", slow=slow)
            process, before = Process(played.journal), asyncio.all_tasks()
            host = played.host(title_model=titles, journal=process)
            await host.__aenter__()
            await played.chat.say("human", "@alice go", message_id="m1")
            await asyncio.sleep(1.0)
            assert len(titles.asked) == 1
            await killed(process, asyncio.all_tasks() - before)
            async with played.host(title_model=says("The sky")) as host:
                await host.idle("plan")
            title, _ = await title_of(played)
            assert title == ("The sky" if slow else "The sea")
            entries = await ids(played.journal, "demo")
            assert [it for it in entries if it.startswith("title/")] == ["title/plan"]

    run(it())


def test_w_70_idle_waits_for_all_that_is_owed_and_for_no_longer() -> None:
    """Of one chat, or of all; a chat that waits for nobody is idle at once."""

    async def it() -> None:
        played = await play({"alice": says("Yes.", slow=5.0)})
        other = await played.world.open_chat("other")
        async with played.host() as host:
            await other.say("human", "hi", message_id="m1")
            loop = asyncio.get_running_loop()
            await host.idle("plan")
            assert loop.time() < 1.0
            await host.idle("other")
            assert 5.0 <= loop.time() < 6.0
            await host.idle()
            assert (await host.standing("other")).is_idle

    run(it())


class Elsewhere(Process):
    """Nobody is told here what others append."""

    def when_entered(self, heed: Callable[[str], None]) -> Callable[[], None]:
        del heed
        return super().when_entered(lambda _: None)


def test_w_70_idle_sees_what_another_process_says() -> None:
    """Whoever asks looks at the journal first: what stands there by then is heard."""

    async def it() -> None:
        played = await play({"alice": says("Yes.")})
        async with played.host(journal=Elsewhere(played.journal)) as host:
            for number in range(5):
                await played.chat.say("human", "@alice go", message_id=f"m{number}")
                await host.idle("plan")
                assert len(await played.said()) == 2 * (number + 1)

    run(it())


def test_a_new_chat_and_a_new_agent_are_performed_at_once() -> None:
    async def it() -> None:
        played = await play({"alice": says("Yes.")})
        bob = says("Me, too.")
        async with played.host(models={**played.models, "test:bob": bob}) as host:
            world = World(played.journal, "demo")
            chat = await world.open_chat("new")
            await world.put_agent("bob", AgentSpec(model="test:bob"))
            await chat.say("human", "hello", message_id="m1")
            await host.idle("new")
            assert len(bob.asked) == 1
            with pytest.raises(Exception, match="there is no chat"):
                await host.idle("none")

    run(it())


def test_only_the_chats_that_were_named_are_performed() -> None:
    async def it() -> None:
        alice = says("Yes.")
        played = await play({"alice": alice})
        other = await played.world.open_chat("other")
        async with played.host(chats=("plan",)) as host:
            await other.say("human", "hi", message_id="m1")
            await played.chat.say("human", "ho", message_id="m1")
            await host.idle("plan")
        assert alice.told == ["human: ho"]

    run(it())


def test_a_member_that_rests_is_owned_by_nobody() -> None:
    """A moment after it has spoken; before that it may be spoken to at once."""

    async def it() -> None:
        played = await play({"alice": says("Yes.")})
        async with played.host() as host:
            await played.chat.say("human", "go", message_id="m1")
            await host.idle("plan")
            assert host.runtime.owns("demo/plan/alice")
            await asyncio.sleep(5.0)
            assert not host.runtime.owns("demo/plan/alice")
            entry = await played.journal.entry("demo/plan/alice")
            assert entry.owner is None
            await played.chat.say("human", "go", message_id="m2")
            await until_it_rests(played, host)

    run(it())


async def until_it_rests(played: Played, host: Any) -> None:
    await host.idle("plan")
    assert len(await played.said()) == 4


@given(text=st.text(max_size=300))
def test_w_70_a_title_is_one_harmless_line(text: str) -> None:
    title = cleaned(text)
    assert len(title) <= TITLE_LENGTH
    assert title == title.strip()
    assert title.isprintable()
    assert cleaned(title) == title or not title.isascii() or "\\" in title


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("\n\n# **Sea trip**\nmore", "Sea trip"),
        ("Chat title - The sky", "The sky"),
        ("# **Title:** The *plan*", "The plan"),
        ("“Quoted.”", "Quoted"),
        ("'Quoted', _too_, and __both__", "Quoted, too, and both"),
        ("Don't call shop__order_now", "Don't call shop__order_now"),
        ("x" * 500, "x" * 99 + "…"),
        ("a\u202eb", "a\\u202eb"),
    ],
)
def test_w_70_titles_are_cleaned(text: str, title: str) -> None:
    assert cleaned(text) == title


def test_w_70_titles_that_say_nothing() -> None:
    assert all(map(is_poor, ["", "x", "New chat", "CHAT", "…"]))
    assert not is_poor("Go")
    assert first_words([]) == ""

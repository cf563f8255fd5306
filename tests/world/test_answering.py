"""Who is spoken to answers, from end to end: hear, answer, publish, once each (W-20 … W-30)."""

from __future__ import annotations

import asyncio

import pytest

from turnlock.runtime.journal.ledger import Domain
from turnlock.world import AgentSpec, Stands, UnknownWorld
from turnlock.world.entries import Message, Role, body_of
from turnlock.world.member import LEFT_OUT, UNHEARD_BYTES

from ..runtime.virtual import run
from .playing import ids, play, says


def test_w_20_who_is_spoken_to_answers() -> None:
    """A public word by all, an address by one; the prompt says who speaks."""

    async def it() -> None:
        alice, bob = says("Booked."), says("It is noon.")
        played = await play({"alice": alice, "bob": bob})
        async with played.host() as host:
            await played.chat.say("human", "@alice book it", message_id="m1")
            await host.idle("plan")
            await played.chat.say("human", "hello", message_id="m2")
            await host.idle("plan")
        assert alice.told == ["human: @alice book it", "human: hello"]
        assert bob.told == ["human: hello"]
        said = await played.said()
        assert said[:3] == ["human: @alice book it", "alice: Booked.", "human: hello"]
        assert sorted(said[3:]) == ["alice: Booked.", "bob: It is noon."]
        assert (await ids(played.journal, "demo/plan"))[:3] == [
            "say/human/m1",
            "demo/plan/alice/said/2",
            "say/human/m2",
        ]

    run(it())


def test_w_30_the_note_of_a_prompt_says_how_far_the_chat_was_heard() -> None:
    """Text and number in one note; the answer's note says under which spec it was asked (W-34)."""

    async def it() -> None:
        played = await play({"alice": says("Booked.")})
        entry = await played.world.put_agent(
            "alice", AgentSpec(model="test:alice", instructions="Be brief.")
        )
        async with played.host() as host:
            await played.chat.say("human", "@alice book it", message_id="m1")
            await host.idle("plan")
        noted = await played.journal.notes("demo/plan/alice", domain=Domain.MESSAGE)
        prompt, answer = (dict(it.note.body) for it in noted)
        assert prompt["text"] == "human: @alice book it"
        assert prompt["heard"] == {
            "number": 1,
            "entry": "say/human/m1",
            "from": "human",
            "role": "person",
        }
        assert answer["configuration"] == entry.entry

    run(it())


def test_w_25_two_members_answer_at_the_same_time() -> None:
    """Neither waits for the other, though one is slow."""

    async def it() -> None:
        alice, bob = says("One.", slow=5.0), says("Two.", slow=1.0)
        played = await play({"alice": alice, "bob": bob})
        async with played.host() as host:
            await played.chat.say("human", "go", message_id="m1")
            await host.idle("plan")
            assert asyncio.get_running_loop().time() < 6.0
        assert await played.said() == ["human: go", "bob: Two.", "alice: One."]
        assert len(alice.asked) == len(bob.asked) == 1, "neither was addressed by the other"

    run(it())


def test_w_26_a_member_hears_one_message_at_a_time() -> None:
    """What comes while it speaks waits in the log, and is heard in its order."""

    async def it() -> None:
        alice = says("Yes.", slow=1.0)
        played = await play({"alice": alice})
        async with played.host() as host:
            for number in range(3):
                await played.chat.say("human", f"word {number}", message_id=f"m{number}")
            await host.idle("plan")
        assert alice.told == ["human: word 0", "human: word 1", "human: word 2"]
        assert alice.most_at_once == 1
        entries = await played.journal.entries("demo/plan")
        replies = [dict(it.body).get("reply_to") for it in entries[3:]]  # type: ignore[arg-type]
        assert replies == ["say/human/m0", "say/human/m1", "say/human/m2"]

    run(it())


def test_w_20_who_hears_all_is_told_what_it_does_not_answer() -> None:
    """With the next prompt, by sender, in order; and who hears what is addressed to it is not."""

    async def it() -> None:
        alice, bob = says("Noted."), says("Fine.")
        played = await play({"alice": (alice, {"hears": "all"}), "bob": bob, "carol": says("Hm.")})
        async with played.host() as host:
            await played.chat.say("human", "@carol one", message_id="m1")
            await host.idle("plan")
            await played.chat.say("human", "@alice @bob two", message_id="m2")
            await host.idle("plan")
            await played.chat.say("human", "@alice three", message_id="m3")
            await host.idle("plan")
        assert alice.told[0] == "human: @carol one\n\ncarol: Hm.\n\nhuman: @alice @bob two"
        assert alice.told[1] == "bob: Fine.\n\nhuman: @alice three"
        assert bob.told == ["human: @alice @bob two"]

    run(it())


def test_w_20_what_was_passed_by_is_told_to_who_hears_all() -> None:
    """W-22: at the limit nothing is heard, and nothing is lost: what was said before it, too."""

    async def it() -> None:
        alice, bob = says("@bob ping", "@bob ping", "Thanks."), says("@alice pong")
        more = {"hears": "all", "turn_limit": 1}
        quiet = says("<world>PASS</world>")
        played = await play({"alice": (alice, more), "bob": (bob, {}), "carol": quiet})
        async with played.host() as host:
            await played.chat.say("human", "@alice go", message_id="m1")
            await host.idle("plan")
            assert (await played.said())[-1].startswith("alice hands over")
            for number, text in enumerate(("@carol psst", "@bob more"), start=2):
                await played.chat.say("human", text, message_id=f"m{number}")
                await host.idle("plan")
            await played.chat.say("human", "@alice and?", message_id="m4")
            await host.idle("plan")
        assert alice.told[:2] == ["human: @alice go", "bob: @alice pong"]
        assert alice.told[2].split("\n\n") == [
            "bob: @alice pong",
            "human: @carol psst",
            "human: @bob more",
            "bob: @alice pong",
            "human: @alice and?",
        ]

    run(it())


def test_w_9_what_is_told_beside_a_prompt_is_bounded() -> None:
    """The oldest of it gives way, which is said once; the latest is told."""

    async def it() -> None:
        alice = says("Noted.")
        played = await play({"alice": (alice, {"hears": "all"})})
        for number in range(20):
            text = f"@carol {number} {'x' * 200_000}"
            await played.chat.say("human", text, message_id=f"m{number}")
        await played.chat.say("human", "@alice now", message_id="m")
        async with played.host() as host:
            await host.idle("plan")
        (told,) = alice.told
        first, *others, last = told.split("\n\n")
        assert (first, last) == (LEFT_OUT, "human: @alice now")
        assert [it.split()[2] for it in others] == ["15", "16", "17", "18", "19"]
        assert len(told) < UNHEARD_BYTES

    run(it())


def test_w_21_an_answer_to_an_agent_goes_to_that_agent() -> None:
    """Unless it addresses somebody, or says that it is done; the note keeps what was said."""

    async def it() -> None:
        alice = says("@bob ask", "<world>DONE</world> thanks, @bob")
        bob = says("here you are")
        played = await play({"alice": alice, "bob": bob})
        async with played.host() as host:
            await played.chat.say("human", "@alice go", message_id="m1")
            await host.idle("plan")
        assert await played.said() == [
            "human: @alice go",
            "alice: @bob ask",
            "bob: @alice here you are",
            "alice: thanks, @bob",
        ]

    run(it())


def test_what_was_said_while_no_host_ran_is_heard() -> None:
    """And what another world's entry says is not; nor what came before an agent was put."""

    async def it() -> None:
        alice = says("Yes.")
        played = await play({"alice": alice})
        await played.chat.say("human", "one", message_id="m1")
        world = Message(role=Role.WORLD, sender="world", text="two")
        await played.journal.append_entry("demo/plan", "w1", body_of(world), at=0.0)
        bob = says("Late.")
        await played.world.put_agent("bob", AgentSpec(model="test:bob"))
        async with played.host(models={**played.models, "test:bob": bob}) as host:
            await host.idle()
            assert alice.told == ["human: one", "world: two"]
            assert bob.asked == []
            standing = await host.standing("plan")
            assert [(it.stands, it.cursor) for it in standing.members] == [
                (Stands.IDLE, 2),
                (Stands.IDLE, 2),
            ]

    run(it())


def test_a_world_that_nobody_made_has_no_host() -> None:
    async def it() -> None:
        played = await play({})
        with pytest.raises(UnknownWorld):
            async with played.host(), type(played.host())(played.journal, "other"):
                raise AssertionError

    run(it())

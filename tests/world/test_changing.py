"""What an agent is counts from the next answer on; a model that fails is asked again (W-34)."""

from __future__ import annotations

import asyncio
from typing import Any

from turnlock.agent import Answer, ModelError
from turnlock.runtime import tool
from turnlock.runtime.journal.ledger import Domain
from turnlock.runtime.tools.toolbox import Toolbox
from turnlock.world import AgentSpec

from ..runtime.virtual import run
from .playing import Played, calls, play, says


@tool
async def look() -> str:
    """Look around."""
    return "all is well"


@tool
async def search__web() -> str:
    """Look far."""
    return "found"


TOOLS = Toolbox([look, search__web])


async def configurations(played: Played) -> list[Any]:
    noted = await played.journal.notes("demo/plan/alice", domain=Domain.MESSAGE)
    bodies = [dict(it.note.body) for it in noted]
    return [it.get("configuration") for it in bodies if "calls" in it]


def test_w_34_a_spec_that_changes_in_the_middle_counts_at_the_next_answer() -> None:
    """Model, instructions, tools: the first answer has the old, the others the new."""

    async def it() -> None:
        old, new = says(calls("look")), says(calls("search__web"), "Done.")
        played = await play({"alice": (old, {"tools": ("look",), "instructions": "Old."})})

        @tool(name="look")
        async def change() -> str:
            spec = AgentSpec(model="test:new", tools=("search__*",), instructions="New.")
            await played.world.put_agent("alice", spec)
            return "changed"

        boxes = (Toolbox([change]), Toolbox([search__web]))
        models = {**played.models, "test:new": new}
        async with played.host(models=models, toolboxes=boxes) as host:
            await played.chat.say("human", "@alice go", message_id="m1")
            await host.idle("plan")
            assert [it.instructions for it in old.asked] == ["Old."]
            assert [it.instructions for it in new.asked] == ["New.", "New."]
            assert [[*it.tools] for it in (*old.asked, *new.asked)] == [
                ["look"],
                ["search__web"],
                ["search__web"],
            ]
        assert new.results == ["changed", "found"]
        entry = (await played.world.configuration()).agents["alice"].entry
        assert await configurations(played) == [2, entry, entry]
        assert entry > 2

    run(it())


def test_w_34_another_process_changes_the_spec_and_it_counts() -> None:
    """Also where the host has not looked yet: the log is read before each question."""

    async def it() -> None:
        old, new = says("Old."), says("New.")
        played = await play({"alice": old})
        async with played.host(models={**played.models, "test:new": new}) as host:
            other = type(played.world)(played.journal, "demo")
            await other.put_agent("alice", AgentSpec(model="test:new", history=1))
            await played.chat.say("human", "@alice go", message_id="m1")
            await host.idle("plan")
            await played.chat.say("human", "@alice again", message_id="m2")
            await host.idle("plan")
        assert old.asked == []
        assert [len(it.messages) for it in new.asked] == [1, 1], "W-35: one prompt"

    run(it())


def test_a_model_that_fails_is_asked_again_and_the_chat_is_told_once() -> None:
    """With growing pauses; its standing says why; nobody else waits, and nothing is lost."""

    async def it() -> None:
        errors = [ModelError(f"no answer, secret {number}") for number in range(9)]
        alice, bob = says(*errors, "At last.", "And on."), says("Noon.")
        played = await play({"alice": alice, "bob": bob})
        async with played.host() as host:
            await played.chat.say("human", "@alice @bob go", message_id="m1")
            await host.until(lambda: len(alice.asked) == 5)
            assert [it for it in await played.said() if it.startswith("bob")] == ["bob: Noon."]
            failing = [it.failing for it in (await host.standing("plan")).members]
            assert failing[0] is not None
            assert "no answer" in failing[0]
            assert failing[1] is None
            await host.idle("plan")
            said = await played.said()
            assert said[-1] == "alice: At last."
            told = "notice: The model of alice does not answer; it is asked again."
            assert said.count(told) == 1
            assert (await host.standing("plan")).members[0].failing is None
        assert not any("secret" in it for it in said)

    run(it())


def test_a_model_that_no_host_has_is_a_failure_that_a_new_spec_mends() -> None:
    """At once: who puts the agent again need not wait for the next try."""

    async def it() -> None:
        played = await play({"alice": says("Here.")})
        await played.world.put_agent("alice", AgentSpec(model="test:nowhere"))
        async with played.host() as host:
            await played.chat.say("human", "@alice go", message_id="m1")
            await asyncio.sleep(1.0)
            assert (await host.standing("plan")).members[0].failing is not None
            await played.world.put_agent("alice", AgentSpec(model="test:alice"))
            await host.idle("plan")
        assert (await played.said())[-1] == "alice: Here."

    run(it())


def test_what_goes_wrong_in_one_model_harms_nobody_else() -> None:
    """An error that is none of ours: it is said, and tried again."""

    async def it() -> None:
        alice = says(ZeroDivisionError("oh"), "Better.")
        played = await play({"alice": alice, "bob": says("Fine.")})
        async with played.host() as host:
            await played.chat.say("human", "go", message_id="m1")
            await host.idle("plan")
        assert sorted((await played.said())[1:]) == ["alice: Better.", "bob: Fine."]

    run(it())


def test_w_58_parts_of_an_early_answer_say_their_configuration() -> None:
    """Early calls start while it speaks; the answer is one, and is published once."""

    async def it() -> None:
        model = says(calls("look"), Answer(text="Well."))
        played = await play({"alice": (model, {"tools": ("look",), "start": "early"})})
        async with played.host(toolboxes=TOOLS) as host:
            await played.chat.say("human", "@alice go", message_id="m1")
            await host.idle("plan")
        assert (await played.said())[1:] == ["alice: Well."]
        assert set(await configurations(played)) == {2}

    run(it())

"""Limits: who talks to agents for ever hands over once, and nothing comes back out of order."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from turnlock.agent import Answer, Prompt, Tokens
from turnlock.agent.messages import Stop, ToolCall
from turnlock.runtime import tool
from turnlock.runtime.journal.ledger import Domain
from turnlock.runtime.tools.toolbox import Toolbox
from turnlock.world import AgentSpec
from turnlock.world.entries import AgentPut, body_of

from ..runtime.virtual import run
from .playing import Played, Playing, calls, ids, play, says


def handed_over(said: list[str]) -> list[str]:
    return [it for it in said if "hands over" in it]


async def ping_pong(**more: Any) -> Played:
    """Two agents that address each other, whatever they hear."""
    return await play({"alice": (says("@bob ping"), more), "bob": (says("@alice pong"), more)})


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_w_22_a_ping_pong_ends_with_one_handoff(limit: int) -> None:
    """Whoever has answered so many agents since a person spoke hands over; nobody answers that."""

    async def it() -> None:
        played = await ping_pong(turn_limit=limit)
        async with played.host() as host:
            await played.chat.say("human", "@alice go", message_id="m1")
            await host.idle("plan")
            said = await played.said()
            assert said == [
                "human: @alice go",
                *["alice: @bob ping", "bob: @alice pong"] * limit,
                "alice: @bob ping",
                f"bob hands over: @human Turn limit reached ({limit}). Please take over.",
            ]
            passed = 2 * limit + 2
            assert (await ids(played.journal, "demo/plan"))[-1] == f"demo/plan/bob/limit/{passed}"
        async with played.host() as host:  # another process finds it done
            await host.idle("plan")
        assert await played.said() == said

    run(it())


def test_w_22_a_persons_word_begins_anew() -> None:
    """For the member that hears it: the others count on."""

    async def it() -> None:
        played = await ping_pong(turn_limit=2)
        async with played.host() as host:
            await played.chat.say("human", "@alice go", message_id="m1")
            await host.idle("plan")
            await played.chat.say("human", "@bob go on", message_id="m2")
            await host.idle("plan")
            said = await played.said()
            assert len(handed_over(said)) == 2
            again = said[said.index("human: @bob go on") :]
            assert again[:2] == ["human: @bob go on", "bob: @alice pong"]
            assert again[2].startswith("alice hands over"), "two agents' prompts since a person's"

    run(it())


def test_w_22_a_larger_limit_later_brings_nothing_back() -> None:
    """What was passed by stays so; the next message is heard."""

    async def it() -> None:
        played = await ping_pong(turn_limit=1)
        bob: Playing = played.models["test:bob"]  # type: ignore[assignment]
        async with played.host() as host:
            await played.chat.say("human", "@alice go", message_id="m1")
            await host.idle("plan")
            before = await played.said()
            await played.world.put_agent("bob", AgentSpec(model="test:bob", turn_limit=9))
            await host.idle("plan")
            assert await played.said() == before
        async with played.host() as host:
            await host.idle("plan")
            assert await played.said() == before
            asked = len(bob.asked)
            await played.chat.say("human", "@bob and now?", message_id="m2")
            await host.idle("plan")
        assert bob.told[asked] == "human: @bob and now?"

    run(it())


async def limited(**more: Any) -> tuple[Played, Playing]:
    """An agent that calls a tool for ever."""
    model = says(*[calls("look")] * 3, "Done.", calls("look"))
    return await play({"alice": (model, {"tools": ("look",), **more})}), model


@tool
async def look() -> str:
    """Look around."""
    return "all is well"


TOOLS = Toolbox([look])


@pytest.mark.parametrize(
    ("more", "what", "asked"),
    [
        ({"answer_limit": 2}, "Answer limit reached (2)", 2),
        ({"token_limit": 11}, "Token limit reached (11)", 2),
    ],
)
def test_w_23_at_a_limit_a_person_has_the_word(more: dict[str, Any], what: str, asked: int) -> None:
    """One handoff; a larger limit later does not go on; the next prompt does, with what ran."""

    async def it() -> None:
        played, model = await limited(**more)
        async with played.host(toolboxes=TOOLS) as host:
            await played.chat.say("human", "@alice go", message_id="m1")
            await host.idle("plan")
            assert await played.said() == [
                "human: @alice go",
                f"alice hands over: @human {what}. Please take over.",
            ]
            assert (await ids(played.journal, "demo/plan"))[-1] == "demo/plan/alice/answers/1"
            assert len(model.asked) == asked
            await played.world.put_agent("alice", AgentSpec(model="test:alice", tools=("look",)))
            await host.idle("plan")
        async with played.host(toolboxes=TOOLS) as host:
            await host.idle("plan")
            assert len(model.asked) == asked, "it was given up, and is not asked for again"
            await played.chat.say("human", "@alice go on", message_id="m2")
            await host.idle("plan")
            assert (await played.said())[2:] == ["human: @alice go on", "alice: Done."]
            assert model.results == ["all is well"] * 3

    run(it())


def test_w_28_an_empty_answer_is_asked_for_again_twice_and_then_told() -> None:
    """It is kept, not published; and a notice is said once."""

    async def it() -> None:
        model = says("", " ", "At last.", Answer(), Answer(text="\n"), "", "Again.")
        played = await play({"alice": model})
        async with played.host() as host:
            await played.chat.say("human", "@alice one", message_id="m1")
            await host.idle("plan")
            assert await played.said() == ["human: @alice one", "alice: At last."]
            assert (await ids(played.journal, "demo/plan"))[-1] == "demo/plan/alice/said/4"
            await played.chat.say("human", "@alice two", message_id="m2")
            await host.idle("plan")
            assert (await played.said())[2:] == [
                "human: @alice two",
                "notice: The model of alice says nothing.",
            ]
        async with played.host() as host:
            await host.idle("plan")
            assert len(model.asked) == 6
            await played.chat.say("human", "@alice three", message_id="m3")
            await host.idle("plan")
        assert (await played.said())[-1] == "alice: Again."

    run(it())


def test_what_a_model_refuses_is_told() -> None:
    """Beside calls, which do not run: a person sees why nothing comes."""

    async def it() -> None:
        refused = Answer(
            text="No.",
            calls=(ToolCall(call_id=None, tool_name="look", arguments={}),),
            stop=Stop.REFUSED,
            tokens=Tokens(),
        )
        played = await play({"alice": (says(refused), {"tools": ("look",)})})
        async with played.host(toolboxes=TOOLS) as host:
            await played.chat.say("human", "@alice go", message_id="m1")
            await host.idle("plan")
        assert (await played.said())[1:] == ["notice: The model of alice refused to answer."]

    run(it())


def test_an_answer_that_fits_no_message_is_cut_and_what_passes_is_not_published() -> None:
    """256 kB; a tag alone says nothing, and the member is idle."""

    async def it() -> None:
        played = await play({"alice": says("x" * 300_000, "<world>PASS</world>")})
        async with played.host() as host:
            await played.chat.say("human", "@alice long", message_id="m1")
            await host.idle("plan")
            assert "(cut here: 300,000 bytes were said)" in (await played.said())[1]
            await played.chat.say("human", "@alice hush", message_id="m2")
            await host.idle("plan")
            assert (await host.standing("plan")).is_idle
        assert len(await played.said()) == 3

    run(it())


def test_w_59_an_answer_that_does_not_fit_is_told_back_twice_and_then_said() -> None:
    """What fits at last is published; three misfits are a notice."""

    async def it() -> None:
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        model = says("what?", '{"n": 1}', "no", "no", "no", '{"n": 2}')
        played = await play({"alice": (model, {"output": schema})})
        async with played.host() as host:
            await played.chat.say("human", "@alice one", message_id="m1")
            await host.idle("plan")
            assert (await played.said())[1:] == ['alice: {"n": 1}']
            await played.chat.say("human", "@alice two", message_id="m2")
            await host.idle("plan")
            told = "The model of alice gave no answer in the form that was asked for."
            assert (await played.said())[3:] == [f"notice: {told}"]
            assert len(model.asked) == 5
        noted = await played.journal.notes("demo/plan/alice", domain=Domain.MESSAGE)
        assert sum(bool(dict(it.note.body).get("misfit")) for it in noted) == 3

    run(it())


def test_w_59_a_form_without_an_object_is_asked_for_inside_one() -> None:
    """As a program's own is: its answer stands under `value`."""

    async def it() -> None:
        model = says("Rome", '{"value": "Rome"}')
        played = await play({"alice": (model, {"output": {"type": "string"}})})
        async with played.host() as host:
            await played.chat.say("human", "@alice where?", message_id="m1")
            await host.idle("plan")
        assert (await played.said())[1:] == ['alice: {"value": "Rome"}']
        prompt = model.asked[0].messages[0]
        assert isinstance(prompt, Prompt)
        assert prompt.output is not None
        assert prompt.output["required"] == ["value"]

    run(it())


def test_w_59_an_output_that_is_no_schema_is_in_the_way_until_it_is_another() -> None:
    """As another program may have put it: no prompt is kept under it."""

    async def it() -> None:
        played = await play({"alice": says('{"n": 1}')})
        wrong = AgentSpec(model="test:alice", output={"type": "none"})
        body = body_of(AgentPut(agent="alice", spec=wrong))
        await played.journal.append_entry("demo", "x", body, at=1.0)
        async with played.host() as host:
            await played.chat.say("human", "@alice go", message_id="m1")
            await asyncio.sleep(5.0)
            (alice,) = (await host.standing("plan")).members
            assert "output.properties.value.type" in (alice.failing or "")
            right = AgentSpec(model="test:alice", output={"type": "object"})
            await played.world.put_agent("alice", right)
            await host.idle("plan")
        assert (await played.said())[1:] == ['alice: {"n": 1}']

    run(it())

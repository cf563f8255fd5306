"""The scripted model and its tools: what was recorded, the same each time."""

from __future__ import annotations

import asyncio

import attrs
import pytest

from turnlock import FactType
from turnlock.agent.messages import Answer, Message, Prompt, as_note, from_note
from turnlock.agent.script import Recorded, Script, ScriptedCall, ScriptedModel
from turnlock.agent.speaking import Question, listen
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.tools.tool import tool
from turnlock.runtime.tools.toolbox import Toolbox

from ..runtime.virtual import run, settled
from .talks import TALK, World, asked

TURN = (
    asked("look", at="sky", content="blue"),
    asked("look", at="sea", ended=Recorded.ERROR, content="too dark"),
    asked("dig", call_id=None, ended=Recorded.DENIED, content="not there", requires_approval=True),
)


def test_tools_answer_what_was_recorded_at_their_place() -> None:
    """By turn and invocation, so that equal calls have each their own answer."""

    async def play() -> None:
        script = Script(name="s", turns=(TURN, (asked("look", at="sky", content="grey"),)))
        world = World(MemoryJournal())
        async with world.agent(script, script.toolbox(Toolbox())) as agent:
            work = asyncio.ensure_future(agent.run("go"))
            await settled()
            (waiting,) = agent.pending()
            reason = script.denial(waiting.turn_id, waiting.invocation_id)
            assert reason == "not there"
            await agent.runtime.deny(
                "r", turn_id="t1", invocation_id=waiting.invocation_id, reason=reason
            )
            await work
            turns = agent.conversation.turns
            first = turns["t1"].results
            assert first[0].result == "blue"
            assert (first[1].error or "").endswith("RecordedError: too dark")
            assert first[2].reason == "not there"
            assert turns["t2"].results[0].result == "grey"
        facts = [fact.type async for fact in world.journal.facts("r")]
        assert facts.count(FactType.TOOL_APPROVAL_REQUESTED) == 1

    run(play())


def test_own_tools_go_before_recorded_ones() -> None:
    """What a user brings is used; the rest of the recording still plays."""

    @tool
    def look(at: str) -> str:
        """My own."""
        return at

    script = Script(name="s", turns=(TURN,))
    box = script.toolbox(Toolbox([look]))

    assert box["look"] is look
    assert set(box) == {"look", "dig"}


@pytest.mark.parametrize("name", ["class", "no identifier", "ünï"])
def test_arguments_of_any_name_are_taken(name: str) -> None:
    """Recordings hold what models sent."""

    async def play() -> None:
        call = attrs.evolve(asked().call, arguments={name: "x"})
        script = Script(
            name="s", turns=((ScriptedCall(call=call, ended=Recorded.OK, content="fine"),),)
        )
        world = World(MemoryJournal())
        async with world.agent(script, script.toolbox(Toolbox())) as agent:
            await agent.run("go")
            assert agent.conversation.turns["t1"].results[0].result == "fine"

    run(play())


def test_what_it_says_depends_on_what_was_said_alone() -> None:
    """Asked twice the same, it answers twice the same."""

    async def play() -> None:
        model = ScriptedModel(TALK)
        said: list[Message] = [Prompt(text="go"), Answer(calls=())]
        question = Question(messages=tuple(said))
        first, again = await listen(model, question), await listen(model, question)
        assert first == again
        assert len(first.answer.calls) == len(TALK.turns[1])

    run(play())


@pytest.mark.parametrize(
    "said",
    [
        Prompt(text="é"),
        Answer(text="done", raw={"reasoning": [1, None]}),
        Answer(calls=tuple(it.call for turn in TALK.turns for it in turn)),
    ],
)
def test_messages_are_kept_whole(said: Prompt | Answer) -> None:
    """What a note gives back is what was said."""
    assert from_note(as_note(said)) == said

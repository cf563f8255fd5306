"""What may change between two answers, what is kept of it, and what a model is told of the past."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlock import InvalidValue
from turnlock.agent import Agent, Answer, LimitReached, Prompt, Question, Results, Said, Stop
from turnlock.agent.conversation import Conversation
from turnlock.agent.messages import as_note, from_note
from turnlock.agent.setup import Setup
from turnlock.models.values import Json
from turnlock.runtime.journal.ledger import Domain, Note
from turnlock.runtime.journal.memory import MemoryJournal

from ..runtime.virtual import run
from .test_agent import Speaker, calls, look, made


@attrs.define
class Settled:
    """Says what counts now, and how often it was asked."""

    setup: Setup
    asked: int = 0

    async def __call__(self) -> Setup:
        self.asked += 1
        return self.setup


def setup_of(model: Speaker, **more: object) -> Setup:
    return Setup(model=model, tools=[look], **more)  # type: ignore[arg-type]


def test_w_34_what_counts_is_asked_for_before_each_answer() -> None:
    """Model, instructions and limits change between two answers of one prompt; the notes say it."""

    async def play() -> None:
        first, second = Speaker([calls("look")]), Speaker([calls("look")])
        now = Settled(setup_of(first, instructions="Be brief.", configuration=3))

        async def look() -> str:
            now.setup = setup_of(second, instructions="Be long.", configuration={"entry": 7})
            return "all is well"

        async with made(first, tools=[look], configure=now) as agent:
            assert (await agent.run("go")).text == "done: go"
            assert [it.instructions for it in first.asked] == ["Be brief."]
            assert [it.instructions for it in second.asked] == ["Be long."]
            said = agent.conversation.answers
            assert [it.configuration for it in said] == [3, {"entry": 7}]
            assert now.asked == 2

    run(play())


def test_w_34_a_lower_limit_counts_at_the_next_answer() -> None:
    """And a higher one later: the answer is owed still, unless it was given up."""

    async def play() -> None:
        speaker = Speaker([calls("look")] * 3)
        now = Settled(setup_of(speaker, answer_limit=2))
        async with made(speaker, configure=now) as agent:
            with pytest.raises(LimitReached) as reached:
                await agent.run("go")
            assert (reached.value.limit, reached.value.bound) == ("answer_limit", 2)
            now.setup = setup_of(speaker)
            assert (await agent.run()).text == "done: go"

    run(play())


def test_w_23_an_answer_that_is_given_up_is_never_asked_for() -> None:
    """It is durable, with its reason, however high the limit is afterwards."""

    async def play() -> None:
        journal = MemoryJournal()
        speaker = Speaker([calls("look")] * 3)
        async with made(speaker, journal=journal, answer_limit=2) as agent:
            with pytest.raises(LimitReached):
                await agent.run("go")
            assert await agent.give_up({"limit": 2})
            assert not await agent.give_up({"limit": 3}), "nothing is owed"
        async with made(speaker, journal=journal) as agent:
            assert agent.conversation.stopped_because == {"limit": 2}
            asked = len(speaker.asked)
            assert (await agent.run()).interrupted
            assert len(speaker.asked) == asked
            assert (await agent.run("on")).answers == 2, "the third of three, and a last one"

    run(play())


def test_w_28_an_empty_answer_is_asked_for_again() -> None:
    """So often and no more; the model is not told of it, and a person's turn is over then."""

    async def play() -> None:
        speaker = Empty(empty=2)
        async with made(speaker, asks_again=2) as agent:
            assert (await agent.run("go")).text == "done: go"
        assert len(speaker.asked) == 3
        assert [len(it.messages) for it in speaker.asked] == [1, 1, 1]
        speaker = Empty(empty=9)
        async with made(speaker, asks_again=2) as agent:
            assert not (await agent.run("go")).text.strip()
            assert agent.conversation.empties == 3
        assert len(speaker.asked) == 3
        speaker = Empty(empty=9)
        async with made(speaker) as agent:  # the control: nobody said that it is to be asked again
            assert not (await agent.run("go")).text.strip()
        assert len(speaker.asked) == 1

    run(play())


@attrs.define
class Empty(Speaker):
    """Says nothing so often, and then what it was told."""

    empty: int = 0

    async def speak(self, question: Question) -> AsyncIterator[Said]:
        self.answers = [Answer(text=" \n")] if len(self.asked) < self.empty else []
        async for said in Speaker.speak(self, question):
            yield said


@given(
    prompts=st.lists(st.integers(0, 2), min_size=1, max_size=6),
    history=st.integers(1, 7),
)
def test_w_35_the_oldest_prompts_are_left_out(prompts: list[int], history: int) -> None:
    """What is told begins with a prompt, and holds the results of each answer it holds."""

    async def play() -> None:
        speaker = Counting(wanted=prompts)
        async with made(speaker, history=history) as agent:
            for number, _ in enumerate(prompts):
                await agent.run(f"p{number}")
                told = speaker.asked[-1].messages
                texts = [it.text for it in told if isinstance(it, Prompt)]
                first = max(0, number + 1 - history)
                assert texts == [f"p{it}" for it in range(first, number + 1)]
                assert isinstance(told[0], Prompt)
                asked = [it for it in told if isinstance(it, Answer) and it.calls]
                assert len(asked) == sum(prompts[first : number + 1])
                assert len(asked) == len([it for it in told if isinstance(it, Results)])

    run(play())


@attrs.define
class Counting(Speaker):
    """Asks for so many calls, one after the other, at each prompt."""

    wanted: Sequence[int] = ()

    async def speak(self, question: Question) -> AsyncIterator[Said]:
        last = max(n for n, it in enumerate(question.messages) if isinstance(it, Prompt))
        prompt = question.messages[last]
        assert isinstance(prompt, Prompt)
        since = sum(isinstance(it, Answer) for it in question.messages[last:])
        before = sum(isinstance(it, Answer) for it in question.messages[:last])
        more = since < self.wanted[int(prompt.text[1:])]
        self.answers = [calls("look")] * (before + since + 1) if more else []
        async for said in Speaker.speak(self, question):
            yield said


@pytest.mark.parametrize("bad", [0, -1, 1.5, True])
def test_bad_bounds_are_refused(bad: object) -> None:
    """A history of nothing would leave out what is asked."""
    with pytest.raises(InvalidValue):
        Agent(model=Speaker(), history=bad)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue):
        Agent(model=Speaker(), asks_again=-1)


@given(configuration=st.none() | st.integers() | st.dictionaries(st.text(), st.text()))
def test_w_34_the_note_keeps_the_configuration(configuration: Json) -> None:
    """And without one the note is as it was before there were any."""
    answer = Answer(text="so", configuration=configuration)
    note = as_note(answer, name="said/1")
    assert from_note(note) == answer
    assert ("configuration" in note.body) == (configuration is not None)


def test_notes_of_a_host_are_left_beside_the_conversation() -> None:
    """They are no messages, whatever their names are like."""
    conversation = Conversation("r")
    notes = [
        as_note(Prompt(text="go"), name="said/1"),
        Note(domain=Domain.MESSAGE, kind="passed", body={"id": "passed/7"}, at=0.0, id="passed/7"),
        as_note(Answer(text="", stop=Stop.PAUSED), name="said/2"),
    ]
    conversation.load(notes)
    assert [it.id for it in conversation.beside] == ["passed/7"]
    assert conversation.empties == 0, "it goes on"

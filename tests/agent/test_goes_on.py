"""What goes on after an answer: one that paused (W-52), one that does not fit its form (W-59)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import BaseModel

from turnlock.agent.errors import LimitReached, ModelError
from turnlock.agent.loop import Agent
from turnlock.agent.messages import Answer, Prompt, Results, Stop
from turnlock.agent.speaking import Again, Text
from turnlock.agent.structured import ANSWER
from turnlock.agent.transients import SpeechStarted, Transient
from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.tools.tool import tool

from ..runtime.faulty_journal import Fault, FaultyJournal
from ..runtime.virtual import LoopClock, run
from .speakers import Pause, Piece, Speaker, asked, by_answers, cut, speech
from .talks import BRIEF, crash


class City(BaseModel):
    """A place."""

    name: str
    people: int


BERN = '{"name": "Bern", "people": 5}'
WRONG = '{"name": "Bern"}'


@tool
async def look(at: str) -> str:
    return f"{at} seen"


def saying(*speeches: Sequence[Piece], structured: bool = True) -> Speaker:
    """A model that says these, one after the other, whichever process asks it."""
    return Speaker(speeches, structured=structured, which=by_answers)


def agent(speaker: Speaker, journal: Journal | None = None, **fields: Any) -> Agent:
    """A process."""
    return Agent(
        model=speaker,
        tools=[look],
        run="r",
        journal=MemoryJournal() if journal is None else journal,
        settings=BRIEF,
        clock=LoopClock(),
        **fields,
    )


def test_w_52_a_paused_answer_is_gone_on_with() -> None:
    """It is kept, the model is told what it has said, and all of it is the text."""

    async def play() -> None:
        paused = speech("I search", stop=Stop.PAUSED)
        speaker = saying(speech(None, asked(at="sky")), paused, paused, speech(" and find"))
        async with agent(speaker) as it:
            result = await it.run("go")
            assert (str(result), result.stop) == ("I searchI search and find", Stop.DONE)
            assert result.answers == 4
        told = [type(message) for message in speaker.questions[-1].messages[-2:]]
        assert told == [Answer, Answer]

    run(play())


def test_w_52_what_pauses_for_ever_comes_to_the_limit() -> None:
    """The limit of answers counts these, too."""

    async def play() -> None:
        speaker = saying(speech("…", stop=Stop.PAUSED))
        async with agent(speaker, answer_limit=3) as it:
            with pytest.raises(LimitReached):
                await it.run("go")
        assert len(speaker.questions) == 3

    run(play())


def test_w_52_who_streams_is_told_what_is_void() -> None:
    """`Again` comes before what is said anew; transients name the entry and the try."""

    async def play() -> None:
        heard: list[Transient] = []
        speaker = saying(speech("hello"))
        speaker.which = lambda it, _: len(it.questions) - 1
        speaker.speeches = [cut(Text("he")), speech("hello")]
        events: list[object] = []
        async with agent(speaker, tell=heard.append) as it:
            events = [event async for event in it.stream("go")]
        said = [event for event in events if isinstance(event, Text | Again)]
        assert said == [Text("he"), Again(), Text("hello")]
        starts = [one.as_json() for one in heard if isinstance(one, SpeechStarted)]
        assert [(one["entry_id"], one["try"]) for one in starts] == [
            ("r/said/2", 1),
            ("r/said/2", 2),
        ]

    run(play())


@pytest.mark.parametrize("structured", [True, False])
def test_w_59_an_answer_is_a_value_of_the_type_that_was_asked_for(structured: bool) -> None:
    """By the provider's own field or by a call of the tool `answer`, after calls and without."""

    async def play() -> None:
        last = speech(BERN) if structured else speech(None, asked(ANSWER, name="Bern", people=5))
        speaker = saying(
            speech(None, asked(at="sky")), last, speech("no form"), structured=structured
        )
        async with agent(speaker) as it:
            city = await it.ask("where?", City)
            assert city.people == 5
            assert city == City(name="Bern", people=5)
            assert str(await it.run("and?")) == "no form"
        given = [
            (question.output is not None, ANSWER in question.tools)
            for question in speaker.questions
        ]
        assert given == [(structured, not structured)] * 2 + [(False, False)]

    run(play())


@pytest.mark.parametrize("start", ["whole", "early"])
def test_w_59_an_answer_beside_calls_is_given_again(start: str) -> None:
    """The calls run, and the model is told to answer once it has seen what came of them."""

    async def play() -> None:
        both = speech(None, asked(ANSWER, name="Bern", people=4), asked(at="sky"))
        last = speech(None, asked(ANSWER, name="Bern", people=5))
        speaker = saying(both, last, structured=False)
        async with agent(speaker, start=start) as it:
            assert (await it.ask("where?", City)).people == 5
        told = speaker.questions[1].messages[-1]
        assert isinstance(told, Results)
        assert [one.error or one.result for one in told.results] == [
            "call answer alone, once you have the results of the other calls",
            "sky seen",
        ]

    run(play())


def test_w_59_a_misfit_is_told_back_twice() -> None:
    """Then it is an error, and the conversation goes on with the next prompt."""

    async def play() -> None:
        speaker = saying(speech("Bern"), speech(WRONG), speech(BERN))
        async with agent(speaker) as it:
            assert await it.ask("where?", City) == City(name="Bern", people=5)
            told = [said for said in it.conversation.said if isinstance(said, Prompt)]
            assert [said.misfit for said in told] == [False, True, True]
            assert "no JSON" in told[1].text
            assert "people: Field required" in told[2].text

        speaker = saying(*[speech(WRONG)] * 3, speech("as you like"))
        async with agent(speaker) as it:
            with pytest.raises(ModelError, match="people: Field required"):
                await it.ask("where?", City)
            assert len(speaker.questions) == 3
            assert str(await it.run("then in words")) == "as you like"

    run(play())


def test_w_59_a_schema_gives_what_it_allows() -> None:
    """Without pydantic, and with one that is no object."""

    async def play() -> None:
        speaker = saying(speech('{"value": "many"}'), speech('{"value": 5}'))
        async with agent(speaker) as it:
            assert await it.ask("how many?", {"type": "integer"}) == 5

    run(play())


def test_w_59_an_interrupted_one_has_no_value() -> None:
    async def play() -> None:
        speaker = saying([Pause(60), *speech(BERN)])
        async with agent(speaker) as it:
            work = asyncio.ensure_future(it.ask("where?", City))
            await asyncio.sleep(1)
            await it.interrupt()
            with pytest.raises(ModelError, match="interrupted"):
                await work

    run(play())


@pytest.mark.parametrize("fault", [Fault.DELAYED, Fault.HELD])
@pytest.mark.parametrize("number", range(1, 7))
def test_w_59_a_crash_between_misfits_goes_on(number: int, fault: Fault) -> None:
    """What was told stands in notes: the next process says and counts the same."""

    async def play() -> None:
        journal = FaultyJournal(MemoryJournal(), {("note", number): fault})
        speaker = saying(speech("Bern"), speech(WRONG), speech(BERN))
        first = agent(speaker, journal)
        await first.__aenter__()
        work = asyncio.ensure_future(first.ask("where?", City))
        await asyncio.sleep(5)
        work.cancel()
        await asyncio.wait([work])
        await crash(first)
        async with agent(speaker, journal) as second:
            finished = (number, fault) == (6, Fault.HELD)
            if not finished:
                assert (await second.ask("where?", City)).people == 5
            said = [*second.conversation.said]
        assert [it.text for it in said if isinstance(it, Answer)] == ["Bern", WRONG, BERN]
        assert sum(isinstance(it, Prompt) and it.misfit for it in said) == 2

    run(play())


def test_a_note_is_kept_to_its_end_though_nobody_waits() -> None:
    """Whoever goes on in the same process says nothing twice: the prompt, the answer, a part."""

    async def play(number: int, start: str) -> None:
        journal = FaultyJournal(MemoryJournal(), {("note", number): Fault.HELD})
        speaker = saying(speech("I look", asked(at="sky")), speech("so be it"))
        async with agent(speaker, journal, start=start) as it:
            work = asyncio.ensure_future(it.run("go"))
            await asyncio.sleep(5)
            work.cancel()
            await asyncio.wait([work])
            again = asyncio.ensure_future(it.run("go"))
            await asyncio.sleep(1)
            journal.gate.set()
            assert str(await again) == "so be it"
            assert [type(said) for said in it.conversation.said] == [Prompt, Answer, Answer]
        assert len(speaker.questions) == 2

    for start, count in (("whole", 2), ("early", 3)):
        for number in range(1, count + 1):
            run(play(number, start))

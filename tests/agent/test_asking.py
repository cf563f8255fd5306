"""One question, asked until there is an answer (W-52), and calls that begin early (W-58)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import attrs
import pytest

from turnlock.agent.asking import INTERRUPTED, PAUSES, Asking
from turnlock.agent.errors import ModelError
from turnlock.agent.folds.calls import CUT_OFF
from turnlock.agent.messages import Answer, Prompt, Stop, Tokens, as_note, from_note
from turnlock.agent.speaking import Again, CallEnded, Elsewhere, Ended, Question, Text, Thought
from turnlock.agent.transients import (
    SpeechChunk,
    SpeechEnded,
    SpeechFailed,
    SpeechStarted,
    Transient,
)

from ..runtime.virtual import run
from .speakers import SPEC, Pause, Piece, Speaker, asked, cut, raw_of, speech

HELLO = Question((Prompt(text="hello"),))


@attrs.define
class Asked:
    """What came of one question."""

    answer: Answer | None
    error: BaseException | None
    told: list[Transient]
    parts: list[Answer]
    speaker: Speaker
    seconds: float

    @property
    def kinds(self) -> list[str]:
        """What listeners heard, chunks left out."""
        return [it.kind for it in self.told if not isinstance(it, SpeechChunk)]


def ask(*speeches: Sequence[Piece], early: bool = False, refuses: int | None = None) -> Asked:
    """Ask a model that says these; with `early`, calls begin, until the one that is refused."""

    async def play() -> Asked:
        told: list[Transient] = []
        parts: list[Answer] = []
        speaker = Speaker(speeches)

        async def begin(answer: Answer) -> bool:
            parts.append(answer)
            await asyncio.sleep(0.01)
            return len(parts) != refuses

        asking = Asking(model=speaker, agent="ada", tell=told.append)
        began = asyncio.get_running_loop().time()
        answer = error = None
        try:
            answer = await asking.answer(HELLO, entry_id="said/2", begin=begin if early else None)
        except ModelError as raised:
            error = raised
        seconds = asyncio.get_running_loop().time() - began
        return Asked(answer, error, told, parts, speaker, seconds)

    return run(play())


def test_listeners_hear_all_of_it_as_json() -> None:
    """W-59: start, chunks and end go by the id that the answer will have."""
    said = [Thought("hm"), Elsewhere("search", "sky"), *speech("so be it", asked(at="sky"))]

    assert [(it.kind, it.as_json()) for it in ask(said).told] == [
        ("start", {"entry_id": "said/2", "agent": "ada", "try": 1}),
        ("chunk", {"entry_id": "said/2", "thought": "hm"}),
        (
            "chunk",
            {
                "entry_id": "said/2",
                "call": {"tool_name": "search", "text": "sky", "elsewhere": True},
            },
        ),
        ("chunk", {"entry_id": "said/2", "text": "so "}),
        ("chunk", {"entry_id": "said/2", "text": "be "}),
        ("chunk", {"entry_id": "said/2", "text": "it"}),
        ("chunk", {"entry_id": "said/2", "call": {"place": 0, "tool_name": "look"}}),
        ("chunk", {"entry_id": "said/2", "call": {"place": 0, "text": '{"at":"sky"}'}}),
        (
            "end",
            {
                "entry_id": "said/2",
                "stop": "calls",
                "tokens": {"input": 0, "output": 10, "cached": 0, "thought": 0},
            },
        ),
    ]


def test_w_52_what_was_cut_is_asked_again() -> None:
    """With pauses; what listeners had is void at each start; the last is the answer."""
    it = ask(cut(Text("he")), cut(), speech("hello"))

    assert it.answer is not None
    assert (it.answer.text, it.answer.stop) == ("hello", Stop.DONE)
    assert [one.attempt for one in it.told if isinstance(one, SpeechStarted)] == [1, 2, 3]
    assert it.kinds == ["start", "start", "start", "end"]
    assert it.seconds == PAUSES[0] + PAUSES[1]


def test_w_52_what_is_always_cut_is_an_error() -> None:
    """It was asked again four times; the error says what may be the matter."""
    it = ask(cut(Text("he")))

    assert "reasonless=True" in str(it.error)
    assert len(it.speaker.questions) == 1 + 4
    assert it.kinds == ["start"] * 5 + ["error"]
    assert it.seconds == sum(PAUSES)


@pytest.mark.parametrize("stop", [stop for stop in Stop if stop is not Stop.CUT])
def test_w_52_what_is_whole_is_kept(stop: Stop, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever its stop; one that is not known is said in the log."""
    with caplog.at_level(logging.WARNING):
        it = ask(speech("that much", stop=stop), speech("never asked for"))

    assert it.answer is not None
    assert (it.answer.text, it.answer.stop) == ("that much", stop)
    assert ("reason that is not known" in caplog.text) is (stop is Stop.OTHER)


def test_w_52_a_failure_makes_void_what_was_heard() -> None:
    """In the middle of a text, and of a stream that ends without an end."""
    cases: list[tuple[list[Piece], str]] = [
        ([Text("he"), ModelError("it is away; wait")], "it is away"),
        ([Text("he")], "without an Ended"),
    ]
    for said, message in cases:
        it = ask(said)

        assert message in str(it.error)
        assert it.told[-1] == SpeechFailed(entry_id="said/2", message=str(it.error))
        assert len(it.speaker.questions) == 1


def test_listeners_are_told_when_nobody_waits_any_more() -> None:
    """A cancelled question ends for them, too."""

    async def play() -> list[Transient]:
        told: list[Transient] = []
        speaker = Speaker([[Text("he"), Pause(60), *speech("hello")]])
        asking = Asking(model=speaker, agent="ada", tell=told.append)
        work = asyncio.ensure_future(asking.answer(HELLO, entry_id="e"))
        await asyncio.sleep(1)
        work.cancel()
        await asyncio.wait([work])
        assert work.cancelled()
        return told

    assert run(play())[-1] == SpeechFailed(entry_id="e", message=INTERRUPTED)


def test_w_58_listeners_of_an_interrupted_answer_are_told_that_it_is_kept_as_far_as_it_began() -> (
    None
):
    """It ends for them as one that was cut: what they heard of its calls is not void."""

    async def play() -> list[Transient]:
        told: list[Transient] = []
        closed = speech("I look", asked(at="sky"))[:-1]
        asking = Asking(model=Speaker([[*closed, Pause(60)]]), agent="ada", tell=told.append)

        async def begin(_: Answer) -> bool:
            return True

        work = asyncio.ensure_future(asking.answer(HELLO, entry_id="e", begin=begin))
        await asyncio.sleep(1)
        work.cancel()
        await asyncio.wait([work])
        assert work.cancelled()
        return told

    assert run(play())[-1] == SpeechEnded(entry_id="e", stop=Stop.CUT, tokens=Tokens(output=1))


@pytest.mark.parametrize("stop", [Stop.CALLS, Stop.LENGTH])
def test_w_52_the_last_call_of_an_answer_that_was_too_long_is_faulty(stop: Stop) -> None:
    """Whatever model said it, of one's own, too; the calls before it are what they were."""
    it = ask(speech(None, *TWO, stop=stop))

    assert it.answer is not None
    fault = CUT_OFF if stop is Stop.LENGTH else None
    assert [call.fault for call in it.answer.calls] == [None, fault]


def test_w_54_a_response_that_begins_anew_is_another() -> None:
    """What was said before is void: of text, and of calls that have not begun."""
    it = ask([Text("he"), *speech("lo", asked(at="sky"))[:-1], Again(), *speech("hello")])

    assert it.answer is not None
    assert (it.answer.text, it.answer.calls) == ("hello", ())
    assert it.kinds == ["start", "start", "end"]
    assert len(it.speaker.questions) == 1


TWO = (asked(at="sky"), asked(at="sea", call_id="call~1"))


def test_w_54_what_has_begun_is_cut_where_it_begins_anew() -> None:
    """Instead of throwing away calls that run."""
    before = speech("I look", TWO[0])[:-1]
    it = ask([*before, Again(), *speech("hello")], early=True)

    assert it.answer == it.parts[-1]
    assert it.kinds == ["start", "end"]


def test_w_58_calls_begin_when_they_are_closed() -> None:
    """Each time with all that was said before; the whole answer then says nothing else of them."""
    it = ask(speech("I look", *TWO), early=True)

    assert [len(part.calls) for part in it.parts] == [1, 2]
    first = it.parts[0]
    assert (first.text, first.stop, first.spec) == ("I look", Stop.CUT, SPEC)
    assert first.raw == raw_of("I look", TWO[:1])
    assert first.tokens == Tokens(output=1)
    assert it.answer is not None
    assert it.answer.stop is Stop.CALLS
    assert it.answer.raw == raw_of("I look", TWO)
    assert it.answer.calls == TWO


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"tool_name": ""}, "tool_name: is empty"),
        ({"tool_name": None}, "tool_name"),
        ({"arguments": "x"}, "is not a JSON object"),
        ({"call_id": 5}, "call_id: 5"),
        ({"fault": ""}, "fault: says nothing"),
    ],
)
def test_what_is_no_answer_is_not_kept(early: bool, wrong: dict[str, Any], why: str) -> None:
    """Whoever's model it is: no turn could be opened with it, and the run would stand for ever."""
    call = attrs.evolve(TWO[0], **wrong)
    it = ask(speech("I look", call), early=early)

    assert isinstance(it.error, ModelError)
    assert "the model said what is no answer" in str(it.error)
    assert why in str(it.error)
    assert it.parts == []
    assert it.kinds[-1] == "error"


def test_w_57_ids_that_were_given_early_stand_in_the_note() -> None:
    """Though all of them together would be given others."""
    it = ask(speech("I look", *TWO), early=True)

    assert it.answer is not None
    ids = [[call.invocation_id for call in part.identified()] for part in (*it.parts, it.answer)]
    assert ids == [["call~1"], ["call~1", "call~1~2"], ["call~1", "call~1~2"]]
    assert from_note(as_note(it.answer)) == it.answer
    late = attrs.evolve(it.answer, ids=None)
    assert [call.invocation_id for call in late.identified()] == ["call~1~2", "call~1"]


@pytest.mark.parametrize(
    "end",
    [
        [Ended(Answer(stop=Stop.CUT))],
        [ModelError("it is away; wait")],
        [],
        [Again(), *speech("hello")],
    ],
)
def test_w_58_what_has_begun_stands_and_nothing_is_asked_again(end: list[Piece]) -> None:
    """Cut, failed, or without an end: the answer is kept with the calls that were closed."""
    it = ask([*speech("I look", *TWO)[:-1], Text("and so"), *end], speech("again"), early=True)

    assert it.answer is not None
    assert it.answer == it.parts[-1]
    assert it.answer.stop is Stop.CUT
    assert it.answer.text == "I look"
    assert len(it.speaker.questions) == 1
    assert it.told[-1] == SpeechEnded(entry_id="said/2", stop=Stop.CUT, tokens=it.answer.tokens)


def test_w_58_where_nothing_more_may_begin_the_response_is_cut() -> None:
    """A turn that was interrupted takes no more calls."""
    it = ask(speech("I look", *TWO, asked(at="land")), early=True, refuses=2)

    assert it.answer == it.parts[1]
    assert len(it.parts) == 2


def test_w_58_calls_that_were_closed_are_no_fault_afterwards() -> None:
    """W-52 makes the last call of a `length` faulty; one that has begun is what it was."""
    broken = attrs.evolve(TWO[1], fault="the answer reached its bound")
    three = attrs.evolve(asked(at="land"), fault="the answer reached its bound")
    closed = [piece for piece in speech("I look", *TWO) if not isinstance(piece, Ended)]
    whole = Answer(calls=(TWO[0], broken, three), stop=Stop.LENGTH)
    it = ask([*closed, Ended(whole)], early=True)

    assert it.answer is not None
    assert it.answer.calls == (*TWO, three)
    assert it.answer.ids == ("call~1", "call~1~2", "call~3")


def test_w_58_calls_may_be_closed_in_another_order() -> None:
    """The answer has them by their places, their ids go by when they were closed."""
    late, soon = CallEnded(0, asked(at="sky")), CallEnded(1, asked(at="sea"))
    it = ask([soon, late, Ended(Answer(calls=(late.call, soon.call)))], early=True)

    assert [part.ids for part in it.parts] == [("call~1",), ("call~2", "call~1")]
    assert it.answer is not None
    assert it.answer.ids == ("call~2", "call~1")
    assert it.answer.calls == (late.call, soon.call)

"""What a model says, and listening to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import attrs
import pytest

from turnlock.agent import Answer, Ended, ModelError, Prompt, Question, Said, Stop, Text, Tokens
from turnlock.agent.speaking import listen

QUESTION = Question([Prompt(text="go")])


@attrs.define
class Speaking:
    """A model that says this."""

    says: tuple[Said, ...]
    closed: bool = False

    async def speak(self, question: Question) -> AsyncIterator[Said]:
        assert question is QUESTION
        try:
            for said in self.says:
                yield said
        finally:
            self.closed = True

    async def close(self) -> None: ...


def test_what_is_said_is_heard_in_order_and_the_end_is_returned() -> None:
    heard: list[Said] = []
    end = Ended(Answer(text="ab"))
    model = Speaking((Text("a"), Text("b"), end, Text("c")))

    assert asyncio.run(listen(model, QUESTION, hear=heard.append)) is end
    assert heard == [Text("a"), Text("b"), end]
    assert model.closed


@attrs.define
class Iterated:
    """Says its end as a plain iterator, which nobody can close."""

    said: int = 0

    def speak(self, question: Question) -> AsyncIterator[Said]:
        assert question is QUESTION
        return self

    def __aiter__(self) -> AsyncIterator[Said]:
        return self

    async def __anext__(self) -> Said:
        self.said += 1
        return Ended(Answer(text="plain"))

    async def close(self) -> None: ...


def test_a_model_need_be_no_generator() -> None:
    model = Iterated()

    assert asyncio.run(listen(model, QUESTION)).answer.text == "plain"
    assert model.said == 1


def test_a_model_that_falls_silent_has_not_answered() -> None:
    with pytest.raises(ModelError, match="Speaking stopped speaking without an Ended; yield one"):
        asyncio.run(listen(Speaking((Text("a"),)), QUESTION))


def test_who_hears_and_fails_ends_the_speech() -> None:
    model = Speaking((Text("a"), Ended(Answer())))

    def fail(_: Said) -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        asyncio.run(listen(model, QUESTION, hear=fail))
    assert model.closed


def test_an_end_and_its_answer_say_the_same() -> None:
    """W-52: the stop and what was used are the answer's, wherever they are given."""
    answer, tokens = Answer(text="x"), Tokens(input=3, output=2)

    given = Ended(answer, Stop("length"), tokens)

    assert (given.answer.stop, given.answer.tokens) == (Stop.LENGTH, tokens)
    assert given == Ended(attrs.evolve(answer, stop=Stop.LENGTH, tokens=tokens))
    assert Ended(answer).stop is Stop.DONE

"""Answers in a form: what becomes of types and schemas, and of what models say (W-59)."""

from __future__ import annotations

import datetime as dt
import sys
from dataclasses import dataclass
from typing import Any

import attrs
import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from turnlock.agent.asking import Asking
from turnlock.agent.messages import Answer, Prompt, Stop, as_note, from_note
from turnlock.agent.speaking import Question
from turnlock.agent.structured import (
    ANSWER,
    Misfit,
    form_of,
    told_of,
    unwrapped,
    with_tool,
)
from turnlock.models.errors import InvalidValue, TurnlockError
from turnlock.runtime.tools.toolbox import Toolbox

from ..runtime.virtual import run
from .speakers import Speaker, asked, raw_of, speech


class City(BaseModel):
    """A place."""

    name: str
    people: int = Field(ge=0)


@dataclass
class Day:
    """A dataclass, with what JSON has no word for."""

    at: dt.date


class Named(TypedDict):
    """A TypedDict."""

    name: str


class Tree(BaseModel):
    """It refers to itself: its schema's root is a reference."""

    leaves: list[Tree] = []


Tree.model_rebuild()

SCHEMA: Any = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
}


@pytest.mark.parametrize(
    ("wanted", "text", "value"),
    [
        (City, '{"name": "Bern", "people": 5}', City(name="Bern", people=5)),
        (Day, '{"at": "2026-11-22"}', Day(dt.date(2026, 11, 22))),
        (Named, '{"name": "Bern"}', {"name": "Bern"}),
        (Tree, '{"leaves": [{}]}', Tree(leaves=[Tree()])),
        (list[City], '{"value": [{"name": "B", "people": 0}]}', [City(name="B", people=0)]),
        (int, '{"value": 5}', 5),
        (SCHEMA, '{"name": "Bern"}', {"name": "Bern"}),
        ({"type": "integer"}, '{"value": 5}', 5),
        ({"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}}, '{"value": 5}', 5),
        ({"$ref": "#/$defs/o", "$defs": {"o": SCHEMA}}, '{"name": "Bern"}', {"name": "Bern"}),
    ],
)
def test_w_59_what_fits_is_a_value_of_its_type(wanted: Any, text: str, value: object) -> None:
    """The root of every form is an object, and tools can have it, too."""
    form = form_of(wanted)

    assert form.read(text) == value
    assert type(form.read(text)) is type(value)
    assert form.schema["type"] == "object"
    question = with_tool(Question((), output=form.schema))
    assert question.output is None
    assert question.tools[ANSWER].parameters == form.schema


@pytest.mark.parametrize(
    ("wanted", "text", "cause"),
    [
        (City, '{"name": 5, "people": -1}', "name: Input should be a valid string; people: "),
        (City, "I think it is Bern", "it is no JSON (line 1"),
        (City, "[]", "it is no JSON object"),
        (list[City], '{"value": [{"name": "B"}]}', "0.people: Field required"),
        (City, '{"name": "Bern", "people": "5"}', "people: Input should be a valid integer"),
        (int, '{"number": 5}', "value is missing"),
        (SCHEMA, '{"name": 5}', "name"),
        ({"type": "integer"}, '{"value": "5"}', "value"),
    ],
)
def test_w_59_what_does_not_fit_says_where(wanted: Any, text: str, cause: str) -> None:
    """The model is told the place and the cause; the note of it keeps the form."""
    form = form_of(wanted)
    with pytest.raises(Misfit) as raised:
        form.read(text)

    assert cause in str(raised.value)
    told = told_of(raised.value, form.schema)
    assert cause in told.text
    assert from_note(as_note(told)) == told
    assert told.misfit


def test_w_59_a_form_read_from_a_note_is_the_same() -> None:
    """Whoever goes on after a crash has the schema alone."""
    for wanted in (City, int, SCHEMA):
        schema = form_of(wanted).schema
        note = from_note(as_note(Prompt(text="go", output=schema)))
        assert isinstance(note, Prompt)
        assert note.output is not None
        again = form_of(note.output)
        assert again.schema == schema
        with pytest.raises(Misfit):
            again.read('{"name": 5}')


@pytest.mark.parametrize(
    ("wanted", "place"),
    [
        ({"type": "nothing"}, "output"),
        ({"type": "object", "properties": {"x": {"$ref": "#/nowhere"}}}, "output.$ref"),
        (object(), "output"),
    ],
)
def test_w_59_what_is_no_form_is_told_at_once(wanted: Any, place: str) -> None:
    """Schemas that are none, and things that pydantic does not know."""
    with pytest.raises(InvalidValue) as raised:
        form_of(wanted)

    assert raised.value.place.startswith(place)


def test_w_59_a_type_needs_pydantic(monkeypatch: pytest.MonkeyPatch) -> None:
    """A schema does not."""
    monkeypatch.setitem(sys.modules, "pydantic", None)

    with pytest.raises(TurnlockError, match=r"turnlock\[tools\]"):
        form_of(City)
    assert form_of(SCHEMA).read('{"name": "Bern"}') == {"name": "Bern"}


def answered(*, structured: bool, **said: Any) -> tuple[Answer, Question]:
    """What is kept of an answer, and the question that the model was asked."""
    speaker = Speaker([speech(**said) if "calls" not in said else speech(None, *said["calls"])])
    speaker.structured = structured
    question = Question((Prompt(text="where?"),), output=form_of(City).schema)
    asking = Asking(model=speaker, agent="ada")
    answer = run(asking.answer(question, entry_id="said/2"))
    return answer, speaker.questions[0]


BERN: Any = {"name": "Bern", "people": 5}


def test_w_59_a_provider_with_a_field_of_its_own_is_given_the_form() -> None:
    answer, question = answered(structured=True, text='{"name": "Bern"}')

    assert question.output == form_of(City).schema
    assert ANSWER not in question.tools
    assert answer.text == '{"name": "Bern"}'


def test_w_59_without_one_a_call_of_the_tool_is_the_answer() -> None:
    """It is kept as text: no turn is opened, and no provider waits for a result."""
    answer, question = answered(structured=False, calls=[asked(ANSWER, **BERN)])

    assert question.output is None
    assert [*question.tools] == [ANSWER]
    assert answer.text is not None
    assert form_of(City).read(answer.text) == City(**BERN)
    assert (answer.calls, answer.raw, answer.stop) == ((), None, Stop.DONE)


def test_w_59_beside_other_calls_it_is_no_answer() -> None:
    """Those run, and the model is told to wait for what comes of them."""
    both = [asked(ANSWER, **BERN), asked("look", at="sky")]
    answer, _ = answered(structured=False, calls=both)

    assert [call.tool_name for call in answer.calls] == [ANSWER, "look"]
    assert [call.fault is None for call in answer.calls] == [False, True]
    assert answer.raw == raw_of(None, both)


def test_w_59_a_call_of_it_that_is_no_json_is_a_misfit() -> None:
    """Its text is what came."""
    call = attrs.evolve(asked(ANSWER, text='{"name": "Be'), fault="no JSON")

    assert unwrapped(Answer(calls=(call,))).text == '{"name": "Be'


def test_w_59_the_name_of_the_tool_is_taken() -> None:
    """A tool of a user's own of that name is told; without a form it is theirs."""

    def answer() -> None: ...

    question = Question((), tools=Toolbox.of(answer), output=SCHEMA)
    with pytest.raises(InvalidValue, match="answer"):
        with_tool(question)

    speaker = Speaker([speech(None, asked(ANSWER))])
    asking = Asking(model=speaker, agent="ada")
    kept = run(asking.answer(Question(()), entry_id="said/2"))
    assert [call.tool_name for call in kept.calls] == [ANSWER]

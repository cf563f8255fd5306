"""Answers in a form: what a program asks for, and gets as a value of its own type (W-59).

The form is a JSON Schema whose root is an object. It goes to the provider's own field where the
model says that it has one (`structured`), else to a tool `answer`, whose call is the answer. Either
way the answer that is kept is text: the JSON of its value.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, TypeVar, cast, overload

import attrs

from ..models.errors import InvalidValue, TurnlockError
from ..models.strict_json import parse
from ..models.values import Json, canonical
from ..runtime.tools.errors import BadArguments
from ..runtime.tools.schemas import Schema
from ..runtime.tools.tool import Tool
from ..runtime.tools.toolbox import Toolbox
from .conversation import Conversation, Owed
from .messages import Answer, Prompt, Stop
from .speaking import JsonSchema, Model, Question

T = TypeVar("T")

ANSWER: Final = "answer"
"""The tool whose call is the answer."""
MISFITS: Final = 2
"""Times that a model is told that its answer does not fit; then it is a `ModelError`."""
MISTAKES: Final = 10
"""Mistakes of one answer that the model is told at most, the first ones."""
VALUE: Final = "value"
"""Where the value stands in a form whose own root is no object."""


class Misfit(TurnlockError):
    """An answer that does not fit the form that was asked for."""


@attrs.frozen(kw_only=True)
class Form(Generic[T]):
    """What an answer must look like, and how it becomes a value."""

    schema: JsonSchema
    read: Callable[[str], T]
    """Returns the value of an answer's text, or raises `Misfit`."""


@overload
def form_of(wanted: type[T]) -> Form[T]: ...
@overload
def form_of(wanted: JsonSchema) -> Form[Json]: ...


def form_of(wanted: type[Any] | JsonSchema) -> Form[Any]:
    """Return the form for a JSON Schema, or for a type that pydantic knows, as a BaseModel is.

    Raises `InvalidValue` for a schema that is none and a type that pydantic has no schema for, and
    `TurnlockError` where pydantic is missing.
    """
    if isinstance(wanted, Mapping):
        return _form_of_schema(wanted)
    try:
        from pydantic import TypeAdapter  # noqa: PLC0415 - an extra, and slow to load
        from pydantic.errors import PydanticUserError  # noqa: PLC0415 - as above
        from pydantic_core import ValidationError  # noqa: PLC0415 - as above

        from ..runtime.tools.typed_dicts import fix_of, with_readable_dicts  # noqa: PLC0415
    except ImportError:
        message = f"output: {wanted!r} needs pydantic: pip install 'turnlock[tools]'"
        raise TurnlockError(message) from None
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(with_readable_dicts(wanted))
        schema, bare = _rooted(adapter.json_schema())
    except (PydanticUserError, NameError) as error:
        told = getattr(error, "message", error)
        raise InvalidValue(
            place="output",
            cause=f"pydantic has no JSON Schema for {wanted!r} ({told})",
            fix=fix_of(error) or "give a BaseModel, a dataclass, a TypedDict or a JSON Schema",
        ) from None

    def read(text: str) -> Any:  # noqa: ANN401 - a value of the type
        value = _parsed(text)
        if bare and VALUE not in value:
            raise Misfit(f"{VALUE} is missing")
        try:
            inner = json.dumps(value[VALUE]) if bare else text
            return adapter.validate_json(inner, strict=True)  # a text is no number
        except ValidationError as error:
            mistakes = error.errors(include_url=False, include_input=False)[:MISTAKES]
            lines = [f"{'.'.join(map(str, it['loc'])) or 'answer'}: {it['msg']}" for it in mistakes]
            raise Misfit("; ".join(lines)) from None

    return Form(schema=schema, read=read)


def _form_of_schema(wanted: JsonSchema) -> Form[Json]:
    rooted, bare = _rooted(wanted)
    try:
        schema = Schema(rooted)
    except InvalidValue as error:
        place = error.place.replace("parameters", "output", 1)
        raise InvalidValue(place=place, cause=error.cause, fix=error.fix) from None

    def read(text: str) -> Json:
        value = _parsed(text)
        try:
            schema.check(value)
        except BadArguments as error:
            raise Misfit(str(error)) from None
        return cast("Json", value[VALUE] if bare else value)

    return Form(schema=rooted, read=read)


def _rooted(schema: Mapping[str, Any]) -> tuple[JsonSchema, bool]:
    """Return the schema with an object for its root, and whether `VALUE` was put around it."""
    below = {key: it for key, it in schema.items() if key != "$defs"}
    defs = {key: it for key, it in schema.items() if key == "$defs"}
    if below.keys() == {"$ref"} and isinstance(defined := defs.get("$defs"), Mapping):
        named = cast("Mapping[str, Any]", defined).get(str(below["$ref"]).removeprefix("#/$defs/"))
        below = {**cast("Mapping[str, Any]", named)} if isinstance(named, Mapping) else below
    if below.get("type") == "object":
        return {**below, **defs}, False
    around = {"type": "object", "properties": {VALUE: below}, "required": [VALUE]}
    return {**around, "additionalProperties": False, **defs}, True


def _parsed(text: str) -> dict[str, Any]:
    """Return the object that an answer is. Raises `Misfit`."""
    try:
        value = parse(text)
    except InvalidValue as error:
        raise Misfit(f"it is no JSON ({error})") from None
    if not isinstance(value, dict):
        raise Misfit("it is no JSON object")
    return cast("dict[str, Any]", value)


def told_of(misfit: Misfit, schema: JsonSchema) -> Prompt:
    """Return what a model is told of an answer that does not fit."""
    text = (
        f"Your answer does not fit the form that was asked for: {misfit}. Answer again in that form"
        f" alone; where you have a tool {ANSWER!r}, call it."
    )
    return Prompt(text=text, output=schema, misfit=True)


def untold_misfit(conversation: Conversation, form: Form[Any] | None) -> Prompt | None:
    """Return what the model has to be told of its last answer; None: it fits, or was told enough.

    `form` reads it, or else what the prompt asked for.
    """
    prompt, last = conversation.last_prompt, conversation.latest
    if prompt is None or prompt.output is None or last is None or last.calls:
        return None
    if conversation.owed is not Owed.PROMPT or conversation.is_stopped:
        return None
    if conversation.misfits >= MISFITS:
        return None
    try:
        (form or form_of(prompt.output)).read(last.text or "")
    except Misfit as misfit:
        return told_of(misfit, prompt.output)
    return None


def has_field(model: Model, question: Question) -> bool:
    """Whether a model sends the form to its provider's own field, which may not take every one."""
    structured: Any = getattr(model, "structured", False)
    return bool(structured(question) if callable(structured) else structured)


def with_tool(question: Question) -> Question:
    """Return a question with the tool `answer` in place of its form.

    Raises `InvalidValue` where there is a tool of that name.
    """
    tool = Tool(
        name=ANSWER,
        call=_is_never_called,
        description="Gives the final answer. Call it alone, once you have all that you need.",
        parameters=question.output,
    )
    tools = Toolbox([*question.tools.values(), tool], cipher=question.tools.cipher)
    return attrs.evolve(question, tools=tools, output=None)


def unwrapped(answer: Answer) -> Answer:
    """Return an answer whose call of `answer` is its text: no turn is opened for it.

    Beside other calls it is no end: the model has not seen their results yet, and is told so. The
    provider's own message goes, since it would want to be told a result.
    """
    given = [call for call in answer.calls if call.tool_name == ANSWER]
    if not given:
        return answer
    if len(given) < len(answer.calls):
        fault = f"call {ANSWER} alone, once you have the results of the other calls"
        calls = [
            attrs.evolve(call, fault=fault) if call.tool_name == ANSWER else call
            for call in answer.calls
        ]
        return attrs.evolve(answer, calls=tuple(calls))
    last = given[-1].arguments
    text = canonical(last) if given[-1].fault is None else str(last.get("text", ""))
    stop = Stop.DONE if answer.stop is Stop.CALLS else answer.stop
    return attrs.evolve(answer, text=text, calls=(), raw=None, stop=stop)


async def _is_never_called(**_: Any) -> None:  # noqa: ANN401 - whatever the form holds
    """Stand for the tool: its call is the answer, and nothing performs it."""

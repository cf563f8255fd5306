"""What is said in a conversation: prompts, answers of the model, and results of its tool calls.

Prompts and answers are notes of the run, results are in its facts. So each thing is kept once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, TypeAlias, cast

import attrs

from ..models.calls import Call, CallResult
from ..models.errors import InvalidValue, shown
from ..models.identify import ProviderCall, identify_calls
from ..models.record import changed
from ..models.sealed import ID
from ..models.values import Json, freeze
from ..runtime.journal.ledger import Domain, Note, body_of


def _frozen(heard: object) -> Json:
    return cast("Json", freeze(heard, place="heard"))


def _frozen_configuration(configuration: object) -> Json:
    return cast("Json", freeze(configuration, place="configuration"))


def _schema(given: Mapping[str, Json] | None) -> Mapping[str, Json] | None:
    frozen: Mapping[str, Json] | None = None if given is None else freeze(given, place="output")
    return frozen


@attrs.frozen(kw_only=True)
class Prompt:
    """What a person says, or, with `misfit`, what a model is told of an answer that does not fit.

    `output` is the JSON Schema that the answer to it must fit (W-59). `heard` is any JSON that a
    host keeps in the same note: how far it has read a chat, say. With a `message_id` it is said
    once in its conversation (F-23).
    """

    text: str
    output: Mapping[str, Json] | None = attrs.field(default=None, converter=_schema)
    misfit: bool = False
    heard: Json = attrs.field(default=None, converter=_frozen)
    message_id: str | None = None


@attrs.frozen(kw_only=True)
class ToolCall:
    """One call that the model asks for, as the provider sent it.

    `call_id` is None where the provider sent none. `fault` says why the arguments are no JSON
    object, where they are none; then `arguments` holds their text, under ``text``. With
    `requires_approval` a person is asked, whatever the tool declares.
    """

    call_id: str | None
    tool_name: str
    arguments: Mapping[str, Json]
    fault: str | None = None
    requires_approval: bool = False


class Stop(StrEnum):
    """Why an answer stopped (W-52)."""

    DONE = "done"
    """The model had said all that it wanted to say."""
    CALLS = "calls"
    """It wants the results of its calls."""
    LENGTH = "length"
    """A bound of its length was reached."""
    REFUSED = "refused"
    """It would not answer, or its provider would not let it."""
    PAUSED = "paused"
    """It is to be asked again, with what it has said."""
    CUT = "cut"
    """The stream ended and never said why: that is no answer."""
    OTHER = "other"
    """Something that we do not know."""


@attrs.frozen(kw_only=True)
class Tokens:
    """What an answer used, as its provider counts."""

    input: int = 0
    """Of the question, what was cached included."""
    output: int = 0
    """Of the answer, its thoughts included."""
    cached: int = 0
    """Of the question, read from a cache."""
    thought: int = 0
    """Of the answer, not shown."""

    def __add__(self, other: Tokens) -> Tokens:
        """Return what both have used."""
        return Tokens(
            input=self.input + other.input,
            output=self.output + other.output,
            cached=self.cached + other.cached,
            thought=self.thought + other.thought,
        )


@attrs.frozen(kw_only=True)
class Answer:
    """What the model says: text, calls, or both."""

    text: str | None = None
    calls: tuple[ToolCall, ...] = ()
    raw: Json = None
    """The provider's own message; only `spec`'s provider can take it back (W-56)."""
    spec: str | None = None
    """Who said it, as ``PROVIDER:MODEL``."""
    stop: Stop = Stop.DONE
    tokens: Tokens = attrs.field(factory=Tokens)
    ids: tuple[str, ...] | None = None
    """The ids of its invocations, where they were given while it spoke (W-57)."""
    configuration: Json = attrs.field(default=None, converter=_frozen_configuration)
    """Under which configuration it was asked for, as the host says it: any JSON (W-34)."""
    declared: Mapping[str, str] | None = None
    """What the tools that it calls were when it was asked for, by name, where that is kept; a grant
    holds for that (`granted`)."""

    @property
    def is_empty(self) -> bool:
        """Whether it says nothing and asks for nothing, and is not to be gone on with (W-28)."""
        spoken = self.text is not None and bool(self.text.strip())
        return not spoken and not self.calls and self.stop is not Stop.PAUSED

    def identified(self) -> tuple[Call, ...]:
        """Return the calls with ids that are unique in their turn, the same ones at each call.

        One whose arguments could not be read waits for approval, so that it surely never runs; so
        does each of an answer that was refused.
        """
        refused = self.stop is Stop.REFUSED
        calls = _identified(self.calls, gated=refused)
        if self.ids is None:
            return calls
        pairs = zip(calls, self.ids, strict=True)
        return tuple(changed(call, invocation_id=it) for call, it in pairs)


def check_answer(answer: Answer) -> None:
    """Raise `InvalidValue` for what is no answer, though it is called one.

    Kept as it is it would be in the way of its conversation for ever: no turn could be opened.
    """
    _check_text(answer.text, "text")
    _check_text(answer.spec, "spec")
    for place, call in enumerate(answer.calls):
        _provided(call)
        if call.fault is not None and not (_is_text(call.fault) and call.fault):
            raise InvalidValue(
                place=f"calls[{place}].fault", cause="says nothing", fix="say what is wrong with it"
            )
    ids = answer.ids
    if ids is not None and not (len(ids) == len(answer.calls) and all(map(_is_text, ids))):
        raise InvalidValue(place="ids", cause="are not one text for each call", fix="leave them")
    for name, count in attrs.asdict(answer.tokens).items():
        if type(count) is not int:
            raise InvalidValue(
                place=f"tokens.{name}", cause=f"{shown(count)} is no number", fix="give 0 or more"
            )


def _check_text(value: object, place: str) -> None:
    if not (value is None or _is_text(value)):
        raise InvalidValue(place=place, cause=f"{shown(value)} is no text", fix="give a text")


def _is_text(value: object) -> bool:
    return type(value) is str


def growing_ids(calls: Iterable[ToolCall]) -> tuple[str, ...]:
    """Return ids for calls in the order they came in; more calls change none of them (W-57)."""
    return tuple(call.invocation_id for call in _identified(calls, grow=True))


def _identified(
    calls: Iterable[ToolCall], *, grow: bool = False, gated: bool = False
) -> tuple[Call, ...]:
    return identify_calls((_provided(call, gated=gated) for call in calls), grow=grow)


def _provided(call: ToolCall, *, gated: bool = False) -> ProviderCall:
    return ProviderCall(
        call_id=call.call_id,
        tool_name=call.tool_name,
        arguments=call.arguments,
        requires_approval=gated or call.requires_approval or call.fault is not None,
    )


@attrs.frozen(kw_only=True)
class Results:
    """What became of one answer's calls, in their order.

    `edited` are the arguments that ran in place of the model's own, by invocation: a person has
    edited them, and the model does not know it. `unended` are the calls that the interrupt of the
    turn has ended; `reason` is what whoever interrupted it said; it was a person, unless the answer
    was `refused`, and its calls with it (W-58).
    """

    turn_id: str
    results: tuple[CallResult, ...]
    interrupted: bool = False
    refused: bool = False
    reason: str | None = None
    unended: frozenset[str] = frozenset()
    edited: Mapping[str, Mapping[str, Json]] = attrs.field(factory=dict[str, Mapping[str, Json]])


Message: TypeAlias = Prompt | Answer | Results
"""One thing that was said: by the user, by the model, or by the tools."""


class Kind(StrEnum):
    """The kinds of notes of a conversation."""

    USER = "user"
    """A prompt."""
    ASSISTANT = "assistant"
    """An answer of the model."""
    PART = "part"
    """One that was still spoken, as far as it went."""
    STOPPED = "stopped"
    """Nobody waits for an answer any more."""


def as_note(
    said: Prompt | Answer, *, name: str = "", at: float = 0.0, is_part: bool = False
) -> Note:
    """Return the note of a message, whose id is `name`; a part is an answer as far as it goes."""
    kind = Kind.USER if isinstance(said, Prompt) else Kind.PART if is_part else Kind.ASSISTANT
    body = _body_of(said, name)
    return Note(domain=Domain.MESSAGE, kind=kind.value, body=body, at=at, id=name or None)


def _body_of(said: Prompt | Answer, name: str) -> Mapping[str, Json]:
    if isinstance(said, Prompt):
        prompt: dict[str, Any] = {ID: name, "text": said.text}
        if said.output is not None:
            prompt["output"] = said.output
        if said.misfit:
            prompt["misfit"] = True
        if said.heard is not None:
            prompt["heard"] = said.heard
        if said.message_id is not None:
            prompt["message_id"] = said.message_id
        return body_of(prompt, place="prompt")
    calls = [
        attrs.asdict(call, recurse=False) | {"arguments": call.arguments} for call in said.calls
    ]
    body: dict[str, Any] = {
        ID: name,
        "text": said.text,
        "calls": calls,
        "raw": said.raw,
        "spec": said.spec,
        "stop": said.stop.value,
        "tokens": attrs.asdict(said.tokens),
    }
    if said.ids is not None:
        body["ids"] = said.ids
    if said.configuration is not None:
        body["configuration"] = said.configuration
    if said.declared:
        body["declared"] = said.declared
    return body_of(body, place="answer")


def from_note(note: Note) -> Prompt | Answer:
    """Return the message that a note holds, one of version 0.1 too, which said less.

    Raises LookupError, TypeError or ValueError for another note.
    """
    body: Mapping[str, Any] = note.body
    if note.kind == Kind.USER:
        if not _is_text(body["text"]):
            raise TypeError(f"{shown(body['text'])} is no text")
        return Prompt(
            text=body["text"],
            output=body.get("output"),
            misfit=body.get("misfit", False),
            heard=body.get("heard"),
            message_id=body.get("message_id"),
        )
    if note.kind not in {Kind.ASSISTANT, Kind.PART}:
        raise ValueError(f"{note.kind!r} is no kind of message")
    calls = tuple(ToolCall(**call) for call in body["calls"])
    answer = Answer(
        text=body["text"],
        calls=calls,
        raw=body["raw"],
        spec=body.get("spec"),
        stop=Stop(body.get("stop", Stop.DONE)),
        tokens=Tokens(**body.get("tokens", {})),
        ids=tuple(body["ids"]) if "ids" in body else None,
        configuration=body.get("configuration"),
        declared=body.get("declared"),
    )
    check_answer(answer)
    return answer

"""What is said in a conversation: prompts, answers of the model, and results of its tool calls.

Prompts and answers are notes of the run, results are in its facts. So each thing is kept once.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeAlias, cast

import attrs

from ..models.calls import Call, CallResult
from ..models.identify import ProviderCall, identify_calls
from ..models.values import Json, freeze


@attrs.frozen(kw_only=True)
class Prompt:
    """What a person says."""

    text: str


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

    def identified(self) -> tuple[Call, ...]:
        """Return the calls with ids that are unique in their turn, the same ones at each call.

        One whose arguments could not be read waits for approval, so that it surely never runs.
        """
        return identify_calls(
            ProviderCall(
                call_id=call.call_id,
                tool_name=call.tool_name,
                arguments=call.arguments,
                requires_approval=call.requires_approval or call.fault is not None,
            )
            for call in self.calls
        )


@attrs.frozen(kw_only=True)
class Results:
    """What became of one answer's calls, in their order."""

    turn_id: str
    results: tuple[CallResult, ...]
    interrupted: bool = False


Message: TypeAlias = Prompt | Answer | Results
"""One thing that was said: by the user, by the model, or by the tools."""


def as_note(said: Prompt | Answer) -> Json:
    """Return a message as JSON."""
    if isinstance(said, Prompt):
        return cast("Json", freeze({"role": "user", "text": said.text}, place="prompt"))
    calls = [
        attrs.asdict(call, recurse=False) | {"arguments": call.arguments} for call in said.calls
    ]
    note = {
        "role": "assistant",
        "text": said.text,
        "calls": calls,
        "raw": said.raw,
        "spec": said.spec,
        "stop": said.stop.value,
        "tokens": attrs.asdict(said.tokens),
    }
    return cast("Json", freeze(note, place="answer"))


def from_note(note: Any) -> Prompt | Answer:  # noqa: ANN401 - any JSON
    """Return the message that a note holds, one of version 0.1 too, which said less.

    Raises LookupError, TypeError or ValueError for another note.
    """
    if note["role"] == "user":
        return Prompt(text=note["text"])
    calls = tuple(ToolCall(**call) for call in note["calls"])
    return Answer(
        text=note["text"],
        calls=calls,
        raw=note["raw"],
        spec=note.get("spec"),
        stop=Stop(note.get("stop", Stop.DONE)),
        tokens=Tokens(**note.get("tokens", {})),
    )

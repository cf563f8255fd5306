"""What is said in a conversation: prompts, answers of the model, and results of its tool calls.

Prompts and answers are notes of the run, results are in its facts. So each thing is kept once.
"""

from __future__ import annotations

from collections.abc import Mapping
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


@attrs.frozen(kw_only=True)
class Answer:
    """What the model says: text, calls, or both. `raw` is the provider's own message, if any."""

    text: str | None = None
    calls: tuple[ToolCall, ...] = ()
    raw: Json = None

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
    note = {"role": "assistant", "text": said.text, "calls": calls, "raw": said.raw}
    return cast("Json", freeze(note, place="answer"))


def from_note(note: Any) -> Prompt | Answer:  # noqa: ANN401 - any JSON
    """Return the message that a note holds. Raises KeyError or TypeError for another note."""
    if note["role"] == "user":
        return Prompt(text=note["text"])
    calls = tuple(ToolCall(**call) for call in note["calls"])
    return Answer(text=note["text"], calls=calls, raw=note["raw"])

"""What a message history of Pydantic AI says: which turn an answer is, and what became of calls.

An answer is named after when it was received and what it asked for: providers and fakes use ids
again, and the place in a history changes as soon as somebody trims it. The time is kept wherever
messages are kept (`ModelMessagesTypeAdapter`).
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC
from functools import cache
from typing import Any, Final, cast

from pydantic import ConfigDict, TypeAdapter
from pydantic_ai import ToolDefinition, ToolReturn
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ToolReturnContent,
    ToolReturnPart,
)

from ..lifecycle.phases import DOUBTED, Phase
from ..models.calls import Call
from ..models.reasons import Reason
from ..models.values import Json, arguments_digest
from .claimed import from_json
from .errors import Differs, InDoubt, Stale, StillRunning
from .values import Look

GUARDED: Final = frozenset({"function", "unapproved"})
"""The kinds of tools that run here; output tools and external ones do not."""

_OPENS: Final = (
    "an answer opens its calls where its agent has capabilities=[GuardCapability(guard)]: ask anew"
    " what was asked without, and what a tool calls by itself is not run"
)
_BYTES: Final = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")


def answer_in(messages: Sequence[ModelMessage]) -> tuple[int, ModelResponse] | None:
    """Return the place and the last whole answer of a history, None where there is none."""
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if isinstance(message, ModelResponse) and message.state != "suspended":
            return place, message
    return None


def turn_of(answer: ModelResponse, before: Iterable[ModelMessage]) -> str:
    """Return the name of the turn that an answer is, in a history with these messages before it.

    Where a clock stood still, the same answer twice has a number as well.
    """
    asked = _asked(answer)
    same = sum(
        isinstance(it, ModelResponse) and it.timestamp == answer.timestamp and _asked(it) == asked
        for it in before
    )
    digest = arguments_digest({"calls": asked})[:16]
    at = f"{answer.timestamp.astimezone(UTC):%Y%m%dT%H%M%S.%fZ}"
    return f"{at}-{digest}" + (f"-{same + 1}" if same else "")


def turn_in(messages: Sequence[ModelMessage]) -> str | None:
    """Return the turn that the last answer of a history is."""
    found = answer_in(messages)
    return None if found is None else turn_of(found[1], messages[: found[0]])


def calls_in(answer: ModelResponse, tools: Iterable[ToolDefinition]) -> list[Call]:
    """Return what an answer asks of tools that run here, with the raw arguments of the model."""
    kinds = {tool.name: tool.kind for tool in tools if tool.kind in GUARDED}
    return [
        Call(
            invocation_id=part.tool_call_id,
            tool_name=part.tool_name,
            arguments=part.args_as_dict(),
            requires_approval=kinds[part.tool_name] == "unapproved",
        )
        for part in answer.tool_calls
        if part.tool_name in kinds
    ]


def returns_in(messages: Sequence[ModelMessage]) -> list[ToolReturnPart]:
    """Return what the model is about to be told of the calls of the last answer."""
    found = answer_in(messages)
    after = messages if found is None else messages[found[0] + 1 :]
    return [
        part
        for message in after
        if isinstance(message, ModelRequest)
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    ]


def hold(told: ToolReturnPart, look: Look) -> None:
    """Refuse to tell the model of a call what the journal does not know.

    Raises `InDoubt` and `StillRunning`, and `Differs` for a success that was none, or one that is
    kept from the model: it would ask for the same again, with another id.
    """
    here = f"call {told.tool_call_id!r} ({told.tool_name}) of run {look.at.run!r}"
    if look.phase in DOUBTED:
        raise InDoubt(
            f"{here} was started, and nobody knows whether it happened: resolve it before the model"
            f" is told {told.outcome!r}",
            at=look.at,
            attempt=look.attempt,
            worker=look.worker,
            since=look.since,
        )
    if look.phase is Phase.STARTED:
        raise StillRunning(f"{here} is running; come again", at=look.at, worker=look.worker)
    if (told.outcome == "success") is not (look.phase is Phase.SUCCEEDED):
        raise Differs(
            f"{here}: the history tells the model {told.outcome!r}, the journal says {look.phase};"
            " give results and decisions through turnlock.guards.pydantic_ai.decide, or go on from"
            " the history that ends with the answer which asked",
            at=look.at,
        )


@contextmanager
def naming_what_opens() -> Generator[None]:
    """Say of a call that was never opened what would have opened it."""
    try:
        yield
    except Stale as refused:
        if refused.reason == Reason.UNKNOWN_INVOCATION and _OPENS not in str(refused):
            refused.args = (f"{refused.args[0]}; {_OPENS}",)
        raise


def encode(value: object) -> Json:
    """Return what a tool returned as JSON, as the framework writes it into a history."""
    return cast("Json", _any().dump_python(value, mode="json"))


def decode(value: Json) -> object:
    """Return a recorded value as the framework reads it from a history; `ToolReturn` as itself."""
    plain: object = from_json(value)
    if isinstance(value, Mapping) and value.get("kind") == "tool-return":
        return _return().validate_python(plain)
    return _content().validate_python(plain)


@cache  # each is made when it is first needed: that takes longer than all else of this module
def _any() -> TypeAdapter[Any]:
    return TypeAdapter(Any, config=_BYTES)


@cache
def _content() -> TypeAdapter[Any]:
    return TypeAdapter(ToolReturnContent, config=_BYTES)


@cache
def _return() -> TypeAdapter[ToolReturn[Any]]:
    return TypeAdapter(ToolReturn[Any])


def _asked(answer: ModelResponse) -> list[Json]:
    return [[it.tool_call_id, it.tool_name, it.args_as_dict()] for it in answer.tool_calls]

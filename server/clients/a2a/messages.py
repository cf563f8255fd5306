"""What a client says: a prompt, or answers to questions. Text is never read as consent (F-82)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Self, cast

import attrs
import msgspec

from ....models.deliveries import Resolution, Scope
from ....models.errors import InvalidValue
from ....models.values import ABSENT, Absent, Json
from ... import bodies
from ...line import check_message_id
from ...problems import Problem
from .tasks import LONGEST_CONTEXT
from .wire import CONTENT_TYPE_NOT_SUPPORTED, INVALID_PARAMS, Body, Refused, object_of, text_of

HOW: Final = (
    "text is never read as consent: answer with a data part {turn_id, invocation_id, approved,"
    " arguments_digest}, as the question has them"
)
_EXACT: Final = 2.0**53
"""Whole numbers beyond are not exact in a float."""


@attrs.frozen(kw_only=True)
class Decision:
    """An answer to the question whether a call may run."""

    turn_id: str
    invocation_id: str
    approved: bool
    arguments_digest: str | None = None
    reason: str | None = None
    arguments: Mapping[str, Json] | None = None
    scope: Scope | None = None


@attrs.frozen(kw_only=True)
class Settlement:
    """An answer to the question what became of a call that is in doubt (K-35)."""

    turn_id: str
    invocation_id: str
    attempt: int
    resolution: Resolution
    result: Json | Absent = ABSENT
    error: str | None = None


@attrs.frozen(kw_only=True)
class Said:
    """A message of a client."""

    message_id: str
    context_id: str
    task_id: str
    text: str
    answers: tuple[Decision | Settlement, ...]

    @classmethod
    def read(cls, params: Body) -> Self:
        """Read the message of a request. Raises `Refused`."""
        message = object_of(params, "message")
        if message.get("role") != "ROLE_USER":
            raise Refused(INVALID_PARAMS, "message.role is ROLE_USER: a client speaks for its user")
        parts = message.get("parts")
        if not isinstance(parts, list) or not parts:
            raise Refused(INVALID_PARAMS, "message.parts are one or more parts")
        context_id = text_of(message, "contextId", needed=False)
        if len(context_id) > LONGEST_CONTEXT:
            raise Refused(INVALID_PARAMS, f"contextId has at most {LONGEST_CONTEXT} characters")
        check_message_id(message_id := text_of(message, "messageId"))
        texts, answers = _parts(cast("Sequence[object]", parts))
        return cls(
            message_id=message_id,
            context_id=context_id,
            task_id=text_of(message, "taskId", needed=False),
            text="\n".join(texts),
            answers=tuple(answers),
        )


def _parts(parts: Sequence[object]) -> tuple[list[str], list[Decision | Settlement]]:
    texts: list[str] = []
    answers: list[Decision | Settlement] = []
    for at, part in enumerate(parts):
        place = f"message.parts[{at}]"
        if not isinstance(part, Mapping):
            raise Refused(INVALID_PARAMS, f"{place} is an object")
        told = cast("Mapping[str, Any]", part)
        text, data = told.get("text"), told.get("data")
        if isinstance(text, str) and data is None:
            texts.append(text)
        elif isinstance(data, Mapping) and text is None:
            answers.append(_answer(cast("Mapping[str, Any]", data), place))
        else:
            raise Refused(
                CONTENT_TYPE_NOT_SUPPORTED,
                f"{place}: this agent takes text, and data parts that answer its questions",
            )
    return texts, answers


def _answer(data: Mapping[str, Any], place: str) -> Decision | Settlement:
    raw = msgspec.json.encode(_whole(data))
    try:
        if "resolution" in data:
            return bodies.parse(Settlement, raw)
        return bodies.parse(Decision, raw)
    except (InvalidValue, Problem) as error:
        cause = f"{error.place}: {error.cause}" if isinstance(error, InvalidValue) else str(error)
        raise Refused(INVALID_PARAMS, f"{place}.data.{cause}; {HOW}") from None


def _whole(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return JSON whose numbers came as protobuf writes them, which knows no whole ones: 1.0."""
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return int(value)
    if isinstance(value, dict):
        return {name: _whole(it) for name, it in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list):
        return [_whole(it) for it in cast("Sequence[Any]", value)]
    return value

"""What a `useChat` client asks with: a prompt, answers to questions, and what it says it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Self

import attrs

from ...models.values import Json
from ..bodies import named
from ..problems import Problem
from .chat_parts import Card, State, objects, read_steps
from .chat_translator import Has

ASSISTANT: Final = "assistant"
USER: Final = "user"
SUBMIT: Final = "submit-message"


@attrs.frozen(kw_only=True)
class ChatBody:
    """What its transport sends, of which more is let be: what the page adds, say."""

    FOREIGN: ClassVar[bool] = True
    id: str
    messages: tuple[Mapping[str, Json], ...]
    trigger: str = SUBMIT
    message_id: str | None = named("messageId", default=None)


@attrs.frozen(kw_only=True)
class Said:
    """A prompt: the last message, where it is a person's (F-71)."""

    message_id: str
    text: str


@attrs.frozen(kw_only=True)
class Answered:
    """An answer to the question of a card (F-73)."""

    approval_id: str
    approved: bool
    reason: str | None


@attrs.frozen(kw_only=True)
class ChatRequest:
    """A request as it is understood."""

    run_id: str
    said: Said | None
    answers: Sequence[Answered]
    has: Has | None
    """The message that the client goes on with; None: it makes a new one."""

    @classmethod
    def of(cls, body: ChatBody) -> Self:
        """Return what a body asks for. Raises `Problem` for a message that cannot be said."""
        messages = body.messages
        goes_on = _goes_on(body)
        spoken = goes_on or next((it for it in reversed(messages) if _is_of(it, ASSISTANT)), None)
        last = messages[-1] if messages else None
        return cls(
            run_id=body.id,
            said=None if last is None or not _is_of(last, USER) else _said(last, len(messages) - 1),
            answers=[] if spoken is None else [*_answers(spoken)],
            has=None if goes_on is None else _has(goes_on),
        )


def _is_of(message: Mapping[str, Json], role: str) -> bool:
    return message.get("role") == role


def _goes_on(body: ChatBody) -> Mapping[str, Json] | None:
    """Return the message that the client adds to what it is sent: a reply, or none.

    Where it names one that it has, it is that; else the last one. What it asks for anew it has
    forgotten.
    """
    if body.trigger != SUBMIT or not body.messages:
        return None
    found = body.messages[-1]
    if body.message_id is not None:
        found = next((it for it in body.messages if it.get("id") == body.message_id), found)
    return found if _is_of(found, ASSISTANT) else None


def _has(message: Mapping[str, Json]) -> Has:
    steps, has_more = read_steps(message.get("parts"))
    name = message.get("id")
    return Has(name=name if isinstance(name, str) else "", steps=steps, has_more=has_more)


def _answers(message: Mapping[str, Json]) -> list[Answered]:
    steps, _ = read_steps(message.get("parts"))
    return [
        Answered(
            approval_id=it.approval.id, approved=it.approval.approved, reason=it.approval.reason
        )
        for step in steps
        for it in step
        if isinstance(it, Card)
        and it.state is State.RESPONDED
        and it.approval is not None
        and it.approval.approved is not None
    ]


def _said(message: Mapping[str, Any], place: int) -> Said:
    at = f"messages[{place}]"
    message_id = message.get("id")
    if not isinstance(message_id, str):
        raise Problem("invalid_value", "give the message an id", at=f"{at}.id")
    texts: list[str] = []
    for part in objects(message.get("parts")):
        if part.get("type") == "file":
            problem = "agents are told text alone; leave files out"
            raise Problem("invalid_value", problem, at=f"{at}.parts")
        if part.get("type") == "text" and isinstance(text := part.get("text"), str):
            texts.append(text)
    if not texts:
        raise Problem("invalid_value", "give the message a part of text", at=f"{at}.parts")
    return Said(message_id=message_id, text="".join(texts))

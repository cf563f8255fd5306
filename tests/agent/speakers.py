"""Models that say what they are told to say, in pieces, and fail where they are told to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any, TypeAlias

import attrs

from turnlock.agent.messages import Answer, Stop, Tokens, ToolCall
from turnlock.agent.speaking import (
    CallBegan,
    CallEnded,
    CallText,
    Ended,
    Question,
    Said,
    Text,
    Used,
)
from turnlock.models.values import Json, canonical

SPEC = "test:speaker"


@attrs.frozen
class Pause:
    """Seconds for which nothing is said."""

    seconds: float


Piece: TypeAlias = Said | BaseException | Pause
"""An exception is raised where it stands."""


def asked(tool_name: str = "look", *, call_id: str | None = None, **arguments: Json) -> ToolCall:
    """One call."""
    return ToolCall(call_id=call_id, tool_name=tool_name, arguments=arguments)


def raw_of(text: str | None, calls: Iterable[ToolCall]) -> Json:
    """A provider's message: what stands in it can be told from it."""
    return {
        "text": text,
        "calls": [f"{call.tool_name} {canonical(call.arguments)}" for call in calls],
    }


def speech(
    text: str | None = None,
    *calls: ToolCall,
    stop: Stop | None = None,
    used: int = 1,
    **fields: Any,
) -> list[Piece]:
    """A whole answer, in pieces: its text by words, then its calls, each closed."""
    words = (text or "").split(" ")
    said: list[Piece] = [Text(word if last else f"{word} ") for last, word in _with_last(words)]
    if text is None:
        said = []
    for place, call in enumerate(calls):
        said += [
            CallBegan(place, call.tool_name),
            CallText(place, canonical(call.arguments)),
            Used(Tokens(output=used * (place + 1))),
            CallEnded(place, call, raw_of(text, calls[: place + 1])),
        ]
    answer = Answer(
        text=text,
        calls=calls,
        raw=raw_of(text, calls),
        spec=SPEC,
        stop=stop or (Stop.CALLS if calls else Stop.DONE),
        tokens=Tokens(output=10 * used),
    )
    return [*said, Ended(attrs.evolve(answer, **fields))]


def _with_last(words: Sequence[str]) -> list[tuple[bool, str]]:
    return [(place == len(words), word) for place, word in enumerate(words, start=1)]


def cut(*pieces: Piece) -> list[Piece]:
    """What was said before the stream ended without a reason."""
    said = [it for it in pieces if not isinstance(it, Ended)]
    return [*said, Ended(Answer(stop=Stop.CUT))]


@attrs.define
class Speaker:
    """Says the n-th of its speeches when it is asked for the n-th time, and then the last again."""

    speeches: Sequence[Sequence[Piece]]
    structured: bool = False
    spec: str = SPEC
    questions: list[Question] = attrs.field(factory=list[Question])
    which: Callable[[Speaker, Question], int] = lambda it, _: len(it.questions) - 1

    async def speak(self, question: Question) -> AsyncIterator[Said]:
        self.questions.append(question)
        number = min(self.which(self, question), len(self.speeches) - 1)
        for piece in self.speeches[number]:
            if isinstance(piece, BaseException):
                raise piece
            if isinstance(piece, Pause):
                await asyncio.sleep(piece.seconds)
            else:
                yield piece

    async def close(self) -> None:
        """Nothing is open."""


def by_answers(_: Speaker, question: Question) -> int:
    """Which speech it is by how many answers were given: the same again in another process."""
    return sum(isinstance(message, Answer) for message in question.messages)

"""What happens while an agent works, as whoever watches is told it, and what it came to."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Final, TypeAlias

import attrs

from ..views.call_view import CallView
from .messages import Answer, Stop, Tokens
from .speaking import CallText, Said, Text, Thought

BEHIND: Final = 256
"""Events that a watcher may be behind; beyond it texts are put together, so that what waits is
never more than was said."""


@attrs.frozen
class CallUpdate:
    """A call was requested, or is another now: `call.waits` says what for.

    A call of an agent that is a tool has another `run_id` than the run that is watched.
    """

    call: CallView


@attrs.frozen
class Answered:
    """An answer of the model is kept."""

    answer: Answer


@attrs.frozen(kw_only=True)
class RunResult:
    """What came of one prompt. As a text it is what the model said last."""

    text: str
    """What the model said last; empty where it was interrupted before it said anything."""
    stop: Stop
    """Why its last answer stopped."""
    tokens: Tokens
    """What all answers to the prompt have used. Agents that are tools count their own."""
    answers: int
    """How often the model answered."""
    run_id: str
    interrupted: bool = False
    """Whether a person has stopped it."""

    def __str__(self) -> str:
        """Return what the model said last."""
        return self.text


Event: TypeAlias = Said | CallUpdate | Answered | RunResult
"""One thing that happens: what the model says, while it says it; calls; and at last the result."""

Hear: TypeAlias = Callable[[Event], None]
"""Takes an event; must neither raise nor wait."""


class Events:
    """What waits between an agent at work and one who watches it, and pulls."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._waiting: deque[Event] = deque()
        self._arrived = asyncio.Event()
        self._ended = False

    def add(self, event: Event) -> None:
        """Take the next one."""
        last = self._waiting[-1] if len(self._waiting) >= BEHIND else None
        joined = None if last is None else _joined(last, event)
        if joined is None:
            self._waiting.append(event)
        else:
            self._waiting[-1] = joined
        self._arrived.set()

    def end(self) -> None:
        """Learn that there will be no more."""
        self._ended = True
        self._arrived.set()

    async def __aiter__(self) -> AsyncIterator[Event]:
        """Yield them as they come, until there will be no more."""
        while True:
            while self._waiting:
                yield self._waiting.popleft()
            if self._ended:
                return
            self._arrived.clear()
            await self._arrived.wait()


def _joined(last: Event, event: Event) -> Event | None:
    if isinstance(last, Text) and isinstance(event, Text):
        return Text(last.text + event.text)
    if isinstance(last, Thought) and isinstance(event, Thought):
        return Thought(last.text + event.text)
    if isinstance(last, CallText) and isinstance(event, CallText) and last.place == event.place:
        return CallText(last.place, last.text + event.text)
    return None

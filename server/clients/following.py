"""How a client of others follows a run: what the journal holds, then what happens, to its end.

The first request, a reconnect and a second tab are one thing: all are told what they lack.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any, Final, Protocol, TypeAlias, cast

import msgspec

from ...agent.conversation import PREFIX
from ...models.errors import TurnlockError
from ...runtime.journal.contract import RunEntry
from ...runtime.journal.ledger import START, Cursor
from ..hub import Hub
from ..problems import problem_of
from ..shown import Bye, Delta, Failed, Live, Sent, Shown
from ..subscription import HubSubscription
from .entries import Entry
from .story import Happening, Story

Event: TypeAlias = "Any"
"""What a translator says, as JSON; `msgspec` encodes it."""

PATIENCE: Final = 2.0
"""Seconds that calls beside a question have to end, before the stream ends at it (F-63)."""
RESTARTS: Final = 10.0
"""Seconds in which a session that has failed is begun again, or the stream says so (S-54)."""


class Translator(Protocol):
    """A pure function of a run's entries and what a client says it has, asked step by step."""

    @property
    def is_over(self) -> bool:
        """Whether it has said its end; nothing is asked of it any more."""
        ...

    def take(self, entry: Entry, happened: Sequence[Happening]) -> Iterable[Event]:
        """Say what an entry brings; the story has it already."""
        ...

    def hear(self, message_id: str, text: str) -> Iterable[Event]:
        """Say some more of the text of a message that is not whole yet.

        It is asked from the beginning of a message on, or not at all.
        """
        ...

    def look(self, *, is_late: bool) -> Iterable[Event]:
        """Say what else there is to say, and the end, if that is reached.

        It is asked once all that has happened is told, and again behind each batch that brings
        more than text.

        `is_late`: a question was there for `PATIENCE`, or a trouble for `RESTARTS`.
        """
        ...

    def fail(self, code: str, detail: str) -> Iterable[Event]:
        """Say the end: a problem (F-5)."""
        ...


class Following:
    """One client that follows one run. Close it."""

    def __init__(self, subscription: HubSubscription, story: Story) -> None:
        """Take over a subscription from the first entry on."""
        self.subscription: Final = subscription
        self.story: Final = story
        self._translator: Translator | None = None
        self._past: list[tuple[Entry, Sequence[Happening]] | Delta] = []
        self.last = START
        """The last entry that was folded before a translator went on."""
        self._failure: tuple[str, str] | None = None
        self._first_heard = 0
        """The number of the first message that is heard from its beginning."""
        self._early: list[tuple[int, str]] = []
        """Texts of messages that wait for the entries before them."""
        self._timer: asyncio.TimerHandle | None = None
        self._waits_for: object = None
        self._is_late = False

    @classmethod
    def of(cls, hub: Hub, entry: RunEntry) -> Following:
        """Return one of a run."""
        run = entry.run
        return cls(hub.subscribe(run.run_id), Story(run.run_id, kind=run.kind))

    async def catch_up(self) -> None:
        """Fold all that the journal holds now: what is known decides what is asked for.

        Raises what the journal raises, and `ConversationBroken`.
        """
        await self.subscription.open()
        await self._fold(lambda it: isinstance(it, Live))
        said = self.story.next_message
        self._first_heard = said + 1 if self.story.is_asking else said

    async def reach(self, cursor: Cursor) -> None:
        """Fold on until an entry that is known to be kept. Raises as `catch_up` does."""
        if self.last < cursor:
            await self._fold(lambda it: isinstance(it, Sent) and it.cursor >= cursor)

    async def _fold(self, is_enough: Callable[[Shown], bool]) -> None:
        if self._failure is not None:
            return
        async for batch in self.subscription:
            for it in batch:
                if isinstance(it, Sent):
                    entry = Entry.of(it)
                    self._past.append((entry, self.story.take(entry)))
                    self.last = entry.cursor
                elif isinstance(it, Delta):
                    self._past.append(it)
                elif isinstance(it, Failed | Bye):
                    self._failure = _failure(it)
            if self._failure is not None or any(map(is_enough, batch)):
                return

    def begin(self, translator: Translator) -> list[Event]:
        """Go on with a translator: return what it says of all that has happened so far."""
        self._translator = translator
        events: list[Event] = []
        for it in self._past:
            events += self._heard(it) if isinstance(it, Delta) else translator.take(*it)
        self._past.clear()
        return [*events, *self._looked()]

    async def go_on(self) -> AsyncIterator[list[Event]]:
        """Yield what is said, batch by batch, until its end; an empty one shows that it lives."""
        translator = cast("Translator", self._translator)
        if translator.is_over:
            return
        async for batch in self.subscription:
            events = [event for it in batch for event in self._told(it)]
            if not (batch and all(isinstance(it, Delta) for it in batch)):
                events += self._looked()  # some more of a text changes nothing else
            if events or not batch:
                yield events
            if translator.is_over:
                return
        if not translator.is_over:
            yield [*translator.fail("shutting_down", "the stream has ended; ask again")]

    def close(self) -> None:
        """End it."""
        self._disarm()
        self.subscription.close()

    def _told(self, it: Shown) -> Iterable[Event]:
        translator = cast("Translator", self._translator)
        if translator.is_over:
            return ()
        if isinstance(it, Sent):
            try:
                entry = Entry.of(it)
                happened = self.story.take(entry)
            except TurnlockError as error:
                problem = problem_of(error)
                return translator.fail(problem.code, str(problem))
            return [*translator.take(entry, happened), *self._flushed()]
        if isinstance(it, Delta):
            return self._heard(it)
        if isinstance(it, Failed | Bye):
            return translator.fail(*_failure(it))
        return ()

    def _heard(self, it: Delta) -> Iterable[Event]:
        """Pass on the text of a message that is heard from its beginning, and whole so far.

        It may come before the entries that it follows are read: then it waits for them.
        """
        told = _heard.decode(it.data)
        digits = told.item.removeprefix(PREFIX)
        if told.kind != "text" or not told.item.startswith(PREFIX) or not digits.isdecimal():
            return ()
        number = int(digits)
        if told.dropped:
            self._first_heard = max(self._first_heard, number + 1)
        story = self.story
        ahead = number - story.next_message
        if ahead < 0 or number < self._first_heard:
            return ()
        if ahead or self._early or not story.is_asking:
            self._early.append((number, told.text))
            return self._flushed()
        return cast("Translator", self._translator).hear(told.item, told.text)

    def _flushed(self) -> list[Event]:
        """Say what waited for the entries before it; what is whole by now is not waited for."""
        if not self._early:
            return []
        story, translator = self.story, cast("Translator", self._translator)
        events: list[Event] = []
        left: list[tuple[int, str]] = []
        for number, text in self._early:
            ahead = number - story.next_message
            if ahead > 0 or (ahead == 0 and not story.is_asking):
                left.append((number, text))
            elif ahead == 0:
                events += translator.hear(f"{PREFIX}{number}", text)
        self._early = left
        return events

    # When it ends.

    def _looked(self) -> Iterable[Event]:
        translator = cast("Translator", self._translator)
        if translator.is_over:
            return ()
        if self._failure is not None:
            return translator.fail(*self._failure)
        events = [*translator.look(is_late=self._is_late)]
        if translator.is_over:
            self._disarm()
        else:
            self._arm()
        return events

    def _arm(self) -> None:
        """Have it looked at again once patience is over with what it waits for now."""
        story = self.story
        waits_for: object = None
        patience = PATIENCE
        if story.questions or story.doubts:
            turn = story.turn
            waits_for = None if turn is None else turn.turn_id
        elif story.trouble is not None:
            waits_for, patience = story.trouble, RESTARTS
        if waits_for == self._waits_for:
            return
        self._disarm()
        self._waits_for = waits_for
        if waits_for is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(patience, self._late)

    def _late(self) -> None:
        self._is_late = True
        self.subscription.beat()

    def _disarm(self) -> None:
        self._waits_for, self._is_late = None, False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _Heard(msgspec.Struct):
    item: str
    kind: str
    text: str
    dropped: int = 0


_heard: Final = msgspec.json.Decoder(_Heard)


class _Failure(msgspec.Struct):
    title: str = "internal_error"
    detail: str = "the stream has failed"


class _Failed(msgspec.Struct):
    problem: _Failure


def _failure(it: Failed | Bye) -> tuple[str, str]:
    if isinstance(it, Bye):
        return "shutting_down", "the server stops; ask again in a moment"
    told = msgspec.json.decode(it.data, type=_Failed)
    return told.problem.title, told.problem.detail

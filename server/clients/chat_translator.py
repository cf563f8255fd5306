"""What a `useChat` client is sent: a pure function of a run's entries and of what it says it has.

All requests are one: to say something, to answer questions, to come again after a cut, to look from
a second tab. Each is told what its message lacks of a reply (`chat_parts`), and ends where a person
has the word (F-73): the client sends what its user answered once the stream has ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import attrs

from ...agent.messages import Stop
from ...models.safe_text import harmless
from ...runtime.journal.ledger import Cursor
from .chat_parts import Chunk, Part, Shown
from .chat_replies import PREFIX, Replies, Reply
from .entries import Entry
from .story import Happening, Prompted, Story


@attrs.frozen(kw_only=True)
class Has:
    """The message that a client goes on with."""

    name: str
    """Its id."""
    steps: Sequence[Sequence[Part]]
    has_more: bool = False
    """Whether anything stands before its first step."""


@attrs.frozen(kw_only=True)
class Wanted:
    """What a client asks for, and what it says it has."""

    prompt: str | None = None
    """The id of what its user said: the reply to that is wanted. None: the one that it has, or the
    latest."""
    has: Has | None = None
    refused: Sequence[Mapping[str, object]] = ()
    """What became of answers that were not taken."""
    after: Cursor | None = None
    """The facts after this are sent as they are, too; None: all of the reply."""


class ChatTranslator:
    """Says what one client lacks, until a person has the word."""

    def __init__(self, story: Story, wanted: Wanted) -> None:
        """Begin for a story that is told up to now."""
        self._story = story
        self._wanted = wanted
        self._replies = Replies()
        self._prompts: dict[str, int] = {}
        """The numbers of prompts, by their ids."""
        self._facts: list[tuple[int, Chunk]] = []
        """Those that are to be sent, and the replies that they belong to."""
        self._number: int | None = None
        """The reply that is told."""
        self._shown = Shown()
        self._is_over = False

    @property
    def is_over(self) -> bool:
        """Whether it has said its end."""
        return self._is_over

    @property
    def has_nothing(self) -> bool:
        """Whether nothing was ever said in the run, nor is about to be (F-74)."""
        story = self._story
        return story.prompts == 0 and story.is_at_rest and not self._replies.reply(0).steps

    def take(self, entry: Entry, happened: Sequence[Happening]) -> Iterable[Chunk]:
        """Take an entry; what it brings is told when it is looked."""
        self._replies.take(happened)
        for it in happened:
            if isinstance(it, Prompted):
                self._prompts[it.message_id] = it.number
        after = self._wanted.after
        if entry.fact is not None and (after is None or entry.cursor > after):
            reply = max(self._prompts.values(), default=0)
            told = {"type": "data-turnlock", "data": entry.envelope, "transient": True}
            self._facts.append((reply, told))
        return ()

    def hear(self, message_id: str, text: str) -> Iterable[Chunk]:
        """Say some more of an answer that is not whole yet."""
        number = self._story.prompts
        self._replies.hear(number, message_id, text)
        if number != self._number:
            return ()
        return self._shown.lacks(self._replies.reply(number).steps)

    def look(self, *, is_late: bool) -> Iterator[Chunk]:
        """Say what is lacking, and the end where a person has the word."""
        if self._number is None:
            self._number = self._found()
            if self._number is None:
                yield from self._unless_troubled(is_late=is_late)
                return
            yield from self._begun(self._replies.reply(self._number))
        reply = self._replies.reply(self._number)
        yield from self._facts_of(reply.number)
        yield from self._shown.lacks(reply.steps)
        reason = self._reason(reply)
        if reason is None:
            yield from self._unless_troubled(is_late=is_late)
            return
        yield from self._shown.end_step()
        yield {"type": "finish", "finishReason": reason}
        self._is_over = True

    def fail(self, code: str, detail: str) -> Iterator[Chunk]:
        """Say that it does not go on."""
        self._is_over = True
        yield {"type": "error", "errorText": f"{code}: {harmless(detail)}"}

    # Which reply is told.

    def _found(self) -> int | None:
        """Return the number of the reply that is told; None while it has not begun.

        What was said while a question is open waits until that is answered (F-25), and is not
        waited for: the reply with the question is told, since a person has the word.
        """
        story, wanted = self._story, self._wanted
        if wanted.prompt is not None:
            found = self._prompts.get(wanted.prompt)
            return self._blocking() if found is None else found
        number = None if wanted.has is None else _number_of(wanted.has.name)
        if number is not None and number <= story.prompts:
            return number
        if story.is_about_to_be_told:
            return None
        return self._blocking() or story.prompts

    def _blocking(self) -> int | None:
        """Return the number of the reply in which a person is asked."""
        story = self._story
        if story.is_at_work or not (story.questions or story.doubts):
            return None
        return story.reply_of_turn

    def _begun(self, reply: Reply) -> Iterator[Chunk]:
        has = self._wanted.has
        if has is not None:
            self._shown = Shown(has.steps, has_more=has.has_more)
        yield {"type": "start", "messageId": reply.name}
        for refused in self._wanted.refused:
            yield {"type": "data-turnlock-refused", "data": refused, "transient": True}

    def _facts_of(self, number: int) -> Iterator[Chunk]:
        for reply, told in self._facts:
            if reply >= number:
                yield told
        self._facts.clear()

    # When it ends.

    def _reason(self, reply: Reply) -> str | None:
        """Return why the stream ends; None while the reply goes on."""
        story = self._story
        if story.prompts > reply.number and story.reply_of_turn != reply.number:
            return _REASONS[reply.stop]
        if story.is_at_work:
            return None
        if story.questions:
            return "tool-calls"
        if story.doubts:
            return "interrupted"
        if story.trouble is None and story.is_at_rest:
            return "interrupted" if story.was_interrupted else _REASONS[reply.stop]
        return None

    def _unless_troubled(self, *, is_late: bool) -> Iterator[Chunk]:
        trouble = self._story.trouble
        if trouble is not None and (trouble.is_final or is_late):
            yield from self.fail(trouble.code, trouble.text)


def _number_of(name: str) -> int | None:
    number = name.removeprefix(PREFIX)
    is_one = name.startswith(PREFIX) and number.isascii() and number.isdecimal()
    return int(number) if is_one and len(number) < _DIGITS else None


_DIGITS: Final = 10
_REASONS: Final[Mapping[Stop, str]] = {
    Stop.DONE: "stop",
    Stop.CALLS: "stop",
    Stop.LENGTH: "length",
    Stop.REFUSED: "content-filter",
    Stop.PAUSED: "other",
    Stop.CUT: "error",
    Stop.OTHER: "stop",
}
"""What the client calls the reasons for which an answer stopped."""

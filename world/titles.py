"""A chat's title, made once it is idle (W-70).

A model is asked, without tools, and its answer is cleaned; a poor one gives way to the first public
word of a person. It is an entry of the world's log under one id: whoever is killed in between asks
again, and the first entry stands. What a person calls a chat stays.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable
from typing import Final

from ..agent.messages import Prompt
from ..agent.speaking import Model, Question, listen
from ..models.errors import InvalidValue, TurnlockError
from ..models.safe_text import harmless
from ..runtime.journal.contract import Journal
from ..runtime.log import defects, logger
from ..runtime.scheduling import Tasks
from .configuration import Configuration
from .entries import ChatTitled, Message, Role, body_of
from .mentions import addressed, mentioned
from .names import WORLD, chat_log, title_entry, world_log
from .spec import TITLE_LENGTH
from .standing import entries_after

_log = logger(__name__)

TOKENS: Final = 20
"""Tokens that a title may have."""
MESSAGES: Final = 20
"""Messages of a chat, its first ones, that its title is made of."""
CHARACTERS: Final = 4_000
"""Characters of these, all together."""
LOOKED_AT: Final = 1_000
"""Entries of a chat among which a word of a person is looked for."""
INSTRUCTIONS: Final = (
    "Give the conversation below a title of two to six words, in its own language. Answer with the"
    " title alone: no quotes, no marks, no full stop."
)
POOR: Final = frozenset({
    "chat", "new chat", "untitled", "untitled chat", "conversation", "new conversation", "title",
    "no title", "none", "null", "n/a", "discussion", "general discussion", "topic", "summary",
})  # fmt: skip
"""Titles that say nothing, in lower case."""

_MARKS: Final = re.compile(r"""["`*#~<>\[\]{}|“”„«»]+|(?<!['\w])['_]+|['_]+(?!['\w])""")
"""What is no part of a title: ' and _ are, within a word."""
_TITLED: Final = re.compile(r"(?:chat\s+|conversation\s+)?title\s*[:\-–—]\s*", re.IGNORECASE)
_ADDRESS: Final = re.compile(r"(?<!\w)@[\w-]+[,:;]?")
_BLANKS: Final = re.compile(r"\s+")
_ENDS: Final = " .,;:-–—"


def cleaned(text: str) -> str:
    """Return a title without what is none: its first line, no marks, at most 100 characters."""
    line = next((bare for it in text.splitlines() if (bare := _bare(it))), "")
    while named := _TITLED.match(line):
        line = line[named.end() :]
    return harmless(_bare(line), limit=TITLE_LENGTH)


def _bare(line: str) -> str:
    return _BLANKS.sub(" ", _MARKS.sub("", line)).strip(_ENDS)


def is_poor(title: str) -> bool:
    """Whether a cleaned title says nothing."""
    letters = sum(character.isalnum() for character in title)
    return letters < 2 or title.lower() in POOR  # noqa: PLR2004 - one letter is no word


def first_words(messages: Iterable[Message]) -> str:
    """Return the first public word of a person as a title, else the first one; "" for none."""
    of_people = [it.text for it in messages if it.role is Role.PERSON]
    public = [it for it in of_people if not addressed(it) and not mentioned(it)]
    for text in (*public, *of_people):
        title = cleaned(_ADDRESS.sub("", text))
        if not is_poor(title):
            return title
    return ""


class Titles:
    """Gives chats titles, one at a time for each."""

    def __init__(  # noqa: PLR0913 - what it needs of its host
        self,
        journal: Journal,
        world: str,
        *,
        model: Model | None,
        known: Callable[[], Configuration],
        now: Callable[[], float],
        changed: Callable[[], None],
    ) -> None:
        """Begin with none. `changed` is told when one was given."""
        self._journal: Final = journal
        self._world: Final = world
        self._model: Final = model
        self._known: Final = known
        self._now: Final = now
        self._changed: Final = changed
        self._under_way: set[str] = set()
        self._done: set[str] = set()
        """Chats that have a title by now, though it may not be known yet."""
        self._tasks: Final = Tasks(failed=defects(__name__))

    def is_busy(self, chat: str) -> bool:
        """Whether a title of this chat is being made."""
        return chat in self._under_way

    def consider(self, chat: str) -> None:
        """Begin to make the title of a chat that is idle, unless it has one."""
        there = self._known().chats.get(chat)
        if there is None or there.closed or there.titled_by is not None:
            return
        if chat not in self._under_way and chat not in self._done:
            self._under_way.add(chat)
            self._tasks.spawn(f"title {chat}", self._made(chat))

    async def give(self, chat: str, *, again: bool = False) -> bool:
        """Make a title and enter it; False where nobody has said a word.

        With `again` it is another one. What a person has called the chat stays (W-70).
        """
        messages = await self._first_messages(chat)
        fallback = first_words(messages)
        title = await self._asked(chat, messages) if messages else ""
        title = fallback if is_poor(title) else title
        if not title:
            return False
        entry_id = title_entry(chat)
        if again:
            entry_id = f"{entry_id}/again/{self._known().number}"
        body = body_of(ChatTitled(chat=chat, title=title, by=WORLD))
        try:
            await self._journal.append_entry(world_log(self._world), entry_id, body, at=self._now())
        except InvalidValue:
            if await self._journal.find_entry(world_log(self._world), entry_id) is None:
                raise
        return True

    async def close(self) -> None:
        """Make no more."""
        await self._tasks.cancel()

    async def _made(self, chat: str) -> None:
        try:
            if await self.give(chat):
                self._done.add(chat)
        except TurnlockError as error:
            _log.warning("chat %s/%s has no title yet: %s", self._world, chat, error)
        finally:
            self._under_way.discard(chat)
            self._changed()

    async def _first_messages(self, chat: str) -> list[Message]:
        messages: list[Message] = []
        async for it in entries_after(self._journal, chat_log(self._world, chat), 0):
            if isinstance(it.said, Message):
                messages.append(it.said)
            if it.number >= LOOKED_AT:
                break
        return messages

    async def _asked(self, chat: str, messages: list[Message]) -> str:
        """Return what the model calls it; nothing where there is none, or it fails."""
        if self._model is None:
            return ""
        text = "\n".join(f"{it.sender}: {it.text}" for it in messages[:MESSAGES])[:CHARACTERS]
        question = Question((Prompt(text=text),), instructions=INSTRUCTIONS, limit=TOKENS)
        try:
            ended = await listen(self._model, question)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - a title is worth no member's failure
            why = harmless(str(error), limit=300)
            _log.warning("no model gave chat %s/%s a title: %s", self._world, chat, why)
            return ""
        return cleaned(ended.answer.text or "")

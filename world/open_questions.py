"""The questions of one chat that wait for a reply: a fold of its log, read as far as it was.

Only what was asked and replied to as it must be counts: a question's id is that of its call, the
id of a reply is that of its question, so the first reply stands (W-67). Whatever else another
program has put there is passed over, and logged.
"""

from __future__ import annotations

import asyncio
from typing import Final

from ..models.errors import InvalidValue
from ..runtime.errors import CorruptLog
from ..runtime.journal.contract import Entry, Journal
from ..runtime.log import logger
from .entries import Question, Reply, read_entry
from .names import REPLY, chat_of, member_of, question_at, question_id, reply_id

_log = logger(__name__)


class OpenQuestions:
    """What one chat's log says of questions, up to the number `after`."""

    def __init__(self, log: str) -> None:
        """Begin before its first entry."""
        if chat_of(log) is None:
            raise AssertionError(log)
        self.log: Final = log
        self.after = 0
        self.open: Final[dict[str, str]] = {}
        """The run that asks, by the question's id."""
        self._reading: Final = asyncio.Lock()

    async def read(self, journal: Journal) -> list[Entry]:
        """Read on to the end, and return the replies that came.

        Raises what the journal raises; a damaged entry is passed over.
        """
        replies: list[Entry] = []
        async with self._reading:
            while True:
                try:
                    page = await journal.entries(self.log, after=self.after)
                except CorruptLog as error:
                    if error.number <= self.after:
                        raise
                    _log.warning("%s", error)
                    self.after = error.number
                    continue
                if not page:
                    return replies
                for entry in page:
                    if self._heard(entry):
                        replies.append(entry)
                    self.after = entry.number

    def _heard(self, entry: Entry) -> bool:
        """Fold an entry; return whether it is the reply to a question."""
        question = replied_to(entry)
        if question is not None:
            self.open.pop(question, None)
            return True
        try:
            said = read_entry(entry, log=self.log)
        except InvalidValue as error:
            _log.warning("%s", error)
            return False
        if isinstance(said, Question) and not self._is_asked(entry.entry_id, said):
            _log.warning("log %s, entry %d: its id is no question's", self.log, entry.number)
        elif isinstance(said, Question):
            self.open[entry.entry_id] = said.run
        elif isinstance(said, Reply):
            _log.warning("log %s, entry %d: its id is no reply's", self.log, entry.number)
        return False

    def _is_asked(self, entry_id: str, said: Question) -> bool:
        """Whether an entry has the id of what it says, and a member of this chat asks."""
        member = member_of(said.run)
        try:
            number = question_at(entry_id).number
        except InvalidValue:
            return False
        asked = question_id(said.run, said.turn, said.invocation, said.attempt, number)
        return entry_id == asked and member is not None and member.log == self.log


def replied_to(entry: Entry) -> str | None:
    """Return the question that an entry's id is the reply to; None for any other entry.

    Whatever it says: the id is taken, so no other reply can come.
    """
    try:
        (kind, *_), _ = entry.entry_id.split("/"), question_at(entry.entry_id, REPLY)
    except InvalidValue:
        return None
    question = "question" + entry.entry_id.removeprefix(kind)
    return question if reply_id(question) == entry.entry_id else None

"""The two ways that are not allowed (W-33): a suite that lets them pass is none."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from itertools import count
from typing import Any
from unittest import mock

from turnlock.agent.conversation import Conversation
from turnlock.runtime.journal.ledger import Domain, Note
from turnlock.world import member, standing
from turnlock.world.member import Member

CURSOR = "cursor/"


@contextmanager
def cursor_in_a_second_write() -> Generator[None]:
    """How far the chat was heard stands in a note of its own, kept after the prompt."""
    fresh = count()

    def cursor_of(conversation: Conversation, *, begins: int = 0) -> int:
        names = (note.id or "" for note in conversation.beside)
        kept = (int(it.removeprefix(CURSOR)) for it in names if it.startswith(CURSOR))
        passed = standing.last_passed(conversation)
        return max(begins, passed.heard.number if passed else 0, *kept)

    async def hear(self: Member, waiting: Any, config: Any) -> None:
        del config
        heard = {**waiting.heard.as_json(), "fresh": next(fresh)}
        await self.agent.say(member._line(waiting.message), heard=heard)
        name = f"{CURSOR}{waiting.entry.number}"
        runtime = self._means.runtime
        note = Note(
            domain=Domain.MESSAGE, kind="cursor", body={"id": name}, at=runtime.now(), id=name
        )
        await runtime.note(self.name.run_id, note)
        self.agent.conversation.beside.append(note)

    with (
        mock.patch.object(standing, "cursor_of", cursor_of),
        mock.patch.object(member, "cursor_of", cursor_of),
        mock.patch.object(Member, "_hear", hear),
    ):
        yield


@contextmanager
def ids_made_when_publishing() -> Generator[None]:
    """An answer's entry has an id that is made when it is appended, another one each time."""
    fresh = count(1)
    append = Member._append

    async def publishes(self: Member, due: standing.Publication) -> None:
        entry_id = f"{due.entry_id}.{next(fresh)}"
        await append(self, standing.Publication(entry_id, due.entry))

    with mock.patch.object(Member, "_append", publishes):
        yield

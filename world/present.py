"""Who is a member of a world now, found without counting anew: most entries of it change nobody."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from .configuration import Configuration
from .names import MemberName


class Present:
    """The members of the chats that are performed here, by chat and by run."""

    def __init__(self, world: str, chats: tuple[str, ...] | None) -> None:
        """Begin with nobody; `chats` are those that are performed, None: all."""
        self._known = Configuration(world=world)
        self._chats: Final = chats
        self._by_chat: dict[str, dict[str, MemberName]] = {}
        self._by_run: dict[str, MemberName] = {}

    def take(self, known: Configuration) -> None:
        """Learn what the world is now."""
        before, self._known = self._known, known
        if before is known or (before.present == known.present and before.over == known.over):
            return
        self._by_chat = {
            chat: {it.run_id: it for it in known.members(chat)}
            for chat in known.present
            if self._chats is None or chat in self._chats
        }
        self._by_run = {
            run_id: it for members in self._by_chat.values() for run_id, it in members.items()
        }

    def of(self, chat: str) -> dict[str, MemberName]:
        """Return the members of a chat, by their runs."""
        return self._by_chat.get(chat, {})

    def __contains__(self, run_id: str) -> bool:
        """Whether this is the run of a member now."""
        return run_id in self._by_run

    def __iter__(self) -> Iterator[MemberName]:
        """Iterate over all members."""
        return iter(tuple(self._by_run.values()))

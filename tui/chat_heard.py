"""What a console hears of a chat, from a journal or a server alike, and how chats are listed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import attrs

from .heard import Live, Off


@attrs.frozen
class Came:
    """Something of the chat's stream: an entry, a projection, a transient, as on the wire."""

    message: Mapping[str, Any]


ChatHeard: TypeAlias = Came | Live | Off


@attrs.frozen(kw_only=True)
class ListedChat:
    """One chat of one world; without a chat, a world that has none yet."""

    world: str
    world_title: str = ""
    chat: str | None = None
    title: str = ""
    members: tuple[str, ...] = ()
    """Its agents."""
    closed: bool = False

    @property
    def below(self) -> str:
        """What the runs of its members begin with."""
        return f"{self.world}/{self.chat}/"


@attrs.frozen(kw_only=True)
class Replied:
    """What came of something that was said or replied.

    `accepted` is None where nobody has answered: it may have been kept.
    """

    accepted: bool | None
    detail: str = ""
    """Why not, or who was first, for people."""

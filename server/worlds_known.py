"""Which worlds and chats there are, who may speak there, and whose runs are theirs (W-3, W-10)."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

from ..adapters.contract import CommandRefused
from ..models.errors import InvalidValue, shown
from ..models.reasons import Reason
from ..models.run import Run
from ..models.safe_text import harmless
from ..runtime.errors import CorruptLog
from ..runtime.journal.contract import Journal
from ..runtime.log import logger
from ..world.chat import Chat
from ..world.configuration import ChatConfig, Configuration
from ..world.errors import UnknownChat, UnknownWorld
from ..world.names import KIND, check_id, member_of
from ..world.people import check_person
from ..world.publishing import World
from .answers import refused
from .problems import Problem

if TYPE_CHECKING:  # who stands on this module
    from .face import Face
    from .routing import Who

_log = logger(__name__)

WORLDS: Final = 256
"""Worlds whose configurations are held, so that a request reads what is new of them."""


class Worlds:
    """The worlds of a journal that were asked for last."""

    def __init__(self, journal: Journal) -> None:
        """Hold none yet."""
        self._journal = journal
        self._held: OrderedDict[str, World] = OrderedDict()
        self._reading: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def known(self, name: str) -> tuple[World, Configuration]:
        """Return a world, and what it is now. Raises `UnknownWorld`."""
        held = self._held.get(name)
        if held is None:  # of many who ask at once, one folds it
            if not is_id(name):
                raise UnknownWorld(name)
            async with self._reading.setdefault(name, asyncio.Lock()):
                held = self._held.get(name) or World(self._journal, name)
                configuration = await held.configuration()
                self._hold(name, held)
                return held, configuration
        self._hold(name, held)
        return held, await held.configuration()

    async def all(self) -> list[tuple[World, Configuration]]:
        """Return the worlds that are there, by name; one that cannot be read is left out."""
        found: list[tuple[World, Configuration]] = []
        for log in await self._journal.logs():
            if is_id(log.name):
                try:
                    found.append(await self.known(log.name))
                except UnknownWorld:
                    continue
                except (InvalidValue, CorruptLog) as error:
                    _log.warning("world %s is not listed: %s", log.name, harmless(str(error)))
        return found

    def _hold(self, name: str, world: World) -> None:
        self._held[name] = world
        self._held.move_to_end(name)
        while len(self._held) > WORLDS:
            self._held.popitem(last=False)


async def chat_in(face: Face, ids: Mapping[str, str]) -> tuple[Chat, Configuration, ChatConfig]:
    """Return a chat, its world as it is now, and the chat as it is.

    Raises `UnknownWorld` and `UnknownChat`.
    """
    world, configuration = await face.worlds.known(ids["world"])
    chat = configuration.chats.get(ids["chat"])
    if chat is None:
        raise UnknownChat(world.name, ids["chat"])
    return world.chat(ids["chat"]), configuration, chat


async def chat_of(face: Face, ids: Mapping[str, str]) -> Chat:
    """Return a chat. Raises `UnknownWorld` and `UnknownChat`."""
    return (await chat_in(face, ids))[0]


def check_speaker(who: Who, configuration: Configuration) -> None:
    """Raise `Problem` (`forbidden`) for a token that is named like somebody else (W-10).

    What it says would be taken for an agent's words, or its decision for nobody's.
    """
    try:
        check_person(who.name, configuration, place="sender")
    except InvalidValue as error:
        raise Problem(
            "forbidden",
            f"a token that is called {harmless(who.name)!r} neither speaks nor decides in this"
            f" world: {error.cause}; ask for a token with another name",
        ) from None


async def check_decides(face: Face, run: Run, who: Who, *, approves: bool) -> None:
    """Raise `Problem` for a decision that nobody makes in a chat either: a member's run is one.

    It is by no agent (W-10), and what is over is not approved any more: its turn is to be
    interrupted before anything else of that run.
    """
    member = member_of(run.run_id) if run.kind == KIND else None
    if member is None:
        return
    try:
        _, configuration = await face.worlds.known(member.world)
    except UnknownWorld:
        return  # a run of that name alone
    check_speaker(who, configuration)
    if approves and not configuration.is_present(member):
        raise refused({"accepted": False, "reason": Reason.NO_ACTIVE_TURN.value, "facts": []})


async def check_no_member(journal: Journal, run_id: str) -> None:
    """Raise `CommandRefused` for an id at or below a world's name: its hosts make those (W-3)."""
    name = run_id.partition("/")[0]
    if is_id(name) and await World(journal, name).exists():
        raise CommandRefused(
            "invalid_value",
            f"{shown(run_id)} is in the world {name!r}, whose runs are those of its members: give"
            " another id, or say something in one of its chats",
            at="run_id",
        )


def is_id(name: str) -> bool:
    """Say whether a world or a chat can have this name."""
    try:
        check_id(name, place="world")
    except InvalidValue:
        return False
    return True

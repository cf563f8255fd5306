"""The chats of a journal or of a server, behind one interface: followed, spoken in, replied in.

Nothing is performed here. What is said is an entry, whoever performs the world; calls are decided
about by their runs, as everywhere in the console.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any, Final, Protocol, cast

import attrs

from ..models.errors import InvalidValue, TurnlockError
from ..models.safe_text import harmless
from ..models.values import Json
from ..runtime.errors import LASTING, CorruptLog
from ..runtime.journal.contract import Journal, open_journal
from ..runtime.submitting import Unanswered
from ..server.chats_client import ChatsClient
from ..server.problems import Problem
from ..server.received import Told, Unreachable
from ..world.chat import Chat
from ..world.errors import UnknownChat, UnknownWorld
from ..world.publishing import World, worlds
from ..world.replying import Replied as Reply
from .chat_heard import Came, ChatHeard, ListedChat, Replied
from .heard import Answered, Live, Off

RETRY: Final = 1.0
"""Seconds after which what failed is tried again."""
_FAILED: Final = 500
"""The first status of a server that does not know what happened."""


class Chats(Protocol):
    """Where a console looks for chats."""

    async def listed(self) -> tuple[ListedChat, ...]:
        """Return all chats, by world. Raises `TurnlockError`."""
        ...

    def follow(self, world: str, chat: str) -> AsyncGenerator[ChatHeard]:
        """Iterate over what happens in a chat: from its beginning, for ever."""
        ...

    async def say(self, world: str, chat: str, text: str, *, message_id: str) -> Replied:
        """Say something. Whatever happens is an answer."""
        ...

    async def reply(
        self, world: str, chat: str, question_id: str, content: Mapping[str, Json] | None
    ) -> Replied:
        """Reply to a question; without a content it is declined. Whatever happens is an answer."""
        ...

    async def interrupt(self, world: str, chat: str, agent: str) -> Answered:
        """Stop what a member does. Whatever happens is an answer."""
        ...


class JournalChats:
    """The chats of a journal, which is looked into as others write it."""

    def __init__(
        self,
        db: str,
        *,
        who: str,
        opened: Callable[[], Awaitable[Journal]],
        let_go: Callable[[], Awaitable[None]],
    ) -> None:
        """Look by `opened`, a journal that is only read; `who` speaks."""
        self._db: Final = db
        self._who: Final = who
        self._opened: Final = opened
        self._let_go: Final = let_go

    async def listed(self) -> tuple[ListedChat, ...]:
        """Return the chats, as the worlds' logs tell them."""
        found: list[ListedChat] = []
        for world in await worlds(await self._opened()):
            try:
                known = await world.configuration()
            except (InvalidValue, CorruptLog):  # one world is in no other's way
                found.append(ListedChat(world=world.name, world_title="cannot be read"))
                continue
            empty = ListedChat(world=world.name, world_title=known.title)
            chats = [
                attrs.evolve(
                    empty,
                    chat=name,
                    title=it.title,
                    members=tuple(member.agent for member in known.members(name)),
                    closed=it.closed,
                )
                for name, it in known.chats.items()
            ]
            found += chats or [empty]
        return tuple(found)

    async def follow(self, world: str, chat: str) -> AsyncGenerator[ChatHeard]:
        """Iterate over what the journal holds, then over what comes to it."""
        after = ""
        while True:
            try:
                it = World(await self._opened(), world).chat(chat)
                for follow in (False, True):
                    async with it.events(after, follow=follow) as events:
                        async for event in events:
                            told = event.as_json()
                            after = told.get("cursor") or after
                            if told["type"] != "live":
                                yield Came(told)
                    yield Live()
            except (UnknownWorld, UnknownChat, InvalidValue, *LASTING) as error:
                yield Off(str(error), lasting=True)
                return
            except TurnlockError as error:
                yield Off(str(error))
                await self._let_go()
            await asyncio.sleep(RETRY)

    async def say(self, world: str, chat: str, text: str, *, message_id: str) -> Replied:
        """Append it to the chat's log."""

        async def said(it: Chat) -> Replied:
            await it.say(self._who, text, message_id=message_id)
            return Replied(accepted=True)

        return await self._done(world, chat, said)

    async def reply(
        self, world: str, chat: str, question_id: str, content: Mapping[str, Json] | None
    ) -> Replied:
        """Append it to the chat's log, unless there is one."""

        async def replied(it: Chat) -> Replied:
            declines = content is None
            got = await it.reply(question_id, accept=content, decline=declines, by=self._who)
            return Replied(accepted=got.new, detail=_first(got))

        return await self._done(world, chat, replied)

    async def interrupt(self, world: str, chat: str, agent: str) -> Answered:
        """Have it judged by whoever performs the member, or here where nobody does."""
        try:
            async with await open_journal(self._db, create=False) as journal:
                judged = await World(journal, world).chat(chat).interrupt(agent, by=self._who)
        except Unanswered as error:
            return Answered(accepted=None, detail=str(error))
        except TurnlockError as error:
            return Answered(accepted=False, detail=str(error))
        reason = None if judged.reason is None else str(judged.reason)
        return Answered(accepted=judged.accepted, reason=reason)

    async def _done(
        self, world: str, chat: str, act: Callable[[Chat], Awaitable[Replied]]
    ) -> Replied:
        try:
            async with await open_journal(self._db, create=False) as journal:
                return await act(World(journal, world).chat(chat))
        except TurnlockError as error:
            return Replied(accepted=False, detail=str(error))


class ServerChats:
    """The chats of a server, asked as the holder of a token."""

    def __init__(self, client: ChatsClient) -> None:
        """Ask by this client."""
        self._client: Final = client

    async def listed(self) -> tuple[ListedChat, ...]:
        """Return the chats, as the server tells them."""
        try:
            return tuple(it for told in await self._client.worlds() for it in _chats_of(told))
        except Problem as problem:
            raise TurnlockError(str(problem)) from problem

    async def follow(self, world: str, chat: str) -> AsyncGenerator[ChatHeard]:
        """Follow the stream of a chat, from connection to connection."""
        try:
            async with aclosing(self._client.follow(world, chat)) as events:
                async for event in events:
                    match event.name:
                        case "off":
                            yield Off(str(event.data.get("why")))
                        case "live":
                            yield Live()
                        case "entry" | "projection" | "transient":
                            yield Came(event.data)
                        case _:
                            pass
        except Problem as problem:
            yield Off(str(problem), lasting=True)
        except TurnlockError as error:
            yield Off(str(error), lasting=True)

    async def say(self, world: str, chat: str, text: str, *, message_id: str) -> Replied:
        """Ask the server to enter it."""
        return await _answered(self._client.say(world, chat, text, message_id=message_id))

    async def reply(
        self, world: str, chat: str, question_id: str, content: Mapping[str, Json] | None
    ) -> Replied:
        """Ask the server to enter it."""
        action = "decline" if content is None else "accept"
        return await _answered(self._client.reply(world, chat, question_id, action, content))

    async def interrupt(self, world: str, chat: str, agent: str) -> Answered:
        """Ask the server to have it judged."""
        try:
            answer = await self._client.interrupt(world, chat, agent)
        except Unreachable as error:
            return Answered(accepted=None, detail=str(error))
        except Problem as problem:
            unknown = problem.status >= _FAILED
            return Answered(accepted=None if unknown else False, detail=str(problem))
        return Answered(accepted=answer.accepted, reason=answer.reason)


async def _answered(asking: Awaitable[Told]) -> Replied:
    try:
        await asking
    except Unreachable as error:
        return Replied(accepted=None, detail=str(error))
    except Problem as problem:
        unknown = problem.status >= _FAILED
        return Replied(accepted=None if unknown else False, detail=str(problem))
    return Replied(accepted=True)


def _first(reply: Reply) -> str:
    """Say who was first, where a reply was not."""
    if reply.new:
        return ""
    return f"{harmless(reply.reply.by, limit=80)} has replied first: {reply.reply.action}"


def _chats_of(told: Told) -> tuple[ListedChat, ...]:
    """Return the chats of a world as a server tells it."""
    agents = tuple(_text(it, "agent") for it in _tables(told, "agents"))
    empty = ListedChat(world=_text(told, "world"), world_title=_text(told, "title"))
    chats = tuple(
        attrs.evolve(
            empty,
            chat=_text(it, "chat"),
            title=_text(it, "title"),
            members=() if it.get("closed") else _members(it, agents),
            closed=it.get("closed") is True,
        )
        for it in _tables(told, "chats")
    )
    return chats or (empty,)


def _members(told: Told, agents: tuple[str, ...]) -> tuple[str, ...]:
    """Return the members of a chat; one that names none has all agents of its world."""
    named: Any = told.get("members")
    return agents if named is None else tuple(it for it in agents if it in named)


def _tables(told: Told, name: str) -> list[Told]:
    found: Any = told.get(name)
    return cast("list[Told]", found) if isinstance(found, list) else []


def _text(told: Told, name: str) -> str:
    return str(told.get(name) or "")

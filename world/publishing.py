"""A world, from any process: what it is, its agents and its chats (W-10, W-13).

    world = World(journal, "demo")
    await world.make(title="Demo")
    await world.put_agent("alice", AgentSpec(model="openai:NAME"))
    chat = await world.open_chat("plan", members=("alice",))

Nobody owns a world: entries of its log say what it is. Each has an id that counts what was entered
of the same thing, so that of two processes that do something at once one is first, and the other
looks again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final

import attrs

from ..models.errors import InvalidValue, TurnlockError
from ..models.ids import escape
from ..models.values import Json, same_json
from ..runtime.errors import CorruptLog
from ..runtime.journal.contract import Entry, Journal
from ..runtime.scheduling import Clock, SteadyClock
from .chat import Chat
from .configuration import AgentConfig, Configuration
from .entries import (
    AgentPut,
    AgentRemoved,
    ChatClosed,
    ChatOpened,
    ChatTitled,
    MemoryCleared,
    SettingPut,
    WorldEntry,
    WorldMade,
    body_of,
    read_world_entry,
)
from .errors import UnknownAgent, UnknownChat, UnknownWorld
from .names import check_agent, check_id, world_log
from .people import check_person
from .spec import AgentSpec

__all__ = ["Chat", "World", "worlds"]

PAGE: Final = 200
"""Entries of a world's log that are read at once."""
TRIES: Final = 100
"""How often an entry is tried where others are quicker, again and again."""

MADE: Final = "made"
"""The id of the entry that makes a world: there is one."""


@attrs.frozen
class _Known:
    """A world as far as its log was read."""

    configuration: Configuration
    counts: Counter[str] = attrs.field(factory=Counter[str])
    """Entries of the log, by what their ids begin with."""

    def after(self, page: Iterable[Entry]) -> _Known:
        counts = self.counts.copy()
        counts.update(entry.entry_id.rpartition("/")[0] for entry in page)
        return _Known(self.configuration.after(page), counts)


Choose = Callable[[Configuration], Awaitable[WorldEntry | None]]
"""Says what is to be entered into a world as it is; None: it is so already."""


class World:
    """A world in a journal. Each method may be called from any process, and again."""

    def __init__(self, journal: Journal, name: str, *, clock: Clock | None = None) -> None:
        """Name a world, which need not be there yet. Raises `InvalidValue` for no id."""
        self.journal: Final = journal
        self.name: Final = check_id(name, place="world")
        self.log: Final = world_log(name)
        self._clock: Final[Clock] = clock or journal.clock or SteadyClock()
        self._known = _Known(Configuration(world=self.name))

    def now(self) -> float:
        """Return the Unix time by which entries are stamped here."""
        return self._clock.now()

    async def configuration(self) -> Configuration:
        """Return what the world is now. Raises `UnknownWorld` where nobody has made it."""
        known = await self._caught_up()
        if not known.configuration.made:
            raise UnknownWorld(self.name)
        return known.configuration

    async def exists(self) -> bool:
        """Whether somebody has made it."""
        return (await self._caught_up()).configuration.made

    async def make(self, *, title: str = "", settings: Mapping[str, Json] | None = None) -> None:
        """Make the world; again, with the same title and settings, it changes nothing.

        Raises `InvalidValue` where it was made with others.
        """
        body = body_of(WorldMade(title=title, settings=settings or {}))
        try:
            await self.journal.append_entry(self.log, MADE, body, at=self.now())
        except InvalidValue as error:
            if not await self.exists():
                raise
            if await self._was_made(title, settings or {}):
                return
            raise InvalidValue(
                place=f"world {self.name}",
                cause="is made already, with another title or other settings",
                fix="put its settings one by one, or take another name",
            ) from error

    async def _was_made(self, title: str, settings: Mapping[str, Json]) -> bool:
        """Whether an import has made it so: its entry says more than ours (W-72)."""
        entry = await self.journal.find_entry(self.log, MADE)
        said = None if entry is None else read_world_entry(entry, log=self.log)
        if not isinstance(said, WorldMade):
            return False
        return said.title == title and same_json(said.settings, settings)

    async def put_agent(self, agent: str, spec: AgentSpec) -> AgentConfig:
        """Have an agent be there, or be another from now on; a new one hears what is said next.

        Raises `InvalidValue` for no id of an agent, and for an output that is no JSON Schema.
        """
        check_agent(agent, place="agent")
        spec.check()

        async def choose(known: Configuration) -> AgentPut | None:
            there = known.agents.get(agent)
            if there is not None:
                same = same_json(there.spec.as_json(), spec.as_json())
                return None if same else AgentPut(agent=agent, spec=spec)
            chats = [
                name
                for name, chat in known.chats.items()
                if not chat.closed and (chat.members is None or agent in chat.members)
            ]
            return AgentPut(agent=agent, spec=spec, begins=await self._ends_of(chats))

        return (await self._enter(f"agent/{agent}", choose)).agents[agent]

    async def remove_agent(self, agent: str) -> None:
        """Have an agent leave every chat; one that has left stays away. Raises `UnknownAgent`."""

        async def choose(known: Configuration) -> AgentRemoved | None:
            if agent not in known.puts:
                raise UnknownAgent(f"world {self.name}", agent)
            return AgentRemoved(agent=agent) if agent in known.agents else None

        await self._enter(f"agent/{agent}", choose)

    async def open_chat(self, chat: str, *, members: Iterable[str] | None = None) -> Chat:
        """Open a chat of these agents, or of all of the world, as they come and go.

        One that is there gets other members if they are given, and goes on if it was closed. Who is
        a member from now on hears what is said from now on. Raises `UnknownAgent`.
        """
        named = None if members is None else tuple(members)

        async def choose(known: Configuration) -> ChatOpened | None:
            there = known.chats.get(chat)
            self._check_members(named or (), known)
            now = named if there is None or named is not None else there.members
            if there is not None and not there.closed and _same(now, there.members):
                return None
            begins = (await self._ends_of([chat])).get(chat, 0)
            return ChatOpened(chat=chat, members=now, begins=begins)

        check_id(chat, place="chat")
        await self._enter(f"chat/{chat}", choose)
        return self.chat(chat)

    async def close_chat(self, chat: str) -> None:
        """End a chat: its members leave it, and nothing more is said. Raises `UnknownChat`."""

        async def choose(known: Configuration) -> ChatClosed | None:
            there = known.chats.get(chat)
            if there is None:
                raise UnknownChat(self.name, chat)
            return None if there.closed else ChatClosed(chat=chat)

        await self._enter(f"chat/{chat}", choose)

    async def title(self, chat: str, title: str, *, by: str) -> None:
        """Give a chat a title, as a person; it stays until a person gives another (W-70)."""

        async def choose(known: Configuration) -> ChatTitled | None:
            there = known.chats.get(chat)
            if there is None:
                raise UnknownChat(self.name, chat)
            check_person(by, known, place="by")
            same = there.title == title and there.titled_by_person
            return None if same else ChatTitled(chat=chat, title=title, by=by)

        await self._enter(f"title/{chat}", choose)

    async def clear(self, chat: str, agent: str) -> None:
        """Have a member of a chat forget: it goes on as another run, and hears what is said next.

        Who asks while somebody else does the same has it cleared once. Raises `UnknownChat` and
        `UnknownAgent`.
        """
        subject = f"memory/{chat}/{agent}"
        before = (await self._caught_up()).counts[subject]

        async def choose(known: Configuration) -> MemoryCleared | None:
            if chat not in known.chats:
                raise UnknownChat(self.name, chat)
            if known.member(chat, agent) is None:
                raise UnknownAgent(f"chat {self.name}/{chat}", agent, chat=chat)
            if self._known.counts[subject] > before:
                return None
            begins = (await self._ends_of([chat])).get(chat, 0)
            return MemoryCleared(chat=chat, agent=agent, begins=begins)

        await self._enter(subject, choose)

    async def set(self, name: str, value: Json) -> None:
        """Give a setting of the world a value; None takes it away."""

        async def choose(known: Configuration) -> SettingPut | None:
            put = SettingPut(name=name, value=value)
            return None if same_json(known.settings.get(name), put.value) else put

        await self._enter(f"setting/{escape(name)}", choose)

    def chat(self, name: str) -> Chat:
        """Return a chat of the world, which need not be there. Raises `InvalidValue` for no id."""
        return Chat(self, check_id(name, place="chat"))

    async def chats(self) -> tuple[Chat, ...]:
        """Return all chats that were ever opened, in that order."""
        return tuple(map(self.chat, (await self.configuration()).chats))

    def _check_members(self, members: Iterable[str], known: Configuration) -> None:
        for agent in members:
            if agent not in known.agents:
                raise UnknownAgent(f"world {self.name}", agent)

    async def _ends_of(self, chats: Iterable[str]) -> dict[str, int]:
        """Return the numbers of the last entries of chats; those where nothing was said miss."""
        logs = await self.journal.logs(f"{self.log}/")
        last = {entry.name: entry.last for entry in logs}
        ends = {chat: last.get(self.chat(chat).log, 0) for chat in chats}
        return {chat: end for chat, end in ends.items() if end}

    async def _enter(self, subject: str, choose: Choose) -> Configuration:
        """Enter what is chosen by how the world is, and return how it is then."""
        for _ in range(TRIES):
            known = await self._made()
            entry = await choose(known.configuration)
            if entry is None:
                return known.configuration
            number = known.counts[subject] + 1
            body = body_of(entry)
            try:
                await self.journal.append_entry(
                    self.log, f"{subject}/{number}", body, at=self.now()
                )
            except InvalidValue:
                if (await self._caught_up()).counts[subject] < number:
                    raise  # nobody else was quicker
            else:
                return (await self._caught_up()).configuration
        raise TurnlockError(
            f"world {self.name!r}: others were quicker {TRIES} times ({subject}); try again"
        )

    async def _made(self) -> _Known:
        await self.configuration()
        return self._known

    async def _caught_up(self) -> _Known:
        """Read what was entered meanwhile."""
        known = self._known
        while True:
            number = known.configuration.number
            page = await self.journal.entries(self.log, after=number, limit=PAGE)
            if not page:
                break
            known = known.after(page)
        if known.configuration.number > self._known.configuration.number:
            self._known = known
        return self._known


def _same(one: tuple[str, ...] | None, other: tuple[str, ...] | None) -> bool:
    if one is None or other is None:
        return one is other
    return {*one} == {*other}


async def worlds(journal: Journal) -> tuple[World, ...]:
    """Return the worlds of a journal, by name; one whose log cannot be read is there, too."""
    names = [log.name for log in await journal.logs() if "/" not in log.name]
    found = [World(journal, name) for name in names if _is_world(name)]
    return tuple([world for world in found if await _is_there(world)])


async def _is_there(world: World) -> bool:
    try:
        return await world.exists()
    except (InvalidValue, CorruptLog):
        return True


def _is_world(name: str) -> bool:
    try:
        check_id(name, place="world")
    except InvalidValue:
        return False
    return True

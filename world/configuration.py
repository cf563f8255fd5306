"""What a world is: the fold of its log (W-2, W-13).

It says who is a member of what, under which run, and from where in the chat it hears. An agent
that was removed and put again, one whose memory was cleared and one whose chat was closed go on as
another run; the runs before it are to be brought to rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import attrs

from ..models.errors import InvalidValue
from ..models.values import Json
from ..runtime.journal.contract import Entry
from .entries import (
    AgentPut,
    AgentRemoved,
    ChatClosed,
    ChatOpened,
    ChatTitled,
    MemoryCleared,
    SettingPut,
    WorldMade,
    read_world_entry,
)
from .names import WORLD, MemberName, world_log
from .spec import AgentSpec


@attrs.frozen(kw_only=True)
class AgentConfig:
    """An agent as it is now."""

    spec: AgentSpec
    entry: int
    """The entry of the world's log that this spec is (W-34)."""
    put: int
    """How often it was put after it was not there, from 1."""


@attrs.frozen(kw_only=True)
class ChatConfig:
    """A chat as it is now."""

    title: str = ""
    titled_by: str | None = None
    """Who gave the title; None: it has none."""
    members: tuple[str, ...] | None = None
    """Those that it names; None: all agents."""
    closed: bool = False

    @property
    def titled_by_person(self) -> bool:
        """Whether a person gave its title, which then stays (W-70)."""
        return self.titled_by is not None and self.titled_by != WORLD


@attrs.frozen(kw_only=True)
class Configuration:
    """A world after `number` entries of its log."""

    world: str
    number: int = 0
    """The number of the last entry that was taken."""
    begun: bool = False
    """Whether an entry has made it."""
    until: int = 0
    """The last entry of its import: before that one is kept it is not there (W-72)."""
    title: str = ""
    settings: Mapping[str, Json] = attrs.field(factory=dict[str, Json])
    agents: Mapping[str, AgentConfig] = attrs.field(factory=dict[str, AgentConfig])
    """Those that are there, in the order in which they came."""
    chats: Mapping[str, ChatConfig] = attrs.field(factory=dict[str, ChatConfig])
    """All that were ever opened, in that order."""
    puts: Mapping[str, int] = attrs.field(factory=dict[str, int])
    """By agent: how often it was put after it was not there."""
    present: Mapping[str, Mapping[str, int]] = attrs.field(factory=dict[str, Mapping[str, int]])
    """By chat, then by agent: after which entry the member that is there now begins to hear."""
    over: Mapping[tuple[str, str], int] = attrs.field(factory=dict[tuple[str, str], int])
    """By chat and agent: how many runs of it are over."""

    @classmethod
    def of(cls, world: str, entries: Iterable[Entry] = ()) -> Configuration:
        """Return the configuration of a world after these entries, the first ones of its log."""
        return cls(world=world).after(entries)

    def after(self, entries: Iterable[Entry]) -> Configuration:
        """Return the configuration after these entries, the next ones of the log.

        Raises `InvalidValue` that names log and number, for an entry that is not the next one, and
        for a body of a known kind that is not as it must be.
        """
        fold = _Fold(self)
        for entry in entries:
            fold.take(entry)
        return fold.outcome() if fold.number > self.number else self

    @property
    def log(self) -> str:
        """The name of the world's log."""
        return world_log(self.world)

    @property
    def made(self) -> bool:
        """Whether the world is there."""
        return self.begun and self.number >= self.until

    def members(self, chat: str) -> tuple[MemberName, ...]:
        """Return who is in a chat, under their present runs; nobody where it is closed."""
        return tuple(self._member(chat, agent) for agent in self.present.get(chat, ()))

    def all_members(self) -> Iterator[MemberName]:
        """Yield who is in any chat, under their present runs."""
        for chat in self.present:
            yield from self.members(chat)

    def member(self, chat: str, agent: str) -> MemberName | None:
        """Return one member of a chat, under its present run; None where it is none."""
        return self._member(chat, agent) if agent in self.present.get(chat, ()) else None

    def is_present(self, member: MemberName) -> bool:
        """Whether this is a member now, and not one of before."""
        return member.world == self.world and self.member(member.chat, member.agent) == member

    def begins_at(self, member: MemberName) -> int:
        """Return the number after which a member hears what is said in its chat.

        Raises `InvalidValue` for one that is not there now.
        """
        if not self.is_present(member):
            raise InvalidValue(
                place="member",
                cause=f"{member.run_id} is no member now",
                fix="ask for one of members(chat)",
            )
        return self.present[member.chat][member.agent]

    def ended(self) -> tuple[MemberName, ...]:
        """Return the runs that are over: turns interrupted, grants revoked, before all else."""
        return tuple(
            MemberName(world=self.world, chat=chat, agent=agent, nth=nth)
            for (chat, agent), over in self.over.items()
            for nth in range(1, over + 1)
        )

    def _member(self, chat: str, agent: str) -> MemberName:
        nth = self.over.get((chat, agent), 0) + 1
        return MemberName(world=self.world, chat=chat, agent=agent, nth=nth)


class _Fold:
    """The parts of a configuration while entries are taken into them."""

    def __init__(self, before: Configuration) -> None:
        self._before: Final = before
        self.number = before.number
        self.begun, self.until, self.title = before.begun, before.until, before.title
        self.settings = dict(before.settings)
        self.agents = dict(before.agents)
        self.chats = dict(before.chats)
        self.puts = dict(before.puts)
        self.present = {chat: dict(members) for chat, members in before.present.items()}
        self.over = dict(before.over)

    def outcome(self) -> Configuration:
        """Return the configuration after what was taken."""
        return Configuration(
            world=self._before.world,
            number=self.number,
            begun=self.begun,
            until=self.until,
            title=self.title,
            settings=self.settings,
            agents=self.agents,
            chats=self.chats,
            puts=self.puts,
            present=self.present,
            over=self.over,
        )

    def take(self, entry: Entry) -> None:
        """Take the next entry."""
        log = self._before.log
        if entry.number != self.number + 1:
            raise InvalidValue(
                place=f"log {log}, entry {entry.number}",
                cause="is not the next one here",
                fix=f"give entry {self.number + 1}",
            )
        said = read_world_entry(entry, log=log)
        self.number = entry.number
        tell = _TELLS.get(type(said))
        if tell is not None:
            tell(self, said)

    def settle(self, chat: str, begins: int) -> None:
        """Find who is in a chat now: whoever came hears what follows entry `begins`."""
        before = self.present.get(chat, {})
        now = [*self._named(chat)]
        for agent in before:
            if agent not in now:
                self.end(chat, agent)
        self.present[chat] = {agent: before.get(agent, begins) for agent in now}

    def end(self, chat: str, agent: str) -> None:
        """Count one more run that is over."""
        self.over[chat, agent] = self.over.get((chat, agent), 0) + 1

    def _named(self, chat: str) -> Iterator[str]:
        it = self.chats[chat]
        if it.closed:
            return
        named = self.agents if it.members is None else it.members
        yield from (agent for agent in named if agent in self.agents)


def _made(fold: _Fold, said: WorldMade) -> None:
    if not fold.begun:
        fold.begun, fold.until, fold.title = True, said.until, said.title
        fold.settings = {**said.settings, **fold.settings}


def _put(fold: _Fold, said: AgentPut) -> None:
    before = fold.agents.get(said.agent)
    if before is None:
        fold.puts[said.agent] = fold.puts.get(said.agent, 0) + 1
    fold.agents[said.agent] = AgentConfig(
        spec=said.spec, entry=fold.number, put=fold.puts[said.agent]
    )
    if before is None:
        for chat in fold.chats:
            fold.settle(chat, said.begins.get(chat, 0))


def _removed(fold: _Fold, said: AgentRemoved) -> None:
    if fold.agents.pop(said.agent, None) is not None:
        for chat in fold.chats:
            fold.settle(chat, 0)


def _opened(fold: _Fold, said: ChatOpened) -> None:
    before = fold.chats.get(said.chat, ChatConfig())
    fold.chats[said.chat] = attrs.evolve(before, members=said.members, closed=False)
    fold.settle(said.chat, said.begins)


def _titled(fold: _Fold, said: ChatTitled) -> None:
    chat = fold.chats.get(said.chat)
    if chat is not None and not (said.by == WORLD and chat.titled_by_person):
        fold.chats[said.chat] = attrs.evolve(chat, title=said.title, titled_by=said.by)


def _closed(fold: _Fold, said: ChatClosed) -> None:
    chat = fold.chats.get(said.chat)
    if chat is not None:
        fold.chats[said.chat] = attrs.evolve(chat, closed=True)
        fold.settle(said.chat, 0)


def _cleared(fold: _Fold, said: MemoryCleared) -> None:
    members = fold.present.get(said.chat, {})
    if said.agent in members:
        fold.end(said.chat, said.agent)
        members[said.agent] = said.begins


def _set(fold: _Fold, said: SettingPut) -> None:
    if said.value is None:
        fold.settings.pop(said.name, None)
    else:
        fold.settings[said.name] = said.value


_TELLS: Final[Mapping[type, Callable[[_Fold, Any], None]]] = {
    WorldMade: _made,
    AgentPut: _put,
    AgentRemoved: _removed,
    ChatOpened: _opened,
    ChatTitled: _titled,
    ChatClosed: _closed,
    MemoryCleared: _cleared,
    SettingPut: _set,
}

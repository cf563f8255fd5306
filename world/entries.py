"""What stands in the logs of a world: bodies of entries, checked where they are read (W-13, W-14).

A body is a JSON object whose `kind` says what it is. Kinds that nobody here knows are kept and
skipped. Who said something, and as what, are fields, written once by whoever appends: no text is
looked at for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, ClassVar, Final, TypeAlias, TypeVar, cast

import attrs

from ..models.errors import InvalidValue, shown
from ..models.record import (
    Record,
    any_text,
    choice,
    count,
    field,
    fields_of,
    identifier,
    json_object,
    json_value,
    optional,
    optional_json_object,
    record,
)
from ..models.values import Json
from ..runtime.journal.contract import Entry
from .names import WORLD, an_agent, an_id, check_agent, check_id, question_at
from .spec import TITLE_LENGTH, AgentSpec

TEXT_BYTES: Final = 256 * 1024
"""Bytes of a message's text, in UTF-8, at most (section 13)."""
MEMBERS: Final = 1_000
"""Members that one chat names, at most."""

KIND: Final = "kind"
"""The field that says what a body is."""


class Role(StrEnum):
    """As what somebody says something."""

    PERSON = "person"
    AGENT = "agent"
    SYSTEM = "system"
    WORLD = "world"


class Action(StrEnum):
    """What somebody answers to a question of a tool."""

    ACCEPT = "accept"
    DECLINE = "decline"
    CANCEL = "cancel"


def _said(_: object, field: attrs.Attribute[Any], value: object) -> None:
    any_text(None, field, value)
    size = len(cast("str", value).encode())
    if size > TEXT_BYTES:
        raise InvalidValue(
            place=field.name,
            cause=f"has {size:,} bytes",
            fix=f"say at most {TEXT_BYTES:,}, and put the rest into a file",
        )


def fitted(text: str) -> str:
    """Return a text as a message can hold it: cut at its bound, and then it says so."""
    raw = text.encode(errors="replace")
    if len(raw) <= TEXT_BYTES:
        return raw.decode()
    end = f"\n… (cut here: {len(raw):,} bytes were said)"
    return raw[: TEXT_BYTES - len(end.encode())].decode(errors="ignore") + end


def _title(_: object, field: attrs.Attribute[Any], value: object) -> None:
    any_text(None, field, value)
    check_title(cast("str", value), place=field.name)


def check_title(title: str, *, place: str = "title") -> None:
    """Raise `InvalidValue` for a title that is too long."""
    if len(title) > TITLE_LENGTH:
        raise InvalidValue(
            place=place,
            cause=f"has {len(title):,} characters",
            fix=f"give at most {TITLE_LENGTH}",
        )


@record
class Message(Record):
    """Somebody says something."""

    kind: ClassVar[str] = "message"
    role: Role = field(converter=choice(Role))
    sender: str = field(validator=identifier)
    text: str = field(validator=_said)
    reply_to: str | None = field(default=None, validator=optional(identifier))
    """The id of the entry that it answers."""


@record
class Handoff(Record):
    """A member gives the word to people. It is no message, so nobody answers it (W-22)."""

    kind: ClassVar[str] = "handoff"
    role: Role = field(converter=choice(Role))
    sender: str = field(validator=identifier)
    text: str = field(validator=_said)
    reply_to: str | None = field(default=None, validator=optional(identifier))
    """The id of the entry that it answers."""


@record
class Notice(Record):
    """The world tells people something."""

    kind: ClassVar[str] = "notice"
    text: str = field(validator=_said)


@record
class Question(Record):
    """What a running tool asks a person (W-67)."""

    kind: ClassVar[str] = "question"
    run: str = field(validator=identifier)
    turn: str = field(validator=identifier)
    invocation: str = field(validator=identifier)
    attempt: int = field(validator=count)
    server: str = field(validator=identifier)
    text: str = field(validator=_said)
    schema: Mapping[str, Json] | None = field(default=None, converter=optional_json_object)


@record
class Reply(Record):
    """What a person answers to a question; `to` is the question's id."""

    kind: ClassVar[str] = "reply"
    to: str = field(validator=identifier)
    action: Action = field(converter=choice(Action))
    content: Mapping[str, Json] | None = field(default=None, converter=optional_json_object)
    by: str = field(validator=identifier)

    def __attrs_post_init__(self) -> None:
        """Demand that it names a question, and has a content only where it accepts."""
        question_at(self.to, place="to")
        if self.content is not None and self.action is not Action.ACCEPT:
            raise InvalidValue(
                place="content",
                cause=f"stands beside {self.action}",
                fix="give a content with accept alone",
            )


@record
class Stop(Record):
    """Nobody waits for the answer of a run after its note `said/N`: a person has the word."""

    kind: ClassVar[str] = "stop"
    run: str = field(validator=identifier)
    said: int = field(validator=count)
    by: str = field(validator=identifier)
    reason: str | None = field(default=None, validator=optional(any_text))


def _begins(value: object) -> Mapping[str, int]:
    """Return the numbers after which a member begins to hear, by chat."""
    if not isinstance(value, Mapping):
        raise InvalidValue(
            place="from", cause=f"{shown(value)} is no object", fix="give a number by chat"
        )
    given = cast("Mapping[object, object]", value)
    return {
        check_id(chat, place="from"): _number(number, f"from.{chat}")
        for chat, number in given.items()
    }


def _number(value: object, place: str) -> int:
    if type(value) is not int or value < 0:
        raise InvalidValue(
            place=place, cause=f"{shown(value)} is no number of an entry", fix="give 0 or more"
        )
    return value


def _from(value: object) -> int:
    return _number(value, "from")


@record
class WorldMade(Record):
    """The world begins."""

    kind: ClassVar[str] = "WORLD_MADE"
    title: str = field(default="", validator=_title)
    settings: Mapping[str, Json] = field(factory=dict[str, Json], converter=json_object)
    until: int = field(default=0, validator=count)
    """The entry of an import that is its last: the world is there once its log has that many."""
    was: str | None = field(default=None, validator=optional(an_id))
    """The world's name where an import under another name came from (W-72)."""


def _spec(value: object) -> AgentSpec:
    return value if isinstance(value, AgentSpec) else AgentSpec.from_json(value)


@record
class AgentPut(Record):
    """An agent is there, or is another from now on."""

    kind: ClassVar[str] = "AGENT_PUT"
    agent: str = field(validator=an_agent)
    spec: AgentSpec = field(converter=_spec)
    begins: Mapping[str, int] = field(factory=dict[str, int], converter=_begins)
    """`from` in the body: the last entry of each chat at that moment; a new agent hears what
    follows it."""


@record
class AgentRemoved(Record):
    """An agent leaves every chat."""

    kind: ClassVar[str] = "AGENT_REMOVED"
    agent: str = field(validator=an_agent)


def _members(value: object) -> tuple[str, ...] | None:
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InvalidValue(
            place="members", cause=f"{shown(value)} is no list", fix="give a list of agents"
        )
    named = tuple(cast("Sequence[str]", value))
    if len(named) > MEMBERS:
        raise InvalidValue(
            place="members",
            cause=f"names {len(named):,} agents",
            fix=f"name at most {MEMBERS:,}; without members all agents are",
        )
    return named


@record
class ChatOpened(Record):
    """A chat begins, goes on after it was closed, or has other members from now on."""

    kind: ClassVar[str] = "CHAT_OPENED"
    chat: str = field(validator=an_id)
    members: tuple[str, ...] | None = field(default=None, converter=_members)
    """None: all agents of the world."""
    begins: int = field(default=0, converter=_from)
    """`from` in the body: the last entry of the chat at that moment."""

    def __attrs_post_init__(self) -> None:
        """Refuse members that are no agents, and one that stands twice."""
        named = self.members or ()
        for place, member in enumerate(named):
            check_agent(member, place=f"members[{place}]")
            if member in named[:place]:
                raise InvalidValue(
                    place=f"members[{place}]",
                    cause=f"{member!r} stands there twice",
                    fix="name each member once",
                )


@record
class ChatTitled(Record):
    """A chat has a title; `by` is who gave it, ``world`` where no person did (W-70)."""

    kind: ClassVar[str] = "CHAT_TITLED"
    chat: str = field(validator=an_id)
    title: str = field(validator=_title)
    by: str = field(default=WORLD, validator=identifier)


@record
class ChatClosed(Record):
    """A chat ends: its members are there no more."""

    kind: ClassVar[str] = "CHAT_CLOSED"
    chat: str = field(validator=an_id)


@record
class MemoryCleared(Record):
    """A member forgets: what follows is another run."""

    kind: ClassVar[str] = "MEMORY_CLEARED"
    chat: str = field(validator=an_id)
    agent: str = field(validator=an_agent)
    begins: int = field(default=0, converter=_from)
    """`from` in the body: the last entry of the chat at that moment."""


@record
class SettingPut(Record):
    """A setting of the world has a value; null takes it away."""

    kind: ClassVar[str] = "SETTING_PUT"
    name: str = field(validator=identifier)
    value: Json = field(default=None, converter=json_value)


@record
class Unknown(Record):
    """A body of a kind that nobody here knows: it is kept, and skipped."""

    kind: str = ""


ChatEntry: TypeAlias = Message | Handoff | Notice | Question | Reply | Stop
"""What stands in the log of a chat."""
WorldEntry: TypeAlias = (
    WorldMade
    | AgentPut
    | AgentRemoved
    | ChatOpened
    | ChatTitled
    | ChatClosed
    | MemoryCleared
    | SettingPut
)
"""What stands in the log of a world."""

OF_CHATS: Final[Mapping[str, type[ChatEntry]]] = {
    it.kind: it for it in (Message, Handoff, Notice, Question, Reply, Stop)
}
OF_WORLDS: Final[Mapping[str, type[WorldEntry]]] = {
    it.kind: it
    for it in (
        WorldMade,
        AgentPut,
        AgentRemoved,
        ChatOpened,
        ChatTitled,
        ChatClosed,
        MemoryCleared,
        SettingPut,
    )
}
_NUMBERS: Final = frozenset({"from", "until"})
"""Fields that are left out where they are 0, or empty."""
_WRITTEN: Final = {"begins": "from"}
"""Fields of another name in a body: this one is a word of Python."""


def body_of(entry: ChatEntry | WorldEntry) -> dict[str, Json]:
    """Return the body of an entry: its kind, and each field that says something."""
    body: dict[str, Json] = {KIND: entry.kind}
    for it in fields_of(type(entry)):
        value = getattr(entry, it.name)
        name = _WRITTEN.get(it.name, it.name)
        if isinstance(value, AgentSpec):
            body[name] = value.as_json()
        elif isinstance(value, tuple):
            body[name] = list(cast("tuple[Json, ...]", value))
        elif isinstance(value, StrEnum):
            body[name] = str(value)
        elif value is not None and not (name in _NUMBERS and not value):
            body[name] = value
    return body


def read_entry(entry: Entry, *, log: str = "") -> ChatEntry | Unknown:
    """Return what an entry of a chat's log says.

    Raises `InvalidValue` that names the log and the number, for a body of a known kind that is
    not as it must be.
    """
    return _read(entry, OF_CHATS, log)


def read_world_entry(entry: Entry, *, log: str = "") -> WorldEntry | Unknown:
    """Return what an entry of a world's log says. Raises `InvalidValue` as `read_entry` does."""
    return _read(entry, OF_WORLDS, log)


EntryT = TypeVar("EntryT")


def _read(entry: Entry, kinds: Mapping[str, type[EntryT]], log: str) -> EntryT | Unknown:
    body: Mapping[str, Any] = entry.body if isinstance(entry.body, Mapping) else {}
    kind = body.get(KIND)
    known = kinds.get(kind) if isinstance(kind, str) else None
    if known is None:
        return Unknown(kind=kind if isinstance(kind, str) else "")
    try:
        return _built(known, body)
    except InvalidValue as error:
        where = f"log {log}, entry {entry.number}" if log else f"entry {entry.number}"
        raise error.inside(f"{where} ({kind})") from None


def _built(kind: type[EntryT], body: Mapping[str, Any]) -> EntryT:
    """Return what a body says; a field that may be absent is absent where it is null."""
    fields: dict[str, Any] = {}
    for it in fields_of(kind):
        name = _WRITTEN.get(it.name, it.name)
        may_miss = it.default is not attrs.NOTHING
        if name not in body and not may_miss:
            raise InvalidValue(place=name, cause="is missing", fix="give it")
        if not (may_miss and body.get(name) is None):
            fields[it.name] = body[name]
    return cast("Callable[..., EntryT]", kind)(**fields)

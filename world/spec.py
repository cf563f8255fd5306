"""What an agent of a world is: its model, its instructions, its tools and its limits (W-15).

A spec names things of the host – a model, tools – and brings none: where a key stands, whom a
model is asked of and which program a tool starts is in the host's own file. So a spec can be kept
in a log that others read, and one from elsewhere can lead no key astray.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import attrs

from ..agent.structured import form_of
from ..models.errors import InvalidValue, shown
from ..models.record import (
    Record,
    any_text,
    field,
    fields_of,
    flag,
    json_object,
    optional,
    optional_json_object,
    record,
    whole,
)
from ..models.values import Json, check_text, freeze
from .names import check_agent, check_id
from .secrets_named import check_options
from .toml_tables import Table, read_toml

TURN_LIMIT: Final = 5
"""Answers of an agent in a row to agents, unless its spec says otherwise (W-22)."""
ANSWER_LIMIT: Final = 50
"""Answers of a model for one prompt, unless the spec says otherwise (W-23)."""
TITLE_LENGTH: Final = 100
"""Characters of a title, at most (W-70)."""
TOOLS: Final = 1_000
"""Names of tools in one spec, at most."""


ChoiceT = TypeVar("ChoiceT", bound=StrEnum)


class Hears(StrEnum):
    """What an agent is told (W-20)."""

    ADDRESSED = "addressed"
    """What it answers."""
    ALL = "all"
    """What it does not answer, too, with the next prompt."""


class Start(StrEnum):
    """When calls of an answer begin (W-58)."""

    WHOLE = "whole"
    """Once the answer is whole."""
    EARLY = "early"
    """As soon as the provider has closed one."""


def _hears(value: str) -> Hears:
    return _one_of(Hears, value, "hears")


def _start(value: str) -> Start:
    return _one_of(Start, value, "start")


def _one_of(kind: type[ChoiceT], value: str, place: str) -> ChoiceT:
    for member in kind:
        if value == member:
            return member
    known = " or ".join(kind)
    raise InvalidValue(place=place, cause=f"{shown(value)} is no choice", fix=f"give {known}")


def _positive(_: object, field: attrs.Attribute[Any], value: object) -> None:
    whole(None, field, value)
    if cast("int", value) < 1:
        raise InvalidValue(
            place=field.name, cause=f"{shown(value)} leaves nothing", fix="give 1 or more"
        )


def _model(_: object, field: attrs.Attribute[Any], value: object) -> None:
    any_text(None, field, value)
    provider, colon, name = cast("str", value).partition(":")
    if not (provider and colon and name):
        raise InvalidValue(
            place=field.name,
            cause=f"{shown(value)} names no model",
            fix="give it as PROVIDER:NAME",
        )


def _tools(value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InvalidValue(
            place="tools", cause=f"{shown(value)} is no list of names", fix="give a list of texts"
        )
    named = cast("Sequence[object]", value)
    if len(named) > TOOLS:
        raise InvalidValue(
            place="tools",
            cause=f"names {len(named):,} tools",
            fix=f"name at most {TOOLS:,}, or all of a server by SERVER__*",
        )
    found = tuple(_tool(it, f"tools[{place}]") for place, it in enumerate(named))
    if len({*found}) < len(found):
        twice = next(it for place, it in enumerate(found) if it in found[:place])
        raise InvalidValue(
            place="tools", cause=f"names {shown(twice)} twice", fix="name each tool once"
        )
    return found


def _tool(value: object, place: str) -> str:
    if type(value) is not str or not value:
        raise InvalidValue(
            place=place, cause=f"{shown(value)} is no name of a tool", fix="give a non-empty text"
        )
    stem = value.removesuffix("__*")
    if "*" in stem or not stem:
        raise InvalidValue(
            place=place,
            cause=f"{shown(value)} is no pattern of tools",
            fix="name a tool, or all of a server as SERVER__*",
        )
    return check_text(value, place=place)


def _options(_: object, field: attrs.Attribute[Any], value: Mapping[str, Json]) -> None:
    check_options(value, place=field.name)


@record
class AgentSpec(Record):
    """One agent: a model, told what to do, with tools and limits."""

    model: str = field(validator=_model)
    """``PROVIDER:NAME``, as the host knows it."""
    instructions: str = field(default="", validator=any_text)
    """What stands before everything that was said."""
    tools: tuple[str, ...] = field(default=(), converter=_tools)
    """Names of the host's tools; all of a server as ``SERVER__*``."""
    turn_limit: int = field(default=TURN_LIMIT, validator=_positive)
    """Answers to agents since a person had the word, at most (W-22)."""
    answer_limit: int = field(default=ANSWER_LIMIT, validator=_positive)
    """Answers of the model for one prompt, tool calls between, at most (W-23)."""
    token_limit: int | None = field(default=None, validator=optional(_positive))
    """Tokens for one prompt, at most (W-23); None: no such limit."""
    auto_reply: bool = field(default=True, validator=flag)
    """Whether an answer to an agent that addresses nobody goes to that agent (W-21)."""
    hears: Hears = field(default=Hears.ADDRESSED, converter=_hears)
    """What it is told."""
    start: Start = field(default=Start.WHOLE, converter=_start)
    """When its calls begin."""
    output: Mapping[str, Json] | None = field(default=None, converter=optional_json_object)
    """The JSON Schema that each of its answers must fit (W-59); one whose root is no object is that
    of `value` in an object."""
    history: int | None = field(default=None, validator=optional(_positive))
    """Prompts that its model is told, at most, the latest (W-35); None: all."""
    options: Mapping[str, Json] = field(
        factory=dict[str, Json], converter=json_object, validator=_options
    )
    """Given to the maker of its model; nothing secret stands here."""

    def check(self) -> None:
        """Raise `InvalidValue` for an output that no answer can be held against.

        Where a spec is put, and not where it is read: a log that has one already stays as it is.
        """
        if self.output is not None:
            form_of(self.output)

    def as_json(self) -> dict[str, Json]:
        """Return it as JSON: every field that is not None."""
        said = {name: getattr(self, name) for name in FIELDS}
        said["tools"] = list(self.tools)
        said["hears"], said["start"] = str(self.hears), str(self.start)
        return {name: value for name, value in said.items() if value is not None}

    @classmethod
    def from_json(cls, value: object, *, place: str = "spec") -> AgentSpec:
        """Return the spec that JSON says. Raises `InvalidValue` at the field that is wrong."""
        given = _object(value, FIELDS, place=place)
        if "model" not in given:
            raise InvalidValue(
                place=f"{place}.model", cause="is missing", fix="give it as PROVIDER:NAME"
            )
        try:
            made: AgentSpec = cast("Callable[..., AgentSpec]", cls)(**given)
        except InvalidValue as error:
            raise error.inside(place) from None
        return made


FIELDS: Final = tuple(field.name for field in fields_of(AgentSpec))
"""The fields of a spec."""


def _object(value: object, fields: Sequence[str], *, place: str) -> dict[str, Any]:
    """Return an object of these fields alone. Raises `InvalidValue` that names any other."""
    if not isinstance(value, Mapping):
        raise InvalidValue(
            place=place, cause=f"{shown(value)} is no object", fix=f"give {', '.join(fields)}"
        )
    given = cast("Mapping[object, Any]", value)
    for name in given:
        if name not in fields:
            raise InvalidValue(
                place=f"{place}.{name}" if type(name) is str else place,
                cause=f"nothing is called {shown(name)} here",
                fix=f"give {', '.join(fields)}",
            )
    return {str(name): item for name, item in given.items()}


@attrs.frozen(kw_only=True)
class ChatSpec:
    """A chat that a world begins with."""

    title: str | None = None
    members: tuple[str, ...] | None = None
    """None: all agents."""


@attrs.frozen(kw_only=True)
class WorldSpec:
    """What a world begins with."""

    title: str | None = None
    settings: Mapping[str, Json] = attrs.field(factory=dict[str, Json])
    agents: Mapping[str, AgentSpec] = attrs.field(factory=dict[str, AgentSpec])
    chats: Mapping[str, ChatSpec] = attrs.field(factory=dict[str, ChatSpec])


def read_spec_file(path: str | os.PathLike[str]) -> WorldSpec:
    """Return what a TOML file says of a world: ``[world]``, ``[agents.NAME]``, ``[chats.NAME]``.

    Raises `InvalidValue` that names the file and the field, for what is not as it must be and for
    each field that nobody asked for.
    """
    file = Path(path)
    told = read_toml(file)
    try:
        return spec_of(told)
    except InvalidValue as error:
        place = f"{file}: {error.place}"
        raise InvalidValue(place=place, cause=error.cause, fix=error.fix) from None


def spec_of(told: Mapping[str, Any]) -> WorldSpec:
    """Return what the tables of a file say of a world. Raises `InvalidValue` at the field."""
    tables = Table(told)
    world = tables.table("world")
    title, settings = _title_in(world), world.json("settings") or {}
    world.done()
    agents = {
        check_agent(name, place=f"agents.{name}"): _agent(agents_told, place=f"agents.{name}")
        for name, agents_told in (tables.json("agents") or {}).items()
    }
    chats = {
        check_id(name, place=f"chats.{name}"): _chat(table, agents)
        for name, table in tables.tables("chats").items()
    }
    tables.done()
    return WorldSpec(
        title=title,
        settings=freeze(settings, place="world.settings"),
        agents=agents,
        chats=chats,
    )


def _agent(told: object, *, place: str) -> AgentSpec:
    spec = AgentSpec.from_json(told, place=place)
    try:
        spec.check()
    except InvalidValue as error:
        raise error.inside(place) from None
    return spec


def _title_in(table: Table) -> str | None:
    title = table.text("title")
    if title is not None and len(title) > TITLE_LENGTH:
        raise table.wrong("title", f"has {len(title):,} characters", f"give at most {TITLE_LENGTH}")
    return title


def _chat(table: Table, agents: Mapping[str, AgentSpec]) -> ChatSpec:
    title, members = _title_in(table), table.texts("members")
    table.done()
    for place, member in enumerate(members or ()):
        if member not in agents:
            raise table.wrong(
                f"members[{place}]", f"{shown(member)} is no agent here", f"add [agents.{member}]"
            )
        if member in (members or ())[:place]:
            raise table.wrong(f"members[{place}]", f"names {member!r} twice", "name each once")
    return ChatSpec(title=title, members=members)

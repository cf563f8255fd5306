"""Worlds: made, shown, and the agents that are put into them and taken away (world.md 11)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import attrs

from ..models.errors import InvalidValue
from ..models.values import Json
from ..world.configuration import AgentConfig, ChatConfig, Configuration
from ..world.entries import WorldMade
from ..world.errors import UnknownAgent
from ..world.names import check_agent, slug
from ..world.publishing import World
from ..world.spec import AgentSpec
from .answers import Answer, response_of
from .face import Face
from .problems import Problem
from .routing import Asked, Endpoint, Role

if TYPE_CHECKING:  # an extra's
    from starlette.responses import Response


@attrs.frozen(kw_only=True)
class WorldBody:
    """A new world; without an id it gets that of its title."""

    world: str | None = None
    title: str | None = None
    settings: Mapping[str, Json] | None = None


async def _list(face: Face, _: Asked) -> Response:
    told: list[dict[str, Any]] = []
    for world, it in await face.worlds.all():
        told.append(
            {
                "world": world.name,
                "title": it.title,
                "agents": len(it.agents),
                "chats": len(it.chats),
                "performed": world.name in face.hosts,
            }
        )
    return response_of(Answer(status=200, body={"worlds": told}))


async def _make(face: Face, asked: Asked) -> Response:
    body: WorldBody = asked.body
    world = World(face.journal, named(body.world, body.title, place="world"))
    made = WorldMade(title=body.title or "", settings=body.settings or {})
    is_new = not await world.exists()
    try:
        await world.make(title=made.title, settings=made.settings)
    except InvalidValue as error:  # what it says is right: it was made with other fields
        raise Problem(
            "conflicting_duplicate",
            f"the world {world.name!r} was made with another title or other settings",
        ) from error
    told = {**world_json(face, world.name, await world.configuration()), "new": is_new}
    place = f"/v1/worlds/{world.name}"
    status = 201 if is_new else 200
    return response_of(Answer(status=status, body=told, headers={"Location": place}))


async def _show(face: Face, asked: Asked) -> Response:
    world, configuration = await face.worlds.known(asked.ids["world"])
    return response_of(Answer(status=200, body=world_json(face, world.name, configuration)))


def world_json(face: Face, name: str, configuration: Configuration) -> dict[str, Any]:
    """Return a world as it is now: its agents, its chats, and whether a host of it runs here."""
    return {
        "world": name,
        "title": configuration.title,
        "settings": configuration.settings,
        "agents": [agent_json(it, config) for it, config in configuration.agents.items()],
        "chats": [chat_json(it, config) for it, config in configuration.chats.items()],
        "performed": name in face.hosts,
    }


def agent_json(name: str, config: AgentConfig) -> dict[str, Any]:
    """Return an agent: its spec, and the entry of the world log that put it."""
    return {"agent": name, "entry": config.entry, "spec": config.spec.as_json()}


def chat_json(name: str, config: ChatConfig) -> dict[str, Any]:
    """Return a chat as its world has it; `members` null: all agents."""
    return {
        "chat": name,
        "title": config.title,
        "members": config.members,
        "closed": config.closed,
    }


async def _agent(face: Face, asked: Asked) -> Response:
    _, configuration = await face.worlds.known(asked.ids["world"])
    name = asked.ids["agent"]
    return response_of(Answer(status=200, body=agent_json(name, agent_in(configuration, name))))


async def _put(face: Face, asked: Asked) -> Response:
    world, configuration = await face.worlds.known(asked.ids["world"])
    name = check_agent(asked.ids["agent"], place="agent")
    if face.tokens.named(name) is not None:
        raise Problem(
            "invalid_value", f"a token has the name {name!r}: give the agent another", at="agent"
        )
    spec: AgentSpec = asked.body
    config = await world.put_agent(name, spec)
    is_new = name not in configuration.agents
    return response_of(
        Answer(
            status=201 if is_new else 200,
            body=agent_json(name, config),
            headers={"Location": f"/v1/worlds/{world.name}/agents/{name}"},
        )
    )


async def _remove(face: Face, asked: Asked) -> Response:
    world, _ = await face.worlds.known(asked.ids["world"])
    name = asked.ids["agent"]
    await world.remove_agent(name)
    return response_of(Answer(status=200, body={"agent": name, "removed": True}))


def agent_in(configuration: Configuration, name: str) -> AgentConfig:
    """Return an agent of a world. Raises `UnknownAgent`."""
    config = configuration.agents.get(name)
    if config is None:
        raise UnknownAgent(f"world {configuration.world}", name)
    return config


def named(name: str | None, title: str | None, *, place: str) -> str:
    """Return the id of what is made: its own, or that of its title (W-3)."""
    if name is not None:
        return name
    if title is None:
        raise Problem("invalid_value", "give an id, or a title that it is made of", at=place)
    return slug(title)


_WORLD: Final = "/v1/worlds/{world}"
_AGENT: Final = "/v1/worlds/{world}/agents/{agent}"

ENDPOINTS: Final = (
    Endpoint(
        method="GET",
        path="/v1/worlds",
        handler=_list,
        role=Role.LOOK,
        summary="List worlds.",
    ),
    Endpoint(
        method="POST",
        path="/v1/worlds",
        handler=_make,
        role=Role.ADMIN,
        summary="Make a world.",
        body=WorldBody,
        codes=("conflicting_duplicate",),
        statuses=(201, 200),
    ),
    Endpoint(
        method="GET",
        path=_WORLD,
        handler=_show,
        role=Role.LOOK,
        summary="A world as it is now: its agents, its chats, its settings.",
        codes=("not_found",),
    ),
    Endpoint(
        method="GET",
        path=_AGENT,
        handler=_agent,
        role=Role.LOOK,
        summary="An agent of a world.",
        codes=("not_found",),
    ),
    Endpoint(
        method="PUT",
        path=_AGENT,
        handler=_put,
        role=Role.ADMIN,
        summary="Put an agent into a world, or give it another spec.",
        body=AgentSpec,
        codes=("not_found",),
        statuses=(200, 201),
    ),
    Endpoint(
        method="DELETE",
        path=_AGENT,
        handler=_remove,
        role=Role.ADMIN,
        summary="Take an agent out of a world: what it does is stopped.",
        codes=("not_found",),
    ),
)
"""The endpoints of this module."""

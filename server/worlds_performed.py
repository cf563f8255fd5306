"""Worlds that a server performs: a host of each, with the owner's own models and tools (W-15).

What models say there is passed on to who follows a chat, or a member's run, of this very process.
Others see it from the journal once it is kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from ..agent.transients import Transient
from ..models.errors import InvalidValue
from ..runtime.journal.contract import Journal
from ..runtime.settings import Settings
from ..world.host import Host
from ..world.host_declared import HostFile, read_host_file
from ..world.host_file import open_host_file
from ..world.names import check_id
from ..world.publishing import World
from ..world.questions import Questions


def check_worlds(worlds: Sequence[str], host_file: str | None) -> HostFile | None:
    """Return the hosts' own configuration. Raises `InvalidValue` for what cannot be performed."""
    for name in worlds:
        check_id(name, place="--world")
    if host_file is None:
        return None
    if not worlds:
        raise InvalidValue(
            place="--host-file",
            cause="is for hosts of worlds, and none is performed",
            fix="name a world: --world NAME",
        )
    return read_host_file(host_file)


@asynccontextmanager
async def performing_worlds(  # noqa: PLR0913 - what hosts are made of
    journal: Journal,
    worlds: Sequence[str],
    *,
    declared: HostFile | None,
    headless: bool,
    drain: float,
    hear: Callable[[str, Transient], None],
) -> AsyncGenerator[Mapping[str, Host]]:
    """Perform worlds until the block is left, each with models and tools of its own.

    What runs then has `drain` seconds to come to its end (S-97).

    Raises `InvalidValue` for one that is not there, and for what cannot be opened.
    """
    async with AsyncExitStack() as stack:
        for name in worlds:
            if not await World(journal, name).exists():
                raise InvalidValue(
                    place="--world",
                    cause=f"there is no world {name!r} in this journal",
                    fix=f"make it: turnlock world new {name}",
                )
        hosts: dict[str, Host] = {}
        for name in worlds:
            questions = await stack.enter_async_context(Questions(journal, name, headless=headless))
            own = await stack.enter_async_context(
                open_host_file(declared or HostFile(), questions=questions)
            )
            hosts[name] = Host(
                journal,
                name,
                models=own.models,
                toolboxes=own.toolboxes,
                questions=questions,
                headless=headless,
                hear=hear,
                settings=Settings(drain=drain),
            )
        entered: list[Host] = []
        stack.push_async_callback(_leave, entered)
        for host in hosts.values():
            await host.__aenter__()
            entered.append(host)  # one that could not be entered is not left
        yield hosts


async def _leave(hosts: Sequence[Host]) -> None:
    """Have all hosts let what runs come to its end at the same time: the server ends within it."""
    leaving = (host.__aexit__(None, None, None) for host in hosts)
    failed = [it for it in await asyncio.gather(*leaving, return_exceptions=True) if it is not None]
    if failed:
        raise failed[0]

"""How worlds, chats and agents are named on the command line, and found in a journal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from click.shell_completion import CompletionItem

from ..models.errors import InvalidValue, TurnlockError
from ..models.safe_text import harmless, harmless_lines
from .asking import name_of_person
from .naming import journal_meant

if TYPE_CHECKING:  # they would load the runtime
    from ..runtime.journal.contract import Journal
    from ..world.configuration import Configuration
    from ..world.publishing import World

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

LISTED: Final = 20
"""Worlds, chats or agents that a message about an unknown one names."""
_NAME: Final = 64


def with_world(
    db: str, name: str, work: Callable[[World], Awaitable[T]], *, read_only: bool = False
) -> T:
    """Do something with a world that is there.

    One that is not there, and what is no name, are wrong usage (2), and those there are listed; so
    are a chat and an agent that are not there.
    """
    from .databases import with_journal  # noqa: PLC0415 - asyncio and the runtime load here

    async def do(journal: Journal) -> T:
        return await at_world(journal, name, work)

    return with_journal(db, do, read_only=read_only)


async def at_world(journal: Journal, name: str, work: Callable[[World], Awaitable[T]]) -> T:
    """Do something with a world of a journal, as `with_world` has it."""
    from ..world.errors import UnknownAgent, UnknownChat, UnknownWorld  # noqa: PLC0415 - as above
    from ..world.publishing import World, worlds  # noqa: PLC0415 - as above

    try:
        world = World(journal, name)
    except InvalidValue as error:
        raise click.UsageError(harmless_lines(str(error))) from error
    try:
        if not await world.exists():
            there = [it.name for it in await worlds(journal)]
            raise not_there("world", name, there, fix="turnlock world new makes one")
        return await work(world)
    except (UnknownWorld, InvalidValue) as error:
        raise click.UsageError(harmless_lines(str(error))) from error
    except UnknownChat as error:
        known = await world.configuration()
        raise click.UsageError(_with(str(error), "chats", known.chats)) from error
    except UnknownAgent as error:
        known = await world.configuration()
        if error.chat is None:
            raise click.UsageError(_with(str(error), "agents", known.agents)) from error
        members = [it.agent for it in known.members(error.chat)]
        raise click.UsageError(_with(str(error), "members", members)) from error


def not_there(what: str, name: str, there: Iterable[str], *, fix: str) -> click.UsageError:
    """Say that something of this name is not there, and which are."""
    told = f"there is no {what} {harmless(name, limit=_NAME)!r}; {fix}"
    return click.UsageError(_with(told, f"{what}s", there))


def _with(told: str, what: str, there: Iterable[str]) -> str:
    names = [harmless(it, limit=_NAME) for it in there]
    listed = [*names[:LISTED], *("…" for _ in names[LISTED:])] or ["(none)"]
    return "\n".join(
        [f"{harmless_lines(told)}; the {what} there are:", *(f"  {it}" for it in listed)]
    )


def check_chat(known: Configuration, chat: str) -> None:
    """Refuse a chat that is not there."""
    if chat not in known.chats:
        raise not_there(
            "chat", chat, known.chats, fix=f"turnlock world chat {known.world} opens one"
        )


def person_in(known: Configuration) -> str:
    """Return who speaks here, in a world: whose own name is an agent's there is `human`."""
    from ..world.names import HUMAN  # noqa: PLC0415 - the runtime loads here
    from ..world.people import check_person  # noqa: PLC0415 - as above

    try:
        return check_person(name_of_person(), known, place="by")
    except InvalidValue:
        return HUMAN


def _completed(
    found: Callable[[World], Awaitable[Iterable[str]]],
) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Return what offers names of a world that stands before them."""

    def complete(
        context: click.Context, _: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        db = journal_meant(context)
        name = context.params.get("world") or next(iter(context.args), None)
        if not db or not name:
            return []
        try:
            names = list(with_world(db, name, found, read_only=True))
        except (click.ClickException, TurnlockError, OSError):
            return []  # a completion says nothing: the command itself will
        return [CompletionItem(it) for it in names if it.startswith(incomplete)]

    return complete


async def _chats(world: World) -> Iterable[str]:
    return (await world.configuration()).chats


async def _agents(world: World) -> Iterable[str]:
    return (await world.configuration()).agents


def _worlds(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from ..world.publishing import worlds  # noqa: PLC0415 - where a shell asks
    from .databases import with_journal  # noqa: PLC0415 - as above

    async def found(journal: Journal) -> list[str]:
        return [it.name for it in await worlds(journal)]

    db = journal_meant(context)
    try:
        names = with_journal(db, found, read_only=True) if db else []
    except (click.ClickException, TurnlockError, OSError):
        return []
    return [CompletionItem(it) for it in names if it.startswith(incomplete)]


def world_argument(function: F) -> F:
    """Add the argument that names the world; the shell completes it."""
    return click.argument("world", metavar="W", shell_complete=_worlds)(function)


def chat_argument(*, required: bool = True) -> Callable[[F], F]:
    """Return the argument that names a chat of the world before it."""
    return click.argument("chat", metavar="C", required=required, shell_complete=_completed(_chats))


def agent_argument(function: F) -> F:
    """Add the argument that names an agent of the world before it."""
    return click.argument("agent", metavar="A", shell_complete=_completed(_agents))(function)


def chats_option(function: F) -> F:
    """Add the option that names chats of the world."""
    return click.option(
        "--chat",
        "chats",
        multiple=True,
        metavar="C",
        shell_complete=_completed(_chats),
        help="Only this chat. May be repeated.  [default: all]",
    )(function)


def members_option(function: F) -> F:
    """Add the option that names agents of the world."""
    return click.option(
        "--member",
        "members",
        multiple=True,
        metavar="A",
        shell_complete=_completed(_agents),
        help="An agent that is in it. May be repeated.  [default: all, as they come and go]",
    )(function)

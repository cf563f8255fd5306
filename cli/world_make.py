"""``turnlock world new``, ``chat`` and ``clear``: what a world is, said in its log."""

from __future__ import annotations

from collections.abc import Sized
from typing import TYPE_CHECKING, Final

import click

from ..models.errors import InvalidValue
from ..models.safe_text import harmless, harmless_lines
from .databases import db_option, ended, made_db_option
from .world_naming import (
    agent_argument,
    chat_argument,
    check_chat,
    members_option,
    person_in,
    with_world,
    world_argument,
)

if TYPE_CHECKING:  # it would load the runtime
    from ..world.configuration import ChatConfig, Configuration
    from ..world.publishing import World
    from ..world.spec import WorldSpec

_TITLE: Final = 100

_STATUS: Final = """
\b
Exit status:
  0  it is so now
  1  the journal failed
  2  wrong usage, no journal, or no such world, chat or agent
"""

_NEW: Final = """Make the world W, in a journal that is made where there is none.

With --from all of it is made that a file says:

\b
  [world]
  title = "Demo"
  [agents.alice]
  model = "openai:NAME"
  instructions = "You book."
  tools = ["pay"]
  [chats.plan]
  members = ["alice"]

Keys and addresses of models, and the commands of servers, stand in the file of whoever performs it
(turnlock world run --host-file). The same command again changes nothing, and finishes what was cut
off.

\b
Exit status:
  0  it is there
  1  the journal failed
  2  wrong usage, a file that cannot be used, or the world is there and another
"""


@click.command("new", help=_NEW, short_help="Make a world.")
@world_argument
@click.option("--from", "spec", type=click.Path(), metavar="SPEC.toml", help="What it is.")
@click.option("--title", metavar="TEXT", help="What people call it.")
@made_db_option
def new(*, world: str, spec: str | None, title: str | None, db: str) -> None:
    """Make it, and say what is in it."""
    from ..runtime.journal.contract import open_journal  # noqa: PLC0415 - the runtime loads here
    from ..world.names import check_id  # noqa: PLC0415 - as above
    from ..world.publishing import World  # noqa: PLC0415 - as above
    from ..world.spec import WorldSpec, read_spec_file  # noqa: PLC0415 - as above

    try:
        check_id(world, place="W")
        said = WorldSpec() if spec is None else read_spec_file(spec)
    except InvalidValue as error:
        raise click.UsageError(harmless_lines(str(error))) from error

    async def work() -> Configuration:
        async with await open_journal(db) as journal:
            try:
                made = World(journal, world)
                if title is not None or spec is not None or not await made.exists():
                    told = said.title if title is None else title
                    await made.make(title=told or "", settings=said.settings)
                await _fill(made, said)
                return await made.configuration()
            except InvalidValue as error:
                raise click.UsageError(harmless_lines(str(error))) from error

    known = ended(work())
    click.echo(f"world {world}: {_count(known.agents, 'agent')}, {_count(known.chats, 'chat')}")


async def _fill(world: World, said: WorldSpec) -> None:
    """Put agents and chats there as a file says; what is so already stays."""
    for agent, spec in said.agents.items():
        await world.put_agent(agent, spec)
    for chat, it in said.chats.items():
        await world.open_chat(chat, members=it.members)
        if it.title is not None:
            await world.title(chat, it.title, by=person_in(await world.configuration()))


def _count(there: Sized, one: str) -> str:
    count = len(there)
    return f"{count:,} {one}{'' if count == 1 else 's'}"


_CHAT: Final = f"""Open the chat C of the world W; without C, list its chats.

Without --member all agents are in it, as they come and go. A chat that is there gets the members
that are named, and goes on if it was closed; who is a member from now on hears what is said from
now on.
{_STATUS}"""


@click.command("chat", help=_CHAT, short_help="Open a chat, or list them.")
@world_argument
@chat_argument(required=False)
@members_option
@click.option("--title", metavar="TEXT", help="What people call it; it stays.")
@click.option("--close", is_flag=True, help="Close it: its members leave, nothing more is said.")
@db_option
def chat(  # noqa: PLR0913 - one parameter for each option
    *,
    world: str,
    chat: str | None,
    members: tuple[str, ...],
    title: str | None,
    close: bool,
    db: str,
) -> None:
    """Open it, and say who is in it."""
    if chat is None:
        if members or title is not None or close:
            raise click.UsageError("name the chat C: turnlock world chat W C")
        _list(with_world(db, world, lambda it: it.configuration(), read_only=True))
        return
    if close and members:
        raise click.UsageError("--close and --member exclude each other; give one")
    name = chat

    async def work(it: World) -> Configuration:
        if title is not None:
            _check_title(title)
        if close:
            await it.close_chat(name)
        else:
            await it.open_chat(name, members=members or None)
        if title is not None:
            await it.title(name, title, by=person_in(await it.configuration()))
        return await it.configuration()

    known = with_world(db, world, work)
    click.echo(_chat_line(name, known.chats[name], known))


def _check_title(title: str) -> None:
    """Refuse a title that nobody may give, before anything is done."""
    from ..world.entries import check_title  # noqa: PLC0415 - the runtime loads here

    check_title(title, place="--title")


def _list(known: Configuration) -> None:
    for name, it in known.chats.items():
        click.echo(_chat_line(name, it, known))
    if not known.chats:
        click.echo(f"world {known.world} has no chat yet: turnlock world chat {known.world} C")


def _chat_line(name: str, it: ChatConfig, known: Configuration) -> str:
    title = f" – {harmless(it.title, limit=_TITLE)}" if it.title else ""
    members = ", ".join(member.agent for member in known.members(name)) or "nobody"
    return f"{name}{title}: {'closed' if it.closed else members}"


_CLEAR: Final = f"""Have the agent A forget what it was told in the chat C.

It goes on as another run, W/C/A#2, #3 …, and hears what is said from now on. What it has under way
is interrupted, and what was granted to it is revoked, by whoever performs the world. The log of the
chat stays.
{_STATUS}"""


@click.command("clear", help=_CLEAR, short_help="Have a member forget.")
@world_argument
@chat_argument()
@agent_argument
@db_option
def clear(*, world: str, chat: str, agent: str, db: str) -> None:
    """Clear it, and say which run goes on."""

    async def work(it: World) -> Configuration:
        check_chat(await it.configuration(), chat)
        await it.clear(chat, agent)
        return await it.configuration()

    member = with_world(db, world, work).member(chat, agent)
    goes_on = "" if member is None else f"; it goes on as {member.run_id}"
    click.echo(harmless(f"{agent} has forgotten {chat}{goes_on}"))

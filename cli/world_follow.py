"""``turnlock world follow``: a chat, as it was and as it goes on."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import click

from ..models.safe_text import harmless
from .databases import db_option
from .places import Place
from .world_naming import chat_argument, check_chat, with_world, world_argument

if TYPE_CHECKING:  # they would load the runtime
    from ..world.chat import Chat
    from ..world.publishing import World

_HELP: Final = """Show the chat C of the world W, from its beginning, and what happens in it next.

Entries have their numbers; what waits for an answer is shown with the command that gives it. With
--json each line is an event as the wire has it, with a cursor where it can be gone on from: --after
CURSOR shows what follows it, and nothing twice. Ctrl-C ends it.

\b
Exit status:
  0  it was shown: with --no-wait to its end, or until Ctrl-C
  1  the journal failed
  2  wrong usage, no journal, no such world or chat, or no such cursor
"""


@click.command("follow", help=_HELP, short_help="Show a chat, and what happens in it.")
@world_argument
@chat_argument()
@click.option("--after", default="", metavar="CURSOR", help="Begin behind this event.")
@click.option("--json", "as_json", is_flag=True, help="Print the wire's events, one a line.")
@click.option(
    "--wait/--no-wait",
    default=True,
    help="Go on, or end where the chat ends now.  [default: go on]",
)
@db_option
def follow(  # noqa: PLR0913 - one parameter for each option
    *, world: str, chat: str, after: str, as_json: bool, wait: bool, db: str
) -> None:
    """Show it until its end, or until Ctrl-C."""
    from ..runtime.errors import CursorAhead  # noqa: PLC0415 - the runtime loads here
    from .world_lines import ChatLines, as_line  # noqa: PLC0415 - as above

    lines = ChatLines(_tell, place=Place(db=db))

    async def show(it: Chat) -> None:
        async with it.events(after=after, follow=wait) as events:
            async for event in events:
                told = event.as_json()
                if as_json:
                    _tell(as_line(told))
                else:
                    lines.take(told, chat=chat)

    async def work(it: World) -> None:
        check_chat(await it.configuration(), chat)
        showing = asyncio.ensure_future(show(it.chat(chat)))
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, showing.cancel)
        try:
            with suppress(asyncio.CancelledError):
                await showing
        except CursorAhead as error:
            raise click.UsageError(harmless(f"--after: {error}")) from error

    with_world(db, world, work, read_only=True)


def _tell(line: str) -> None:
    click.echo(line)  # which flushes: somebody may read it from a pipe

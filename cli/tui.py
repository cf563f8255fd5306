"""``turnlock tui``: the console in a terminal (F-99)."""

from __future__ import annotations

import sys
from typing import Final

import click

from ..models.errors import TurnlockError
from ..models.safe_text import harmless
from ..world.names import chat_of
from .asking import at_terminal, name_of_person
from .naming import run_argument
from .places import Place, place_options

_HELP: Final = """Watch runs and decide about their calls, in a terminal.

It shows the runs of a journal (--db) or of a server (--url), those that wait for a person first; a
run with what waits, its calls and its facts; and the machine of a call. It performs nothing. With
RUN that run is shown at once. The key "w" shows the worlds: their chats, what is said and asked
there, and a line to say something. Its keys are shown by "?".

With --db a decision is made as by `turnlock approve`: whoever performs the run judges it. With
--url it is made by whoever the token says; so it is with what is said in a chat.

\b
Exit status:
  0  it was left
  1  it could not go on
  2  wrong usage, or no journal
"""


def _chat(
    ctx: click.Context,  # noqa: ARG001 - as click calls it
    option: click.Parameter,  # noqa: ARG001 - likewise
    value: str | None,
) -> tuple[str, str] | None:
    if value is None:
        return None
    chat = chat_of(value)
    if chat is None:
        raise click.BadParameter("give the ids of a world and a chat of it, WORLD/CHAT")
    return chat


@click.command("tui", help=_HELP, short_help="Watch runs and decide, in a terminal.")
@run_argument(required=False, metavar="[RUN]")
@click.option(
    "--chat",
    metavar="WORLD/CHAT",
    callback=_chat,
    help="Show this chat of a world at once.",
)
@place_options
def command(*, run_id: str | None, chat: tuple[str, str] | None, place: Place) -> None:
    """Open it, and stay until it is left."""
    if not (at_terminal() and sys.stdout.isatty()):
        raise click.UsageError("this needs a terminal; turnlock runs and turnlock show need none")
    try:
        from ..tui.app import Console  # noqa: PLC0415 - an extra's
        from ..tui.sources import JournalSource, ServerSource, Source  # noqa: PLC0415 - likewise
    except TurnlockError as error:
        raise click.UsageError(harmless(str(error))) from error

    source: Source
    if place.url is not None:
        from ..server.client import Client  # noqa: PLC0415 - likewise

        source = ServerSource(Client(place.url, token=place.token()))
    else:
        from .databases import with_journal  # noqa: PLC0415 - the runtime loads here

        name = place.db or ""
        with_journal(name, lambda journal: journal.runs(limit=1), read_only=True)
        source = JournalSource(name, who=name_of_person())
    console = Console(source, run_id=run_id, chat=chat)
    console.run()
    if console.return_code:
        raise SystemExit(console.return_code)

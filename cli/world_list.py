"""``turnlock world list``: the worlds of a journal."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, Final

import click

from ..models.errors import InvalidValue
from ..models.safe_text import harmless
from .databases import db_option, with_journal

if TYPE_CHECKING:  # they would load the runtime
    from ..runtime.journal.contract import Journal
    from ..world.configuration import Configuration

_TITLE: Final = 100

_LIST: Final = """List the worlds of a journal: their agents and their chats.

\b
Exit status:
  0  they were listed, or there are none
  1  the journal failed, or the log of a world cannot be read: the others were
     listed
  2  wrong usage, or no journal
"""


@click.command("list", help=_LIST, short_help="List the worlds of a journal.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array instead.")
@db_option
def list_worlds(*, as_json: bool, db: str) -> None:
    """List them, a line each."""
    from ..runtime.errors import CorruptLog  # noqa: PLC0415 - the runtime loads here
    from ..world.publishing import worlds  # noqa: PLC0415 - as above

    async def work(journal: Journal) -> tuple[list[Configuration], list[str]]:
        found: list[Configuration] = []
        wrong: list[str] = []
        for it in await worlds(journal):
            try:
                found.append(await it.configuration())
            except (InvalidValue, CorruptLog) as error:  # one world is in no other's way
                wrong.append(f"world {it.name} cannot be read: {error}")
        return found, wrong

    found, wrong = with_journal(db, work, read_only=True)
    _tell(found, as_json=as_json)
    for it in wrong:
        click.echo(harmless(it), err=True)
    if wrong:
        sys.exit(1)
    if not found and not as_json:
        click.echo("there is no world here yet: turnlock world new makes one")


def _tell(found: list[Configuration], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps([known_as_json(it) for it in found], indent=2))
        return
    for it in found:
        title = f" – {harmless(it.title, limit=_TITLE)}" if it.title else ""
        agents = ", ".join(it.agents) or "no agents"
        chats = ", ".join(name for name, chat in it.chats.items() if not chat.closed) or "no chats"
        click.echo(harmless(f"{it.world}{title}: agents {agents}; chats {chats}"))


def known_as_json(known: Configuration) -> dict[str, Any]:
    """Return what a world is, as JSON."""
    return {
        "world": known.world,
        "title": known.title,
        "agents": list(known.agents),
        "chats": [
            {
                "chat": name,
                "title": chat.title,
                "closed": chat.closed,
                "members": [member.agent for member in known.members(name)],
            }
            for name, chat in known.chats.items()
        ],
    }

"""``turnlock world say``: say something in a chat, once."""

from __future__ import annotations

import json
import sys
import uuid
from typing import TYPE_CHECKING, Final

import click

from ..models.safe_text import harmless
from .databases import db_option
from .world_naming import chat_argument, check_chat, with_world, world_argument

_NAMES: Final = 100
"""Characters of the names that nobody answers to."""

if TYPE_CHECKING:  # it would load the runtime
    from ..world.publishing import World

_LARGEST: Final = 256 * 1024
"""Bytes of a message at most; that many and one are read of standard input."""

_HELP: Final = """Say TEXT in the chat C of the world W; - reads it from standard input.

It is kept at once, whether or not anybody performs the members. Who answers: agents whose @name
begins a line, or all of them where nobody is named. With the same --id it is said once, however
often the command is run; without --id one is made, and printed.

\b
Exit status:
  0  it is in the chat
  1  refused: the id is that of another text, or the chat is closed; or the
     journal failed
  2  wrong usage, no journal, or no such world or chat
"""


@click.command("say", help=_HELP, short_help="Say something in a chat.")
@world_argument
@chat_argument()
@click.argument("text", metavar="TEXT|-")
@click.option(
    "--as",
    "sender",
    default="human",
    show_default=True,
    metavar="NAME",
    help="Who says it.",
)
@click.option("--id", "message_id", metavar="ID", help="Its id: said once for each.")
@click.option("--reply-to", metavar="ENTRY", help="The id of the entry that it answers.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")
@db_option
def say(  # noqa: PLR0913 - one parameter for each option
    *,
    world: str,
    chat: str,
    text: str,
    sender: str,
    message_id: str | None,
    reply_to: str | None,
    as_json: bool,
    db: str,
) -> None:
    """Say it, and print where it stands."""
    said = _typed() if text == "-" else _plain(text)
    if not said.strip():
        raise click.UsageError("TEXT is empty; say something")
    made = uuid.uuid4().hex[:12] if message_id is None else message_id

    async def work(it: World) -> tuple[int, str, bool]:
        known = await it.configuration()
        check_chat(known, chat)
        entered = await it.chat(chat).say(sender, said, message_id=made, reply_to=reply_to)
        members[:] = [member.agent for member in known.members(chat)]
        return entered.number, entered.entry_id, entered.new

    members: list[str] = []
    number, entry_id, is_new = with_world(db, world, work)
    if as_json:
        told = {"number": number, "entry_id": entry_id, "message_id": made, "new": is_new}
        click.echo(json.dumps(told))
        return
    before = "" if is_new else ", which was said before"
    click.echo(harmless(f"{number} in {chat}, --id {made}{before}"))
    if strangers := _unheard(said, members):
        there = ", ".join(members) or "none yet"
        who = harmless(", ".join(f"@{it}" for it in strangers), limit=_NAMES)
        click.echo(harmless(f"no agent answers {who}; the agents of {chat}: {there}"), err=True)


def _unheard(text: str, members: list[str]) -> tuple[str, ...]:
    """Return the names that a text is for, where none of them is an agent's of the chat."""
    from ..world.mentions import addressed, mentioned  # noqa: PLC0415 - it would load much

    names = addressed(text) or mentioned(text)
    return () if any(it in members for it in names) else names


def _plain(text: str) -> str:
    """Return what was typed; bytes that are no text stand in it as escapes."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _typed() -> str:
    """Return all of standard input, but for its last line's end."""
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison] - closed by the caller
        raise click.UsageError("standard input is closed; give TEXT")
    raw = sys.stdin.buffer.read(_LARGEST + 2)
    if len(raw) > _LARGEST + 1:
        raise click.UsageError(f"standard input is longer than {_LARGEST:,} bytes; say less")
    return raw.decode("utf-8", "backslashreplace").removesuffix("\n").removesuffix("\r")

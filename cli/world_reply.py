"""``turnlock world reply``: answer what a running tool asks in a chat (W-67)."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from ..models.errors import InvalidValue
from ..models.run import Run
from ..models.safe_text import harmless, harmless_lines
from ..models.sealed import shown_json
from .asking import at_terminal, name_of_person
from .databases import db_option
from .decide import json_option
from .world_decide import as_option
from .world_naming import with_world

if TYPE_CHECKING:  # they would load the runtime
    from ..toolkits.mcp.questions import Question as Asked
    from ..toolkits.mcp.questions import Reply
    from ..world.chat import Chat
    from ..world.names import MemberName
    from ..world.publishing import World
    from ..world.replying import Replied

_CONTENT: Final = 200

_HELP: Final = """Answer QUESTION, which a running tool asks in a chat of the world.

The first reply stands, whoever gave it. --accept are the values of its form, which are held against
its schema. In a terminal nothing need be given: the question is shown, and asked field by field.

\b
Exit status:
  0  it is replied
  1  another reply stands, or its call does not wait any more; or nothing was
     replied at the terminal, or the journal failed
  2  wrong usage, what its form does not take, no journal, or no such question
"""


@click.command("reply", help=_HELP, short_help="Answer what a running tool asks.")
@click.argument("question")
@click.option("--accept", metavar="JSON", help="The values of its form, as a JSON object.")
@click.option("--decline", is_flag=True, help="Refuse to answer.")
@click.option("--cancel", is_flag=True, help="Put it away without a decision.")
@as_option
@db_option
def reply(  # noqa: PLR0913 - one parameter for each option
    *, question: str, accept: str | None, decline: bool, cancel: bool, by: str | None, db: str
) -> None:
    """Reply, and say what stands."""
    from ..world.names import member_of, question_at  # noqa: PLC0415 - the runtime loads here

    given = [accept is not None, decline, cancel].count(True)
    if given > 1 or (given == 0 and not at_terminal()):
        raise click.UsageError(
            "say one of --accept JSON, --decline and --cancel; at a terminal you are asked"
        )
    try:
        member = member_of(question_at(question, place="QUESTION").call.run_id)
    except InvalidValue as error:
        raise click.UsageError(harmless_lines(str(error))) from error
    if member is None:
        raise click.UsageError(
            "QUESTION is of no member of a world; turnlock world show lists some"
        )
    values = None if accept is None else _object(accept)
    there: MemberName = member

    async def work(world: World) -> Replied:
        from ..world.errors import UnknownQuestion  # noqa: PLC0415 - as above

        chat = world.chat(there.chat)
        said: dict[str, Any] = {"accept": values, "decline": decline, "cancel": cancel}
        try:
            if not given:
                said = await _asked(chat, question)
            return await chat.reply(question, **said, by=by or name_of_person())
        except UnknownQuestion as error:
            raise click.UsageError(harmless_lines(str(error))) from error

    _tell(with_world(db, there.world, work), by=by or name_of_person())


def _object(text: str) -> Mapping[str, Any]:
    value = json_option("--accept", text)
    if not isinstance(value, Mapping):
        raise click.UsageError('--accept: is no JSON object; give {"FIELD": …}')
    return value


async def _asked(chat: Chat, question: str) -> dict[str, Any]:
    """Ask at the terminal, and return what is said. Raises `ClickException` where nothing is."""
    from ..toolkits.mcp.questions import Accept, Cancel  # noqa: PLC0415 - as above

    told: Reply = await _elicited(await _question(chat, question))
    if isinstance(told, Cancel):
        raise click.ClickException("nothing was replied")
    if isinstance(told, Accept):
        return {"accept": told.content}
    return {"decline": True}


async def _question(chat: Chat, question: str) -> Asked:
    from ..toolkits.mcp.questions import Question as Asked  # noqa: PLC0415 - as above
    from ..world.entries import Question, read_entry  # noqa: PLC0415 - as above
    from ..world.errors import UnknownQuestion  # noqa: PLC0415 - as above

    found = await chat.journal.find_entry(chat.log, question)
    asked = None if found is None else read_entry(found, log=chat.log)
    if not isinstance(asked, Question):
        raise UnknownQuestion(chat.log, question)
    return Asked(
        question_id=question,
        server=asked.server,
        run_id=asked.run,
        turn_id=asked.turn,
        invocation_id=asked.invocation,
        attempt=asked.attempt,
        tool_name=asked.server,
        message=asked.text,
        form=asked.schema or {"type": "object", "properties": {}},
    )


async def _elicited(asked: Asked) -> Reply:
    from .run_lines import StdinLines  # noqa: PLC0415 - where somebody is asked
    from .run_screen import Screen  # noqa: PLC0415 - as above
    from .run_terminal import Terminal  # noqa: PLC0415 - as above

    async with StdinLines() as lines:
        screen = Screen(Run(run_id=asked.run_id), told_until=0, lines=lines)
        return await asyncio.ensure_future(Terminal(screen, lines).elicit(asked))


def _tell(made: Replied, *, by: str) -> None:
    reply = made.reply
    content = "" if reply.content is None else f" {shown_json(reply.content)}"
    told = f"{reply.action}{harmless(content, limit=_CONTENT)}"
    if made.late:
        click.echo(f"{told}, too late: its call does not wait for it any more", err=True)
        sys.exit(1)
    if not made.new and reply.by != by:
        click.echo(f"{harmless(reply.by)} has replied before: {told}", err=True)
        sys.exit(1)
    click.echo(f"replied: {told}" if made.new else f"replied before: {told}")

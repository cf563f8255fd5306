"""``turnlock diagram world``: a chat as a sequence, over its log and the runs of its members."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

import click

from ..diagrams.sequence.chats import ChatStory, Entry, Hearing, MemberStory, chat_picture
from ..models.errors import UnknownRun
from ..models.values import Json
from ..runtime.errors import RunForgotten
from .databases import db_option, facts_of
from .diagram_output import EXIT_STATUS, Output, drawing
from .world_naming import chat_argument, check_chat, with_world, world_argument

if TYPE_CHECKING:  # they would load the runtime
    from ..runtime.journal.contract import Journal
    from ..world.configuration import Configuration
    from ..world.names import MemberName
    from ..world.publishing import World

_HELP: Final = f"""Draw the chat C of the world W: who said what, who heard it, and what came of it.

Its lanes are people, members, the tools that they call, and the log of the chat. It is drawn from
the journal, in the order of time: what was said, heard, asked, approved, run, and handed over. Of
memories that were cleared what was done is drawn, too.
{EXIT_STATUS}"""


@click.command("world", help=_HELP, short_help="A chat, over the runs of its members.")
@world_argument
@chat_argument()
@db_option
@drawing
def draw_world(*, output: Output, world: str, chat: str, db: str) -> None:
    """Draw it."""

    async def work(it: World) -> ChatStory:
        known = await it.configuration()
        check_chat(known, chat)
        return await story_of(it.journal, known, chat)

    story = with_world(db, world, work, read_only=True)
    output.take(lambda: chat_picture(story))


async def story_of(journal: Journal, known: Configuration, chat: str) -> ChatStory:
    """Return all that is kept of a chat, as it is drawn."""
    from ..world.names import chat_log  # noqa: PLC0415 - the runtime loads here

    log = chat_log(known.world, chat)
    before = [it for it in known.ended() if it.chat == chat]
    return ChatStory(
        name=log,
        chat=chat,
        entries=tuple([it async for it in _entries(journal, log)]),
        members=tuple([await _member(journal, it) for it in (*before, *known.members(chat))]),
    )


async def _entries(journal: Journal, log: str) -> AsyncIterator[Entry]:
    after = 0
    while page := await journal.entries(log, after=after):
        for entry in page:
            body: Any = entry.body
            told = cast("Mapping[str, Json]", body if isinstance(body, Mapping) else {})
            yield Entry(number=entry.number, at=entry.at, body=told)
        after = page[-1].number


async def _member(journal: Journal, member: MemberName) -> MemberStory:
    from ..world.standing import Heard  # noqa: PLC0415 - as above

    heard: list[Hearing] = []
    try:
        facts = await facts_of(journal, member.run_id)
        for noted in await journal.notes(member.run_id):
            told = Heard.read(noted.note.body.get("heard"))
            if told is not None:
                heard.append(Hearing(at=noted.note.at, number=told.number))
    except (UnknownRun, RunForgotten):
        return MemberStory(agent=member.agent)
    return MemberStory(agent=member.agent, facts=tuple(facts), heard=tuple(heard))

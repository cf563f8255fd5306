"""``turnlock world show``: how the chats of a world and their members stand, and what waits."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs
import click

from ..models.errors import UnknownRun
from ..models.safe_text import harmless
from ..models.sealed import is_sealed
from ..models.values import Json, canonical
from ..runtime.journal.contract import Journal
from ..runtime.leases import is_owned
from ..views.run_view import RunView
from ..views.wording import counted
from ..world.configuration import Configuration
from ..world.entries import Question, Reply
from ..world.names import MemberName, chat_log
from ..world.publishing import World
from ..world.requests import Doubt, Request, doubts, waiting
from ..world.standing import (
    ChatStanding,
    MemberStanding,
    ReadEntry,
    Stands,
    entries_after,
    member_standing,
)
from .databases import db_option, facts_of
from .places import Place
from .shown import SEALED, bound_by
from .world_lines import deciding, replying, resolving
from .world_list import known_as_json
from .world_naming import with_world, world_argument

_TITLE: Final = 100
_MODEL: Final = 80
_TOOLS: Final = 200
_NAME: Final = 64
_QUESTION: Final = 400
"""Characters of a question; its form tells the rest."""

_WORDS: Final[Mapping[Stands, str]] = {
    Stands.DOUBT: "does not know whether a call happened",
    Stands.APPROVAL: "waits for approval",
    Stands.QUESTION: "waits for a reply",
    Stands.RUNNING: "runs its tools",
    Stands.SPEAKING: "has to answer",
    Stands.TO_PUBLISH: "has to publish its answer",
    Stands.TO_HEAR: "has not heard all yet",
    Stands.IDLE: "idle",
}

_SHOW: Final = """Show the world W: its agents, its chats, and how each member stands.

What waits for a person is shown whole, with the command that answers it; so is what is in doubt:
a call that was started, and nobody knows whether it happened.

\b
Exit status:
  0  it was shown
  1  the journal failed, or something in it is damaged
  2  wrong usage, no journal, or no such world
"""


@click.command("show", help=_SHOW, short_help="Show how a world stands.")
@world_argument
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")
@db_option
def show(*, world: str, as_json: bool, db: str) -> None:
    """Show it."""

    async def work(it: World) -> tuple[Configuration, list[_Chat]]:
        known = await it.configuration()
        return known, [await _chat(it.journal, known, name) for name in known.chats]

    known, chats = with_world(db, world, work, read_only=True)
    if as_json:
        told = known_as_json(known)
        told["chats"] = [
            {**plain, **it.as_json()} for plain, it in zip(told["chats"], chats, strict=True)
        ]
        click.echo(json.dumps(told, indent=2))
        return
    for line in _lines(known, chats, Place(db=db)):
        click.echo(line)


@attrs.frozen(kw_only=True)
class _Chat:
    """All that is shown of one chat."""

    standing: ChatStanding
    entries: int
    requests: tuple[Request, ...]
    doubts: tuple[Doubt, ...]
    alone: frozenset[str]
    """Runs of members that have something to do, and that nobody performs."""
    questions: Mapping[str, Question]
    """Those that nobody has replied to, by their ids."""

    @property
    def status(self) -> str:
        """How the chat stands, in a word."""
        if self.standing.is_idle:
            return "idle"
        waits = self.standing.waits_for_people or self.questions
        return "waits for people" if waits else "under way"

    def as_json(self) -> dict[str, Any]:
        return {
            "entries": self.entries,
            "status": self.status,
            "standing": [
                {
                    "agent": it.member.agent,
                    "run": it.member.run_id,
                    "stands": str(it.stands),
                    "heard": it.cursor,
                    "turns": it.turns,
                    "alone": it.member.run_id in self.alone,
                }
                for it in self.standing.members
            ],
            "requests": [_plain(it.as_json()) for it in self.requests],
            "doubts": [_plain(it.as_json()) for it in self.doubts],
            "questions": [
                {
                    "id": name,
                    "run": it.run,
                    "server": it.server,
                    "text": it.text,
                    "schema": _plain(it.schema),
                }
                for name, it in self.questions.items()
            ],
        }


def _plain(value: Json | Mapping[str, Any]) -> Any:  # noqa: ANN401 - any JSON
    return json.loads(canonical(value))


async def _chat(journal: Journal, known: Configuration, name: str) -> _Chat:
    members = known.members(name)
    standings = [await member_standing(journal, it, begins=known.begins_at(it)) for it in members]
    views = [await _view(journal, it) for it in members]
    entries, questions = 0, dict[str, Question]()
    async for read in entries_after(journal, chat_log(known.world, name), 0):
        entries = read.number
        _take(questions, read)
    return _Chat(
        standing=ChatStanding(chat=name, members=tuple(standings)),
        entries=entries,
        requests=tuple(it for view in views if view for it in waiting(view)),
        doubts=tuple(it for view in views if view for it in doubts(view)),
        alone=frozenset([it.member.run_id for it in standings if await _is_alone(journal, it)]),
        questions=questions,
    )


async def _is_alone(journal: Journal, standing: MemberStanding) -> bool:
    """Whether a member has something to do, and nobody performs it: its host is gone."""
    if standing.is_idle or standing.waits_for_people:
        return False
    try:
        return not is_owned(await journal.entry(standing.member.run_id), now=journal.time())
    except UnknownRun:
        return True


def _take(questions: dict[str, Question], read: ReadEntry) -> None:
    if isinstance(read.said, Question):
        questions[read.entry.entry_id] = read.said
    elif isinstance(read.said, Reply):
        questions.pop(read.said.to, None)


async def _view(journal: Journal, member: MemberName) -> RunView | None:
    """Return what the facts of a member fold to; None where it has done nothing yet."""
    try:
        run = (await journal.entry(member.run_id)).run
    except UnknownRun:
        return None
    return RunView.of(run, await facts_of(journal, member.run_id))


def _lines(known: Configuration, chats: list[_Chat], place: Place) -> Iterator[str]:
    title = f" – {harmless(known.title, limit=_TITLE)}" if known.title else ""
    yield f"world   {known.world}{title}"
    for name, it in known.agents.items():
        tools = harmless(", ".join(it.spec.tools) or "no tools", limit=_TOOLS)
        yield f"agent   {name}: {harmless(it.spec.model, limit=_MODEL)}, {tools}"
    if not known.agents:
        yield f"        no agent yet: turnlock world agent put {known.world} A"
    for chat in chats:
        yield from _chat_lines(known, chat, place)
    if not chats:
        yield f"        no chat yet: turnlock world chat {known.world} C"


def _chat_lines(known: Configuration, chat: _Chat, place: Place) -> Iterator[str]:
    name = chat.standing.chat
    told = known.chats[name]
    title = f" – {harmless(told.title, limit=_TITLE)}" if told.title else ""
    entries = counted(chat.entries, "entry", "entries")
    if told.closed:
        yield f"chat    {name}{title}: closed, {entries}"
        return
    yield f"chat    {name}{title}: {chat.status}, {entries}"
    for it in chat.standing.members:
        heard = f", heard {it.cursor}" if it.cursor else ""
        run = it.member.run_id
        alone = "; nobody performs it now" if run in chat.alone else ""
        yield f"        {it.member.agent:12} {_WORDS[it.stands]}{heard}  {run}{alone}"
    for request in chat.requests:
        yield from _call_lines("waits", request)
        yield from (f"        {line}" for line in deciding(request.as_json(), place))
    for doubt in chat.doubts:
        yield from _call_lines("doubt", doubt)
        yield "        nobody knows whether it happened: its tool's policy decides, or you:"
        yield from (f"        {line}" for line in resolving(doubt.as_json(), place))
    for question_id, question in chat.questions.items():
        yield f"asks    {harmless(question.server, limit=_NAME)}, for {harmless(question.run)}"
        yield f"        {harmless(question.text, limit=_QUESTION)}"
        form = replying(question_id, {"schema": question.schema}, place)
        yield from (f"        {line}" for line in form)


def _call_lines(what: str, told: Request | Doubt) -> Iterator[str]:
    """Yield the lines of a call, whole: somebody decides about it."""
    call = told.call
    yield f"{what:7} {harmless(call.invocation_id)} {harmless(call.tool_name)} ({call.run_id})"
    yield f"        {harmless(canonical(call.arguments))}"
    if is_sealed(call.arguments):
        yield f"      {SEALED}"
    yield f"        turn {harmless(call.turn_id)}, {bound_by(call)}"

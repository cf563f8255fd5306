"""A chat as it stands: its members, and what waits for people there (W-40, W-46, W-67, W-70)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ..models.errors import UnknownRun
from ..runtime.errors import RunForgotten
from ..runtime.journal.contract import Journal
from ..views.run_view import RunView
from ..world.chat import Chat
from ..world.configuration import Configuration
from ..world.entries import Question, read_entry
from ..world.names import MemberName
from ..world.open_questions import OpenQuestions
from ..world.requests import doubts, waiting
from ..world.standing import ChatStanding, MemberStanding, member_standing

if TYPE_CHECKING:  # who stands on this module
    from .face import Face

CHATS: Final = 256
"""Chats whose open questions are held, so that a request reads what is new of their logs."""


class Asked:
    """The questions of chats that wait for a reply."""

    def __init__(self, journal: Journal) -> None:
        """Hold none yet."""
        self._journal = journal
        self._held: OrderedDict[str, OpenQuestions] = OrderedDict()

    async def of(self, chat: Chat) -> list[dict[str, Any]]:
        """Return what waits for a reply in a chat, as clients see it."""
        held = self._held.setdefault(chat.log, OpenQuestions(chat.log))
        self._held.move_to_end(chat.log)
        while len(self._held) > CHATS:
            self._held.popitem(last=False)
        await held.read(self._journal)
        return [told for name in tuple(held.open) for told in await self._told(chat, name)]

    async def _told(self, chat: Chat, name: str) -> list[dict[str, Any]]:
        entry = await self._journal.find_entry(chat.log, name)
        said = None if entry is None else read_entry(entry, log=chat.log)
        if entry is None or not isinstance(said, Question):
            return []
        asks = {"server": said.server, "run_id": said.run, "text": said.text}
        return [{"id": name, "at": entry.at, **asks, "schema": said.schema}]


async def standing_of(face: Face, chat: Chat, configuration: Configuration) -> dict[str, Any]:
    """Return how a chat stands; who follows it after its cursor misses nothing."""
    cursor = await chat.cursor()
    members = configuration.members(chat.name)
    host = face.hosts.get(configuration.world)
    stands = (
        await host.standing(chat.name)
        if host is not None
        else ChatStanding(
            chat=chat.name,
            members=tuple([await _member(face, configuration, it) for it in members]),
        )
    )
    views = [view for it in members if (view := await _view(face, it.run_id)) is not None]
    return {
        "cursor": cursor,
        "idle": stands.is_idle,
        "waits_for_people": stands.waits_for_people,
        "members": [member_json(it) for it in stands.members],
        "requests": [it.as_json() for view in views for it in waiting(view)],
        "doubts": [it.as_json() for view in views for it in doubts(view)],
        "questions": await face.asked.of(chat),
    }


async def _member(face: Face, configuration: Configuration, member: MemberName) -> MemberStanding:
    begins = configuration.begins_at(member)
    return await member_standing(face.journal, member, begins=begins)


async def _view(face: Face, run_id: str) -> RunView | None:
    """Return the view of a member's run; None where it has not begun."""
    try:
        return (await face.looking.look(run_id)).view
    except (UnknownRun, RunForgotten):
        return None


def member_json(standing: MemberStanding) -> dict[str, Any]:
    """Return where a member stands, as clients see it."""
    told: Mapping[str, Any] = {
        "agent": standing.member.agent,
        "run_id": standing.member.run_id,
        "stands": standing.stands.value,
        "heard": standing.cursor,
        "turns": standing.turns,
        "goes_on": standing.goes_on,
        "answers_next": standing.waits,
        "failing": standing.failing,
    }
    return {name: value for name, value in told.items() if value is not None}

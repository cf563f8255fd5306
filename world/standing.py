"""Where a member stands, and its chat: folds of notes, facts and log, and of nothing else (W-2).

What a member has heard stands in the notes of its prompts, beside what its model was told (W-30),
and in those of what it passed by (W-22). The cursor is the largest of these numbers; what is to be
published follows from the last of them (W-5, W-21 … W-23, W-28); what it owes next, from both and
from the log. Whoever reads the same says the same, in any process, whether or not a host is there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Final, cast

import attrs

from ..agent.conversation import Conversation, Owed
from ..agent.messages import Prompt
from ..agent.structured import Misfit, form_of
from ..models.errors import InvalidValue, UnknownRun
from ..models.sealed import ID, is_sealed_body
from ..models.values import Json
from ..runtime.errors import CorruptLog
from ..runtime.journal.contract import Journal
from ..runtime.journal.ledger import Domain, Note
from ..runtime.journal.logs import Entry
from ..runtime.log import logger
from ..views.call_view import Waits
from ..views.turn_view import TurnView
from .entries import (
    ChatEntry,
    Handoff,
    Message,
    Notice,
    Question,
    Reply,
    Role,
    Unknown,
    fitted,
    read_entry,
)
from .mentions import answers, published
from .names import MemberName, answers_entry, limit_entry, notice_entry, said_entry

_log = logger(__name__)

PASSED: Final = "passed/"
"""Begins the id of the note that a message was passed by at the limit of turns (W-22)."""
ASKED_AGAIN: Final = 2
"""How often a model is asked again that has said nothing (W-28)."""
PAGE: Final = 100
"""Entries of a chat that are read at once."""


@attrs.frozen(kw_only=True)
class Heard:
    """Which entry of a chat a prompt was made of: it stands in the prompt's own note (W-30)."""

    number: int
    entry: str
    sender: str
    role: Role

    def as_json(self) -> dict[str, Json]:
        """Return it as the note keeps it."""
        return {
            "number": self.number,
            "entry": self.entry,
            "from": self.sender,
            "role": str(self.role),
        }

    @classmethod
    def read(cls, kept: Json) -> Heard | None:
        """Return what a note keeps; None where it is something else."""
        if not isinstance(kept, Mapping):
            return None
        body = cast("Mapping[str, Any]", kept)
        try:
            number, role = body["number"], Role(body["role"])
            entry, sender = body["entry"], body["from"]
        except (KeyError, ValueError):
            return None
        if type(number) is not int or type(entry) is not str or type(sender) is not str:
            return None
        return cls(number=number, entry=entry, sender=sender, role=role)


@attrs.frozen(kw_only=True)
class Passed:
    """An entry that was not heard, the limit of turns being reached; then the word is handed over.

    The limit stands in it: what is appended follows from the note, however the limit changes.
    """

    heard: Heard
    limit: int

    def as_note(self, *, at: float) -> Note:
        """Return the note that says so."""
        name = f"{PASSED}{self.heard.number}"
        body = {ID: name, **self.heard.as_json(), "limit": self.limit}
        return Note(domain=Domain.MESSAGE, kind="passed", body=body, at=at, id=name)

    @classmethod
    def read(cls, note: Note) -> Passed | None:
        """Return what a note says; None for another one."""
        heard = Heard.read(cast("Json", note.body)) if (note.id or "").startswith(PASSED) else None
        limit = note.body.get("limit")
        return cls(heard=heard, limit=limit) if heard and type(limit) is int else None


@attrs.frozen
class Publication:
    """What is to stand in the chat's log of what a member said last, and under which id (W-5)."""

    entry_id: str
    entry: ChatEntry


def last_heard(conversation: Conversation) -> Heard | None:
    """Return what the latest prompt was made of."""
    prompt = conversation.last_prompt
    return None if prompt is None else Heard.read(prompt.heard)


def last_passed(conversation: Conversation) -> Passed | None:
    """Return what was passed by latest."""
    found = (Passed.read(note) for note in reversed(conversation.beside))
    return next((it for it in found if it is not None), None)


def cursor_of(conversation: Conversation, *, begins: int = 0) -> int:
    """Return how far the chat was heard: the largest number in the notes (W-30).

    `begins` is where the member began to hear.
    """
    heard, passed = last_heard(conversation), last_passed(conversation)
    numbers = (heard.number if heard else 0, passed.heard.number if passed else 0)
    return max(begins, *numbers)


def turns_of(conversation: Conversation) -> int:
    """Return the prompts of agents since the last one of a person or the world (W-22)."""
    turns = 0
    for said in reversed(conversation.said):
        heard = Heard.read(said.heard) if isinstance(said, Prompt) and not said.misfit else None
        if heard is None:
            continue
        if heard.role is not Role.AGENT:
            break
        turns += 1
    return turns


def publication_of(
    member: MemberName, conversation: Conversation, *, auto_reply: bool
) -> Publication | None:
    """Return what is to be published of what came last; None: it is nothing, or not over yet."""
    passed, heard = last_passed(conversation), last_heard(conversation)
    if passed is not None and (heard is None or passed.heard.number > heard.number):
        entry_id = limit_entry(member.run_id, passed.heard.number)
        return Publication(entry_id, _handoff(member, passed.heard, "Turn", passed.limit))
    if heard is None or conversation.owed is not Owed.PROMPT:
        return None
    if conversation.is_stopped:
        return _given_up(member, heard, conversation.stopped_because)
    return _answer(member, conversation, heard, auto_reply=auto_reply)


def _answer(
    member: MemberName, conversation: Conversation, heard: Heard, *, auto_reply: bool
) -> Publication | None:
    """Return the last answer as it is published, or the notice that it is none."""
    number, last = len(conversation.said), conversation.latest
    if last is None:
        return None
    if last.calls:  # its turn was stopped
        return None if conversation.interrupted else _notice(member, number, "refused to answer")
    text = conversation.text
    if not text.strip() or _misfit(conversation):
        what = "gave no answer in the form that was asked for" if text.strip() else "says nothing"
        return _notice(member, number, what)
    sender = heard.sender if heard.role is Role.AGENT else None
    told = published(text, member.agent, sender, auto_reply=auto_reply)
    if not told.strip():
        return None
    message = Message(role=Role.AGENT, sender=member.agent, text=fitted(told), reply_to=heard.entry)
    return Publication(said_entry(member.run_id, number), message)


def _misfit(conversation: Conversation) -> bool:
    prompt = conversation.last_prompt
    if prompt is None or prompt.output is None:
        return False
    try:
        form_of(prompt.output).read(conversation.text)
    except Misfit:
        return True
    return False


def _given_up(member: MemberName, heard: Heard, because: Json) -> Publication | None:
    """Return the handoff at a limit of answers or tokens; None: a person has stopped it (W-23)."""
    if not isinstance(because, Mapping):
        return None
    told = cast("Mapping[str, Any]", because)
    what = "Token" if told.get("limit") == "token_limit" else "Answer"
    entry_id = answers_entry(member.run_id, heard.number)
    return Publication(entry_id, _handoff(member, heard, what, told.get("bound")))


def _handoff(member: MemberName, heard: Heard, what: str, limit: object) -> Handoff:
    return Handoff(
        role=Role.AGENT,
        sender=member.agent,
        text=f"@human {what} limit reached ({limit}). Please take over.",
        reply_to=heard.entry,
    )


def _notice(member: MemberName, number: int, what: str) -> Publication:
    return Publication(
        notice_entry(member.run_id, number), Notice(text=f"The model of {member.agent} {what}.")
    )


def read_said(entry: Entry, log: str) -> ChatEntry | Unknown:
    """Return what an entry of a chat says; one that is not as it must be says nothing."""
    try:
        return read_entry(entry, log=log)
    except InvalidValue as error:
        _log.warning("an entry is passed over: %s", error)
        return Unknown(kind="damaged")


@attrs.frozen
class ReadEntry:
    """An entry of a chat, and what it says."""

    entry: Entry
    said: ChatEntry | Unknown

    @property
    def number(self) -> int:
        """Its place in the log, from 1."""
        return self.entry.number


async def entries_after(journal: Journal, log: str, after: int) -> AsyncIterator[ReadEntry]:
    """Yield the entries of a chat after a number, those to the end of now."""
    while True:
        try:
            page = await journal.entries(log, after=after, limit=PAGE)
        except CorruptLog as error:
            if error.number <= after:
                raise
            _log.warning("an entry is passed over: %s", error)
            after = error.number
            continue
        if not page:
            return
        for entry in page:
            yield ReadEntry(entry, read_said(entry, log))
        after = page[-1].number


class Stands(StrEnum):
    """What a member does, or waits for: the first that holds."""

    DOUBT = "doubt"
    """A call was started, and nobody knows what became of it (K-35)."""
    APPROVAL = "approval"
    """A person is asked about a call."""
    QUESTION = "question"
    """All calls that run have asked a person something, and wait for the reply (W-67)."""
    RUNNING = "running"
    """Calls run, or are about to."""
    SPEAKING = "speaking"
    """Its model has to answer."""
    TO_PUBLISH = "to_publish"
    """What it said last does not stand in the log yet."""
    TO_HEAR = "to_hear"
    """An entry waits that it will answer."""
    IDLE = "idle"
    """It owes nothing, and has heard all that it would answer."""


@attrs.frozen(kw_only=True)
class MemberStanding:
    """One member as notes, facts and log tell of it."""

    member: MemberName
    stands: Stands
    cursor: int
    """The number of the last entry that it heard, or passed by."""
    turns: int
    """Prompts of agents since a person or the world had the word (W-22)."""
    waits: int | None = None
    """The next entry that it will answer."""
    goes_on: bool = False
    """Whether something happens without a person: a call runs, the model has to answer."""
    failing: str | None = None
    """Why its model does not answer, as the host here knows it."""

    @property
    def is_idle(self) -> bool:
        """Whether it owes a prompt, and has heard all that it would answer (W-70)."""
        return self.stands is Stands.IDLE

    @property
    def waits_for_people(self) -> bool:
        """Whether nothing happens until a person decides, or says what became of a call."""
        people = {Stands.APPROVAL, Stands.DOUBT, Stands.QUESTION}
        return self.stands in people and not self.goes_on


@attrs.frozen(kw_only=True)
class ChatStanding:
    """A chat: where its members stand."""

    chat: str
    members: tuple[MemberStanding, ...]

    @property
    def is_idle(self) -> bool:
        """Whether each member owes nothing and has heard all that it would answer (W-70)."""
        return all(it.is_idle for it in self.members)

    @property
    def waits_for_people(self) -> bool:
        """Whether somebody has to decide before anything else happens."""
        return not self.is_idle and all(it.is_idle or it.waits_for_people for it in self.members)


async def conversation_of(journal: Journal, run_id: str) -> Conversation:
    """Return what was said and done in a member's run, as far as what it owes needs it.

    What is sealed stays so: an answer with sealed calls is one with a call that nobody can read.
    """
    conversation = Conversation(run_id)
    conversation.asks_again = ASKED_AGAIN
    try:
        notes = await journal.notes(run_id)
    except UnknownRun:
        return conversation
    conversation.load(_seen(noted.note for noted in notes))
    if conversation.owed in {Owed.TURN, Owed.RESULTS}:
        async for fact in journal.facts(run_id):
            conversation.take(fact)
    return conversation


def _seen(notes: Iterable[Note]) -> Iterator[Note]:
    sealed: Json = {"call_id": None, "tool_name": "sealed", "arguments": {}}
    for note in notes:
        if is_sealed_body(note.body):
            body: dict[str, Json] = {"text": None, "calls": [sealed], "raw": None}
            yield attrs.evolve(note, body=body)
        else:
            yield note


async def member_standing(journal: Journal, member: MemberName, *, begins: int) -> MemberStanding:
    """Return where a member stands, who began to hear after entry `begins`."""
    conversation = await conversation_of(journal, member.run_id)
    cursor = cursor_of(conversation, begins=begins)
    goes_on, stands, waits = True, _stands(conversation), None
    if stands is Stands.IDLE:
        stands, waits = await _in_the_log(journal, member, conversation, cursor)
        goes_on = stands is not Stands.IDLE
    elif owed_turn := _open_turn(conversation):
        asked = await _asked(journal, member, cursor)
        running = {it.invocation_id for it in owed_turn.calls.waiting_for(Waits.REPORT)}
        goes_on = not running <= asked or owed_turn.calls.any_waiting_for(Waits.CLAIM, Waits.RETRY)
        if stands is Stands.RUNNING and not goes_on and running:
            stands = Stands.QUESTION
        goes_on = goes_on or stands is Stands.RUNNING
    return MemberStanding(
        member=member,
        stands=stands,
        cursor=cursor,
        turns=turns_of(conversation),
        waits=waits,
        goes_on=goes_on,
    )


def _stands(conversation: Conversation) -> Stands:
    owed = conversation.owed
    if owed is Owed.PROMPT:
        return Stands.IDLE
    if owed is Owed.ANSWER:
        return Stands.SPEAKING
    turn = _open_turn(conversation)
    for waits, stands in _PRESSING.items():
        if turn is not None and turn.calls.any_waiting_for(waits):
            return stands
    return Stands.RUNNING


def _open_turn(conversation: Conversation) -> TurnView | None:
    """Return the turn whose results are awaited."""
    turn = conversation.turns.get(conversation.turn_id or "")
    return turn if turn is not None and conversation.owed is Owed.RESULTS else None


async def _asked(journal: Journal, member: MemberName, cursor: int) -> set[str]:
    """Return the calls of a member that have asked a person, who has not replied yet (W-67)."""
    asked: dict[str, str] = {}
    async for it in entries_after(journal, member.log, cursor):
        if isinstance(it.said, Question) and it.said.run == member.run_id:
            asked[it.entry.entry_id] = it.said.invocation
        elif isinstance(it.said, Reply):
            asked.pop(it.said.to, None)
    return {*asked.values()}


_PRESSING: Final = {Waits.RESOLUTION: Stands.DOUBT, Waits.APPROVAL: Stands.APPROVAL}


async def _in_the_log(
    journal: Journal, member: MemberName, conversation: Conversation, cursor: int
) -> tuple[Stands, int | None]:
    """Return what a member that owes its model nothing owes the chat, and the chat it."""
    due = publication_of(member, conversation, auto_reply=True)
    if due is not None and await journal.find_entry(member.log, due.entry_id) is None:
        return Stands.TO_PUBLISH, None
    async for it in entries_after(journal, member.log, cursor):
        if answers(it.said, member.agent):
            return Stands.TO_HEAR, it.number
    return Stands.IDLE, None

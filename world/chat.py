"""A chat, from any process: what is said, decided and answered in it (W-10, W-41, W-67).

What is said is an entry of its log, kept once. What is decided is a delivery for the run of a
member: no entry decides anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

import attrs

from ..agent.conversation import Conversation, Owed
from ..agent.keeping import as_said
from ..agent.messages import Message as Remembered
from ..models.deliveries import Decide, Match, Resolution, Resolve, Scope
from ..models.errors import InvalidValue, UnknownRun, shown
from ..models.reasons import Reason
from ..models.values import ABSENT, Absent, Json, check_text, freeze
from ..runtime.errors import RunForgotten
from ..runtime.journal.contract import Journal
from ..runtime.tools.sealing import SealBroken, Seals
from ..runtime.tools.toolbox import Toolbox
from .configuration import ChatConfig, Configuration
from .deciding import Judgement, Shown, decided, judged, turn_stopped
from .entries import Message, Role, Stop, body_of
from .errors import ChatClosed, SaidOtherwise, UnknownAgent, UnknownChat
from .names import CallAt, MemberName, call_at, chat_log, doubt_at, member_of, say_entry, stop_entry
from .people import check_person
from .replying import Replied, replied, reply_of
from .standing import ASKED_AGAIN
from .streams import Events, ends_of, members_of

if TYPE_CHECKING:
    from .publishing import World

ID_LENGTH: Final = 256
"""Characters of the id of a message, at most."""
GRACE: Final = 10.0
"""Seconds in which what runs may still report, once its turn is interrupted (K-53)."""
WITHIN: Final = 10.0
"""Seconds to wait for the process that performs a member to answer."""


@attrs.frozen(kw_only=True)
class Published:
    """An entry that is kept: its number, its id, and whether it was not there before."""

    number: int
    entry_id: str
    new: bool


class Chat:
    """One chat of a world. Each method may be called from any process, and again."""

    def __init__(self, world: World, name: str) -> None:
        """Name a chat, which need not be there; `World.chat` checks the name."""
        self.world: Final = world
        self.name: Final = name
        self.log: Final = chat_log(world.name, name)

    @property
    def journal(self) -> Journal:
        """Where it is kept."""
        return self.world.journal

    async def configuration(self) -> ChatConfig:
        """Return what the chat is now. Raises `UnknownWorld` and `UnknownChat`."""
        return self._of(await self.world.configuration())

    async def say(
        self, sender: str, text: str, *, message_id: str, reply_to: str | None = None
    ) -> Published:
        """Say something as a person, once for each id of a message; the text stays as it is.

        Raises `ChatClosed`, `SaidOtherwise` where the id is that of another text, `InvalidValue`
        for a sender that is no person, and for no text or too much of it.
        """
        known = await self.world.configuration()
        check_person(sender, known, place="sender")
        _check_message_id(message_id)
        message = Message(role=Role.PERSON, sender=sender, text=text, reply_to=reply_to)
        if not text.strip():
            raise InvalidValue(place="text", cause="says nothing", fix="give a text")
        entry_id = say_entry(sender, message_id)
        if self._of(known).closed and await self.journal.find_entry(self.log, entry_id) is None:
            raise ChatClosed(self.log)
        try:
            entered = await self.journal.append_entry(
                self.log, entry_id, body_of(message), at=self.world.now()
            )
        except InvalidValue as error:
            if await self.journal.find_entry(self.log, entry_id) is None:
                raise
            raise SaidOtherwise(self.log, "message_id", message_id) from error
        return Published(number=entered.number, entry_id=entry_id, new=entered.new)

    async def decide(  # noqa: PLR0913 - all that a decision can say
        self,
        request_id: str,
        *,
        approved: bool,
        decided_by: str,
        scope: Scope = Scope.ONCE,
        match: Match = Match.EXACT,
        arguments_digest: str | None = None,
        tool_name: str | None = None,
        arguments: Mapping[str, Json] | None = None,
        edit: Mapping[str, Json] | None = None,
        reason: str | None = None,
        expires_in: float | None = None,
        within: float = WITHIN,
    ) -> Judgement:
        """Approve or deny what a request asks for (W-41); the kernel says what it comes to.

        Whoever approves echoes the digest that the request showed. `tool_name` and `arguments` are
        compared with what waits, and never run: `edit` are arguments that run instead. Raises
        `InvalidValue` for what is no request's id and for a decision that nobody can make,
        `Unanswered` where the process that performs the member does not answer within `within`
        seconds: the decision is kept, and judged once it goes on.
        """
        call = call_at(request_id)
        known = await self.world.configuration()
        check_person(decided_by, known, place="decided_by")
        shown_to = Shown(
            tool_name=tool_name,
            arguments=None if arguments is None else _json_object(arguments, "arguments"),
        )
        decision = Decide(
            run_id=call.run_id,
            turn_id=call.turn_id,
            invocation_id=call.invocation_id,
            approved=approved,
            reason=reason,
            decided_by=decided_by,
            scope=scope,
            match=match,
            expires_in=expires_in,
            arguments_digest=arguments_digest if approved else None,
            arguments=edit,
        )
        _check_decision(decision)
        refused = self._refused(call, known, approved=approved)
        if refused is not None:
            return Judgement.refused(refused)
        return await decided(self.journal, self.log, decision, shown=shown_to, within=within)

    async def resolve(
        self,
        doubt_id: str,
        *,
        resolution: Resolution,
        result: Json | Absent = ABSENT,
        error: str | None = None,
        within: float = WITHIN,
    ) -> Judgement:
        """Say what became of a call in doubt, or have it run again (W-46); raises as `decide`."""
        doubt = doubt_at(doubt_id)
        call = doubt.call
        delivery = Resolve(
            run_id=call.run_id,
            turn_id=call.turn_id,
            invocation_id=call.invocation_id,
            attempt=doubt.attempt,
            resolution=resolution,
            result=result,
            error=error,
        )
        again = delivery.resolution is Resolution.RETRY
        refused = self._refused(call, await self.world.configuration(), approved=again)
        if refused is not None:
            return Judgement.refused(refused)
        return await judged(self.journal, self.log, call.run_id, delivery, within=within)

    async def reply(
        self,
        question_id: str,
        *,
        accept: Mapping[str, Any] | None = None,
        decline: bool = False,
        cancel: bool = False,
        by: str,
    ) -> Replied:
        """Answer what a tool asks (W-67); the first answer stands, whoever gave it.

        `accept` are the values of its form, held against its schema. Raises `UnknownQuestion`, and
        `InvalidValue` for what its form does not take, and for a form that asks for a secret.
        """
        reply = reply_of(question_id, accept=accept, decline=decline, cancel=cancel, by=by)
        known = await self.world.configuration()
        self._of(known)
        check_person(by, known, place="by")
        return await replied(self.journal, self.log, reply, at=self.world.now())

    async def interrupt(
        self,
        agent: str,
        *,
        reason: str | None = None,
        by: str = "human",
        grace: float = GRACE,
        within: float = WITHIN,
    ) -> Judgement:
        """Stop what a member is doing: its open turn, or the answer that its model owes.

        `no_active_turn`: it does nothing. What runs may still report for `grace` seconds. Raises
        `UnknownAgent`, and what `decide` raises.
        """
        known = await self.world.configuration()
        check_person(by, known, place="by")
        run_id = self._member(known, agent).run_id
        stopped = await turn_stopped(
            self.journal, self.log, run_id, reason=reason, grace=grace, within=within
        )
        if stopped.reason is not Reason.NO_ACTIVE_TURN:
            return stopped
        said = await _said_last(self.journal, run_id)
        if said is None:
            return stopped
        stop = Stop(run=run_id, said=said, by=by, reason=reason)
        try:
            entered = await self.journal.append_entry(
                self.log, stop_entry(run_id, said), body_of(stop), at=self.world.now()
            )
        except InvalidValue:
            if await self.journal.find_entry(self.log, stop_entry(run_id, said)) is None:
                raise
            return Judgement.refused(Reason.DUPLICATE)
        return Judgement(accepted=True) if entered.new else Judgement.refused(Reason.DUPLICATE)

    def events(self, after: str = "", *, follow: bool = True) -> Events:
        """Return what happens in it after a cursor, from the beginning, and on (W-71).

        Without `follow` it ends with what is there now. Close it when done. Raises `BadCursor` for
        what no event had as its cursor.
        """
        return Events(self, after=after, follow=follow)

    async def cursor(self) -> str:
        """Return the cursor after all that there is now: events after it happen from now on."""
        known = await self.world.configuration()
        self._of(known)
        return str(await ends_of(self, members_of(known, self.name)))

    async def memory(self, agent: str, *, tools: Toolbox | None = None) -> tuple[Remembered, ...]:
        """Return what a member remembers: prompts, answers and results, in order (W-2).

        What its tools keep sealed is opened by `tools`; without them that raises `SealBroken`.
        """
        run_id = self._member(await self.world.configuration(), agent).run_id
        conversation = await _conversation(self.journal, run_id, tools)
        return tuple(conversation.messages())

    async def clear(self, agent: str) -> None:
        """Have a member forget; see `World.clear`."""
        await self.world.clear(self.name, agent)

    async def close(self) -> None:
        """End it; see `World.close_chat`."""
        await self.world.close_chat(self.name)

    async def title(self, title: str, *, by: str = "human") -> None:
        """Give it a title; see `World.title`."""
        await self.world.title(self.name, title, by=by)

    def _of(self, known: Configuration) -> ChatConfig:
        found = known.chats.get(self.name)
        if found is None:
            raise UnknownChat(self.world.name, self.name)
        return found

    def _member(self, known: Configuration, agent: str) -> MemberName:
        self._of(known)
        member = known.member(self.name, agent)
        if member is None:
            raise UnknownAgent(f"chat {self.log}", agent, chat=self.name)
        return member

    def _refused(self, call: CallAt, known: Configuration, *, approved: bool) -> Reason | None:
        """Return why nothing of this call may be decided here; None: the kernel is asked.

        What is over – the memory was cleared, the agent removed, the chat closed – is not approved
        any more: its turn is to be interrupted, and nothing is to begin before.
        """
        member = member_of(call.run_id)
        if member is None or member.log != self.log:
            return Reason.RUN_MISMATCH
        present = known.member(self.name, member.agent)
        if member == present:
            return None
        was_there = member.nth <= known.over.get((self.name, member.agent), 0)
        if not was_there:
            return Reason.RUN_MISMATCH
        return Reason.NO_ACTIVE_TURN if approved else None


def _check_message_id(message_id: object) -> None:
    if type(message_id) is not str or not 0 < len(message_id) <= ID_LENGTH or "\0" in message_id:
        raise InvalidValue(
            place="message_id",
            cause=f"{shown(message_id)} is no id of a message",
            fix=f"give 1 to {ID_LENGTH} characters",
        )
    check_text(message_id, place="message_id")


def _check_decision(decision: Decide) -> None:
    """Refuse what nobody may say, before anybody is asked."""
    approved, asks = decision.approved, decision.expires_in is not None
    if approved and decision.arguments_digest is None:
        raise InvalidValue(
            place="arguments_digest",
            cause="is missing: an approval echoes what was shown",
            fix="give the digest that the request has",
        )
    if not approved and decision.arguments is not None:
        raise InvalidValue(place="edit", cause="nothing runs after a denial", fix="leave it out")
    if decision.scope is Scope.ONCE and (asks or decision.match is not Match.EXACT):
        raise InvalidValue(
            place="scope",
            cause="a grant is asked for, and a decision for once gives none",
            fix="give the scope turn or session, or leave match and expires_in out",
        )


def _json_object(value: object, place: str) -> Mapping[str, Json]:
    frozen: object = freeze(value, place=place)
    if not isinstance(frozen, Mapping):
        raise InvalidValue(place=place, cause="is no JSON object", fix="give named values")
    return cast("Mapping[str, Json]", frozen)


async def _conversation(
    journal: Journal, run_id: str, tools: Toolbox | None = None
) -> Conversation:
    """Return what was said and done in a run; of one that never began, nothing."""
    conversation = Conversation(run_id)
    conversation.asks_again = ASKED_AGAIN
    seals = Seals({}, None) if tools is None else tools.seals
    try:
        notes = await journal.notes(run_id)
        conversation.load(as_said(notes, seals, run_id=run_id))
        async for fact in journal.facts(run_id):
            conversation.take(fact)
    except (UnknownRun, RunForgotten):
        return Conversation(run_id)
    return conversation


async def _said_last(journal: Journal, run_id: str) -> int | None:
    """Return the number of what was said last, where something follows from it; None: nothing."""
    try:
        conversation = await _conversation(journal, run_id)
    except SealBroken:  # what was said is not for this process: count it
        notes = await journal.notes(run_id)
        return sum((noted.note.id or "").startswith("said/") for noted in notes)
    return None if conversation.owed is Owed.PROMPT else len(conversation.said)

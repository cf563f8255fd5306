"""What MCP servers ask people, as entries of the chat: from any process, and after crashes (W-67).

async with Questions(journal, "demo") as questions:
    async with open_host_file("host.toml", questions=questions) as own: …

A question is an entry of the chat whose member's call asks; so is its reply, and the first stands,
whoever gave it and wherever. Every question gets one: where its call ends first, or the process
that asked has died, the host replies `cancel`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, Self, TypeAlias, cast

from ..models.errors import InvalidValue, TurnlockError, UnknownRun
from ..models.ids import escape
from ..models.safe_text import harmless
from ..models.values import Json
from ..runtime.journal.contract import Entry, Journal
from ..runtime.leases import Leases
from ..runtime.log import logger
from ..runtime.owners import is_ours
from ..runtime.scheduling import Clock, SteadyClock
from ..runtime.tools.errors import bounded, said
from ..toolkits.mcp.questions import (
    QUESTIONS,
    Accept,
    Cancel,
    Decline,
    Field,
    check_answer,
    fields_of,
    why_not,
)
from ..toolkits.mcp.questions import Question as Asked
from ..toolkits.mcp.questions import Reply as Told
from ..toolkits.mcp.sampling import Sample
from .entries import TEXT_BYTES, Action, Notice, Question, Reply, body_of, read_entry
from .names import WORLD, chat_of, member_of, question_id, reply_id
from .open_questions import OpenQuestions, replied_to

_log = logger(__name__)

WAITING: Final = 100
"""Questions of one chat that wait for a reply; one more is declined."""
POLL: Final = 0.25
"""Seconds between two looks for replies of other processes, as long as a question waits here."""
LOOK_FOR_THE_DEAD: Final = 5.0
"""Seconds between two looks for questions that nobody waits for any more."""

_UNDER_WAY: Final[set[str]] = set()
"""The questions that this process asks, by id, whoever asks them."""

_ALLOW: Final[Mapping[str, Json]] = {
    "type": "object",
    "properties": {"allow": {"type": "boolean", "title": "Let the model be asked this"}},
    "required": ["allow"],
}


class Questions:
    """Asks people of one world's chats on behalf of this process's calls.

    Enter it before the servers that ask, in their loop.
    """

    def __init__(
        self,
        journal: Journal,
        world: str,
        *,
        headless: bool = False,
        clock: Clock | None = None,
    ) -> None:
        """Prepare; `headless` has every question declined at once (W-69)."""
        self.journal: Final = journal
        self.world: Final = world
        self._headless: Final = headless
        self._clock: Final = journal.clock or clock or SteadyClock()
        self._chats: Final[dict[str, OpenQuestions]] = {}
        self._waiting: Final[dict[str, tuple[str, asyncio.Future[Entry]]]] = {}
        """The log of each question that is asked here, and what its reply is given to."""
        self._wake: Final = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None
        self._unheed: Callable[[], None] | None = None

    async def __aenter__(self) -> Self:
        """Begin to look for replies, and for what the dead have asked."""
        self._unheed = self.journal.when_entered(self._entered)
        self._watching = asyncio.create_task(self._watch(), name=f"questions of {self.world}")
        return self

    async def __aexit__(self, *_: object) -> None:
        """Look no more. What is asked still is not answered here."""
        if self._unheed is not None:
            self._unheed()
        watching, self._watching = self._watching, None
        if watching is not None:
            watching.cancel()
            await asyncio.wait([watching])

    async def ask(self, question: Asked) -> Told:
        """Have a person answer; this is what `McpServers` takes as `elicit`.

        It is declined where nobody could answer, and cancelled where what was replied does not fit
        the form. Raises what the journal raises.
        """
        member = member_of(question.run_id)
        if member is None or member.world != self.world or question.secretive:
            why = "nothing of its tool is kept" if question.secretive else "it is of no chat here"
            _log.info("%s asks, and is declined: %s", question.server, why)
            return Decline()
        entry = Question(
            run=question.run_id,
            turn=question.turn_id,
            invocation=question.invocation_id,
            attempt=question.attempt,
            server=question.server,
            text=question.message,
            schema=question.form,
        )
        return await self._asked(member.log, question.question_id, entry)

    async def approve_sample(self, sample: Sample) -> bool:
        """Have a person say whether a server may ask the agent's model this (W-68)."""
        member = member_of(sample.run_id)
        text = f"{sample.server} wants to ask the model:\n{sample.shown()}"
        if member is None or member.world != self.world or len(text.encode()) > TEXT_BYTES:
            return False
        place = (sample.run_id, sample.turn_id, sample.invocation_id)
        entry = Question(
            run=sample.run_id,
            turn=sample.turn_id,
            invocation=sample.invocation_id,
            attempt=sample.attempt,
            server=sample.server,
            text=text,
            schema=_ALLOW,
        )
        name = question_id(*place, sample.attempt, QUESTIONS + sample.number)
        reply = await self._asked(member.log, name, entry)
        return isinstance(reply, Accept) and reply.content["allow"] is True

    async def _asked(self, log: str, name: str, question: Question) -> Told:
        """Keep a question, wait for its reply, and return it; whatever happens, one is kept."""
        if self._watching is None:
            raise TurnlockError("questions are asked here only while Questions is entered")
        chat = self._chat(log)
        await self._read(chat)
        here = {it for it, (of, _) in self._waiting.items() if of == log}
        if len(chat.open.keys() | here) >= WAITING:
            _log.warning("%s: %d questions wait there; one more is declined", log, WAITING)
            return Decline()
        future: asyncio.Future[Entry] = asyncio.get_running_loop().create_future()
        _UNDER_WAY.add(name)
        self._waiting[name] = log, future
        try:
            await self._keep(log, name, body_of(question))
            if self._headless:
                await self._reply(log, name, Action.DECLINE)
            early = await self.journal.find_entry(log, reply_id(name))
            self._wake.set()
            return await self._told(log, name, question, early or await future)
        except BaseException:  # its call has ended, or it could not be kept
            await self._cancel(log, name)
            raise
        finally:
            self._waiting.pop(name, None)
            _UNDER_WAY.discard(name)

    async def _told(self, log: str, name: str, question: Question, entry: Entry) -> Told:
        """Return what a reply says; one that does not fit is not passed on, and that is said."""
        asked = await self.journal.find_entry(log, name)
        try:
            return _read_reply(entry, asked, question)
        except InvalidValue as error:
            why = bounded(harmless(str(error)), limit=500)
            text = f"The reply to {question.server} does not fit its form, and is not passed on: "
            await self._keep(log, f"misfit/{name}", body_of(Notice(text=f"{text}{why}")))
            return Cancel()

    async def _reply(self, log: str, name: str, action: Action) -> None:
        """Reply as the host, unless there is a reply: the first stands."""
        body = body_of(Reply(to=name, action=action, by=WORLD))
        with suppress(InvalidValue):
            await self._keep(log, reply_id(name), body)

    async def _cancel(self, log: str, name: str) -> None:
        try:
            await self._reply(log, name, Action.CANCEL)
        except Exception as error:  # noqa: BLE001 - who looks for what is left does it then
            _log.warning("that %r is cancelled was not kept: %s", name, said(error))

    async def _keep(self, log: str, name: str, body: dict[str, Json]) -> None:
        await self.journal.append_entry(log, name, body, at=self._clock.now())

    def _chat(self, log: str) -> OpenQuestions:
        return self._chats.setdefault(log, OpenQuestions(log))

    def _entered(self, log: str) -> None:
        """Look at once where something was said in a chat that is waited for."""
        if any(log == waiting for waiting, _ in self._waiting.values()):
            self._wake.set()

    async def _watch(self) -> None:
        """Look for replies, and now and then for what the dead have asked."""
        now = asyncio.get_running_loop().time
        look_again = now()
        while True:
            self._wake.clear()
            try:
                for log in {log for log, _ in self._waiting.values()}:
                    await self._read(self._chat(log))
                if now() >= look_again:
                    look_again = now() + LOOK_FOR_THE_DEAD
                    await self.cancel_what_is_left()
            except Exception as error:  # noqa: BLE001 - the journal may be there again later
                _log.warning("questions of %s could not be looked at: %s", self.world, said(error))
            left = POLL if self._waiting else max(0.0, look_again - now())
            with suppress(TimeoutError):
                async with asyncio.timeout(left or POLL):
                    await self._wake.wait()

    async def _read(self, chat: OpenQuestions) -> None:
        for entry in await chat.read(self.journal):
            _, future = self._waiting.get(replied_to(entry) or "", (None, None))
            if future is not None and not future.done():
                future.set_result(entry)

    async def cancel_what_is_left(self) -> None:
        """Reply `cancel` to each question whose process has died, or asks it no more.

        A run has one process that performs it: what its owner does not ask, nobody does.
        """
        for it in await self.journal.logs(f"{escape(self.world)}/"):
            if chat_of(it.name) is None:
                continue
            chat = self._chat(it.name)
            if it.last > chat.after:
                await self._read(chat)
            for name, run_id in tuple(chat.open.items()):
                if name not in _UNDER_WAY and await self._is_left(run_id):
                    await self._reply(chat.log, name, Action.CANCEL)

    async def _is_left(self, run_id: str) -> bool:
        """Whether nobody performs a run but perhaps this process."""
        try:
            entry = await self.journal.entry(run_id)
        except UnknownRun:
            return True
        return is_ours(entry.owner) or not Leases(now=self.journal.time()).is_owned(entry)


def _read_reply(entry: Entry, asked: Entry | None, question: Question) -> Told:
    """Return what was replied. Raises `InvalidValue` where it is no reply to this question."""
    reply = read_entry(entry)
    late = asked is not None and asked.number < entry.number
    if asked is None or not late or not isinstance(reply, Reply) or reply.to != asked.entry_id:
        raise InvalidValue(
            place=f"entry {entry.number}", cause="does not answer it", fix="reply once it is asked"
        )
    if reply.action is not Action.ACCEPT:
        return Decline() if reply.action is Action.DECLINE else Cancel()
    content = reply.content or {}
    check_reply(question, content)
    return Accept(content)


FormField: TypeAlias = Field
"""One field of a form, its texts harmless."""


def form_fields(schema: object) -> tuple[FormField, ...] | None:
    """Return the fields of a question's form, their texts harmless; None: none that may be shown.

    Whatever another program has put into the log, a form that asks for a secret too is none.
    """
    form: Any = {"type": "object", "properties": {}} if schema is None else schema
    if not isinstance(form, Mapping) or why_not(cast("Mapping[str, Any]", form)) is not None:
        return None
    return fields_of(cast("Mapping[str, Any]", form))


def form_of(question: Question) -> Mapping[str, Any]:
    """Return the JSON Schema of a question's answer: an object of plain values."""
    return question.schema or {"type": "object", "properties": {}}


def check_reply(question: Question, content: Mapping[str, Any]) -> None:
    """Raise `BadArguments` where what is accepted does not fit the question's form."""
    check_answer(form_of(question), content)

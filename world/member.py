"""One member at work: its next step, each done again after a crash or found done (W-6).

    finish what is owed → publish what was said last → hear the next entry that it answers

A step is kept before the next one begins: an answer stands in the log before anything that follows
from it (W-32), and a prompt is one note with the number of what it was made of (W-30). Nothing that
could be stale is held in memory: who the agent is now is asked before each answer, and what was
heard stands in the notes alone (W-33, W-34).
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Final

import attrs

from ..agent.conversation import Owed
from ..agent.errors import LimitReached, ModelError
from ..agent.loop import Agent
from ..agent.setup import Setup
from ..agent.speaking import Ended, Question, Said
from ..agent.structured import form_of
from ..agent.transients import SpeechStarted, Transient
from ..models.errors import InvalidValue, TurnlockError
from ..models.run import Run
from ..runtime.errors import RunFenced
from ..runtime.journal.contract import Journal
from ..runtime.journal.logs import Entry
from ..runtime.runtime import Runtime
from ..runtime.tools.toolbox import ToolsOf
from .configuration import AgentConfig
from .entries import Message, Notice, Role, body_of
from .mentions import answers
from .names import KIND, MemberName, stop_entry
from .spec import Hears
from .standing import (
    ASKED_AGAIN,
    Heard,
    Passed,
    Publication,
    ReadEntry,
    cursor_of,
    entries_after,
    last_heard,
    publication_of,
    turns_of,
)

UNHEARD_BYTES: Final = 1024 * 1024
"""Bytes of what a member was not asked, told with the next prompt; the oldest gives way (W-20)."""
OFFERED: Final = 100
"""Entries that a member holds which it has not looked at; of more it reads the log again."""
LEFT_OUT: Final = "(earlier messages were left out)"
"""Stands before what is told of them."""


class Left(TurnlockError):
    """The member is none any more: removed, its memory cleared, or its chat closed."""


@attrs.frozen(kw_only=True)
class Means:
    """What a member needs of who performs it."""

    journal: Journal
    runtime: Runtime
    known: Callable[[], AgentConfig]
    """Returns the agent as it was read last. Raises `Left`."""
    now: Callable[[], Awaitable[AgentConfig]]
    """Returns the agent as the world's log has it now. Raises `Left`."""
    setup: Callable[[AgentConfig], Setup]
    """Returns what an answer is asked with. Raises `TurnlockError` where there is no such model."""
    tools: ToolsOf
    tell: Callable[[Transient], None]
    begins: int
    """The number after which it hears what is said."""


@attrs.frozen
class Waiting:
    """An entry that waits to be heard."""

    entry: Entry
    message: Message

    @property
    def heard(self) -> Heard:
        """What its prompt keeps of it."""
        entry, message = self.entry, self.message
        return Heard(
            number=entry.number, entry=entry.entry_id, sender=message.sender, role=message.role
        )


class Member:
    """A member that is performed here, as long as its agent is entered."""

    def __init__(self, name: MemberName, means: Means) -> None:
        """Prepare; enter `agent` to own its run."""
        self.name: Final = name
        self._means: Final = means
        self._looked = 0
        """The number up to which no entry waits."""
        self._waiting: Waiting | None = None
        """The entry that was found to wait."""
        self._offered: deque[ReadEntry] = deque(maxlen=OFFERED)
        """Entries that were read for all members of the chat, and need not be read again."""
        self._is_caught_up = False
        """Whether the log was read to its end once: what came since was offered."""
        self._published: str | None = None
        """The id of what was published last, as far as that is known."""
        self._published_of: tuple[int, int, int] | None = None
        """Of how much that was said nothing is to be published any more."""
        self._is_new = True
        """Whether nothing was asked here yet: somebody may have stopped it before."""
        self.agent: Final = Agent(
            model=_Unasked(),
            run=Run(run_id=name.run_id, agent_id=name.agent, agent_name=name.agent, kind=KIND),
            runtime=means.runtime,
            tools=means.tools,
            asks_again=ASKED_AGAIN,
            configure=self._configured,
            checks_grants=True,
            tell=self._tell,
        )

    async def step(self) -> bool:
        """Do what is owed next; False where nothing is.

        Raises `ModelError` where its model does not answer, `Left` where it is no member any more,
        and `RunFenced` once its run is somebody else's; what is owed then is owed still.
        """
        if self.agent.conversation.owed is not Owed.PROMPT:
            await self._finish()
            return True
        if await self._publish():
            return True
        waiting = await self._next()
        if waiting is None:
            return False
        config = self._means.known()
        limit = config.spec.turn_limit
        if waiting.message.role is Role.AGENT and turns_of(self.agent.conversation) >= limit:
            await self._pass(waiting, limit)
        else:
            await self._hear(waiting, config)
        self._waiting = None
        return True

    def offer(self, entries: Iterable[ReadEntry]) -> None:
        """Take in what was read of the chat, in order: each entry that came while it is entered."""
        self._offered.extend(entries)

    async def stop(self, said: int, *, reason: str | None) -> None:
        """Stop what goes on after the note `said/N`, as an entry of the chat asks for."""
        if len(self.agent.conversation.said) == said:
            await self.agent.interrupt(reason=reason)

    async def say_that_it_fails(self) -> None:
        """Tell the chat, once for each answer, that its model does not answer.

        Why is not repeated there: what providers say may hold what is nobody's business (W-15).
        """
        number = len(self.agent.conversation.said) + 1
        notice = Notice(text=f"The model of {self.name.agent} does not answer; it is asked again.")
        await self._append(Publication(f"{self.name.run_id}/failing/{number}", notice))

    @property
    def cursor(self) -> int:
        """How far the chat was heard: a fold of the notes, and nothing beside them (W-33)."""
        return cursor_of(self.agent.conversation, begins=self._means.begins)

    async def _finish(self) -> None:
        """Have the model answer, and its calls done; at a limit a person has the word (W-23)."""
        if self._is_new:
            await self._heed_stops()
            self._is_new = False
        try:
            await self.agent.run()
        except LimitReached as reached:
            await self.agent.give_up({"limit": reached.limit, "bound": reached.bound})

    async def _heed_stops(self) -> None:
        """Stop what somebody stopped while nobody performed it."""
        run_id, said = self.name.run_id, len(self.agent.conversation.said)
        found = await self._means.journal.find_entry(self.name.log, stop_entry(run_id, said))
        if found is not None:
            await self.agent.interrupt(reason="stopped by a person")

    async def _publish(self) -> bool:
        """Publish what was said last, once (W-5, W-32); False where it stands in the log."""
        spec, conversation = self._means.known().spec, self.agent.conversation
        known = len(conversation.said), conversation.stopped, len(conversation.beside)
        if known == self._published_of:
            return False
        due = publication_of(self.name, conversation, auto_reply=spec.auto_reply)
        if due is None or due.entry_id == self._published:
            self._published_of = known
            return False
        is_known = self._published is not None
        found = None if is_known else await self._found(due)
        if found is None:
            await self._append(due)
        self._published, self._published_of = due.entry_id, known
        return found is None

    async def _append(self, due: Publication) -> None:
        """Append it; the first of its id stands, though a spec has changed meanwhile (W-10)."""
        journal, at = self._means.journal, self._means.runtime.now()
        await self._check_owned()
        try:
            await journal.append_entry(self.name.log, due.entry_id, body_of(due.entry), at=at)
        except InvalidValue:
            if await self._found(due) is None:
                raise

    async def _found(self, due: Publication) -> Entry | None:
        return await self._means.journal.find_entry(self.name.log, due.entry_id)

    async def _check_owned(self) -> None:
        """Raise `RunFenced` where the run is not surely owned here: a log fences nobody (W-36)."""
        if not await self._means.runtime.tenure.has(self.name.run_id):
            raise RunFenced(f"run {self.name.run_id!r} is not performed here any more")

    async def _next(self) -> Waiting | None:
        """Return the next entry that it answers, by its cursor (W-26)."""
        cursor = self.cursor
        if self._waiting is None or self._waiting.entry.number <= cursor:
            self._waiting = None
            self._looked = max(self._looked, cursor)
            async for it in self._since():
                if answers(it.said, self.name.agent) and isinstance(it.said, Message):
                    self._waiting = Waiting(it.entry, it.said)
                    break
                self._looked = it.number
        return self._waiting

    async def _since(self) -> AsyncIterator[ReadEntry]:
        """Yield what came since it looked: what was offered, where that is all; else the log."""
        while self._offered and self._offered[0].number <= self._looked:
            self._offered.popleft()
        if self._is_caught_up and not self._offered:
            return
        if self._is_caught_up and self._offered[0].number == self._looked + 1:
            for it in tuple(self._offered):
                yield it
            return
        async for it in entries_after(self._means.journal, self.name.log, self._looked):
            yield it
        self._is_caught_up = True

    async def _hear(self, waiting: Waiting, config: AgentConfig) -> None:
        """Keep the prompt and how far the chat was heard, in one note (W-30)."""
        lines = [_line(waiting.message)]
        if config.spec.hears is Hears.ALL:
            lines = [*await self._unheard(waiting.entry.number), *lines]
        wanted = config.spec.output
        await self.agent.say(
            "\n\n".join(lines),
            heard=waiting.heard.as_json(),
            output=None if wanted is None else form_of(wanted).schema,
        )

    async def _unheard(self, until: int) -> list[str]:
        """Return what was said since it heard last and is not asked of it, in order (W-20).

        What it passed by at its limit is such, too: who hears all learns of it with the next
        prompt.
        """
        lines: deque[str] = deque()
        size, is_cut, name = 0, False, self.name
        heard = last_heard(self.agent.conversation)
        after = max(self._means.begins, heard.number if heard else 0)
        async for it in entries_after(self._means.journal, name.log, after):
            if it.number >= until:
                break
            if isinstance(it.said, Message) and it.said.sender != name.agent:
                lines.append(_line(it.said))
                size += len(lines[-1].encode())
                while size > UNHEARD_BYTES:
                    size -= len(lines.popleft().encode())
                    is_cut = True
        return [LEFT_OUT, *lines] if is_cut else [*lines]

    async def _pass(self, waiting: Waiting, limit: int) -> None:
        """Note that it is passed by, so that a larger limit does not bring it back (W-22)."""
        runtime, run_id = self._means.runtime, self.name.run_id
        note = Passed(heard=waiting.heard, limit=limit).as_note(at=runtime.now())
        await runtime.note(run_id, note)
        self.agent.conversation.beside.append(note)

    async def _configured(self) -> Setup:
        """Return what the next answer is asked with: the agent as it is now (W-34)."""
        config = await self._means.now()
        try:
            return self._means.setup(config)
        except TurnlockError as error:
            raise ModelError(f"{self.name.agent}: its model cannot be had: {error}") from error

    def _tell(self, transient: Transient) -> None:
        if isinstance(transient, SpeechStarted):
            transient = attrs.evolve(transient, agent=self.name.agent)
        self._means.tell(transient)


def _line(message: Message) -> str:
    return f"{message.sender}: {message.text}"


class _Unasked:
    """Stands for the model until one is asked: which one it is, is known then."""

    async def speak(self, question: Question) -> AsyncIterator[Said]:
        raise AssertionError(question)
        yield Ended  # pragma: no cover - it makes a generator

    async def close(self) -> None:
        """Nothing is open."""

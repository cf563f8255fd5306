"""The agent loop: prompt, answer, tool calls, results, answer … until the model asks for no more.

    async with Agent(run=Run(run_id="r"), model=model, journal=journal, tools=tools) as agent:
        print(await agent.ask("What is the weather?"))

All that was said and done is in the journal before anything follows from it (see `conversation`):
the same lines after a crash go on where it stopped, with `go_on` in place of `ask`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Final, Self, TypeVar

import attrs

from ..models.deliveries import Reject
from ..models.reasons import Reason
from ..models.run import Run
from ..models.values import Json
from ..runtime.dispatcher import Continuation
from ..runtime.errors import JournalError, RunFenced, TooSlow
from ..runtime.journal.contract import Journal
from ..runtime.runtime import Runtime
from ..runtime.scheduling import Clock, backoff, retried
from ..runtime.settings import Settings
from ..runtime.telemetry import Telemetry
from ..runtime.tools.sealing import Place
from ..runtime.tools.toolbox import Toolbox
from ..views.call_view import CallView
from .conversation import Conversation, Owed
from .errors import ConversationBroken
from .messages import Answer, Message, Prompt, Results, as_note
from .speaking import Model, Question, listen

T = TypeVar("T")

LOOK: Final = 1.0
"""Seconds after which a loop that waits for results looks whether the run is still its own."""

OPENED: Final = frozenset({Reason.TURN_OPEN, Reason.TURN_REUSED, Reason.STALE_EPOCH})
"""Why a turn is refused that was opened before a crash, or before an answer was lost."""


class Agent:
    """One conversation, on a runtime of its own that performs no other run."""

    def __init__(  # noqa: PLR0913 - what a runtime takes, and the model
        self,
        *,
        run: Run,
        model: Model,
        journal: Journal,
        tools: Toolbox,
        settings: Settings | None = None,
        clock: Clock | None = None,
        telemetry: Telemetry | None = None,
    ) -> None:
        """Prepare; nothing is owned before it is entered. The journal and the model are yours."""
        self.run: Final = run
        self.conversation: Final = Conversation(run.run_id)
        self.runtime: Final = Runtime(
            journal=journal,
            tools=tools,
            on_continue=self._take,
            settings=attrs.evolve(settings or Settings(), takes_over=False),
            clock=clock,
            telemetry=telemetry,
        )
        self._journal = journal
        self._model = model
        self._changed = asyncio.Event()
        self._following: asyncio.Task[None] | None = None
        self._loaded = False
        """Whether all that was said and done before is known."""

    async def __aenter__(self) -> Self:
        """Own the run, and perform what it owes. Raises what `Runtime.open_run` raises."""
        await self.runtime.__aenter__()
        try:
            await self.runtime.open_run(self.run)
            self.conversation.load(self._clear(await self.runtime.notes(self.run.run_id)))
            self._following = asyncio.create_task(self._follow())
            known = (await self._journal.entry(self.run.run_id)).sequence
            await self._until(lambda: self.conversation.sequence >= known)
            self._loaded = True
            self._tell()
        except BaseException as error:
            await self.__aexit__(type(error), error, None)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Hand the run over; after an error at once, otherwise when what runs has ended."""
        await self.runtime.__aexit__(kind, error, traceback)
        if self._following is not None:
            self._following.cancel()
            await asyncio.wait([self._following])

    async def ask(self, prompt: str) -> str | None:
        """Say something to the model, once all before is settled, and return as `go_on` does."""
        await self.go_on()
        await self._say(Prompt(text=prompt))
        return await self.go_on()

    async def go_on(self) -> str | None:
        """Go on until a person has the word, and return what the model said last.

        None: a turn was interrupted, or nothing was said yet. Raises `ModelError` when the model
        does not answer; it is asked again when this is called again. Raises `RunFenced` once the
        run is somebody else's.
        """
        conversation = self.conversation
        while (owed := conversation.owed) is not Owed.PROMPT:
            if owed is Owed.ANSWER:
                said = tuple(map(self._as_told, conversation.messages()))
                question = Question(messages=said, tools=self.runtime.tools)
                await self._say((await listen(self._model, question)).answer)
            elif owed is Owed.TURN:
                await self._open_turn()
            else:
                await self._reject_faulty()
                await self._until(lambda: conversation.owed is not Owed.RESULTS)
        last = conversation.said[-1] if conversation.said else None
        return (last.text or "") if isinstance(last, Answer) and not last.calls else None

    def pending(self) -> tuple[CallView, ...]:
        """Return the calls that wait for a person; those that will be rejected are none."""
        faulty = self._faulty()
        return tuple(
            waiting
            for waiting in self.runtime.pending(self.run.run_id)
            if waiting.invocation_id not in faulty
        )

    async def _say(self, said: Prompt | Answer) -> None:
        """Keep a message, then take it for said."""
        name = self.conversation.next_name
        note = self._as_kept(name, said)
        await self._kept(partial(self.runtime.note, self.run.run_id, name, note))
        self.conversation.said.append(said)
        self._tell()

    def _as_kept(self, name: str, said: Prompt | Answer) -> Json:
        """Return the note of a message; one that asks for calls with secret arguments is sealed."""
        note, seals = as_note(said), self.runtime.tools.seals
        calls = said.calls if isinstance(said, Answer) else ()
        if any(seals.seals_arguments(call.tool_name) for call in calls):
            return seals.note(note, run_id=self.run.run_id, name=name)
        return note

    def _clear(self, notes: Mapping[str, Json]) -> dict[str, Json]:
        """Return the notes as they were said. Raises `SealBroken`."""
        seals, run_id = self.runtime.tools.seals, self.run.run_id
        return {
            name: seals.clear_note(note, run_id=run_id, name=name) for name, note in notes.items()
        }

    def _as_told(self, message: Message) -> Message:
        """Return a message as the model is told it: results are kept sealed, perhaps."""
        if not isinstance(message, Results):
            return message
        seals = self.runtime.tools.seals
        clear = seals.results(message.results, self.run.run_id, message.turn_id)
        return attrs.evolve(message, results=clear)

    async def _open_turn(self) -> None:
        """Open the turn of the latest answer; whoever did it before a crash did it as well."""
        answer, turn_id = self._latest(), self.conversation.turn_id
        if answer is None or turn_id is None:
            raise AssertionError(self.conversation.owed)
        calls = answer.identified()
        epoch = self.conversation.epoch
        verdict = await self._kept(
            partial(self.runtime.open_turn, self.run.run_id, calls, turn_id=turn_id, epoch=epoch)
        )
        entry = await self._journal.entry(self.run.run_id)
        await self._until(lambda: self.conversation.sequence >= entry.sequence)
        if verdict.reason is None or (
            verdict.reason in OPENED and turn_id in self.conversation.turns
        ):
            return
        raise ConversationBroken(
            f"run {self.run.run_id!r}: the turn {turn_id!r} of {len(calls):,} calls was refused"
            f" ({verdict.reason}); somebody else opens turns in this run, or the model asks for too"
            " much: go on in another run"
        )

    async def _reject_faulty(self) -> None:
        """Reject the calls whose arguments could not be read; done again, it changes nothing."""
        turn_id = self.conversation.turn_id
        for invocation_id, fault in self._faulty().items():
            rejection = Reject(turn_id=turn_id, invocation_id=invocation_id, error=fault)
            await self._kept(partial(self.runtime.deliver, self.run.run_id, rejection))

    def _faulty(self) -> dict[str, str]:
        answer = self._latest()
        if answer is None:
            return {}
        seals, turn_id = self.runtime.tools.seals, self.conversation.turn_id or ""
        return {
            call.invocation_id: seals.error(
                asked.tool_name,
                asked.fault,
                Place(self.run.run_id, turn_id, call.invocation_id),
            )
            for call, asked in zip(answer.identified(), answer.calls, strict=True)
            if asked.fault is not None
        }

    def _latest(self) -> Answer | None:
        last = self.conversation.said[-1] if self.conversation.said else None
        return last if isinstance(last, Answer) else None

    async def _take(self, continuation: Continuation) -> None:
        """Take a continuation off the books once the model's answer to it is kept (K-52)."""
        with suppress(RunFenced):  # its next owner tells the model
            await self._until(
                lambda: self._loaded and self.conversation.answered(continuation.turn_id)
            )

    async def _follow(self) -> None:
        """Fold the facts of the run as they come."""
        while True:
            subscription = self.runtime.subscribe(self.run.run_id, after=self.conversation.sequence)
            with suppress(TooSlow):  # subscribe again: the journal has what was missed
                async for fact in subscription:
                    self.conversation.take(fact)
                    self._tell()
                return

    def _tell(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def _until(self, holds: Callable[[], bool]) -> None:
        """Wait for something to hold of the conversation. Raises `RunFenced`."""
        while not holds():
            changed = self._changed
            try:
                async with asyncio.timeout(LOOK):  # wait_for may swallow a cancellation (3.11)
                    await changed.wait()
            except TimeoutError:
                self._check_ours()

    def _check_ours(self) -> None:
        following = self._following
        if following is not None and following.done():
            following.result()
        if self.runtime.failure is not None:
            raise self.runtime.failure
        if self.run.run_id not in self.runtime.runs:
            raise RunFenced(
                f"run {self.run.run_id!r} was taken over by another process; it goes on there"
            )

    async def _kept(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do what may be done again until the journal has it."""

        def failed(_: Exception, __: float) -> None:
            self._check_ours()

        pauses = backoff(self.runtime.settings)
        return await retried(work, pauses=pauses, on=(JournalError,), failed=failed)

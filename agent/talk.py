"""One conversation at work on a runtime: what is owed next is done, and kept before it counts.

What is owed, the notes and facts say (`conversation`); so whoever opens the same run after a crash
goes on where it stopped. The runtime may perform any number of other runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

import attrs

from ..models.calls import Call
from ..models.deliveries import Reject, Revoke
from ..models.facts import (
    CallAdded,
    ExecutionFact,
    Fact,
    LeaseRenewed,
    LifecycleFact,
    TurnInterrupting,
    TurnOpened,
)
from ..models.reasons import Reason
from ..models.run import Run
from ..models.values import Json
from ..models.verdicts import Verdict
from ..runtime.runtime import Runtime
from ..runtime.tools.toolbox import Toolbox
from ..turn.phases import TurnPhase
from ..views.call_view import CallView
from .asking import Asking
from .conversation import REFUSED, Owed
from .errors import ConversationBroken, LimitReached, ModelError
from .events import Answered, CallUpdate, Hear
from .following import Following
from .granted import declarations, outdated
from .keeping import as_kept, as_stopped, as_told, faults_of
from .messages import Answer, Prompt, Stop, as_note
from .setup import Configure, Setup
from .speaking import Question
from .structured import Form, untold_misfit

OPENED: Final = frozenset({Reason.TURN_OPEN, Reason.TURN_REUSED, Reason.STALE_EPOCH})
"""Why a turn is refused that was opened before a crash, or before an answer was lost."""


class Talk:
    """One conversation, performed here as long as the run is open on the runtime."""

    def __init__(
        self,
        *,
        run: Run,
        runtime: Runtime,
        setup: Setup,
        hear: Hear,
        configure: Configure | None = None,
    ) -> None:
        """Prepare; `hear` takes what happens from the moment when all before is known."""
        self.run_id: Final = run.run_id
        self.runtime: Final = runtime
        self._run: Final = Following(run=run, runtime=runtime, heed=self._heed)
        self.conversation: Final = self._run.conversation
        self._setup = setup
        """As it was when the model was asked last."""
        self._configure = configure
        self._offered = Toolbox()
        """The tools that the model was told of last."""
        self.conversation.asks_again = setup.asks_again
        self._hear = hear
        self._speaking: asyncio.Task[Answer] | None = None
        self._keeping = asyncio.Lock()
        """Held while a note is kept: an answer is kept, or a part of it, or was stopped."""
        self._latest_kept: asyncio.Future[bool] | None = None
        """What is being kept, or was, latest: it may wait for the lock still."""
        self._unreturned: Answer | None = None
        """The latest answer that was kept, if nobody was given its result."""
        self.form: Form[Any] | None = None
        """How the answer to the latest prompt is read; None: as its schema says (W-59)."""

    async def open(self) -> None:
        """Own the run, and perform what it owes. Raises what `Runtime.open_run` raises."""
        await self._run.open(self._setup.tools)

    async def close(self, *, drain: float | None = None) -> None:
        """Let the run go; what runs has `drain` seconds, the runtime's own unless given."""
        await self._run.close(drain=drain)

    async def say(self, prompt: Prompt) -> None:
        """Say something to the model, once all before is settled, or has reached its limit.

        The latest prompt again, while it is unfinished or with what was `heard`, was said before,
        and is not said again; nor is one whose `message_id` was.
        """
        with self._run.ours():
            await self._all_kept()
            if self.conversation.has_said(prompt.message_id):
                return
            if self.conversation.last_prompt == prompt and (
                prompt.heard is not None or self._is_unfinished()
            ):
                return
            with suppress(LimitReached):
                await self._settle()
            await self._keep(prompt)

    async def go_on(self) -> None:
        """Go on until a person has the word; a model is told of answers that do not fit (W-59).

        Raises `ModelError` when the model does not answer, `LimitReached` when it must not be
        asked again, and `HookFailed`; what is owed is still owed then. Raises `RunFenced` once the
        run is somebody else's.
        """
        with self._run.ours():
            await self._all_kept()
            await self._settle()
            while (told := self._untold()) is not None:
                await self._keep(told)
                await self._settle()
        self._unreturned = None

    async def _settle(self) -> None:
        conversation = self.conversation
        while (owed := conversation.owed) is not Owed.PROMPT:
            if owed is Owed.ANSWER:
                await self._answer()
            elif owed is Owed.TURN:
                await self._open_turn()
            else:
                await self._reject_faulty()
                await self._run.until(lambda: conversation.owed is not Owed.RESULTS)

    async def _all_kept(self) -> None:
        """Wait for what is being kept, though who waited for it was cancelled: it counts."""
        if self._latest_kept is not None:
            await asyncio.wait([self._latest_kept])
        async with self._keeping:
            pass

    def _untold(self) -> Prompt | None:
        return untold_misfit(self.conversation, self.form)

    def _is_unfinished(self) -> bool:
        """Whether anything follows from what was said last; at a limit nothing does."""
        if self.conversation.owed is Owed.PROMPT:
            last = self.conversation.latest
            unreturned = last is not None and not last.calls and last is self._unreturned
            return unreturned or self._untold() is not None
        if self.conversation.owed is not Owed.ANSWER:
            return True
        with suppress(LimitReached):
            self._setup.check_limits(self.run_id, self.conversation.answers)
            return True
        return False

    async def interrupt(self, *, reason: str | None, grace: float) -> bool:
        """Stop what is going on, and return once a person has the word; False where one had it.

        The model that is being asked is not listened to any more, which a note says. A turn is
        interrupted (K-53), once it is open. A prompt that is being kept is stopped once it is.
        """
        conversation, stopped = self.conversation, False
        with self._run.ours():
            await asyncio.sleep(0)  # who has just begun to say something is at it then
            await self._all_kept()
            while (owed := conversation.owed) is not Owed.PROMPT:
                stopped = True
                if owed is Owed.ANSWER:
                    await self._stop_asking()
                elif owed is Owed.TURN:
                    await self._open_turn()
                else:
                    interrupt, turn_id = self.runtime.interrupt, conversation.turn_id or ""
                    await self._run.kept(
                        partial(interrupt, self.run_id, turn_id=turn_id, reason=reason, grace=grace)
                    )
                    await self._run.until(lambda: conversation.owed is not Owed.RESULTS)
        return stopped

    def pending(self) -> tuple[CallView, ...]:
        """Return the calls that wait for a person; those that will be rejected are none."""
        if self.run_id not in self.runtime.runs:
            return ()
        faulty = self._faulty()
        return tuple(
            waiting
            for waiting in self.runtime.pending(self.run_id)
            if waiting.invocation_id not in faulty
        )

    async def _answer(self) -> None:
        """Keep what the model answers; what has begun of it is the answer, if nobody asks any more.

        Nothing is kept where a person stops it.
        """
        answer = self.conversation.begun or await self._asked()
        if answer is not None and await self._keep(answer):
            self._unreturned = answer
            self._hear(Answered(answer))
            await self._setup.answered(self.run_id, answer)

    async def _asked(self) -> Answer | None:
        """Ask the model, and return what it answers; None: a person has stopped it."""
        conversation, setup = self.conversation, await self._setup_now()
        await self._check_grants()
        tools = self._run.tools
        if conversation.owed is not Owed.ANSWER:
            return None
        setup.check_limits(self.run_id, conversation.answers)
        said = (
            as_told(message, tools.seals, run_id=self.run_id)
            for message in conversation.messages(history=setup.history)
        )
        prompt = conversation.last_prompt
        question = Question(
            tuple(said),
            tools,
            instructions=setup.instructions,
            output=None if prompt is None else prompt.output,
        )
        question = await setup.asked(self.run_id, question)
        self._offered = question.tools
        if conversation.is_stopped:
            return None
        asking = Asking(model=setup.model, agent=self.run_id, tell=setup.tell, hear=self._hear)
        speaking = self._speaking = asyncio.create_task(
            asking.answer(
                question,
                entry_id=f"{self.run_id}/{conversation.next_name}",
                begin=self._begin if setup.start == "early" else None,
            )
        )
        try:
            await asyncio.wait([speaking])
        finally:
            was_stopped = self._speaking is not speaking
            self._speaking = None
            if not speaking.done():
                speaking.cancel()
                await asyncio.wait([speaking])
        if not speaking.cancelled():
            return self._configured(speaking.result())
        if not was_stopped:
            raise ModelError(f"{type(setup.model).__name__} was cancelled by something of its own")
        await self._all_kept()  # a part of it, perhaps
        return conversation.begun

    async def _setup_now(self) -> Setup:
        """Return what counts for the next answer (W-34)."""
        if self._configure is not None:
            given, before = await self._configure(), self._setup
            self._setup = attrs.evolve(
                given,
                tools=before.tools,
                tell=before.tell,
                asks_again=before.asks_again,
                checks_grants=before.checks_grants,
            )
        return self._setup

    def _configured(self, answer: Answer) -> Answer:
        """Return an answer that says under which configuration it was asked for, of which tools."""
        configuration = self._setup.configuration
        if self._setup.checks_grants:
            answer = attrs.evolve(
                answer, declared=declarations(answer.calls, self._offered) or None
            )
        return (
            answer if configuration is None else attrs.evolve(answer, configuration=configuration)
        )

    async def _check_grants(self) -> None:
        """Revoke the grants whose tools are others now; done again, it changes nothing."""
        conversation, run_id = self.conversation, self.run_id
        if not self._setup.checks_grants:
            return
        turn = conversation.turns.get(conversation.turn_id or "")
        if turn is not None and not turn.closed:  # somebody may just have given one
            await self._run.caught_up()
        changed = [*outdated(conversation, self._run.tools)]
        for it in changed:
            revoke = Revoke(run_id=run_id, grant_id=it)
            await self._run.kept(partial(self.runtime.deliver, run_id, revoke))
        if changed:
            await self._run.caught_up()

    async def _begin(self, answer: Answer) -> bool:
        """Keep an answer as far as it goes, and have its latest call begin (W-58).

        False: no more calls may begin, since their turn was stopped, or the answer.
        """
        conversation = self.conversation
        if not await self._keep(self._configured(answer), is_part=True):
            return False
        await self._open_turn(sealed=False)
        await self._reject_faulty()
        turn = conversation.turns[conversation.turn_id or ""]
        return turn.phase is TurnPhase.OPEN and len(turn.calls) == len(answer.calls)

    async def give_up(self, because: Json) -> bool:
        """Keep that the answer that is owed is not asked for any more, and why; False: none is.

        It is done where the model is not being asked: at a limit, say. The next prompt goes on.
        """
        with self._run.ours():
            await self._all_kept()
            if self.conversation.owed is not Owed.ANSWER:
                return False
            await self._stop_asking(because)
        return self.conversation.is_stopped

    async def _stop_asking(self, because: Json = None) -> None:
        """Keep that nobody waits for the answer that is owed, unless it is there by then.

        What has begun of it is the answer. A person did it, unless it is said why.
        """
        conversation = self.conversation
        async with self._keeping:
            if conversation.owed is not Owed.ANSWER:
                return
            if conversation.begun is None:
                at = self.runtime.now()
                note = as_stopped(conversation.stop_name, at=at, because=because)
                await self._run.kept(partial(self.runtime.note, self.run_id, note))
                conversation.stop(because)
            self._stop_listening()
        self._run.tell()
        await self._all_kept()  # a part that waited meanwhile
        if conversation.begun is not None:
            await self._keep(conversation.begun)

    def _stop_listening(self) -> None:
        speaking, self._speaking = self._speaking, None
        if speaking is not None:
            speaking.cancel()

    async def _keep(self, said: Prompt | Answer, *, is_part: bool = False) -> bool:
        """Keep a message, then take it for said; not an answer that is not owed any more.

        A part is an answer as far as it goes. It is done to its end, though who waits for it be
        cancelled: a note never changes.
        """

        async def keep() -> bool:
            async with self._keeping:
                conversation, run_id = self.conversation, self.run_id
                if isinstance(said, Answer) and conversation.owed is not Owed.ANSWER:
                    return False
                name = conversation.next_part if is_part else conversation.next_name
                note = as_note(said, name=name, at=self.runtime.now(), is_part=is_part)
                note = as_kept(note, said, self._run.seals, run_id=run_id)
                await self._run.kept(partial(self.runtime.note, run_id, note))
                if is_part and isinstance(said, Answer):
                    conversation.begin(said)
                else:
                    conversation.say(said)
            self._run.tell()
            return True

        self._latest_kept = asyncio.ensure_future(keep())
        self._latest_kept.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(self._latest_kept)

    async def _open_turn(self, *, sealed: bool = True) -> None:
        """Have the turn of the latest answer hold its calls, and no others once it is `sealed`.

        Whoever did so before a crash did it as well. Of an answer that was refused, what has not
        started is interrupted (W-58).
        """
        conversation, run_id = self.conversation, self.run_id
        answer, turn_id = conversation.latest, conversation.turn_id
        if answer is None or turn_id is None:
            raise AssertionError(conversation.owed)
        await self._check_grants()
        calls, refused = self._identified(answer), answer.stop is Stop.REFUSED
        if turn_id not in conversation.turns:
            await self._open_new(calls, turn_id, sealed=sealed and not refused)
        turn = conversation.turns[turn_id]
        if turn.phase is not TurnPhase.OPEN:
            return
        add, seal, interrupt = (
            partial(work, run_id, turn_id=turn_id)
            for work in (self.runtime.add_call, self.runtime.seal_turn, self.runtime.interrupt)
        )
        for call in calls:
            if turn.calls.get(call.invocation_id) is None:
                await self._run.kept(partial(add, call))  # refused where somebody stopped the turn
        if refused:
            seal = partial(interrupt, reason=REFUSED)
        verdict = await self._run.kept(seal) if sealed else None
        await self._run.caught_up()
        if verdict is not None and conversation.turns[turn_id].phase is TurnPhase.OPEN:
            raise self._refused(turn_id, verdict)

    def _identified(self, answer: Answer) -> Sequence[Call]:
        """Return the calls of an answer, as many as a turn takes (K-56)."""
        return answer.identified()[: self._run.limits.calls]

    async def _open_new(self, calls: Sequence[Call], turn_id: str, *, sealed: bool) -> None:
        conversation = self.conversation
        opening = partial(self.runtime.open_turn, self.run_id, calls, turn_id=turn_id)
        verdict = await self._run.kept(partial(opening, epoch=conversation.epoch, sealed=sealed))
        await self._run.caught_up()
        opened = verdict.reason is None or verdict.reason in OPENED
        if not opened or turn_id not in conversation.turns:
            raise self._refused(turn_id, verdict)

    def _refused(self, turn_id: str, verdict: Verdict) -> ConversationBroken:
        return ConversationBroken(
            f"run {self.run_id!r}: the turn {turn_id!r} was refused ({verdict.reason}); somebody"
            " else opens turns in this run, or the model asks for too much: go on in another run"
        )

    async def _reject_faulty(self) -> None:
        """Reject the calls whose arguments could not be read; done again, it changes nothing."""
        turn_id = self.conversation.turn_id
        for invocation_id, fault in self._faulty().items():
            rejection = Reject(turn_id=turn_id, invocation_id=invocation_id, error=fault)
            await self._run.kept(partial(self.runtime.deliver, self.run_id, rejection))

    def _faulty(self) -> dict[str, str]:
        answer = self.conversation.latest
        if answer is None:
            return {}
        turn_id = self.conversation.turn_id or ""
        return faults_of(answer, self._run.seals, run_id=self.run_id, turn_id=turn_id)

    def _heed(self, fact: Fact) -> None:
        """Tell whoever watches of the calls that a fact is about."""
        if isinstance(fact, TurnInterrupting) and self.conversation.begun is not None:
            self._stop_listening()
        if isinstance(fact, TurnOpened):
            for call in self.conversation.turns[fact.turn_id].calls:
                self._hear(CallUpdate(call))
        elif isinstance(fact, CallAdded):
            self._hear(CallUpdate(self.conversation.turns[fact.turn_id].calls[-1]))
        elif isinstance(fact, LifecycleFact | ExecutionFact) and not isinstance(fact, LeaseRenewed):
            found = self.conversation.turns[fact.turn_id].calls.get(fact.invocation_id)
            if found is not None:
                self._hear(CallUpdate(found))

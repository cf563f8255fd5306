"""One question, asked until there is an answer to keep (W-52).

An answer is kept if it is whole, whatever its stop. One that was cut is none, and is asked again –
unless calls of it have begun (W-58): then what there is of it is the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

import attrs

from ..models.errors import InvalidValue
from ..runtime.log import logger
from .early import Closed
from .errors import ModelError
from .folds.calls import bounded
from .messages import Answer, Stop, Tokens, check_answer
from .speaking import (
    Again,
    CallEnded,
    Ended,
    Model,
    Question,
    Said,
    Text,
    Used,
    fell_silent,
    hear_nothing,
    speaking,
)
from .structured import ANSWER, has_field, unwrapped, with_tool
from .transients import Shown, SpeechChunk, SpeechEnded, SpeechFailed, SpeechStarted, Transient

_log = logger(__name__)

PAUSES: Final = (0.5, 1.0, 2.0, 4.0)
"""Seconds before a cut answer is asked again, which is so often."""

INTERRUPTED: Final = "interrupted: nobody waits for this answer any more"
"""Told to listeners of an answer of which nothing is kept."""

Begin: TypeAlias = Callable[[Answer], Awaitable[bool]]
"""Begins the calls of an answer up to its latest closed call; False: no more may be added."""


def tell_nobody(_: Transient) -> None:
    """Nobody listens."""


@attrs.frozen(kw_only=True)
class Asking:
    """Asks a model in the name of an agent. Neither `tell` nor `hear` may raise."""

    model: Model
    agent: str
    tell: Callable[[Transient], None] = tell_nobody
    hear: Callable[[Said], None] = hear_nothing
    pauses: Sequence[float] = PAUSES

    async def answer(
        self, question: Question, *, entry_id: str, begin: Begin | None = None
    ) -> Answer:
        """Return the answer to keep under this id.

        With `begin`, calls begin early: it is given the answer so far at each call that is closed.
        From then on the model is not asked again; what is cut or fails leaves the answer so far,
        and so does who cancels this: listeners are told of its end.

        Raises `ModelError`, also after the last cut. Whatever is raised, listeners are told.
        """
        by_tool = question.output is not None and not has_field(self.model, question)
        asked = with_tool(question) if by_tool else question
        speech = _Speech(asking=self, entry_id=entry_id, begin=begin, by_tool=by_tool)
        try:
            answer = await self._asked(asked, speech)
        except asyncio.CancelledError:
            self.tell(speech.interrupted())
            raise
        except BaseException as error:
            message = str(error) or type(error).__name__
            self.tell(SpeechFailed(entry_id=entry_id, message=message))
            raise
        if answer.stop is Stop.OTHER:
            _log.warning("%s: its model stopped for a reason that is not known", entry_id)
        self.tell(SpeechEnded(entry_id=entry_id, stop=answer.stop, tokens=answer.tokens))
        return answer

    async def _asked(self, question: Question, speech: _Speech) -> Answer:
        for pause in (*self.pauses, None):
            answer = await speech.of(question)
            if answer.stop is not Stop.CUT or speech.closed.calls:
                return answer
            if pause is not None:
                self.hear(Again())
                await asyncio.sleep(pause)
        raise ModelError(
            f"{speech.entry_id}: the model was cut off {len(self.pauses) + 1} times before it said"
            " why it stopped; ask again later, and where its endpoint never says why, make it with"
            " reasonless=True"
        )


@attrs.define(kw_only=True)
class _Speech:
    """What is said to one question, from the latest start on."""

    asking: Asking
    entry_id: str
    begin: Begin | None
    by_tool: bool
    """Whether the answer may come as a call of the tool `answer`."""
    attempt: int = 0
    text: str = ""
    tokens: Tokens = attrs.field(factory=Tokens)
    closed: Closed = attrs.field(factory=Closed)

    async def of(self, question: Question) -> Answer:
        """Ask once, and return the answer; cut, where it was, or where no more calls may begin."""
        model, hear = self.asking.model, self.asking.hear
        self._start()
        try:
            async with speaking(model, question) as saying:
                async for said in saying:
                    if isinstance(said, Again) and self.closed.calls:
                        break  # what has begun is not thrown away (W-54)
                    hear(said)
                    if isinstance(said, Ended):
                        return self._ended(said.answer)
                    if not isinstance(said, CallEnded):
                        self._take(said)
                    elif not await self._begins(said):
                        break
        except ModelError as error:
            if self.closed.answer is None:
                raise
            _log.warning("%s failed after calls of it had begun: %s", self.entry_id, error)
        if self.closed.answer is None:
            raise fell_silent(model)
        return self.closed.answer

    def interrupted(self) -> Transient:
        """Return what listeners are told where nobody waits any more: what has begun is kept."""
        answer = self.closed.answer
        if answer is None:
            return SpeechFailed(entry_id=self.entry_id, message=INTERRUPTED)
        return SpeechEnded(entry_id=self.entry_id, stop=answer.stop, tokens=answer.tokens)

    def _start(self) -> None:
        """Begin anew: what was said is void."""
        self.attempt += 1
        self.text, self.tokens = "", Tokens()
        self.asking.tell(
            SpeechStarted(entry_id=self.entry_id, agent=self.asking.agent, attempt=self.attempt)
        )

    def _take(self, said: Said) -> None:
        if isinstance(said, Again):
            self._start()
        elif isinstance(said, Used):
            self.tokens = said.tokens
        elif isinstance(said, Shown):
            self.asking.tell(SpeechChunk(entry_id=self.entry_id, said=said))
            if isinstance(said, Text):
                self.text += said.text

    async def _begins(self, ended: CallEnded) -> bool:
        """Have a call begin, if it may; False: none may any more."""
        if self.begin is None or (self.by_tool and ended.call.tool_name == ANSWER):
            return True
        spec = getattr(self.asking.model, "spec", None)
        so_far = Answer(text=self.text or None, spec=spec, tokens=self.tokens)
        self._check(attrs.evolve(so_far, calls=(ended.call,)))
        return await self.begin(self.closed.add(ended, so_far))

    def _check(self, answer: Answer) -> None:
        """Raise `ModelError` for what is no answer: nothing of it is kept."""
        try:
            check_answer(answer)
        except InvalidValue as error:
            raise ModelError(
                f"{self.entry_id}: the model said what is no answer ({error}); see to that model"
            ) from error

    def _ended(self, answer: Answer) -> Answer:
        if answer.stop is Stop.CUT:
            return self.closed.answer or answer
        self._check(answer)
        answer = attrs.evolve(answer, calls=bounded(answer.calls, answer.stop))
        return self.closed.whole(unwrapped(answer) if self.by_tool else answer)

"""Approval prompts: what can be asked about a run's calls, who decides, and one after the other."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Iterator
from typing import Final, Protocol, TypeAlias

import attrs

from ..agent.approving import Approve, Deny, decided, resolved
from ..agent.loop import Agent
from ..agent.script import Script
from ..models.deliveries import Decide, Delivery, Resolution, Resolve
from ..models.errors import InvalidValue, TurnlockError
from ..models.inputs import Input
from ..models.record import changed
from ..models.safe_text import harmless
from ..models.sealed import is_sealed
from ..models.values import ABSENT, Absent, Json
from ..runtime.in_doubt import UNKNOWN
from ..runtime.tools.arguments import misfit
from ..runtime.tools.performing import PROBING
from ..runtime.tools.policy import InDoubt
from ..runtime.tools.sealing import SealBroken
from ..verification.replay.calls import Mode
from ..views.call_view import CallView
from ..views.meanings import refused
from .run_screen import Screen


@attrs.frozen(kw_only=True)
class Approval:
    """A call asks whether it may run."""

    call: CallView
    misfit: str | None = None
    """Why it cannot run as it is, approved or not, where that is known."""

    def decide(self, decision: Approve | Deny) -> Decide:
        """Return the decision about what was shown (K-32)."""
        return decided(self.call, decision)


@attrs.frozen(kw_only=True)
class Doubt:
    """A call was started, and nobody knows whether it happened (K-35)."""

    call: CallView

    @property
    def may_retry(self) -> bool:
        """Whether it is ours to run again, and not stopped (K-53, K-58)."""
        return Input.RESOLVE_RETRY in self.call.allowed

    def resolve(
        self, as_: Resolution, *, result: Json | Absent = ABSENT, error: str | None = None
    ) -> Resolve:
        """Return the resolution."""
        return resolved(self.call, as_, result=result, error=error)


Question: TypeAlias = Approval | Doubt


class Decider(Protocol):
    """Who is asked."""

    async def decide(self, question: Question) -> Delivery | None:
        """Return what is decided; None: nobody decides this here, it stays as it is."""
        ...


class NoDecider:
    """Decides nothing."""

    async def decide(self, question: Question) -> Delivery | None:  # noqa: ARG002 - as Decider
        """Leave it."""
        return None


class Headless:
    """Nobody is there: what would be asked is denied, and a doubt is a failure (W-69)."""

    async def decide(self, question: Question) -> Delivery | None:
        """Decide at once."""
        if isinstance(question, Approval):
            reason = "nobody is there to ask (--headless)"
            return question.decide(Deny(reason, by="--headless"))
        return question.resolve(Resolution.ERROR, error=UNKNOWN)


class Unattended:
    """Decides by an option. What was denied when it was recorded is denied again.

    A doubt is left: no option knows what happened.
    """

    def __init__(self, mode: Mode, *, seed: int, script: Script | None) -> None:
        """Approve, deny, or throw a coin, which falls alike for one seed and call."""
        self._mode: Final = mode
        self._seed: Final = seed
        self._script = script

    async def decide(self, question: Question) -> Delivery | None:
        """Decide at once."""
        if not isinstance(question, Approval):
            return None
        call = question.call
        reason = None
        if self._script is not None:
            reason = self._script.denial(call.turn_id, call.invocation_id)
        if reason is None and not self._approves(call):
            reason = f"denied by --decisions {self._mode}"
        by = f"--decisions {self._mode}"
        return question.decide(Approve(by=by) if reason is None else Deny(reason, by=by))

    def _approves(self, call: CallView) -> bool:
        if self._mode is Mode.RANDOM:
            place = f"{self._seed}/{call.run_id}/{call.turn_id}/{call.invocation_id}"
            return hashlib.sha256(place.encode()).digest()[0] % 2 == 0
        return self._mode is Mode.APPROVE


_Key: TypeAlias = tuple[str, int]
"""What a question is about: the path of the call, and of a doubt the attempt."""

PROBED: Final = PROBING + 1.0
"""Seconds after which a probe has surely found nothing out, and a person is asked."""


class ApprovalPrompts:
    """Asks a decider about each call that waits or is in doubt, one after the other.

    Whatever nobody decides is left, and not asked about before `ask_again`.
    """

    def __init__(self, agent: Agent, *, decider: Decider, screen: Screen) -> None:
        """Ask this decider about the calls of this agent."""
        self._agent = agent
        self._decider = decider
        self._screen = screen
        self._asked: set[_Key] = set()
        self._changed = asyncio.Event()

    def look(self) -> None:
        """Learn that something has changed."""
        self._changed.set()

    def ask_again(self) -> None:
        """Ask anew about whatever nobody decided."""
        self._asked.clear()

    async def work(self) -> None:
        """Ask, and return once nothing goes on any more: all that is left waits for people."""
        while not self._stuck():
            self._changed.clear()
            question = next(self._questions(), None)
            if question is None:
                await self._wait()
                continue
            if isinstance(question, Approval):
                question = attrs.evolve(question, misfit=self._misfit(question.call))
            delivery = await self._answer(question)
            self._asked.add(_key(question))
            if delivery is not None and not await self._delivered(delivery):
                self._asked.discard(_key(question))

    async def _wait(self) -> None:
        """Wait for a change; or, while a probe is out, for the time when it has failed."""
        try:
            async with asyncio.timeout(
                PROBED if self._screen.view.in_doubt else None
            ):  # as in Agent: no wait_for
                await self._changed.wait()
        except TimeoutError:
            return

    async def _answer(self, question: Question) -> Delivery | None:
        """Return the decision; None if there is none, or it was made elsewhere meanwhile."""
        deciding = asyncio.ensure_future(self._decider.decide(question))
        try:
            while not deciding.done() and self._stands(question):
                self._changed.clear()
                changed = asyncio.ensure_future(self._changed.wait())
                await asyncio.wait({deciding, changed}, return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
            if deciding.done():
                return deciding.result()
            self._screen.tell("  (decided elsewhere)")
            return None
        finally:
            deciding.cancel()
            await asyncio.wait([deciding])

    async def _delivered(self, delivery: Delivery) -> bool:
        """Have it judged, and say why it was not accepted; False where it can be said better."""
        try:
            verdict = await self._agent.runtime.deliver(self._agent.run_id, delivery)
        except TurnlockError as error:
            self._screen.tell(f"  not decided: {harmless(str(error))}")
            return not isinstance(error, InvalidValue)
        if verdict.reason is not None:
            told = refused(verdict.reason, long=True)
            self._screen.tell(f"  {told} (turnlock explain {verdict.reason})")
        return True

    def _questions(self) -> Iterator[Question]:
        for question in self._standing():
            if _key(question) not in self._asked:
                yield question

    def _standing(self) -> Iterator[Question]:
        """Yield whatever a person could decide now."""
        for call in self._agent.pending():
            yield Approval(call=self._clear(call))
        for call in self._screen.view.in_doubt:
            if not call.interrupting and not call.retry_authorised and self._asks(call):
                yield Doubt(call=call)

    def _clear(self, call: CallView) -> CallView:
        """Return a call with the arguments that its tool gets: who decides has to see them."""
        if not is_sealed(call.arguments):
            return call
        try:
            return changed(call, arguments=self._agent.runtime.clear_arguments(call))
        except SealBroken:
            return call

    def _misfit(self, call: CallView) -> str | None:
        """Return why a call cannot run as it is; what other code checks is not known before."""
        tool = self._agent.runtime.tools(call.run_id).get(call.tool_name)
        if tool is None:
            return f"there is no tool {harmless(call.tool_name, limit=80)!r} here"
        if tool.preprocessors or not tool.is_plain or is_sealed(call.arguments):
            return None
        wrong = misfit(tool, call.arguments or {})
        return None if wrong is None else str(wrong)

    def _asks(self, call: CallView) -> bool:
        """Whether a person is to say what became of it: its tool does not, or could not."""
        tool = self._agent.runtime.tools(call.run_id).get(call.tool_name)
        rule = InDoubt.ASK if tool is None else tool.policy.doubt_rule
        if rule is InDoubt.PROBE:
            return time.time() - (call.since or 0.0) >= PROBED
        return rule is InDoubt.ASK

    def _stands(self, question: Question) -> bool:
        return any(_key(standing) == _key(question) for standing in self._standing())

    def _stuck(self) -> bool:
        """Whether each call that has not ended waits for an answer that nobody here gives."""
        waiting = {_key(question)[0] for question in self._standing()} - {
            _key(question)[0] for question in self._questions()
        }
        turn = self._screen.view.turn
        left = () if turn is None else turn.unfinished
        return bool(left) and all(call.path in waiting for call in left)


def _key(question: Question) -> _Key:
    """Name a question: a turn id that is used again is another turn, and asked about anew."""
    return question.call.path, 0 if isinstance(question, Approval) else question.call.attempt

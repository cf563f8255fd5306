"""Approval prompts: what can be asked about a run's calls, who decides, and one after the other."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Iterator
from typing import Final, Protocol, TypeAlias

import attrs

from ..agent.approving import Approve, Deny, decided
from ..agent.script import Script
from ..models.deliveries import Decide, Delivery, Report, Resolution, Resolve
from ..models.errors import InvalidValue, TurnlockError
from ..models.inputs import Input
from ..models.safe_text import harmless
from ..models.values import ABSENT, Absent, Json
from ..models.verdicts import Verdict
from ..runtime.in_doubt import PROBED, UNKNOWN
from ..verification.replay.calls import Mode
from ..views.call_view import CallView, resolved
from ..views.meanings import refused
from .run_screen import Screen


@attrs.frozen(kw_only=True)
class Approval:
    """A call asks whether it may run."""

    call: CallView
    misfit: str | None = None
    """Why it cannot run as it is, approved or not, where that is known."""
    may_edit: bool = True
    """Whether it can run with other arguments (S-42a)."""

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


@attrs.frozen(kw_only=True)
class Enquiry:
    """A runtime asks the user something, and waits for what is said (S-28)."""

    call: CallView

    def answer(self, result: Json) -> Report:
        """Return what the user says."""
        call = self.call
        return Report(
            run_id=call.run_id,
            turn_id=call.turn_id,
            invocation_id=call.invocation_id,
            result=result,
        )


Question: TypeAlias = Approval | Doubt | Enquiry


class Asking(Protocol):
    """A run, as far as people are asked about its calls."""

    may_edit: bool
    """Whether calls can run with other arguments than they were asked for with."""

    def pending(self) -> Iterable[CallView]:
        """Return the calls that wait for a decision, with the arguments that are shown."""
        ...

    def asks(self, call: CallView) -> bool:
        """Whether a person is to say what became of a call in doubt."""
        ...

    def enquiries(self) -> Iterable[CallView]:
        """Return the calls by which the user is asked something."""
        ...

    def misfit(self, call: CallView) -> str | None:
        """Return why a call cannot run as it is, where that is known before."""
        ...

    async def deliver(self, delivery: Delivery) -> Verdict:
        """Have a decision, a resolution or an answer judged."""
        ...


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
        if isinstance(question, Enquiry):
            return question.answer({"answers": {}})
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


class ApprovalPrompts:
    """Asks a decider about each call that waits or is in doubt, one after the other.

    Whatever nobody decides is left, and not asked about before `ask_again`.
    """

    def __init__(self, calls: Asking, *, decider: Decider, screen: Screen) -> None:
        """Ask this decider about the calls of this run."""
        self._calls = calls
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
                question = attrs.evolve(question, misfit=self._calls.misfit(question.call))
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
            verdict = await self._calls.deliver(delivery)
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
        for call in self._calls.pending():
            yield Approval(call=call, may_edit=self._calls.may_edit)
        for call in self._screen.view.in_doubt:
            if not call.interrupting and not call.retry_authorised and self._calls.asks(call):
                yield Doubt(call=call)
        for call in self._calls.enquiries():
            yield Enquiry(call=call)

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

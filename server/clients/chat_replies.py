"""The replies of a run: what followed each of its prompts, in steps (F-71, F-72).

A reply is one message of the client, `reply/N` for the N-th prompt: the same name in the stream, in
its replay and in every tab, for ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import attrs

from ...agent.messages import Stop
from ...engine.new_facts import DENIED
from ...models.calls import Status
from ...models.values import ABSENT
from ...views.call_view import CallView
from .approval_ids import ApprovalId
from .chat_parts import Approval, Card, Part, State, Step, Words
from .story import Answered, CallChanged, Happening, Prompted

PREFIX: Final = "reply/"
"""Begins the ids of the messages that are replies; the number of the prompt follows."""


@attrs.define
class _Answer:
    """One answer of the model, and the calls that it asks for."""

    name: str
    text: str = ""
    is_whole: bool = False
    calls: dict[str, CallView] = attrs.field(factory=dict[str, CallView])

    def step(self) -> Step:
        parts: list[Part] = [card_of(name, call) for name, call in self.calls.items()]
        if self.text:
            parts.insert(0, Words(text=self.text, is_whole=self.is_whole))
        return Step(name=self.name, parts=parts)


@attrs.define
class Reply:
    """What followed one prompt, as far as it goes."""

    number: int
    stop: Stop = Stop.DONE
    """Why its latest answer stopped."""
    _answers: dict[str, _Answer] = attrs.field(factory=dict[str, _Answer])
    _made: dict[str, Step] = attrs.field(factory=dict[str, Step])

    @property
    def name(self) -> str:
        """The id of its message."""
        return f"{PREFIX}{self.number}"

    @property
    def steps(self) -> Sequence[Step]:
        """Its answers; one that says nothing and asks for nothing is none."""
        for name, answer in self._answers.items():
            if name not in self._made and (answer.text or answer.calls):
                self._made[name] = answer.step()
        return [self._made[it] for it in self._answers if it in self._made]

    def answer(self, name: str) -> _Answer:
        """Return the answer of a name, which is another now."""
        self._made.pop(name, None)
        return self._answers.setdefault(name, _Answer(name))

    @property
    def latest(self) -> str | None:
        """The name of its latest answer."""
        return next(reversed(self._answers), None)


class Replies:
    """The fold of one run."""

    def __init__(self) -> None:
        """Begin before the first prompt."""
        self._replies: dict[int, Reply] = {}
        self._places: dict[str, str] = {}
        """The answers that calls stand in."""
        self._heard: tuple[int, str] | None = None
        """The text that is being said: its reply and its answer."""

    def take(self, happened: Iterable[Happening]) -> None:
        """Take what an entry brings."""
        for it in happened:
            if isinstance(it, Prompted):
                self.reply(it.number)
            elif isinstance(it, Answered):
                self._answered(it)
            elif isinstance(it, CallChanged):
                self._called(it)

    def hear(self, number: int, name: str, text: str) -> None:
        """Take some more of the text of an answer to a prompt, which is not whole yet."""
        answer = self.reply(number).answer(name)
        answer.text += text

    def reply(self, number: int) -> Reply:
        """Return what followed a prompt; of 0: what came before the first one."""
        found = self._replies.get(number)
        if found is None:
            found = self._replies[number] = Reply(number)
        return found

    def _answered(self, it: Answered) -> None:
        reply = self.reply(it.reply)
        reply.stop = it.stop
        answer = reply.answer(it.message_id)
        answer.text, answer.is_whole = it.text, True

    def _called(self, it: CallChanged) -> None:
        """Put a call to the answer that asks for it; of another runtime: to the latest one."""
        reply = self.reply(it.reply)
        name = self._places.get(it.call_id) or it.message_id or reply.latest or it.call.turn_id
        self._places[it.call_id] = name
        reply.answer(name).calls[it.call_id] = it.call


def card_of(name: str, call: CallView) -> Card:
    """Return what is shown of a call."""
    outcome = call.outcome
    approval = _approval_of(call)
    state = State.AVAILABLE
    if outcome is not None:
        state = _ENDS[outcome.status]
    elif approval is not None:
        state = State.REQUESTED if approval.approved is None else State.RESPONDED
    return Card(
        call_id=name,
        tool_name=call.tool_name,
        input=call.arguments,
        state=state,
        approval=approval,
        output=None if outcome is None else _result_of(outcome.result),
        error=_error_of(call) if state is State.ERROR else None,
    )


def _approval_of(call: CallView) -> Approval | None:
    """Return who was asked, and what was answered; None where nobody was asked."""
    if call.arguments_digest is None:
        return None
    name = str(ApprovalId.of_question(call))
    decision = call.decision
    if decision is not None:
        # a denial always says why in its fact: where nobody gave a reason, this is nobody's word
        reason = None if decision.reason == DENIED else decision.reason
        return Approval(id=name, approved=decision.approved, reason=reason)
    outcome = call.outcome
    if outcome is None:
        return Approval(id=name)
    reason = outcome.reason or (None if outcome.cause is None else outcome.cause.value)
    return Approval(id=name, approved=False, reason=reason)


def _error_of(call: CallView) -> str:
    outcome = call.outcome
    if outcome is None:
        return ""
    return outcome.error or ("" if outcome.cause is None else outcome.cause.value)


def _result_of(result: Any) -> Any:  # noqa: ANN401 - any JSON
    return None if result is ABSENT else result


_ENDS: Final = {
    Status.SUCCEEDED: State.OUTPUT,
    Status.FAILED: State.ERROR,
    Status.DENIED: State.DENIED,
}

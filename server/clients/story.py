"""What happened in a run, as clients of others are shown it: one fold of its entries.

A story is told entry by entry, from the first. Each step says what has happened by it; the story
itself says where things stand: what is asked, what runs, and whether a person has the word. All of
it is folded by the conversation and its turns; nothing here moves a phase.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Final, TypeAlias

import attrs

from ...agent.conversation import PART, PREFIX, Conversation, Owed
from ...agent.errors import ConversationBroken
from ...agent.messages import Answer, Kind, Prompt, Stop, ToolCall, as_note
from ...models.facts import (
    CallAdded,
    DenialCause,
    ExecutionFact,
    ExecutionInDoubt,
    ExecutionRetried,
    Fact,
    LifecycleFact,
    ToolApprovalRequested,
    ToolApproved,
    ToolDenied,
    ToolExecutionFailed,
    ToolExecutionStarted,
    ToolExecutionSucceeded,
    TurnInterrupted,
    TurnOpened,
    TurnSettled,
)
from ...models.run import OWN
from ...models.safe_text import harmless
from ...models.sealed import is_sealed_body
from ...runtime.journal.ledger import Domain, Note
from ...turn.phases import TurnPhase
from ...views.call_view import CallView, Waits
from ...views.turn_view import TurnView
from ...world.names import KIND as WORLD
from ..calls import call_id
from ..line import REFUSED, UNKNOWN, WAITING
from ..problems import Problem
from .entries import Entry


@attrs.frozen(kw_only=True)
class Prompted:
    """A prompt was said to the model: the N-th of its run."""

    message_id: str
    """The client's own name for it; else that of its note, `said/N`."""
    number: int
    text: str


@attrs.frozen(kw_only=True)
class Answered:
    """An answer of the model is whole."""

    message_id: str
    """`said/N`."""
    reply: int
    """The number of the prompt that it answers."""
    text: str
    stop: Stop
    has_calls: bool


class Change(StrEnum):
    """What becomes of a call."""

    REQUESTED = "requested"
    ASKED = "asked"
    DECIDED = "decided"
    STARTED = "started"
    IN_DOUBT = "in_doubt"
    ENDED = "ended"


@attrs.frozen(kw_only=True)
class CallChanged:
    """A call is there, or is another now."""

    change: Change
    call: CallView
    message_id: str | None
    """Of the answer that asks for it, which may come later; None: no answer is known to."""
    reply: int
    """The number of the prompt that it belongs to."""

    @property
    def call_id(self) -> str:
        """What names it in its run for ever (F-32)."""
        return call_id(self.call.epoch, self.call.invocation_id)


@attrs.frozen(kw_only=True)
class Closed:
    """A turn is over."""

    turn: TurnView
    reply: int


@attrs.frozen(kw_only=True)
class Troubled:
    """It does not go on: a code of face.md 9, and why in words."""

    code: str
    text: str
    is_final: bool
    """Whether nothing is tried again by itself."""


Happening: TypeAlias = Prompted | Answered | CallChanged | Closed | Troubled
"""What happened by one entry."""


class Story:
    """The fold of one run."""

    def __init__(self, run_id: str, *, kind: str = OWN) -> None:
        """Begin before the first entry."""
        self.run_id: Final = run_id
        self.conversation: Final = Conversation(run_id)
        self.prompts = 0
        """How many prompts were said."""
        self.trouble: Troubled | None = None
        """Why it does not go on, since what happened last."""
        self._is_own = kind in {OWN, WORLD}
        self._waiting: set[str] = set()
        self._known: dict[str, str] = {}
        """The texts of all prompts that were taken, by their ids."""
        self._messages: dict[str, str] = {}
        """The answers that asked for turns, by the ids of these."""
        self._replies: dict[str, int] = {}
        self._turn_id: str | None = None
        self._unanswered = False
        """Of another runtime: whether it was told something, and has not ended its turn."""

    def take(self, entry: Entry) -> tuple[Happening, ...]:
        """Take the next entry, and say what has happened by it.

        Raises `Problem` (`runtime_reference_invalid`) for what no conversation has.
        """
        if entry.fact is not None:
            self.trouble = None
            return tuple(self._facts(entry.fact))
        note = entry.note
        if note is None:
            return ()
        if note.domain is Domain.MESSAGE:
            return tuple(self._message(note))
        return tuple(self._observed(note))

    def knows(self, message_id: str) -> bool:
        """Whether a prompt of this id was ever taken (F-23)."""
        return message_id in self._known

    def prompt(self, message_id: str) -> str | None:
        """Return the text of a prompt that was taken; None where none of this id was (F-23)."""
        return self._known.get(message_id)

    # Where it stands.

    @property
    def turn(self) -> TurnView | None:
        """The open turn."""
        turn = self.conversation.turns.get(self._turn_id or "")
        return None if turn is None or turn.closed else turn

    @property
    def questions(self) -> tuple[CallView, ...]:
        """The calls that wait for a person's decision, in expected order.

        One that the loop is about to reject, since its arguments could not be read, is none; nor
        are those of an answer that was refused.
        """
        turn = self.turn
        if turn is None or turn.phase is TurnPhase.INTERRUPTING:
            return ()
        waiting = tuple(turn.calls.waiting_for(Waits.APPROVAL))
        if not waiting or not self._is_own:
            return waiting
        spoilt = _spoilt(self.conversation.answer_of(turn.turn_id))
        return tuple(it for it in waiting if it.invocation_id not in spoilt)

    @property
    def doubts(self) -> tuple[CallView, ...]:
        """The calls of which a person has to say what became (K-35)."""
        turn = self.turn
        return () if turn is None else tuple(turn.calls.waiting_for(Waits.RESOLUTION))

    @property
    def is_at_work(self) -> bool:
        """Whether something goes on that waits for nobody: the model speaks, a call runs."""
        turn = self.turn
        if turn is None:
            return not self.is_at_rest
        return turn.phase is not TurnPhase.SEALED or turn.calls.any_waiting_for(*_AT_WORK)

    @property
    def is_at_rest(self) -> bool:
        """Whether a person has the word, and nothing waits to be said."""
        if self._waiting:
            return False
        if self.turn is not None:
            return False
        return self.conversation.owed is Owed.PROMPT if self._is_own else not self._unanswered

    @property
    def was_interrupted(self) -> bool:
        """Whether a person has stopped what came of the latest prompt."""
        if self._is_own:
            return self.conversation.interrupted and self.conversation.stopped_because is None
        turn = self.conversation.turns.get(self._turn_id or "")
        return turn is not None and turn.interrupted

    @property
    def reply_of_turn(self) -> int | None:
        """The number of the prompt that the open turn belongs to; None: no turn is open."""
        turn = self.turn
        return None if turn is None else self._replies.get(turn.turn_id, self.prompts)

    @property
    def is_about_to_be_told(self) -> bool:
        """Whether a prompt waits to be said, and nothing goes on before it (F-25)."""
        if not self._waiting or self.turn is not None:
            return False
        if self._is_own:
            return self.conversation.owed is Owed.PROMPT
        return not self._unanswered

    @property
    def next_message(self) -> int:
        """The number of the message that is said next, or is being said."""
        return len(self.conversation.said) + 1

    @property
    def is_asking(self) -> bool:
        """Whether the model may be speaking: what is heard now may have begun before."""
        return self.conversation.owed is Owed.ANSWER

    # What happens.

    def _message(self, note: Note) -> Iterator[Happening]:
        name, message_id = note.id or "", note.body.get("message_id")
        if isinstance(message_id, str) and "text" in note.body and note.kind in _PROMPTS:
            self._known[message_id] = str(note.body["text"])
        if note.kind == WAITING and isinstance(message_id, str):
            self.trouble = None
            if not note.body.get("steered"):
                self._waiting.add(message_id)
        elif note.kind in {REFUSED, UNKNOWN} and isinstance(message_id, str):
            self._waiting.discard(message_id)
            self._unanswered = False
            yield self._troubled("runtime_command_failed", note, is_final=True)
        elif not self._is_own and note.kind == Kind.ASSISTANT:
            yield self._said_elsewhere(note)
        elif note.kind in _CONVERSED:
            yield from self._conversed(note, name)

    def _conversed(self, note: Note, name: str) -> Iterator[Happening]:
        """Take a message of our own loop, or a prompt of another runtime."""
        conversation, said = self.conversation, len(self.conversation.said)
        try:
            conversation.load([_clear(note)])
        except ConversationBroken as error:
            raise Problem("runtime_reference_invalid", str(error)) from error
        self.trouble = None
        turn_id = conversation.turn_id
        if name.startswith(PART) and turn_id is not None:
            self._messages[turn_id] = f"{PREFIX}{self.next_message}"
        if len(conversation.said) == said:
            return
        latest = conversation.said[-1]
        if isinstance(latest, Prompt):
            if not latest.misfit:
                self.prompts += 1
                self._unanswered = True
                self._waiting.discard(latest.message_id or "")
                message_id = latest.message_id or name
                yield Prompted(message_id=message_id, number=self.prompts, text=latest.text)
            return
        if latest.calls and turn_id is not None:
            self._messages[turn_id] = name
        yield Answered(
            message_id=name,
            reply=self.prompts,
            text=latest.text or "",
            stop=latest.stop,
            has_calls=bool(latest.calls),
        )

    def _said_elsewhere(self, note: Note) -> Answered:
        """Return an answer of another runtime, which may say many to one prompt."""
        self.trouble = None
        text = note.body.get("text")
        return Answered(
            message_id=note.id or "",
            reply=self.prompts,
            text=text if isinstance(text, str) else "",
            stop=Stop.OTHER,
            has_calls=False,
        )

    def _observed(self, note: Note) -> Iterator[Happening]:
        if note.domain is Domain.TURN and note.kind in _OVER_ELSEWHERE:
            self._unanswered = False
        elif note.domain is Domain.ERROR and note.kind == "limit_reached":
            yield self._troubled("limit_reached", note, is_final=True)
        elif note.domain is Domain.ERROR and note.kind == "session_ended":
            yield self._troubled("runtime_unavailable", note, is_final=not self._is_own)

    def _troubled(self, code: str, note: Note, *, is_final: bool) -> Troubled:
        text = harmless(str(note.body.get("text") or "it does not go on"))
        self.trouble = Troubled(code=code, text=text, is_final=is_final)
        return self.trouble

    def _facts(self, fact: Fact) -> Iterator[Happening]:
        conversation = self.conversation
        conversation.take(fact)
        if isinstance(fact, TurnOpened):
            self._turn_id = fact.turn_id
            self._replies[fact.turn_id] = self.prompts
            for call in conversation.turns[fact.turn_id].calls:
                yield self._changed(Change.REQUESTED, call)
        elif isinstance(fact, CallAdded):
            yield self._changed(Change.REQUESTED, conversation.turns[fact.turn_id].calls[-1])
        elif isinstance(fact, TurnSettled | TurnInterrupted):
            turn = conversation.turns[fact.turn_id]
            yield Closed(turn=turn, reply=self._replies.get(fact.turn_id, self.prompts))
        elif isinstance(fact, LifecycleFact | ExecutionFact):
            changed = conversation.turns[fact.turn_id].calls.get(fact.invocation_id)
            if changed is not None:
                for change in _changes(fact):
                    yield self._changed(change, changed)

    def _changed(self, change: Change, call: CallView) -> CallChanged:
        return CallChanged(
            change=change,
            call=call,
            message_id=self._messages.get(call.turn_id) if self._is_own else None,
            reply=self._replies.get(call.turn_id, self.prompts),
        )


def _changes(fact: LifecycleFact | ExecutionFact) -> tuple[Change, ...]:
    """Return what a fact makes of its call; a decision is somebody's, or a grant's (K-41)."""
    if isinstance(fact, ToolDenied) and fact.cause is not DenialCause.DECISION:
        return (Change.ENDED,)
    return _CHANGES.get(type(fact), ())


def _clear(note: Note) -> Note:
    """Return a message as a conversation can take it where it is sealed: calls that nobody reads.

    Only an answer that asks for secret arguments is; its calls are in the facts.
    """
    if not is_sealed_body(note.body):
        return note
    hidden = Answer(calls=(_HIDDEN,), stop=Stop.CALLS)
    made = as_note(hidden, name=note.id or "", at=note.at, is_part=note.kind == Kind.PART)
    return attrs.evolve(made, kind=note.kind)


def _spoilt(answer: Answer | None) -> frozenset[str]:
    """Return the calls that the loop rejects by itself: nobody is asked about them."""
    if answer is None:
        return frozenset()
    calls = answer.identified()
    if answer.stop is Stop.REFUSED:
        return frozenset(call.invocation_id for call in calls)
    pairs = zip(calls, answer.calls, strict=True)
    return frozenset(call.invocation_id for call, asked in pairs if asked.fault is not None)


_HIDDEN: Final = ToolCall(call_id=None, tool_name="sealed", arguments={})
_CONVERSED: Final = frozenset({Kind.USER, Kind.ASSISTANT, Kind.PART, Kind.STOPPED})
_PROMPTS: Final = frozenset({WAITING, Kind.USER})
_OVER_ELSEWHERE: Final = frozenset({"turn/completed"})
"""Observations that another runtime has ended what it was told."""
_AT_WORK: Final = (Waits.CLAIM, Waits.REPORT, Waits.RETRY, Waits.REQUEST)
_CHANGES: Final[dict[type[Fact], tuple[Change, ...]]] = {
    ToolApprovalRequested: (Change.ASKED,),
    ToolApproved: (Change.DECIDED,),
    ToolDenied: (Change.DECIDED, Change.ENDED),
    ToolExecutionStarted: (Change.STARTED,),
    ExecutionRetried: (Change.STARTED,),
    ExecutionInDoubt: (Change.IN_DOUBT,),
    ToolExecutionSucceeded: (Change.ENDED,),
    ToolExecutionFailed: (Change.ENDED,),
}

"""A conversation as its notes and facts tell it, and what has to happen next.

A note is a prompt or an answer of the model; what became of an answer's calls is in the facts. The
n-th answer with calls is the turn ``tn`` with the epoch n. So whoever has the notes and the facts
knows how to go on, whatever was kept last before a crash:

- a prompt, or the facts that close a turn: the model has to answer, again if need be;
- an answer with calls, and no TURN_OPENED: the turn has to be opened; its epoch refuses it if it
  was opened after all (K-55);
- an answer with calls, and its turn not sealed: it lacks calls, perhaps, and the seal (W-58);
- an answer with calls, and its turn sealed: its results are awaited;
- a part of an answer: calls of it have begun, and it is the answer, as far as it goes (W-58);
- an answer that paused: the model has to go on with it (W-52);
- another answer without calls, a turn that was interrupted, or a note that the model was stopped
  while it was asked: a person has the word.

Notes go before the facts that follow from them: an answer is kept before its turn is opened, and
before the continuation that led to it is acknowledged; a part before its latest call is added.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from itertools import takewhile
from typing import Final, TypeGuard

from ..models.calls import CallResult, Status
from ..models.facts import ContinuationTaken, Fact, TurnFact, TurnOpened, TurnSettled
from ..models.lifecycle_facts import DenialCause, FailureCause
from ..models.values import Json
from ..runtime.forking import FORKED, WHOLE
from ..runtime.journal.ledger import Domain, Note
from ..turn.phases import TurnPhase
from ..views.grants import Grants
from ..views.turn_view import TurnView
from .errors import ConversationBroken
from .messages import Answer, Message, Prompt, Results, Stop, from_note

PREFIX: Final = "said/"
"""Begins the ids of notes that are messages; their number follows, from 1."""
PART: Final = "part/"
"""Begins the ids of notes of answers that were still spoken, as far as they went: the number of
the message follows, and that of the call they end with."""
INTERRUPTED: Final = frozenset({DenialCause.INTERRUPT, FailureCause.INTERRUPTED})
"""The causes of what has ended because its turn was interrupted."""
REFUSED: Final = "the model's answer was refused"
"""Why a turn was interrupted that nobody stopped (W-58)."""
STOPPED: Final = "stopped/"
"""Begins the id of a note that nobody waits for the answer to the message of this number any
more: a person has stopped it, and has the word."""


class Owed(Enum):
    """What has to happen next."""

    PROMPT = "a person has the word"
    ANSWER = "the model has to answer"
    TURN = "the turn of an answer has to be opened, or sealed"
    RESULTS = "the results of a turn are awaited"


class Conversation:
    """The fold of a run's notes and facts."""

    def __init__(self, run_id: str) -> None:
        """Begin before anything was said."""
        self.run_id: Final = run_id
        self.said: list[Prompt | Answer] = []
        self.epoch = 0
        """Answers with calls, the one that has begun included: the epoch of the latest turn."""
        self.begun: Answer | None = None
        """The answer that is owed, as far as calls of it have begun."""
        self.stopped = 0
        """The number of the latest message of which a person has stopped the answer."""
        self.stopped_because: Json = None
        """Why, where it was no person but the host (`stop`)."""
        self.asks_again = 0
        """How often the model is asked again where its answer is empty (W-28)."""
        self.beside: list[Note] = []
        """Notes of this domain that are no messages: a host's own."""
        self.turns: dict[str, TurnView] = {}
        self.grants: Final = Grants()
        """Those in force."""
        self.untaken: set[str] = set()
        """The turns whose continuations are owed still."""
        self.sequence = 0
        """That of the last fact taken."""

    def load(self, notes: Iterable[Note]) -> None:
        """Take the notes of the run, those of others left out. Raises `ConversationBroken`."""
        origin: set[str] = set()
        for note in notes:
            if note.domain is Domain.MESSAGE:
                self._take_note(note, note.id or "")
            elif note.id in {FORKED, WHOLE}:
                origin.add(note.id)
        if origin == {FORKED}:
            raise self._broken("it is half a fork: the same turnlock fork again finishes it")

    def _take_note(self, note: Note, name: str) -> None:
        if name.startswith(STOPPED):
            self.stop(note.body.get("because"), number=int(name.removeprefix(STOPPED)))
            return
        is_part = name.startswith(PART)
        if not is_part and not name.startswith(PREFIX):
            self.beside.append(note)
            return
        expected = self.next_part if is_part else self.next_name
        if name != expected:
            raise self._broken(f"the note {name!r} stands where {expected!r} should")
        try:
            self._load(from_note(note), is_part=is_part)
        except (LookupError, TypeError, ValueError) as error:
            raise self._broken(f"the note {name!r} is no message ({error})") from error

    def _load(self, said: Prompt | Answer, *, is_part: bool) -> None:
        if not is_part:
            self.say(said)
        elif isinstance(said, Answer):
            self.begin(said)
        else:
            raise TypeError("a prompt has no parts")

    def say(self, said: Prompt | Answer) -> None:
        """Take what was said, once its note is kept."""
        self.said.append(said)
        if isinstance(said, Answer) and said.calls and self.begun is None:
            self.epoch += 1
        self.begun = None

    def begin(self, answer: Answer) -> None:
        """Take an answer as far as it goes, once its note is kept: its latest call begins."""
        if self.begun is None:
            self.epoch += 1
        self.begun = answer

    def stop(self, because: Json = None, *, number: int | None = None) -> None:
        """Take it that the answer that is owed was stopped, once its note is kept.

        A person did it, unless it is said why. `number` is that of the message that it answers.
        """
        number = len(self.said) if number is None else number
        if number >= self.stopped:
            self.stopped, self.stopped_because = number, because

    @property
    def stop_name(self) -> str:
        """The id of the note that nobody waits for the answer that is owed now."""
        return f"{STOPPED}{len(self.said)}"

    @property
    def next_name(self) -> str:
        """The id of the note that the next message will be."""
        return f"{PREFIX}{len(self.said) + 1}"

    @property
    def next_part(self) -> str:
        """The id of the note that the next part of the answer that is owed will be."""
        count = len(self.begun.calls) if self.begun is not None else 0
        return f"{PART}{len(self.said) + 1}/{count + 1}"

    @property
    def latest(self) -> Answer | None:
        """The answer that was said last, or is being said, as far as calls of it have begun."""
        if self.begun is not None:
            return self.begun
        last = self.said[-1] if self.said else None
        return last if isinstance(last, Answer) else None

    def take(self, fact: Fact) -> None:
        """Take the next fact of the run."""
        self.sequence = fact.sequence
        self.grants.take(fact)
        if isinstance(fact, TurnOpened):
            self.turns[fact.turn_id] = TurnView.opened(fact)
        elif isinstance(fact, ContinuationTaken):
            self.untaken.discard(fact.turn_id)
        elif isinstance(fact, TurnFact):
            turn = self.turns[fact.turn_id] = self.turns[fact.turn_id].after(fact)
            if isinstance(fact, TurnSettled) and turn.calls:
                self.untaken.add(fact.turn_id)

    @property
    def turn_id(self) -> str | None:
        """The turn of the latest answer with calls."""
        return f"t{self.epoch}" if self.epoch else None

    def answer_of(self, turn_id: str | None) -> Answer | None:
        """Return the answer whose calls a turn holds; None where that is not known."""
        asking = [it for it in self.said if isinstance(it, Answer) and it.calls]
        if self.begun is not None:
            asking.append(self.begun)
        turns = {f"t{number}": answer for number, answer in enumerate(asking, start=1)}
        return None if turn_id is None else turns.get(turn_id)

    @property
    def owed(self) -> Owed:
        """What has to happen next."""
        if self.begun is not None:
            return Owed.ANSWER
        last = self.said[-1] if self.said else None
        if last is None or self.is_stopped:
            return Owed.PROMPT
        if isinstance(last, Answer) and last.calls:
            return self._owed_by_turn()
        goes_on = isinstance(last, Prompt) or last.stop is Stop.PAUSED
        return Owed.ANSWER if goes_on or 0 < self.empties <= self.asks_again else Owed.PROMPT

    @property
    def empties(self) -> int:
        """How many answers say nothing, of those at the end (W-28)."""
        empty = takewhile(lambda it: isinstance(it, Answer) and it.is_empty, reversed(self.said))
        count = sum(1 for _ in empty)
        return 0 if count and self.text.strip() else count

    def _owed_by_turn(self) -> Owed:
        turn = self.turns.get(self.turn_id or "")
        if turn is None or turn.phase is TurnPhase.OPEN:
            return Owed.TURN
        if not turn.closed:
            return Owed.RESULTS
        return Owed.PROMPT if turn.interrupted else Owed.ANSWER

    @property
    def is_stopped(self) -> bool:
        """Whether a person has stopped the answer to what was said last."""
        return 0 < self.stopped == len(self.said)

    @property
    def interrupted(self) -> bool:
        """Whether a person has stopped what came of what was said last."""
        last, turn = self.latest, self.turns.get(self.turn_id or "")
        if self.is_stopped or last is None or not last.calls or turn is None:
            return self.is_stopped
        return turn.interrupted and not _is_refused(last, turn)

    @property
    def last_prompt(self) -> Prompt | None:
        """The latest prompt; not what the model was told of a misfit."""
        return next((said for said in reversed(self.said) if _is_prompt(said)), None)

    def has_said(self, message_id: str | None) -> bool:
        """Whether a prompt of this id was said (F-23); no id is none."""
        return message_id is not None and any(
            isinstance(said, Prompt) and said.message_id == message_id for said in self.said
        )

    @property
    def answers(self) -> tuple[Answer, ...]:
        """The answers to the latest prompt, in order."""
        answers = [*takewhile(lambda said: not _is_prompt(said), reversed(self.said))]
        return tuple(said for said in reversed(answers) if isinstance(said, Answer))

    @property
    def misfits(self) -> int:
        """How often the model was told that its answer to the latest prompt does not fit (W-59)."""
        told = takewhile(lambda said: not _is_prompt(said), reversed(self.said))
        return sum(isinstance(said, Prompt) for said in told)

    @property
    def text(self) -> str:
        """What the model said last; an answer that paused goes before the one that goes on."""
        texts: list[str] = []
        for number, answer in enumerate(reversed(self.answers)):
            if number and answer.stop is not Stop.PAUSED:
                break
            texts.append(answer.text or "")
        return "".join(reversed(texts))

    def answered(self, turn_id: str) -> bool:
        """Whether the model has answered the results of this turn, or was told something else.

        A turn that this conversation does not know was opened by somebody else, who answers it.
        """
        if turn_id != self.turn_id or self.is_stopped:
            return True
        last = self.said[-1]
        return isinstance(last, Prompt) or not last.calls

    def messages(self, *, history: int | None = None) -> Iterator[Message]:
        """Yield what was said, results after the answers that asked for them.

        With `history` at most so many prompts and what followed each, the oldest left out (W-35).
        Empty answers are left out where they are asked for again.
        """
        epoch, first = 0, self._first(history)
        for place, said in enumerate(self.said):
            is_told = place >= first
            if isinstance(said, Answer) and said.is_empty and self.asks_again:
                continue
            if is_told:
                yield said
            if isinstance(said, Answer) and said.calls:
                epoch += 1
                turn = self.turns.get(f"t{epoch}")
                if is_told and turn is not None and turn.closed:
                    refused = _is_refused(said, turn)
                    yield Results(
                        turn_id=f"t{epoch}",
                        results=tuple(_results(said, turn)),
                        interrupted=turn.interrupted and not refused,
                        refused=refused,
                        reason=turn.interrupt_reason,
                        unended=frozenset(
                            call.invocation_id
                            for call in turn.calls
                            if call.outcome is not None and call.outcome.cause in INTERRUPTED
                        ),
                        edited={
                            call.invocation_id: call.decision.arguments
                            for call in turn.calls
                            if call.decision is not None and call.decision.arguments is not None
                        },
                    )

    def _first(self, history: int | None) -> int:
        """Return the place of the first message that is told, a prompt, where some are left out."""
        prompts = [place for place, said in enumerate(self.said) if _is_prompt(said)]
        return 0 if history is None or len(prompts) <= history else prompts[-history]

    def _broken(self, cause: str) -> ConversationBroken:
        return ConversationBroken(
            f"run {self.run_id!r}: {cause}; this is not the conversation of one agent: take another"
            " run"
        )


def _results(answer: Answer, turn: TurnView) -> Iterator[CallResult]:
    """Yield what became of each call; one that its turn did not take any more was never begun."""
    known = {result.invocation_id: result for result in turn.results}
    for call in answer.identified():
        yield known.get(call.invocation_id) or CallResult(
            invocation_id=call.invocation_id,
            tool_name=call.tool_name,
            status=Status.DENIED,
            reason=(
                "the turn was stopped before this call could begin"
                if turn.interrupted
                else f"a turn takes {len(turn.calls):,} calls, and this one was not begun: ask for"
                " fewer at once"
            ),
            provider_call_id=call.provider_call_id,
        )


def _is_refused(answer: Answer, turn: TurnView) -> bool:
    """Whether it was the model, and nobody else, who stopped the turn of its answer."""
    return answer.stop is Stop.REFUSED and turn.interrupt_reason == REFUSED


def _is_prompt(said: Prompt | Answer) -> TypeGuard[Prompt]:
    return isinstance(said, Prompt) and not said.misfit

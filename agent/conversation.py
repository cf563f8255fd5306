"""A conversation as its notes and facts tell it, and what has to happen next.

A note is a prompt or an answer of the model; what became of an answer's calls is in the facts. The
n-th answer with calls is the turn ``tn`` with the epoch n. So whoever has the notes and the facts
knows how to go on, whatever was kept last before a crash:

- a prompt, or the facts that close a turn: the model has to answer, again if need be;
- an answer with calls, and no TURN_OPENED: the turn has to be opened; its epoch refuses it if it
  was opened after all (K-55);
- an answer with calls, and its turn open: its results are awaited;
- an answer without calls, a turn that was interrupted, or a note that the model was stopped while
  it was asked: a person has the word.

Notes go before the facts that follow from them: an answer is kept before its turn is opened, and
before the continuation that led to it is acknowledged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from itertools import takewhile
from typing import Final, TypeGuard

from ..models.facts import ContinuationTaken, Fact, TurnFact, TurnOpened, TurnSettled
from ..models.values import Json
from ..runtime.forking import FORKED, WHOLE
from ..views.turn_view import TurnView
from .errors import ConversationBroken
from .messages import Answer, Message, Prompt, Results, from_note

PREFIX: Final = "said/"
"""Begins the names of notes that are messages; their number follows, from 1."""
STOPPED: Final = "stopped/"
"""Begins the name of a note that nobody waits for the answer to the message of this number any
more: a person has stopped it, and has the word."""


class Owed(Enum):
    """What has to happen next."""

    PROMPT = "a person has the word"
    ANSWER = "the model has to answer"
    TURN = "the turn of an answer has to be opened"
    RESULTS = "the results of a turn are awaited"


class Conversation:
    """The fold of a run's notes and facts."""

    def __init__(self, run_id: str) -> None:
        """Begin before anything was said."""
        self.run_id: Final = run_id
        self.said: list[Prompt | Answer] = []
        self.epoch = 0
        """Answers with calls: the epoch of the turn of the latest."""
        self.stopped = 0
        """The number of the latest message of which a person has stopped the answer."""
        self.turns: dict[str, TurnView] = {}
        self.untaken: set[str] = set()
        """The turns whose continuations are owed still."""
        self.sequence = 0
        """That of the last fact taken."""

    def load(self, notes: Mapping[str, Json]) -> None:
        """Take the notes of the run, those of others left out. Raises `ConversationBroken`."""
        if FORKED in notes and WHOLE not in notes:
            raise self._broken("it is half a fork: the same turnlock fork again finishes it")
        for name, note in notes.items():
            if name.startswith(STOPPED):
                self.stopped = max(self.stopped, int(name.removeprefix(STOPPED)))
            if not name.startswith(PREFIX):
                continue
            if name != self.next_name:
                raise self._broken(f"the note {name!r} stands where {self.next_name!r} should")
            try:
                self.say(from_note(note))
            except (LookupError, TypeError, ValueError) as error:
                raise self._broken(f"the note {name!r} is no message ({error})") from error

    def say(self, said: Prompt | Answer) -> None:
        """Take what was said, once its note is kept."""
        self.said.append(said)
        if isinstance(said, Answer) and said.calls:
            self.epoch += 1

    def stop(self) -> None:
        """Take it that a person has stopped the answer that is owed, once its note is kept."""
        self.stopped = len(self.said)

    @property
    def stop_name(self) -> str:
        """The name of the note that nobody waits for the answer that is owed now."""
        return f"{STOPPED}{len(self.said)}"

    @property
    def next_name(self) -> str:
        """The name of the note that the next message will be."""
        return f"{PREFIX}{len(self.said) + 1}"

    def take(self, fact: Fact) -> None:
        """Take the next fact of the run."""
        self.sequence = fact.sequence
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

    @property
    def owed(self) -> Owed:
        """What has to happen next."""
        if not self.said or self.is_stopped:
            return Owed.PROMPT
        last = self.said[-1]
        if isinstance(last, Prompt):
            return Owed.ANSWER
        turn_id = self.turn_id
        if not last.calls or turn_id is None:
            return Owed.PROMPT
        turn = self.turns.get(turn_id)
        if turn is None:
            return Owed.TURN
        if not turn.closed:
            return Owed.RESULTS
        return Owed.PROMPT if turn.interrupted else Owed.ANSWER

    @property
    def is_stopped(self) -> bool:
        """Whether a person has stopped the answer to what was said last."""
        return 0 < self.stopped == len(self.said)

    @property
    def last_prompt(self) -> Prompt | None:
        """The latest prompt; not what the model was told of a misfit."""
        return next((said for said in reversed(self.said) if _is_prompt(said)), None)

    @property
    def answers(self) -> tuple[Answer, ...]:
        """The answers to the latest prompt, in order."""
        answers = [*takewhile(lambda said: not _is_prompt(said), reversed(self.said))]
        return tuple(said for said in reversed(answers) if isinstance(said, Answer))

    def answered(self, turn_id: str) -> bool:
        """Whether the model has answered the results of this turn, or was told something else.

        A turn that this conversation does not know was opened by somebody else, who answers it.
        """
        if turn_id != self.turn_id or self.is_stopped:
            return True
        last = self.said[-1]
        return isinstance(last, Prompt) or not last.calls

    def messages(self) -> Iterator[Message]:
        """Yield all that was said, results after the answers that asked for them."""
        epoch = 0
        for said in self.said:
            yield said
            if isinstance(said, Answer) and said.calls:
                epoch += 1
                turn = self.turns.get(f"t{epoch}")
                if turn is not None and turn.closed:
                    yield Results(
                        turn_id=f"t{epoch}",
                        results=turn.results,
                        interrupted=turn.interrupted,
                        reason=turn.interrupt_reason,
                        edited={
                            call.invocation_id: call.decision.arguments
                            for call in turn.calls
                            if call.decision is not None and call.decision.arguments is not None
                        },
                    )

    def _broken(self, cause: str) -> ConversationBroken:
        return ConversationBroken(
            f"run {self.run_id!r}: {cause}; this is not the conversation of one agent: take another"
            " run"
        )


def _is_prompt(said: Prompt | Answer) -> TypeGuard[Prompt]:
    return isinstance(said, Prompt) and not said.misfit

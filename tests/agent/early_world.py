"""What outlives the processes of an agent whose calls begin early, and what must hold of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence

import attrs

from turnlock.agent.messages import Answer, Message, Results, as_note
from turnlock.agent.speaking import Question, Said
from turnlock.models.calls import Status
from turnlock.models.fact import Fact, FactType
from turnlock.models.values import Json

from .speakers import SPEC, Pause, Piece, Speaker, asked, speech

TURNS = 2
"""Answers with calls that there are, unless told otherwise, before one without."""
GOODBYE = "That is all."


@attrs.frozen
class Ran:
    """An execution, as its tool knows it."""

    turn_id: str
    invocation_id: str
    attempt: int
    at: str


@attrs.define
class Whimsical:
    """A model that never says the same twice, with ids that show how they were given (W-57).

    Before each piece there are `pause` seconds; `salt` is another for each process.
    """

    salt: str = ""
    pause: float = 0.05
    turns: int = TURNS
    spec: str = SPEC
    questions: list[Question] = attrs.field(factory=list[Question])

    async def speak(self, question: Question) -> AsyncIterator[Said]:
        self.questions.append(question)
        async for said in Speaker([self._speech(question)]).speak(question):
            yield said

    def _speech(self, question: Question) -> list[Piece]:
        turn = sum(isinstance(it, Answer) and bool(it.calls) for it in question.messages)
        said = f"{turn} {self.salt} {len(self.questions)}"
        calls = (
            asked("look", at=f"{said} sky"),
            asked("look", call_id="call~1", at=f"{said} sea"),
            asked("look", call_id="call~1", at=f"{said} land"),
        )
        whole = speech(GOODBYE) if turn == self.turns else speech(f"I look {said}", *calls)
        return [it for piece in whole for it in (Pause(self.pause), piece)]

    async def close(self) -> None:
        """Nothing is open."""


def said_in(messages: Iterable[Message]) -> list[str]:
    """What was said by a person and by the model, as it is kept."""
    return [as_note(it).content().decode() for it in messages if not isinstance(it, Results)]


def violations(
    messages: Sequence[Message],
    *,
    ran: Sequence[Ran],
    facts: Sequence[Fact],
    told: Sequence[Sequence[str]],
    turns: int = TURNS,
) -> list[str]:
    """Return what is wrong with a conversation that has come to its end.

    `told` is what the model was told was said, each time that it was asked, in any process.
    """
    answers = [it for it in messages if isinstance(it, Answer) and it.calls]
    results = [it for it in messages if isinstance(it, Results)]
    said = {
        (f"t{number}", call.invocation_id, str(call.arguments["at"]))
        for number, answer in enumerate(answers, start=1)
        for call in answer.identified()
    }
    did = {(it.turn_id, it.invocation_id, it.at) for it in ran}
    wrong = [f"{one} ran, and no answer asks for it" for one in sorted(did - said)]
    wrong += [f"{one} never ran" for one in sorted(said - did)]
    begun = Counter((it.turn_id, it.invocation_id, it.attempt) for it in ran)
    wrong += [f"{one} ran {count} times" for one, count in begun.items() if count > 1]
    retried = sum(fact.type is FactType.EXECUTION_RETRIED for fact in facts)
    if len(ran) > len(did) + retried:
        wrong.append(f"{len(ran)} executions of {len(did)} calls, {retried} retried")
    for answer, result in zip(answers, results, strict=False):
        expected: list[tuple[str, Status, Json]] = [
            (call.invocation_id, Status.SUCCEEDED, f"{call.arguments['at']} seen")
            for call in answer.identified()
        ]
        if [(it.invocation_id, it.status, it.result) for it in result.results] != expected:
            wrong.append(f"{result.turn_id}: its results are {result.results}")
    settled = sum(fact.type is FactType.TURN_SETTLED for fact in facts)
    if not len(answers) == len(results) == settled == turns:
        wrong.append(f"{len(answers)} answers, {len(results)} results, {settled} turns settled")
    all_said = said_in(messages)
    wrong += [
        f"the model was told that {heard[-1]} was said, and it was not"
        for heard in told
        if list(heard) != all_said[: len(heard)]
    ]
    return wrong

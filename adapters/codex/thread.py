"""One thread of a process, and its run: what is said of it, what is open in it, what it asks us."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from ...models.deliveries import Claim, Delivery, Interrupt, Reject, Report
from ...models.effects import Cancel, Execute
from ...models.fact import Fact
from ...models.lifecycle_facts import ToolExecutionFailed, ToolExecutionSucceeded
from ...models.turn_facts import ContinuationTaken, TurnInterrupted, TurnOpened, TurnSettled
from ...runtime.journal.pruning import turn_there
from ...runtime.scheduling import retried
from ..contract import Question, Settlement, Sink
from .connection import Connection
from .driver import Driver, pauses
from .heard import Heard
from .messages import Asked, Notified, object_of
from .normaliser import Normaliser

NAMED: Final = 64
"""Upstream turns of which it is remembered that something was said."""
NO_TOOL: Final = "there is no such tool here: this session declares none"
NOT_ASKED: Final = "interrupted: nobody is asked any more"


class PerformedThread:
    """A thread that is performed now."""

    def __init__(  # noqa: PLR0913 - what a thread is made of
        self,
        *,
        thread_id: str,
        settlement: Settlement,
        sink: Sink,
        connection: Connection,
        worker: str,
        driver: Driver,
        changed: Callable[[], None],
    ) -> None:
        """Begin with nothing known; `changed` is called when something may be another."""
        self.thread_id: Final = thread_id
        self.run_id: Final = sink.run_id
        self.sink: Final = sink
        self.driver: Final = driver
        self.driver.answer = connection.router.answer
        self.driver.changed = changed
        self.normaliser: Final = Normaliser(
            run_id=sink.run_id, thread_id=thread_id, settlement=settlement, worker=worker
        )
        self.open: str | None = None
        """The kernel's open turn, by its facts."""
        self._owed: set[str] = set()
        """Turns of the kernel whose results the runtime has not gone on from yet (S-29)."""
        self._worker = worker
        self._named: deque[str] = deque(maxlen=NAMED)
        self._awaited: str | None = None
        """A turn that was begun at our request, and of which nothing was said yet."""
        self._questions: set[tuple[str, str]] = set()
        self._unanswered: set[tuple[str, str]] = set()
        """Those that are claimed, or about to be."""

    @property
    def upstream(self) -> str | None:
        """The upstream turn that goes on; it may be one of which nothing was said yet."""
        return self.normaliser.upstream_turn or self._awaited

    @property
    def goes_on(self) -> bool:
        """Whether a turn goes on, upstream or in the kernel, or its results are owed."""
        return self.upstream is not None or self.open is not None or bool(self._owed)

    async def run(self) -> None:
        """Keep what is said of it; see `Driver.run`."""
        await self.driver.run(self)

    # what is said of it

    def take(self, message: Notified | Asked, *, at: float) -> Heard:
        """Have a message made sense of."""
        heard = self.normaliser.take(message, at=at)
        turn_id = turn_in(message)
        if turn_id is not None:
            if turn_id not in self._named:
                self._named.append(turn_id)
            self.is_over(turn_id)
        return heard

    def learn(self, facts: Sequence[Fact], *, at: float) -> Heard:
        """Have facts learnt."""
        return self.normaliser.learn(facts, at=at)

    def process_ended(self, *, at: float) -> Heard:
        """Learn that nothing more will come."""
        self._awaited = None
        return self.normaliser.process_ended(at=at)

    # its turns

    def upstream_of(self, turn_id: str) -> str | None:
        """Return the upstream turn of a turn of the kernel; None where it is another thread's."""
        of = turn_there(turn_id)
        known = (*self._named, *([] if self.upstream is None else [self.upstream]))
        return next((it for it in known if it.replace("#", "%23") == of), None)

    def began(self, turn_id: str) -> None:
        """Learn that a turn was begun at our request: its messages are on their way."""
        if turn_id not in self._named:
            self._awaited = turn_id

    def is_over(self, turn_id: str) -> None:
        """Learn that a turn need not be waited for: something was said of it, or never will be."""
        if self._awaited == turn_id:
            self._awaited = None

    def follow(self, facts: Sequence[Fact]) -> None:
        """Learn kept facts: what is open now, and what is answered follows from them (S-42)."""
        for fact in facts:
            if isinstance(fact, TurnOpened):
                self.open = fact.turn_id
                self._questions.clear()
                self._unanswered.clear()
            elif isinstance(fact, TurnSettled | TurnInterrupted) and fact.turn_id == self.open:
                self.open = None
                if isinstance(fact, TurnSettled):
                    self._owed.add(fact.turn_id)
            elif isinstance(fact, ToolExecutionSucceeded | ToolExecutionFailed):
                self._unanswered.discard((fact.turn_id, fact.invocation_id))
            elif isinstance(fact, ContinuationTaken):
                self._owed.discard(fact.turn_id)
        self.driver.learn(facts)

    async def stop(self, *, reason: str, grace: float) -> None:
        """Have the kernel stop its open turn (K-53)."""
        if self.open is None:
            return
        stop = Interrupt(run_id=self.run_id, turn_id=self.open, reason=reason, grace=grace)
        for verdict in await self.sink.hear((), [stop]):
            self.follow(verdict.facts)

    # what it asks us

    def asks(self, turn_id: str, invocation_id: str) -> bool:
        """Whether a call is a question to the user, claimed: a person may answer it (S-28)."""
        return (turn_id, invocation_id) in self._questions

    def unanswered(self) -> list[Question]:
        """Return those that wait for their answer."""
        return [
            Question(run_id=self.run_id, turn_id=turn_id, invocation_id=invocation_id)
            for turn_id, invocation_id in sorted(self._unanswered)
        ]

    async def perform(self, effect: Execute | Cancel) -> None:
        """Ask the user where an owned call says so, and nothing else: tools are not ours."""
        if isinstance(effect, Execute):
            await self._execute(effect)
        elif self.asks(effect.turn_id, effect.invocation_id):
            report = Report(
                run_id=self.run_id,
                turn_id=effect.turn_id,
                invocation_id=effect.invocation_id,
                error=NOT_ASKED,
            )
            await self._deliver(report)

    async def _execute(self, effect: Execute) -> None:
        """Claim a question to the user, which waits for its answer; a tool of ours there is none.

        Nobody's lease runs: a person may take days.
        """
        turn_id, invocation_id = effect.turn_id, effect.invocation_id
        if not self.normaliser.asks(turn_id, invocation_id):
            await self._deliver(
                Reject(
                    run_id=self.run_id,
                    turn_id=turn_id,
                    invocation_id=invocation_id,
                    error=NO_TOOL,
                )
            )
            return
        self._unanswered.add((turn_id, invocation_id))
        await self._deliver(
            Claim(
                run_id=self.run_id,
                turn_id=turn_id,
                invocation_id=invocation_id,
                attempt=effect.attempt,
                worker=self._worker,
            )
        )
        self._questions.add((turn_id, invocation_id))

    async def _deliver(self, delivery: Delivery) -> None:
        """Have something judged, however long the journal fails meanwhile."""
        await retried(lambda: self.sink.hear((), [delivery]), pauses=pauses())


def turn_in(message: Notified | Asked) -> str | None:
    """Return the upstream turn that a message names."""
    params = message.params
    named: object = params.get("turnId") or object_of(params.get("turn")).get("id")
    return named if isinstance(named, str) else None

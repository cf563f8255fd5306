"""A run under test: its kernel, its clock, its journal, and what of it can be seen from outside."""

from __future__ import annotations

from typing import Final, Self, TypeVar

from turnlock import Continue, Delivery, Fact, Kernel, Limits, Reason, Refused, Run, Verdict, Wake
from turnlock.models.facts import ExecutionFact, LifecycleFact
from turnlock.models.values import Json

from .outcome import Outcome, ask, tell, told

ACTIVE: Final = "<the turn opened last>"

RecordT = TypeVar("RecordT")


class Stage:
    """One run under test."""

    def __init__(self, run: Run | None = None, *, limits: Limits | None = None) -> None:
        self.run = run or Run(run_id="r", limits=limits or Limits())
        self.kernel = Kernel(self.run)
        self.clock = 0.0
        self.step = 1.0
        self.turn_id = ""
        self.journal: list[Fact] = []
        self.verdict: Verdict = Refused(reason=Reason.LATE)

    def at(self, clock: float) -> Self:
        """Set the clock for the next delivery."""
        self.clock = clock
        return self

    def receives(self, delivery: Delivery) -> Outcome:
        """Give the kernel a delivery, note its facts, let time pass."""
        self.verdict = self.kernel.receive(delivery, self.clock)
        self.journal += self.verdict.facts
        self.clock += self.step
        return told(self.verdict)

    def recovered(self) -> Self:
        """A second one that goes on from the journal of this one."""
        twin = type(self)(self.run)
        twin.kernel = Kernel.recover(self.run, self.journal)
        twin.clock, twin.step, twin.turn_id = self.clock, self.step, self.turn_id
        twin.journal = [*self.journal]
        return twin

    @property
    def names(self) -> list[str]:
        """All that has happened."""
        return [tell(fact) for fact in self.journal]

    def names_of(self, invocation_id: str) -> list[str]:
        """The names of all that has happened to one invocation id."""
        return [
            str(fact.type)
            for fact in self.journal
            if isinstance(fact, LifecycleFact | ExecutionFact)
            and fact.invocation_id == invocation_id
        ]

    @property
    def owed(self) -> list[str]:
        """All that is still asked, wakes left out."""
        effects = self.kernel.pending_effects
        return [ask(effect) for effect in effects if not isinstance(effect, Wake)]

    @property
    def wake(self) -> float | None:
        """When the kernel wants to be woken."""
        wakes = [effect.at for effect in self.kernel.pending_effects if isinstance(effect, Wake)]
        assert len(wakes) <= 1
        return wakes[0] if wakes else None

    def last(self, kind: type[RecordT]) -> RecordT:
        """The latest fact of a kind, or the latest effect of the last verdict."""
        return [it for it in (*self.journal, *self.verdict.effects) if isinstance(it, kind)][-1]

    def results(self, turn: str = ACTIVE) -> list[tuple[str, str, Json]]:
        """What the owed continuation of a turn says: id, status and payload of each call."""
        turn_id = self.named(turn)
        [owed] = [
            effect
            for effect in self.kernel.pending_effects
            if isinstance(effect, Continue) and effect.turn_id == turn_id
        ]
        payloads = {"succeeded": "result", "failed": "error", "denied": "reason"}
        return [
            (line.invocation_id, str(line.status), getattr(line, payloads[line.status]))
            for line in owed.results
        ]

    def named(self, turn: str) -> str:
        return self.turn_id if turn == ACTIVE else turn

    def named_or_not(self, turn: str | None) -> str | None:
        return None if turn is None else self.named(turn)

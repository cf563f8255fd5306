"""What a transcript comes to that is played: runs, what was refused in them, what is broken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import attrs

from ...engine.kernel import Kernel
from ...models.deliveries import Delivery
from ...models.facts import Fact
from ...models.run import Run
from ...models.verdicts import Refused
from ...runtime.journal.ledger import Note
from .demands import Broken, Life, Witness
from .heard import Heard, Odd, Reply
from .messages import Asked, Notified
from .transcripts import Settlement


class Normalises(Protocol):
    """What a normaliser of one thread does, as far as it is played."""

    @property
    def upstream_turn(self) -> str | None:
        """The upstream turn that goes on."""
        ...

    @property
    def kernel_turn(self) -> str | None:
        """The kernel's turn that is open."""
        ...

    def take(self, message: Notified | Asked, *, at: float) -> Heard:
        """Make something of a message."""
        ...

    def learn(self, facts: Sequence[Fact], *, at: float) -> Heard:
        """Learn what became a fact."""
        ...

    def process_ended(self, *, at: float) -> Heard:
        """Make something of the end of the process."""
        ...


class Makes(Protocol):
    """How a normaliser is made: as `Normaliser` is."""

    def __call__(
        self, *, run_id: str, thread_id: str, settlement: Settlement, worker: str
    ) -> Normalises:
        """Return one for a thread of a process."""
        ...


@attrs.frozen
class Refusal:
    """A delivery that the kernel refused; `why` says why that is to be expected, if it is."""

    seq: int
    by: str
    """`normaliser`, `client` (the recorded one, that stands for people), or `evidence` (S-27)."""
    delivery: Delivery
    refused: Refused
    why: str | None


@attrs.frozen
class Breach:
    """A demand that was not met, and at which line of the transcript."""

    seq: int
    run_id: str
    broken: Broken

    def __str__(self) -> str:
        """Say it in one line."""
        return f"seq {self.seq}, run {self.run_id}: {self.broken.rule}: {self.broken.what}"


@attrs.frozen
class Kept:
    """What was kept at once: notes, and the facts that were judged after them."""

    notes: tuple[Note, ...]
    facts: tuple[Fact, ...]


@attrs.define
class PlayedRun:
    """One thread, over all processes that had it."""

    run: Run
    thread_id: str
    kernel: Kernel
    witness: Witness = attrs.field(factory=Witness)
    kept: list[Kept] = attrs.field(factory=list[Kept])
    refusals: list[Refusal] = attrs.field(factory=list[Refusal])
    odd: list[Odd] = attrs.field(factory=list[Odd])
    transients: int = 0
    answers: list[Reply] = attrs.field(factory=list[Reply])
    """What we answered, in order."""
    normaliser: Normalises | None = None
    """Of the process that has it now."""
    settlement: Settlement = "turn"
    """In the process that has it, or had it last."""
    turns: dict[str, str] = attrs.field(factory=dict[str, str])
    """The latest turn of the kernel of each upstream turn."""

    @property
    def notes(self) -> Iterator[Note]:
        """All notes, in order."""
        for kept in self.kept:
            yield from kept.notes

    @property
    def facts(self) -> Iterator[Fact]:
        """All facts, in order."""
        for kept in self.kept:
            yield from kept.facts


@attrs.frozen
class Request:
    """A request of the runtime, and which call it is about."""

    run: PlayedRun
    asked: Asked
    turn_id: str | None
    invocation_id: str | None

    @property
    def life(self) -> Life | None:
        """The call as its facts tell it; None where there is none."""
        if self.turn_id is None or self.invocation_id is None:
            return None
        return self.run.witness.lives.get((self.turn_id, self.invocation_id))

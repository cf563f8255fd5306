"""What a sequence diagram is made of: who takes part, and the messages between them, in steps.

Writers read nothing else: they need not know what a delivery is.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Final

import attrs


class Role(IntEnum):
    """Who speaks to a kernel; the order is that of the lanes, from the left."""

    MODEL = 0
    HOST = 1
    PERSON = 2
    WORKER = 3
    """One executor that gave its name."""
    EXECUTORS = 4
    """The others, and those that gave none."""
    CLOCK = 5
    KERNEL = 6


@attrs.frozen(order=True)
class Party:
    """One participant; `in_full` is the name of a worker as it was recorded."""

    role: Role
    name: str
    in_full: str = ""


MODEL: Final = Party(Role.MODEL, "model")
HOST: Final = Party(Role.HOST, "host")
PERSON: Final = Party(Role.PERSON, "person")
EXECUTORS: Final = Party(Role.EXECUTORS, "executors")
CLOCK: Final = Party(Role.CLOCK, "clock")
KERNEL: Final = Party(Role.KERNEL, "kernel")
PARTIES: Final = (MODEL, HOST, PERSON, EXECUTORS, CLOCK, KERNEL)
"""All that are no single worker."""


class Kind(StrEnum):
    """What a message is."""

    DELIVERY = "delivery"
    """It arrived at the kernel, and that was recorded."""
    INFERRED = "inferred"
    """Only facts were recorded: who must have brought them, told by the first of them."""
    TIME = "time"
    """Deadlines that came due; it stands before their facts (K-11)."""
    FACT = "fact"
    """It happened: a note at the kernel, or a question to a person."""
    REFUSAL = "refusal"
    EFFECT = "effect"
    EXPECTED = "expected"
    """What a kernel that is right answers, where another one answered something else."""
    GOT = "got"
    """What that other one answered."""
    DIFFERENCE = "difference"
    """Where the two differ first."""
    GAP = "gap"
    """Steps that are left out."""


ANSWER_SIGNS: Final = {Kind.EXPECTED: "=", Kind.GOT: "≠", Kind.DIFFERENCE: "!"}
"""What stands before the answers that are compared, so that they are not told by colour alone."""


@attrs.frozen(kw_only=True)
class Message:
    """One arrow, or one note where sender and receiver are the kernel.

    `name` is what it is called where it is specified: a delivery's type, a fact's, an effect's, a
    reason. `words` tell it; nothing in them is safe yet but that they are bounded. `about` names in
    full what the words may shorten. `phase` colours it; empty for what has no phase.
    """

    kind: Kind
    sender: Party
    receiver: Party
    name: str
    words: str
    about: str = ""
    phase: str = ""
    count: int = 1
    """How many are drawn as this one."""

    @property
    def is_note(self) -> bool:
        """Whether it is no arrow."""
        return self.sender == self.receiver

    @property
    def label(self) -> str:
        """Return the words, after the count where there are many."""
        return f"×{self.count:,} {self.words}" if self.count > 1 else self.words

    @property
    def in_full(self) -> str:
        """Return the label, and in full what it is about."""
        return f"{self.label} ({self.about})" if self.about else self.label


@attrs.frozen(kw_only=True)
class Step:
    """One receive with what came of it; `at` is seconds since the beginning of the recording."""

    at: float
    messages: tuple[Message, ...]

    @property
    def opens_turn(self) -> bool:
        """Whether a turn begins here."""
        return any(message.name == "TURN_OPENED" for message in self.messages)


def parties_of(steps: tuple[Step, ...]) -> tuple[Party, ...]:
    """Return who takes part, in the order of the lanes; the kernel always does."""
    found = {KERNEL}
    for step in steps:
        for message in step.messages:
            found.add(message.sender)
            found.add(message.receiver)
    return tuple(sorted(found))

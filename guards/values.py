"""What a guard is asked and what it answers: which call, what became of it, where it stands."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Generic, TypeVar

import attrs

from ..lifecycle.phases import Phase
from ..models.calls import Status
from ..models.errors import InvalidValue
from ..models.record import any_text, optional
from ..models.values import Json

T = TypeVar("T")

KIND = "guard"
"""The kind of guarded runs (K-61): no runtime performs them, or declares their claims lost."""

BEGINNING = ""
"""Given as `after`: this answer is the first of its run. (None says nothing.)"""


@attrs.frozen
class At:
    """One call of a guarded run.

    `turn` None is the latest turn that has this call: for claims only, `decide` and `resolve`
    demand a turn.
    """

    run: str = attrs.field(validator=any_text)
    turn: str | None = attrs.field(validator=optional(any_text))
    call: str = attrs.field(validator=any_text)

    def __str__(self) -> str:
        """Name it in a message."""
        turn = "" if self.turn is None else f" of turn {self.turn!r}"
        return f"call {self.call!r}{turn} of run {self.run!r}"


class Abandons(StrEnum):
    """What becomes of a turn that is open when the next answer of the model comes."""

    WAITING = "waiting"
    """What has not started is denied; what runs or is in doubt refuses the new turn."""
    NOTHING = "nothing"
    """Whatever has not ended refuses the new turn."""


@attrs.frozen(kw_only=True)
class Outcome(Generic[T]):
    """How a call ended: a denial and a recorded failure are outcomes, too, and no errors."""

    status: Status
    value: T | None = None
    """What it returned, where it has succeeded; of a replay what `decode` makes of the record."""
    error: str | None = None
    """Where it has failed."""
    reason: str | None = None
    """Where it was denied."""
    replayed: bool = False
    """Whether it is the record of an execution before this one: nothing ran now."""
    attempt: int = 0
    """The attempt that ended so; 0 where it was never started."""


@attrs.frozen(kw_only=True)
class CallContext:
    """What a guarded function is told of its call."""

    at: At
    tool: str
    arguments: Mapping[str, Json]
    """Those that run: the edited ones, where an approval edited them."""
    attempt: int
    idempotency_key: str
    """The same for every attempt; for services that refuse to do a thing twice."""


@attrs.frozen(kw_only=True)
class Look:
    """Where a call stands. Times are Unix time, in seconds."""

    at: At
    tool: str
    phase: Phase
    digest: str | None
    """Of the arguments that were shown to whoever decides; None: nobody was asked."""
    outcome: Outcome[Json] | None = None
    worker: str | None = None
    """Who runs it, or ran it when it was lost: host and process, where that is known."""
    since: float | None = None
    """When it came into this phase, where that is known."""
    attempt: int = 0
    """The latest attempt; 0: it was never started."""


@attrs.frozen(kw_only=True)
class PendingApproval:
    """A call that waits for a decision; `digest` is what `decide` echoes (K-32)."""

    at: At
    tool: str
    arguments: Mapping[str, Json]
    digest: str
    deadline: float | None = None
    """Unix time, in seconds, after which it is denied; None: it waits for ever."""


def gated(gate: Collection[str]) -> frozenset[str]:
    """Return the tools of a gate. Raises `InvalidValue` for a text: its letters are no names."""
    if isinstance(gate, str):
        raise InvalidValue(
            place="gate", cause=f"{gate!r} is one text", fix=f"give a set: {{{gate!r}}}"
        )
    return frozenset(gate)

"""What a timeline shows: turns, the lanes of their invocations, and the spans of each life.

All times are Unix time in seconds. A span that is open (`until` None) was still lasting at the end
of the recording.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final

import attrs

from ...lifecycle.phases import Phase
from ...models.run import Run
from ...turn.phases import TurnPhase


class Kind(StrEnum):
    """What an invocation does in a phase: REQUESTED is waiting if it is gated, else ready."""

    WAITING = "waiting for approval"
    READY = "ready"
    EXECUTING = "executing"
    IN_DOUBT = "in doubt"


class MarkKind(StrEnum):
    """What happened at one time, within a phase or against it."""

    RENEWED = "lease renewed"
    RETRY = "retry authorised"
    DEADLINE = "deadline"
    MET = "deadline met"
    INTERRUPT = "interrupted"
    REFUSED = "refused"


@attrs.frozen(kw_only=True)
class Mark:
    """One point in time; `text` says what, such as the reason of a refusal.

    `turn_id` is the turn that a refused delivery named, None for one that named none.
    """

    at: float
    kind: MarkKind
    text: str
    turn_id: str | None = None


@attrs.frozen(kw_only=True)
class Span:
    """A phase of an invocation, from the fact that led into it to the one that led out."""

    phase: Phase
    kind: Kind
    since: float
    until: float | None
    attempt: int = 0
    worker: str | None = None

    def lasts(self, end: float) -> float:
        """Return its seconds, up to `end` if it is open."""
        return (end if self.until is None else self.until) - self.since


@attrs.frozen(kw_only=True)
class Lane:
    """One invocation's life. `outcome` is its terminal phase, `detail` the error or the reason.

    `epoch` and `position`, its place in expected order, tell it from every other of the run.
    """

    turn_id: str
    epoch: int
    position: int
    invocation_id: str
    tool_name: str
    spans: tuple[Span, ...]
    marks: tuple[Mark, ...]
    outcome: Phase | None
    detail: str

    @property
    def since(self) -> float:
        """When it was asked for."""
        return self.spans[0].since

    @property
    def until(self) -> float | None:
        """When it ended, None if it has not."""
        return self.spans[-1].until

    def lasts(self, end: float) -> float:
        """Return the seconds of its life, up to `end` if it has not ended."""
        return (end if self.until is None else self.until) - self.since

    def seconds(self, kind: Kind, end: float) -> float:
        """Return how long it did this, all its spans together."""
        return sum(span.lasts(end) for span in self.spans if span.kind is kind)

    @property
    def doubted(self) -> bool:
        """Whether it was ever in doubt."""
        return any(span.phase is Phase.IN_DOUBT for span in self.spans)


@attrs.frozen(kw_only=True)
class TurnSpan:
    """A phase of a turn; a closed turn has none."""

    phase: TurnPhase
    since: float
    until: float | None


@attrs.frozen(kw_only=True)
class TurnLine:
    """One turn: its phases, its lanes in expected order, and what concerns none of them.

    `closed` is the phase it ended in. Its continuation is owed from `settled_at` to `taken_at`;
    both are None where none was owed.
    """

    turn_id: str
    epoch: int
    spans: tuple[TurnSpan, ...]
    lanes: tuple[Lane, ...]
    marks: tuple[Mark, ...]
    closed: TurnPhase | None
    settled_at: float | None = None
    taken_at: float | None = None

    @property
    def since(self) -> float:
        """When it was opened."""
        return self.spans[0].since

    def until(self, end: float) -> float:
        """Return when its continuation was taken, else when it was closed, else `end`.

        Hosts may never say that they took a continuation: so a turn that is closed ends.
        """
        return next((at for at in (self.taken_at, self.closed_at) if at is not None), end)

    @property
    def closed_at(self) -> float | None:
        """When it settled or was interrupted to the end, None if it is still active."""
        return self.spans[-1].until

    def outcomes(self) -> Counter[Phase | None]:
        """Count its invocations by how they ended; None are those that did not."""
        return Counter(lane.outcome for lane in self.lanes)


@attrs.frozen(kw_only=True)
class Timeline:
    """The turns of one run, or some of them; `end` is the last time that the recording knows.

    `strays` are refused deliveries that came before the first turn. `workers` are short names of
    executors, by their own.
    """

    run: Run
    turns: tuple[TurnLine, ...]
    end: float
    strays: tuple[Mark, ...]
    workers: Mapping[str, str] = attrs.field(factory=dict[str, str])

    @property
    def lanes(self) -> Iterator[Lane]:
        """All lanes, in the order of their turns."""
        for turn in self.turns:
            yield from turn.lanes

    def refused(self) -> int:
        """Return how many deliveries were refused, those that concern no lane included."""
        marks = [*self.strays]
        for turn in self.turns:
            marks += turn.marks
            for lane in turn.lanes:
                marks += lane.marks
        return sum(mark.kind is MarkKind.REFUSED for mark in marks)


_KINDS: Final = {
    Phase.APPROVED: Kind.READY,
    Phase.STARTED: Kind.EXECUTING,
    Phase.IN_DOUBT: Kind.IN_DOUBT,
    Phase.RETRY_AUTHORISED: Kind.IN_DOUBT,
}


def kind_of(phase: Phase, *, gated: bool) -> Kind:
    """Return what an invocation does in a phase that is not terminal."""
    if phase is Phase.REQUESTED:
        return Kind.WAITING if gated else Kind.READY
    return _KINDS[phase]

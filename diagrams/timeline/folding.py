"""From a recording to a timeline: the tables' own folds say which fact leads into which phase."""

from __future__ import annotations

from typing import Any, Final

from ...lifecycle.phases import TERMINAL, Phase
from ...lifecycle.table import FOLD
from ...models.calls import Call
from ...models.errors import CorruptJournal
from ...models.facts import (
    CallAdded,
    ContinuationTaken,
    ExecutionFact,
    Fact,
    LeaseRenewed,
    LifecycleFact,
    RetryAuthorised,
    ToolApprovalRequested,
    TurnFact,
    TurnInterrupting,
    TurnOpened,
    TurnSettled,
)
from ...models.reasons import Reason
from ...turn.phases import TurnPhase
from ...turn.table import FOLD as TURN_FOLD
from ..drawing.lettering import short_names
from ..recordings.recording import Moment, Recording
from .spans import Kind, Lane, Mark, MarkKind, Span, Timeline, TurnLine, TurnSpan, kind_of

_CLOSED: Final = frozenset({TurnPhase.SETTLED, TurnPhase.INTERRUPTED})


def timeline_of(recording: Recording) -> Timeline:
    """Return the timeline of a whole run. Raises `CorruptJournal` for facts that cannot follow."""
    folding = _Folding()
    for moment in recording.moments:
        folding.take(moment)
    turns = tuple(turn.line() for turn in folding.turns)
    end = max((moment.at for moment in recording.moments), default=0.0)
    spans = (span for turn in turns for lane in turn.lanes for span in lane.spans)
    workers = short_names(span.worker for span in spans if span.worker)
    return Timeline(
        run=recording.run, turns=turns, end=end, strays=tuple(folding.strays), workers=workers
    )


class _Life:
    """One invocation under way."""

    def __init__(self, turn_id: str, call: Call, at: float) -> None:
        self.turn_id = turn_id
        self.call = call
        self.phase = Phase.REQUESTED
        self.since = at
        self.attempt = 0
        self.worker: str | None = None
        self.deadline: float | None = None
        self.detail = ""
        self.spans: list[Span] = []
        self.marks: list[Mark] = []

    def take(self, fact: Any) -> None:  # noqa: ANN401 - of one of the two families
        """Fold one fact: a phase that it leads out of becomes a span."""
        self._mark(fact)
        if isinstance(fact, ToolApprovalRequested):
            return
        phase = FOLD.get((self.phase, fact.type))
        if phase is None:
            raise _impossible(fact, f"{self.call.invocation_id!r} is {self.phase}")
        if phase is self.phase:
            return
        self._end(fact.at)
        self.phase, self.since = phase, fact.at
        if phase is Phase.STARTED:
            self.attempt, self.worker = fact.attempt, fact.worker
            self.deadline = fact.lease_until
        elif phase in TERMINAL:
            self.detail = getattr(fact, "error", None) or getattr(fact, "reason", None) or ""

    def _mark(self, fact: Any) -> None:  # noqa: ANN401 - as above
        if isinstance(fact, LeaseRenewed):
            self.deadline = fact.lease_until
            text = f"for {fact.lease_until - fact.at:g} s"
            self.marks.append(Mark(at=fact.at, kind=MarkKind.RENEWED, text=text))
        elif isinstance(fact, RetryAuthorised):
            text = f"attempt {fact.attempt + 1} may start"
            self.marks.append(Mark(at=fact.at, kind=MarkKind.RETRY, text=text))
        elif getattr(fact, "deadline", None) is not None:
            self.deadline = fact.deadline

    def _end(self, until: float | None) -> None:
        kind = kind_of(self.phase, gated=self.call.requires_approval)
        running = kind is Kind.EXECUTING
        self.spans.append(
            Span(
                phase=self.phase,
                kind=kind,
                since=self.since,
                until=until,
                attempt=self.attempt if running or kind is Kind.IN_DOUBT else 0,
                worker=self.worker if running else None,
            )
        )
        if self.deadline is not None:
            met = until is not None and until <= self.deadline  # K-34: over when strictly past
            mark = MarkKind.MET if met else MarkKind.DEADLINE
            text = "of the lease" if running else "of the approval"
            self.marks.append(Mark(at=self.deadline, kind=mark, text=text))
            self.deadline = None

    def lane(self, *, epoch: int, position: int) -> Lane:
        """Return what it has become."""
        ended = self.phase in TERMINAL
        if not ended:
            self._end(None)
        return Lane(
            turn_id=self.turn_id,
            epoch=epoch,
            position=position,
            invocation_id=self.call.invocation_id,
            tool_name=self.call.tool_name,
            spans=tuple(self.spans),
            marks=tuple(self.marks),
            outcome=self.phase if ended else None,
            detail=self.detail,
        )


class _TurnLife:
    """One turn under way."""

    def __init__(self, fact: TurnOpened) -> None:
        self.turn_id = fact.turn_id
        self.epoch = fact.epoch
        self.phase = TurnPhase.SEALED if fact.sealed else TurnPhase.OPEN
        self.since = fact.at
        self.lives: dict[str, _Life] = {}
        self.spans: list[TurnSpan] = []
        self.marks: list[Mark] = []
        self.settled_at: float | None = None
        self.taken_at: float | None = None
        for call in fact.calls:
            self.add(call, fact.at)

    def add(self, call: Call, at: float) -> None:
        self.lives[call.invocation_id] = _Life(self.turn_id, call, at)

    def take(self, fact: TurnFact) -> None:
        """Fold a fact of the turn, or of one of its invocations."""
        if isinstance(fact, LifecycleFact | ExecutionFact):
            life = self.lives.get(fact.invocation_id)
            if life is None:
                raise _impossible(fact, f"the turn has no invocation {fact.invocation_id!r}")
            life.take(fact)
            return
        phase = TURN_FOLD.get((self.phase, fact.type))
        if phase is None:
            raise _impossible(fact, f"the turn is {self.phase}")
        if isinstance(fact, CallAdded):
            self.add(fact.call, fact.at)
        elif isinstance(fact, TurnInterrupting):
            for life in self.lives.values():
                if (life.phase, fact.type) in FOLD:  # an authorised retry is withdrawn (K-60)
                    life.take(fact)
            text = fact.reason or ""
            self.marks.append(Mark(at=fact.at, kind=MarkKind.INTERRUPT, text=text))
            text = "of the grace"
            self.marks.append(Mark(at=fact.grace_until, kind=MarkKind.DEADLINE, text=text))
        elif isinstance(fact, TurnSettled) and self.lives:  # K-52: without calls none is owed
            self.settled_at = fact.at
        if phase is not self.phase:
            self.spans.append(TurnSpan(phase=self.phase, since=self.since, until=fact.at))
            self.phase, self.since = phase, fact.at

    @property
    def closed(self) -> bool:
        """Whether it is no longer the active one."""
        return self.phase in _CLOSED

    def line(self) -> TurnLine:
        """Return what it has become."""
        if not self.closed:
            self.spans.append(TurnSpan(phase=self.phase, since=self.since, until=None))
        return TurnLine(
            turn_id=self.turn_id,
            epoch=self.epoch,
            spans=tuple(self.spans),
            lanes=tuple(
                life.lane(epoch=self.epoch, position=position)
                for position, life in enumerate(self.lives.values())
            ),
            marks=tuple(self.marks),
            closed=self.phase if self.closed else None,
            settled_at=self.settled_at,
            taken_at=self.taken_at,
        )


class _Folding:
    """All turns so far; `by_id` holds the latest of each id (K-55)."""

    def __init__(self) -> None:
        self.turns: list[_TurnLife] = []
        self.strays: list[Mark] = []
        self._by_id: dict[str, _TurnLife] = {}

    def take(self, moment: Moment) -> None:
        """Fold the facts of a receive, and note a refusal with what it was about."""
        for fact in moment.facts:
            self._fold(fact)
        if moment.reason is not None:
            named = "no turn" if moment.turn_id is None else f"turn {moment.turn_id}"
            mark = Mark(
                at=moment.at,
                kind=MarkKind.REFUSED,
                text=f"{moment.kind} of {named}: {moment.reason}",
                turn_id=moment.turn_id,
            )
            self._marks_of(moment).append(mark)

    def _fold(self, fact: Fact) -> None:
        if not isinstance(fact, TurnFact):
            return  # of grants
        if isinstance(fact, TurnOpened):
            turn = self._by_id[fact.turn_id] = _TurnLife(fact)
            self.turns.append(turn)
            return
        named = self._by_id.get(fact.turn_id)
        if named is None:
            raise _impossible(fact, f"turn {fact.turn_id!r} was never opened")
        if isinstance(fact, ContinuationTaken):
            named.taken_at = fact.at
        else:
            named.take(fact)

    def _marks_of(self, moment: Moment) -> list[Mark]:
        """Find whom a refusal concerns: what the delivery names, else the turn it came in."""
        if not self.turns:
            return self.strays
        if moment.reason is Reason.RUN_MISMATCH:
            return self.turns[-1].marks
        turn = self._by_id.get(moment.turn_id or "", self.turns[-1])
        life = turn.lives.get(moment.invocation_id) if moment.invocation_id else None
        meant = life is not None and moment.turn_id in {None, turn.turn_id}
        return life.marks if life is not None and meant else turn.marks


def _impossible(fact: Fact, cause: str) -> CorruptJournal:
    return CorruptJournal(
        sequence=fact.sequence,
        cause=f"{fact.type}: {cause}",
        fix="find the line with: turnlock check LOG",
    )

"""From a recording to a timeline: the tables' own folds say which fact leads into which phase."""

from __future__ import annotations

from typing import Any

from ...lifecycle.phases import TERMINAL, Phase
from ...lifecycle.table import FOLD
from ...models.calls import Call
from ...models.facts import (
    CallAdded,
    ContinuationTaken,
    ExecutionFact,
    ExecutionRetried,
    Fact,
    LeaseRenewed,
    LifecycleFact,
    RetryAuthorised,
    ToolApprovalRequested,
    ToolExecutionStarted,
    TurnFact,
    TurnInterrupting,
    TurnOpened,
    TurnSettled,
)
from ...models.reasons import Reason
from ...turn.phases import TurnPhase
from ...turn.table import FOLD as TURN_FOLD
from ...turn.table import TURN
from ...views.turn_view import impossible
from ..drawing.lettering import short_names
from ..recordings.recording import Moment, Recording
from .spans import Kind, Lane, Mark, MarkKind, Span, Timeline, TurnLine, TurnSpan, kind_of


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
    """One call under way: what its spans and marks need of it, and nothing else of its view.

    A view of each call after each fact would take twice the time that the whole picture does.
    """

    def __init__(self, call: Call, at: float) -> None:
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
        if isinstance(fact, ToolApprovalRequested):
            self.deadline = fact.deadline
            return
        if isinstance(fact, LeaseRenewed):
            self.deadline = fact.lease_until
            text = f"for {fact.lease_until - fact.at:g} s"
            self.marks.append(Mark(at=fact.at, kind=MarkKind.RENEWED, text=text))
        elif isinstance(fact, RetryAuthorised):
            text = f"attempt {fact.attempt + 1} may start"
            self.marks.append(Mark(at=fact.at, kind=MarkKind.RETRY, text=text))
        phase = FOLD[fact.type].get(self.phase)
        if phase is None:
            raise impossible(fact, f"{self.call.invocation_id!r} is {self.phase}")
        if phase is self.phase:
            return
        self._left(fact.at)
        self.phase, self.since = phase, fact.at
        if isinstance(fact, ToolExecutionStarted | ExecutionRetried):
            self.attempt, self.worker = fact.attempt, fact.worker
            self.deadline = fact.lease_until
        elif phase in TERMINAL:
            self.detail = getattr(fact, "error", None) or getattr(fact, "reason", None) or ""

    def _left(self, until: float | None) -> None:
        """End the span of the phase; None: it lasts still."""
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

    def lane(self, opened: TurnOpened, position: int) -> Lane:
        """Return what it has become."""
        ended = self.phase in TERMINAL
        if not ended:
            self._left(None)
        return Lane(
            turn_id=opened.turn_id,
            epoch=opened.epoch,
            position=position,
            invocation_id=self.call.invocation_id,
            tool_name=self.call.tool_name,
            spans=tuple(self.spans),
            marks=tuple(self.marks),
            outcome=self.phase if ended else None,
            detail=self.detail,
        )


class _Turn:
    """One turn under way, and what has happened to it."""

    def __init__(self, fact: TurnOpened) -> None:
        self.opened = fact
        self.phase = TurnPhase.SEALED if fact.sealed else TurnPhase.OPEN
        self.since = fact.at
        self.lives = {call.invocation_id: _Life(call, fact.at) for call in fact.calls}
        self.spans: list[TurnSpan] = []
        self.marks: list[Mark] = []
        self.settled_at: float | None = None
        self.taken_at: float | None = None

    def take(self, fact: TurnFact) -> None:
        """Fold a fact of the turn, or of one of its calls: a phase that it ends becomes a span."""
        if isinstance(fact, LifecycleFact | ExecutionFact):
            life = self.lives.get(fact.invocation_id)
            if life is None:
                raise impossible(fact, f"the turn has no invocation {fact.invocation_id!r}")
            life.take(fact)
            return
        phase = TURN_FOLD[fact.type].get(self.phase)
        if phase is None:
            raise impossible(fact, f"the turn is {self.phase}")
        if isinstance(fact, CallAdded):
            self.lives[fact.call.invocation_id] = _Life(fact.call, fact.at)
        elif isinstance(fact, TurnInterrupting):
            for life in self.lives.values():
                if life.phase in FOLD[fact.type]:  # an authorised retry is withdrawn (K-60)
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

    def line(self) -> TurnLine:
        """Return what it has become."""
        closed = self.phase if self.phase in TURN.terminal else None
        if closed is None:
            self.spans.append(TurnSpan(phase=self.phase, since=self.since, until=None))
        return TurnLine(
            turn_id=self.opened.turn_id,
            epoch=self.opened.epoch,
            spans=tuple(self.spans),
            lanes=tuple(
                life.lane(self.opened, place) for place, life in enumerate(self.lives.values())
            ),
            marks=tuple(self.marks),
            closed=closed,
            settled_at=self.settled_at,
            taken_at=self.taken_at,
        )


class _Folding:
    """All turns so far; `by_id` holds the latest of each id (K-55)."""

    def __init__(self) -> None:
        self.turns: list[_Turn] = []
        self.strays: list[Mark] = []
        self._by_id: dict[str, _Turn] = {}

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
            turn = self._by_id[fact.turn_id] = _Turn(fact)
            self.turns.append(turn)
            return
        named = self._by_id.get(fact.turn_id)
        if named is None:
            raise impossible(fact, f"turn {fact.turn_id!r} was never opened")
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
        meant = moment.turn_id in {None, turn.opened.turn_id}
        return life.marks if life is not None and meant else turn.marks

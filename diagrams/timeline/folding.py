"""From a recording to a timeline: views of turns, fact by fact, and what lies between them."""

from __future__ import annotations

from typing import Any

from ...lifecycle.phases import Phase
from ...lifecycle.table import FOLD
from ...models.facts import (
    CallAdded,
    ContinuationTaken,
    ExecutionFact,
    Fact,
    LeaseRenewed,
    LifecycleFact,
    RetryAuthorised,
    TurnFact,
    TurnInterrupting,
    TurnOpened,
    TurnSettled,
)
from ...models.reasons import Reason
from ...models.record import changed
from ...views.call_list import CallList
from ...views.call_view import CallView
from ...views.turn_view import TurnView, call_after, impossible
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
    """One call, and the spans and marks of its life."""

    def __init__(self, call: CallView) -> None:
        self.call = call
        self.spans: list[Span] = []
        self.marks: list[Mark] = []

    def take(self, fact: Any) -> None:  # noqa: ANN401 - of one of the two families
        """Fold one fact: a phase that it leads out of becomes a span."""
        if isinstance(fact, LeaseRenewed):
            text = f"for {fact.lease_until - fact.at:g} s"
            self.marks.append(Mark(at=fact.at, kind=MarkKind.RENEWED, text=text))
        elif isinstance(fact, RetryAuthorised):
            text = f"attempt {fact.attempt + 1} may start"
            self.marks.append(Mark(at=fact.at, kind=MarkKind.RETRY, text=text))
        before, self.call = self.call, call_after(self.call, fact)
        if self.call.phase is not before.phase:
            self._left(before, fact.at)

    def withdraw(self, fact: TurnInterrupting) -> None:
        """Take an authorised retry back (K-60)."""
        before = self.call
        phase = FOLD.get((before.phase, fact.type))
        if phase is not None:
            self.call = changed(before, phase=phase, since=fact.at)
            self._left(before, fact.at)

    def _left(self, call: CallView, until: float | None) -> None:
        """End the span of a phase, as the call stood in it; None: it lasts still."""
        kind = kind_of(call.phase, gated=call.requires_approval)
        running = kind is Kind.EXECUTING
        # to be asked about is to be requested
        came = call.requested_at if call.phase is Phase.REQUESTED else call.since
        self.spans.append(
            Span(
                phase=call.phase,
                kind=kind,
                since=came or 0.0,
                until=until,
                attempt=call.attempt if running or kind is Kind.IN_DOUBT else 0,
                worker=call.worker if running else None,
            )
        )
        if call.deadline is not None:
            met = until is not None and until <= call.deadline  # K-34: over when strictly past
            mark = MarkKind.MET if met else MarkKind.DEADLINE
            text = "of the lease" if running else "of the approval"
            self.marks.append(Mark(at=call.deadline, kind=mark, text=text))

    def lane(self) -> Lane:
        """Return what it has become."""
        call = self.call
        if not call.ended:
            self._left(call, None)
        outcome = call.outcome
        return Lane(
            turn_id=call.turn_id,
            epoch=call.epoch,
            position=call.position,
            invocation_id=call.invocation_id,
            tool_name=call.tool_name,
            spans=tuple(self.spans),
            marks=tuple(self.marks),
            outcome=call.phase if call.ended else None,
            detail=(outcome and (outcome.error or outcome.reason)) or "",
        )


class _Turn:
    """One turn under way: its view without its calls, and what has happened to them."""

    def __init__(self, fact: TurnOpened) -> None:
        opened = TurnView.opened(fact)
        self.lives = {call.invocation_id: _Life(call) for call in opened.calls}
        self.view = changed(opened, calls=CallList())
        self.since = fact.at
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
        before, self.view = self.view, self.view.after(fact)
        if isinstance(fact, CallAdded):
            call = self.view.called(fact.call, len(self.lives), fact)
            self.lives[call.invocation_id] = _Life(call)
        elif isinstance(fact, TurnInterrupting):
            for life in self.lives.values():
                life.withdraw(fact)
            text = fact.reason or ""
            self.marks.append(Mark(at=fact.at, kind=MarkKind.INTERRUPT, text=text))
            text = "of the grace"
            self.marks.append(Mark(at=fact.grace_until, kind=MarkKind.DEADLINE, text=text))
        elif isinstance(fact, TurnSettled) and self.lives:  # K-52: without calls none is owed
            self.settled_at = fact.at
        if self.view.phase is not before.phase:
            self.spans.append(TurnSpan(phase=before.phase, since=self.since, until=fact.at))
            self.since = fact.at

    def line(self) -> TurnLine:
        """Return what it has become."""
        view = self.view
        if not view.closed:
            self.spans.append(TurnSpan(phase=view.phase, since=self.since, until=None))
        return TurnLine(
            turn_id=view.turn_id,
            epoch=view.epoch,
            spans=tuple(self.spans),
            lanes=tuple(life.lane() for life in self.lives.values()),
            marks=tuple(self.marks),
            closed=view.phase if view.closed else None,
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
        meant = moment.turn_id in {None, turn.view.turn_id}
        return life.marks if life is not None and meant else turn.marks

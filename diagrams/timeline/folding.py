"""From a recording to a timeline: views of turns, fact by fact, and what lies between them."""

from __future__ import annotations

from typing import Any

from ...lifecycle.phases import Phase
from ...models.facts import (
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
from ...views.call_view import CallView
from ...views.turn_view import TurnView, impossible
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
    """The spans and marks of one call."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.marks: list[Mark] = []

    def note(self, fact: Any) -> None:  # noqa: ANN401 - of one of the two families
        """Mark what happens within a phase."""
        if isinstance(fact, LeaseRenewed):
            text = f"for {fact.lease_until - fact.at:g} s"
            self.marks.append(Mark(at=fact.at, kind=MarkKind.RENEWED, text=text))
        elif isinstance(fact, RetryAuthorised):
            text = f"attempt {fact.attempt + 1} may start"
            self.marks.append(Mark(at=fact.at, kind=MarkKind.RETRY, text=text))

    def left(self, call: CallView, until: float | None) -> None:
        """End the span of a phase, as the call stood in it; None: it lasts still."""
        kind = kind_of(call.phase, gated=call.requires_approval)
        running = kind is Kind.EXECUTING
        self.spans.append(
            Span(
                phase=call.phase,
                kind=kind,
                since=_came(call),
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

    def lane(self, call: CallView) -> Lane:
        """Return what it has become."""
        if not call.ended:
            self.left(call, None)
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


def _came(call: CallView) -> float:
    """Return when it came to its phase: to be asked about is to be requested."""
    came = call.requested_at if call.phase is Phase.REQUESTED else call.since
    return came or 0.0


class _Turn:
    """One turn under way: its view, and what has happened to it."""

    def __init__(self, fact: TurnOpened) -> None:
        self.view = TurnView.opened(fact)
        self.since = fact.at
        self.lives: dict[str, _Life] = {}
        self.spans: list[TurnSpan] = []
        self.marks: list[Mark] = []
        self.settled_at: float | None = None
        self.taken_at: float | None = None
        self._begin()

    def _begin(self) -> None:
        for call in self.view.calls[len(self.lives) :]:
            self.lives[call.invocation_id] = _Life()

    def take(self, fact: TurnFact) -> None:
        """Fold a fact of the turn, or of one of its calls: a phase that it ends becomes a span."""
        before, self.view = self.view, self.view.after(fact)
        if isinstance(fact, LifecycleFact | ExecutionFact):
            self.lives[fact.invocation_id].note(fact)
            self._moved(before, fact.invocation_id, fact.at)
            return
        if isinstance(fact, TurnInterrupting):
            for call in before.unfinished:  # an authorised retry is withdrawn (K-60)
                self._moved(before, call.invocation_id, fact.at)
            text = fact.reason or ""
            self.marks.append(Mark(at=fact.at, kind=MarkKind.INTERRUPT, text=text))
            text = "of the grace"
            self.marks.append(Mark(at=fact.grace_until, kind=MarkKind.DEADLINE, text=text))
        elif isinstance(fact, TurnSettled) and self.lives:  # K-52: without calls none is owed
            self.settled_at = fact.at
        self._begin()
        if self.view.phase is not before.phase:
            self.spans.append(TurnSpan(phase=before.phase, since=self.since, until=fact.at))
            self.since = fact.at

    def _moved(self, before: TurnView, invocation_id: str, at: float) -> None:
        call, now = before.calls.get(invocation_id), self.view.calls.get(invocation_id)
        if call is not None and now is not None and now.phase is not call.phase:
            self.lives[invocation_id].left(call, at)

    def line(self) -> TurnLine:
        """Return what it has become."""
        view = self.view
        if not view.closed:
            self.spans.append(TurnSpan(phase=view.phase, since=self.since, until=None))
        return TurnLine(
            turn_id=view.turn_id,
            epoch=view.epoch,
            spans=tuple(self.spans),
            lanes=tuple(self.lives[call.invocation_id].lane(call) for call in view.calls),
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

"""One run as its facts tell of it: the one read model, made by one fold.

    view = RunView.of(run, facts)
    view = view.after(more)

A view never changes. The next one costs what the new facts cost and shares the rest, however many
calls the turn has. What it says of phases is the fold of the kernel's own tables (K-2, K-4).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ..engine.kernel import Kernel
from ..engine.state import FOREVER, first_float_past
from ..models.effects import Continue, Effect, Wake
from ..models.errors import InvalidValue
from ..models.facts import (
    Fact,
    TurnInterrupted,
)
from ..models.ids import (
    wake_id,
)
from ..models.record import Record, changed, record
from ..models.run import Run
from ..turn.memory import Grant
from .call_view import CallView, Waits
from .live import turn_of
from .run_fold import PARTS, RunFold
from .standing import Standing, StatusUpdate, pressing_of, standing_of
from .status import STATUS_OF, Status
from .turn_view import TurnView

__all__ = ["CallView", "RunView", "TurnView"]


@record
class RunView(Record):
    """One run: its turn, its calls, what is owed, what the agent does. Times are Unix seconds."""

    run: Run
    sequence: int = 0
    """That of the latest fact."""
    at: float | None = None
    """When the latest fact happened; None before the first."""
    epoch: int = 0
    """Turns opened so far (K-21)."""
    turn: TurnView | None = None
    """The active turn."""
    recent: tuple[TurnView, ...] = ()
    """The turns that closed last, at most `RECENT_TURNS`, the latest last."""
    continuations: tuple[Continue, ...] = ()
    """The continuations owed, the oldest first (K-52)."""
    grants: tuple[Grant, ...] = ()
    """The grants in force, in the order of issue (K-40)."""
    grants_issued: int = 0
    standing: Standing = Standing()
    """What the agent does since the latest whole commit: a status is told between commits, never
    inside one, so that who looks on sees what was true at some moment."""
    followed: Status = Status.IDLE
    """Where the status machine stands after the latest fact, in the middle of a commit, too."""
    interrupted: str | None = None
    """The turn that the latest fact closed by an interrupt."""

    @classmethod
    def of(cls, run: Run, facts: Iterable[Fact] = ()) -> RunView:
        """Return the view of a run after these facts: all of them, from the first."""
        return cls(run=run).after(facts)

    def after(self, facts: Iterable[Fact]) -> RunView:
        """Return the view after these facts, the next ones of the run.

        Raises `InvalidValue` for a fact that is not the next one of this run, and `CorruptJournal`
        for one that cannot have happened here.
        """
        fold = RunFold(run_id=self.run_id, **{name: getattr(self, name) for name in PARTS})
        for fact in facts:
            fold.take(fact)
        return changed(self, **fold.parts()) if fold.sequence > self.sequence else self

    @classmethod
    def of_kernel(cls, kernel: Kernel, *, latest: Fact | None) -> RunView:
        """Return the view of a live kernel between two receives, without its old facts.

        It costs a record for each call of the open turn. `latest` is the run's latest fact, None
        where nothing has happened: alone in it stands whether the last turn was interrupted. What
        is no part of a kernel's state is None: times, who decided, calls of closed turns. Raises
        `InvalidValue` for another fact.
        """
        known = 0 if latest is None else latest.sequence
        if known != kernel.sequence:
            raise InvalidValue(
                place="latest",
                cause=f"it is fact {known}, and the kernel is at fact {kernel.sequence}",
                fix="give the fact with the kernel's own sequence",
            )
        view = cls(
            run=kernel.run,
            sequence=kernel.sequence,
            at=None if latest is None else latest.at,
            epoch=kernel.epoch,
            turn=turn_of(kernel),
            continuations=kernel.continuations,
            grants=kernel.grants,
            grants_issued=kernel.grants_issued,
            interrupted=latest.turn_id if isinstance(latest, TurnInterrupted) else None,
        )
        under_way = view.turn, view.continuations, view.interrupted
        followed = STATUS_OF[pressing_of(*under_way)]
        return changed(view, followed=followed, standing=standing_of(followed, *under_way))

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.run.run_id

    @property
    def status(self) -> Status:
        """What the agent does, in one word."""
        return self.standing.status

    @property
    def busy(self) -> bool:
        """Whether something is under way: a turn, or results that the model was not told."""
        return self.turn is not None or bool(self.continuations)

    @property
    def waiting(self) -> tuple[CallView, ...]:
        """The calls that wait for a decision, in expected order."""
        return self._calls_waiting_for(Waits.APPROVAL)

    @property
    def in_doubt(self) -> tuple[CallView, ...]:
        """The calls of which nobody knows whether they happened (K-35)."""
        return self._calls_waiting_for(Waits.RESOLUTION, Waits.RETRY)

    @property
    def running(self) -> tuple[CallView, ...]:
        """The calls that were started and have not ended."""
        return self._calls_waiting_for(Waits.REPORT)

    def find(self, turn_id: str, invocation_id: str) -> CallView | None:
        """Return a call of the active turn or of a recent one; the latest of that turn id."""
        for turn in (self.turn, *reversed(self.recent)):
            if turn is not None and turn.turn_id == turn_id:
                return turn.calls.get(invocation_id)
        return None

    def update_since(self, before: RunView) -> StatusUpdate | None:
        """Return what has changed for whoever looks on, or None; both views end a commit."""
        if self.standing == before.standing or self.at is None:
            return None
        return StatusUpdate(
            run_id=self.run_id,
            sequence=self.sequence,
            at=self.at,
            old=before.standing,
            new=self.standing,
        )

    @property
    def owed(self) -> tuple[Effect, ...]:
        """The effects that are owed, as `Kernel.pending_effects` gives them (K-3).

        It looks at every call that has not ended, each time.
        """
        effects: list[Effect] = []
        if self.turn is not None:
            effects += self.turn.owed
        effects += self.continuations
        deadline = self.deadline
        if deadline is not None:
            at = first_float_past(deadline)
            effects.append(Wake(effect_id=wake_id(self.run_id), at=at))
        return tuple(effects)

    @property
    def deadline(self) -> float | None:
        """The earliest deadline of all that run, or None (K-11)."""
        turn = self.turn
        found = [grant.expires_at for grant in self.grants]
        if turn is not None:
            found.append(turn.grace_until)
            found += [call.deadline for call in turn.calls.waiting_for(*_TIMED)]
        return min((at for at in found if at is not None and at < FOREVER), default=None)

    def _calls_waiting_for(self, *waits: Waits) -> tuple[CallView, ...]:
        return () if self.turn is None else tuple(self.turn.calls.waiting_for(*waits))


_TIMED: Final = (Waits.APPROVAL, Waits.REPORT)

"""How a run stands, counted along: for whoever keeps it beside the facts of every commit.

A view tells all of a run and costs a record for each call; this tells what a list of runs shows,
and costs what the new facts cost, however many calls the open turn has.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..engine.kernel import Kernel
from ..engine.reading import LiveCall, LiveTurn
from ..lifecycle.phases import DOUBTED
from ..models.facts import CallAdded, Fact, TurnInterrupted
from ..turn.phases import TurnPhase
from .status import STATUS_OF, Pressing, Status


class Tally:
    """What the unfinished calls of a kernel's open turn wait for, in step with its facts."""

    __slots__ = ("_counts", "_epoch", "_pressing", "_sequence")

    def __init__(self, kernel: Kernel) -> None:
        """Look at every call of the open turn once."""
        self._pressing: dict[str, Pressing] = {}
        self._counts: dict[Pressing, int] = {}
        self._epoch = self._sequence = 0
        self._recount(kernel)

    @property
    def waiting(self) -> int:
        """Calls that wait for a person's decision."""
        return self._counts.get(Pressing.APPROVAL, 0)

    @property
    def doubts(self) -> int:
        """Calls of which nobody knows whether they happened (K-35)."""
        return self._counts.get(Pressing.DOUBT, 0)

    def follow(self, kernel: Kernel, facts: Sequence[Fact]) -> None:
        """Take in the facts that have brought the kernel where it is now, whole commits of them.

        Where they do not follow what was counted, and where a turn was opened, all is counted anew.
        """
        turn = kernel.turn
        follows = not facts or facts[0].sequence == self._sequence + 1
        if not follows or turn is None or kernel.epoch != self._epoch:
            self._recount(kernel)
            return
        for fact in facts:
            name = (
                fact.call.invocation_id
                if isinstance(fact, CallAdded)
                else getattr(fact, "invocation_id", None)
            )
            call = None if name is None else turn.members.get(name)
            if call is not None:
                self._count(call)
        self._sequence = kernel.sequence

    def status(self, kernel: Kernel, *, latest: Fact | None) -> Status:
        """Return the status of the run; `latest` is its latest fact, None before the first.

        In that fact alone stands whether the last turn was interrupted.
        """
        if isinstance(latest, TurnInterrupted):
            return STATUS_OF[Pressing.STOP]
        turn = kernel.turn
        pressing = None if turn is None else self._pressing_in(turn)
        if pressing is None:
            pressing = Pressing.RESULTS if kernel.continuations else Pressing.NOTHING
        return STATUS_OF[pressing]

    def _pressing_in(self, turn: LiveTurn) -> Pressing | None:
        if turn.phase is TurnPhase.INTERRUPTING:
            return Pressing.STOP
        for pressing in (Pressing.DOUBT, Pressing.APPROVAL, Pressing.WORK):
            if self._counts.get(pressing):
                return pressing
        return Pressing.RESULTS if turn.order else None  # there are calls, and all have ended

    def _recount(self, kernel: Kernel) -> None:
        self._pressing.clear()
        self._counts.clear()
        turn = kernel.turn
        if turn is not None:
            for call in turn.unfinished():
                self._count(call)
        self._epoch, self._sequence = kernel.epoch, kernel.sequence

    def _count(self, call: LiveCall) -> None:
        before = self._pressing.get(call.invocation_id)
        now = _pressing_of(call)
        if before is now:
            return
        if before is not None:
            self._counts[before] -= 1
        if now is None:
            del self._pressing[call.invocation_id]
        else:
            self._pressing[call.invocation_id] = now
            self._counts[now] = self._counts.get(now, 0) + 1


def _pressing_of(call: LiveCall) -> Pressing | None:
    """Return what a call stands for between two commits; None for one that has ended."""
    if call.terminal:
        return None
    if call.phase in DOUBTED:
        return Pressing.DOUBT
    return Pressing.APPROVAL if call.gated else Pressing.WORK

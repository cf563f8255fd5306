"""A run that nobody owns, visited: each visit judges in the run as it is, and appends at once.

Frameworks have no process that owns a run, so each request writes it for a moment, with whoever
else does (`runtime.submitting.SharedRun`): a process that is killed leaves no owner. What a visit
brings is chosen by a pure function of the run's kernel and its past, in the state in which it is
judged; where another writer was quicker it is chosen again.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final, Generic, TypeAlias, TypeVar

import attrs

from ..engine.kernel import Kernel
from ..models.deliveries import Delivery, Tick
from ..models.errors import UnknownRun, shown
from ..models.reasons import Reason
from ..models.run import Limits, Run
from ..runtime.errors import Conflict, ForeignRun, JournalOwned, RunDiffers
from ..runtime.journal.contract import Journal
from ..runtime.scheduling import Clock
from ..runtime.submitting import SharedRun
from ..runtime.tools.policy import Policy
from .past import Past, Unread
from .values import KIND

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

RUNS: Final = 128
"""Runs that are kept folded; beyond it the one that nobody visited longest goes first."""
LIMITS: Final = Limits(remembered=4_096, remember_for=100 * 365 * 86_400.0)
"""Of a guarded run, unless others are given: turns are asked about hours after they have closed."""
SNAPSHOT_EVERY: Final = 500
"""Facts after which a snapshot is kept: whoever comes next folds less than that."""
FIRST_PAUSE: Final = 0.02
"""Seconds after which a run that somebody owns is tried again, first."""
LONGEST_PAUSE: Final = 0.5
"""Seconds between two tries where somebody owns the run: doubled each time."""


@attrs.frozen(kw_only=True)
class Step(Generic[T_co]):
    """What a run calls for: deliveries, judged together, and what is to be said once they are."""

    deliveries: tuple[Delivery, ...] = ()
    answer: T_co


@attrs.frozen(kw_only=True)
class Visit(Generic[T]):
    """What was said, and what became of the deliveries."""

    answer: T
    reasons: tuple[Reason | None, ...] = ()
    """Why each was refused, None where it was not."""

    @property
    def reason(self) -> Reason | None:
        """Why the first that was refused was."""
        return next((it for it in self.reasons if it is not None), None)


Chooses: TypeAlias = Callable[[Kernel, Past], Step[T]]
"""Says what a run calls for as it is. It may raise `Unread`, and what is not about that run."""


@attrs.frozen
class _Visited:
    shared: SharedRun
    past: Past


class Visits:
    """The runs of one journal, for whoever visits them; the latest are kept folded."""

    def __init__(  # noqa: PLR0913 - what a writer needs
        self,
        journal: Journal,
        *,
        policies: Mapping[str, Policy],
        limits: Limits | None,
        clock: Clock,
        patience: float,
        runs: int = RUNS,
    ) -> None:
        """Keep none yet. `patience` are the seconds for which an owned run is tried again."""
        self._journal = journal
        self._policies = policies
        self._limits = LIMITS if limits is None else limits
        self._clock = clock
        self._patience = patience
        self._runs = runs
        self._visited: OrderedDict[str, _Visited] = OrderedDict()

    async def visit(self, run_id: str, choose: Chooses[T], *, declare: bool = False) -> Visit[T]:
        """Have judged what the run calls for now, in one append; without deliveries only look.

        What was due by now has happened first (K-11). With `declare` a run that is not known
        begins. Raises `UnknownRun` otherwise, `ForeignRun` for one of another kind, and what the
        journal raises: `JournalOwned` and `Conflict` only when patience is over.
        """
        patience, pause = self._patience, FIRST_PAUSE
        loop = asyncio.get_running_loop()
        until = loop.time() + patience
        while True:
            try:
                return await self._visit(run_id, choose, declare=declare)
            except (JournalOwned, Conflict):
                if loop.time() + pause >= until:
                    raise
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _visit(self, run_id: str, choose: Chooses[T], *, declare: bool) -> Visit[T]:
        visited = self._visited.get(run_id)
        if visited is None:
            visited = await self._open(run_id, declare=declare)
        self._visited[run_id] = visited
        self._visited.move_to_end(run_id)
        while len(self._visited) > self._runs:
            self._visited.popitem(last=False)
        try:
            return await self._judged(visited, choose)
        except (JournalOwned, Conflict):
            raise
        except Exception:
            self._visited.pop(run_id, None)  # whatever it was: the next visit reads it anew
            raise

    async def _judged(self, visited: _Visited, choose: Chooses[T]) -> Visit[T]:
        while True:
            chosen = _Chosen(choose, visited.past, self._clock)
            verdicts = await visited.shared.submit_chosen(chosen)
            if chosen.unread is not None:
                await visited.past.read(chosen.unread, by=visited.shared.kernel.sequence)
            elif chosen.step is not None:
                reasons = tuple(it.reason for it in verdicts)
                return Visit(answer=chosen.step.answer, reasons=reasons)

    async def _open(self, run_id: str, *, declare: bool) -> _Visited:
        try:
            shared = await self._shared(run_id)
        except UnknownRun:
            if not declare:
                raise
            with suppress(RunDiffers):  # somebody was quicker, with limits of their own: those hold
                await self._journal.declare(Run(run_id=run_id, kind=KIND, limits=self._limits))
            shared = await self._shared(run_id)
        kind = shared.kernel.run.kind
        if kind != KIND:
            raise ForeignRun(
                f"run {shown(run_id)} is of the kind {kind!r}, and a guard writes only runs of the"
                f" kind {KIND!r}; give the guarded conversation another run id"
            )
        return _Visited(shared, Past(self._journal, run_id))

    async def _shared(self, run_id: str) -> SharedRun:
        return await SharedRun.open(
            self._journal,
            run_id,
            policies=self._policies,
            clock=self._clock,
            snapshot_every=SNAPSHOT_EVERY,
        )


class _Chosen(Generic[T]):
    """Chooses for `SharedRun.submit_chosen`, and remembers what was chosen last."""

    def __init__(self, choose: Chooses[T], past: Past, clock: Clock) -> None:
        self._choose = choose
        self._past = past
        self._clock = clock
        self.step: Step[T] | None = None
        """None where time has to be told first, or something has to be read."""
        self.unread: Unread | None = None

    def __call__(self, kernel: Kernel) -> tuple[Delivery, ...]:
        self.step = self.unread = None
        due = kernel.earliest_deadline
        if due is not None and due < self._clock.now():
            return (Tick(run_id=kernel.run.run_id),)
        try:
            self.step = self._choose(kernel, self._past)
        except Unread as unread:
            self.unread = unread
            return ()
        return self.step.deliveries

"""Many runs in one process: which kernel is whose, and which run is to be woken next (K-11)."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Final

from ..models.deliveries import Delivery, Tick
from ..models.errors import TurnlockError, UnknownRun, shown
from ..models.record import number
from ..models.run import Run
from ..models.verdicts import Verdict
from .kernel import Kernel
from .state import first_float_past

STALE_WAKES: Final = 64
"""Stale wakes that are tolerated beyond as many as are live before the heap is rebuilt (K-6)."""

_TICK: Final = Tick()


class Runs:
    """The kernels of many runs, by run id, and the wakes that they ask for (section 9).

    It holds no lock and no clock: one owner at a time calls it, with the time. A receive costs the
    same whether one run is held or a hundred thousand; when it changes the run's wake, the
    logarithm of their number more, on average. How many are held is up to the host: a run stays
    until `close`.

    Give deliveries through `receive`: of what a kernel is told directly the registry learns the
    next wake only when it next hears of the run, by `receive` or by `adopt`.
    """

    __slots__ = ("_due", "_kernels", "_wakes")

    def __init__(self) -> None:
        """Start without any."""
        self._kernels: dict[str, Kernel] = {}
        self._due: dict[str, float] = {}
        """By run: when it is to be woken, for runs that have a deadline."""
        self._wakes: list[tuple[float, str]] = []
        """The same as a heap, with stale entries; the first one is live between calls."""

    def __len__(self) -> int:
        """Count the runs."""
        return len(self._kernels)

    def __contains__(self, run_id: object) -> bool:
        """Tell whether this run is held."""
        return run_id in self._kernels

    def __iter__(self) -> Iterator[str]:
        """Iterate over the run ids, in the order in which they came."""
        return iter(self._kernels)

    def open(self, run: Run) -> Kernel:
        """Begin a run in which nothing has happened; one that is held already goes on.

        Raises `TurnlockError` when the run is held with another configuration.
        """
        kernel = self._kernels.get(run.run_id)
        if kernel is None:
            kernel = self._kernels[run.run_id] = Kernel(run)
        elif kernel.run != run:
            raise TurnlockError(
                f"run {shown(run.run_id)} is held as {kernel.run!r}, not as {run!r}; "
                "open it with the configuration it has, or close it first"
            )
        return kernel

    def adopt(self, kernel: Kernel) -> None:
        """Hold a kernel that was made elsewhere: a recovered one, or one told past the registry.

        Raises `TurnlockError` when another kernel is held for its run: two would both accept.
        """
        run_id = kernel.run.run_id
        if self._kernels.setdefault(run_id, kernel) is not kernel:
            raise TurnlockError(
                f"run {shown(run_id)} is held with another kernel; "
                "go on with that one (get), or close it first"
            )
        self._rearm(run_id, kernel)

    def get(self, run_id: str) -> Kernel:
        """Return the kernel of a run. Raises `UnknownRun`."""
        kernel = self._kernels.get(run_id)
        if kernel is None:
            raise UnknownRun(
                f"run {shown(run_id)} is not held here; open it, or adopt its recovered kernel"
            )
        return kernel

    def close(self, run_id: str) -> Kernel:
        """Forget a run and its wake, and hand back its kernel. Raises `UnknownRun`."""
        kernel = self.get(run_id)
        del self._kernels[run_id]
        if self._due.pop(run_id, None) is not None:
            self._tidy()
        return kernel

    def receive(self, run_id: str, delivery: Delivery, now: float) -> Verdict:
        """Let one run judge a delivery at `now`, Unix time in seconds, as `Kernel.receive` does.

        Raises `UnknownRun`, and what that raises.
        """
        kernel = self.get(run_id)
        verdict = kernel.receive(delivery, now)
        self._rearm(run_id, kernel)
        return verdict

    @property
    def next_wake(self) -> float | None:
        """When to call `wake` next, Unix time in seconds: the earliest wake over all runs."""
        return self._wakes[0][0] if self._wakes else None

    def wake(self, now: float) -> list[tuple[str, Verdict]]:
        """Send a tick to every run whose wake is due at `now`, Unix time in seconds.

        Returns the verdicts that held facts, in the order of the wakes (ties: of the run ids).
        Raises `InvalidValue`, before anything happens, for what is no time.
        """
        now = number(now, place="now")
        woken: list[tuple[str, Verdict]] = []
        while self._wakes and self._wakes[0][0] <= now:  # a tick leaves no deadline over at `now`
            run_id = self._wakes[0][1]
            verdict = self.receive(run_id, _TICK, now)
            if verdict.facts:
                woken.append((run_id, verdict))
        return woken

    def _rearm(self, run_id: str, kernel: Kernel) -> None:
        """Note when this run is to be woken now."""
        deadline = kernel.earliest_deadline
        due = None if deadline is None else first_float_past(deadline)
        if due == self._due.get(run_id):
            return
        if due is None:
            del self._due[run_id]
        else:
            self._due[run_id] = due
            heappush(self._wakes, (due, run_id))
        self._tidy()

    def _tidy(self) -> None:
        """Make the first wake a live one, and keep the stale ones bounded (K-6)."""
        wakes, due = self._wakes, self._due
        if len(wakes) > 2 * len(due) + STALE_WAKES:
            self._wakes = [(at, run_id) for run_id, at in due.items()]
            heapify(self._wakes)
            return
        while wakes and due.get(wakes[0][1]) != wakes[0][0]:
            heappop(wakes)

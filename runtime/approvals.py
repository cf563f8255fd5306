"""Since when calls have waited for a person."""

from __future__ import annotations

from ..engine.kernel import Kernel
from ..models.fact import Fact
from ..models.lifecycle_facts import LifecycleFact, ToolApprovalRequested
from ..views.live import calls_of


class Waits:
    """Since when calls have waited for a person: a fold of facts, for a gauge."""

    def __init__(self) -> None:
        """Begin with none."""
        self._since: dict[str, dict[tuple[str, str], float]] = {}

    def take(self, fact: Fact) -> None:
        """Learn of a fact: it is asked, or whatever else happens to the call ends the waiting."""
        if not isinstance(fact, LifecycleFact):
            return
        key = fact.turn_id, fact.invocation_id
        if isinstance(fact, ToolApprovalRequested):
            self._since.setdefault(fact.run_id, {})[key] = fact.at
            return
        since = self._since.get(fact.run_id)
        if since is not None and since.pop(key, None) is not None and not since:
            del self._since[fact.run_id]

    def recovered(self, kernel: Kernel, *, now: float) -> None:
        """Learn what waits in a run that was folded: at least since `now`, Unix time."""
        known = self._since.pop(kernel.run.run_id, {})
        asked = [(call.turn_id, call.invocation_id) for call in calls_of(kernel, gated=True)]
        if asked:
            self._since[kernel.run.run_id] = {key: known.get(key, now) for key in asked}

    def forget(self, run_id: str) -> None:
        """Forget a run that is not performed here any more."""
        self._since.pop(run_id, None)

    def longest(self, now: float) -> float | None:
        """Return for how many seconds the longest waiting call has waited; None: none waits."""
        times = (tuple(since.values()) for since in tuple(self._since.values()))
        since = min((at for run in times for at in run), default=None)
        return None if since is None else max(0.0, now - since)

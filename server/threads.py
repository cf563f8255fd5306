"""Which thread each run is that another runtime performs here: what its facts are about (S-63)."""

from __future__ import annotations

from collections.abc import Mapping

from ..adapters.correlation import correlated_with
from ..models.fact import Fact
from ..models.values import Json
from ..runtime.correlating import Correlate


class Threads:
    """Correlates the facts of runs, each by the thread that its manifest names."""

    def __init__(self) -> None:
        """Begin with none known."""
        self._of: dict[str, Correlate] = {}

    def knows(self, run_id: str, epoch: Mapping[str, Json] | None) -> None:
        """Learn the thread of a run, as an epoch says it."""
        thread_id = None if epoch is None else epoch.get("thread_id")
        if isinstance(thread_id, str) and thread_id:
            self._of[run_id] = correlated_with(thread_id)

    def forget(self, run_id: str) -> None:
        """Forget a run that is performed here no more."""
        self._of.pop(run_id, None)

    def __call__(self, fact: Fact, call_id: str | None) -> bytes | None:
        """Return the line of a fact; None of a run without a thread."""
        correlate = self._of.get(fact.run_id)
        return None if correlate is None else correlate(fact, call_id)

"""What waits for a person: read from the run's state, so that it is the same after a recovery."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from ..engine.state import State
from ..models.fact import Fact
from ..models.lifecycle_facts import LifecycleFact, ToolApprovalRequested
from ..models.values import Json


@attrs.frozen(kw_only=True)
class PendingApproval:
    """One call that waits. A decision echoes `arguments_digest`: nobody runs what was not shown.

    `deadline` is Unix time, None where it may wait for ever (K-32, K-57).
    """

    run_id: str
    turn_id: str
    invocation_id: str
    tool_name: str
    arguments: Mapping[str, Json]
    arguments_digest: str
    deadline: float | None


def pending_approvals(state: State) -> tuple[PendingApproval, ...]:
    """Return what waits, in the order in which it was asked for."""
    turn = state.turn
    if turn is None:
        return ()
    return tuple(
        PendingApproval(
            run_id=state.run.run_id,
            turn_id=turn.turn_id,
            invocation_id=member.invocation_id,
            tool_name=member.tool_name,
            arguments=member.arguments or {},
            arguments_digest=member.digest,
            deadline=member.deadline,
        )
        for member in turn.unfinished()
        if member.gated and member.digest is not None
    )


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

    def recovered(self, state: State, *, now: float) -> None:
        """Learn what waits in a run that was folded: at least since `now`, Unix time."""
        known = self._since.pop(state.run.run_id, {})
        asked = [(one.turn_id, one.invocation_id) for one in pending_approvals(state)]
        if asked:
            self._since[state.run.run_id] = {key: known.get(key, now) for key in asked}

    def forget(self, run_id: str) -> None:
        """Forget a run that is not performed here any more."""
        self._since.pop(run_id, None)

    def longest(self, now: float) -> float | None:
        """Return for how many seconds the longest waiting call has waited; None: none waits."""
        times = (tuple(since.values()) for since in tuple(self._since.values()))
        since = min((at for run in times for at in run), default=None)
        return None if since is None else max(0.0, now - since)

"""What waits for a person: read from the run's state, so that it is the same after a recovery."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from ..engine.state import State
from ..models.calls import Call
from ..models.fact import Fact
from ..models.lifecycle_facts import LifecycleFact, ToolApprovalRequested
from ..models.record import changed
from ..models.values import Json
from .tools.toolbox import Toolbox


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


def gated(call: Call, tools: Toolbox) -> Call:
    """Return the call as its tool declares it: whether it needs approval, and for how long.

    A call that is gated already stays as it is: a host may ask for more than the tool does.
    """
    tool = tools.get(call.tool_name)
    if tool is None or call.requires_approval:
        return call
    if not tool.policy.needs_approval(call.arguments).needed:
        return call
    timeout = tool.policy.approval_timeout
    return changed(call, requires_approval=True, approval_timeout=timeout)


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
        self._since: dict[tuple[str, str, str], float] = {}

    def take(self, fact: Fact) -> None:
        """Learn of a fact: it is asked, or whatever else happens to the call ends the waiting."""
        if isinstance(fact, LifecycleFact):
            key = fact.run_id, fact.turn_id, fact.invocation_id
            if isinstance(fact, ToolApprovalRequested):
                self._since[key] = fact.at
            else:
                self._since.pop(key, None)

    def recovered(self, state: State, *, now: float) -> None:
        """Learn what waits in a run that was folded: at least since `now`, Unix time."""
        for asked in pending_approvals(state):
            self._since.setdefault((asked.run_id, asked.turn_id, asked.invocation_id), now)

    def forget(self, run_id: str) -> None:
        """Forget a run that is not performed here any more."""
        self._since = {key: at for key, at in self._since.items() if key[0] != run_id}

    def longest(self, now: float) -> float | None:
        """Return for how many seconds the longest waiting call has waited; None: none waits."""
        since = min(tuple(self._since.values()), default=None)
        return None if since is None else max(0.0, now - since)

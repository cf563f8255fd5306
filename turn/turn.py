"""The active turn: its roster, its phase, and what is left to settle (kernel.md section 8)."""

from __future__ import annotations

from collections.abc import Iterator

from ..lifecycle.invocation import Invocation
from ..models.calls import Call
from .phases import TurnPhase


class Turn:
    """The settlement unit: the calls that one model response asked for.

    Members are unique by id and stand in expected order. `live` counts those that are not terminal:
    settlement looks at members, never at a number of results (K-50). `scope` is the turn's part of
    the ids that are made for it (K-7).
    """

    __slots__ = ("grace_until", "live", "members", "order", "phase", "scope", "turn_id")

    def __init__(self, *, turn_id: str, phase: TurnPhase, scope: str) -> None:
        """Open the turn with an empty roster."""
        self.turn_id = turn_id
        self.phase = phase
        self.scope = scope
        self.members: dict[str, Invocation] = {}
        self.order: list[Invocation] = []
        self.live = 0
        self.grace_until: float | None = None

    def add(self, call: Call) -> None:
        """Put one more call on the roster, last in expected order."""
        invocation = Invocation(
            len(self.order),
            call.invocation_id,
            call.tool_name,
            call.provider_call_id,
            call.arguments,
            call.requires_approval,
            call.observed,
        )
        self.members[call.invocation_id] = invocation
        self.order.append(invocation)
        self.live += 1

    def enrol(self, invocation: Invocation) -> None:
        """Put a record on the roster as it stands."""
        self.members[invocation.invocation_id] = invocation
        self.order.append(invocation)
        self.live += not invocation.terminal

    def clone(self) -> Turn:
        """Return a copy that shares nothing which changes."""
        twin = Turn(turn_id=self.turn_id, phase=self.phase, scope=self.scope)
        twin.grace_until = self.grace_until
        twin.live = self.live
        twin.order = [invocation.clone() for invocation in self.order]
        twin.members = {invocation.invocation_id: invocation for invocation in twin.order}
        return twin

    def unfinished(self) -> Iterator[Invocation]:
        """Iterate over the members that are not terminal, in expected order."""
        return (invocation for invocation in self.order if not invocation.terminal)

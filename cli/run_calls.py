"""The calls of the turn under way, as the facts tell of them."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from ..lifecycle.phases import TERMINAL, Phase
from ..lifecycle.table import FOLD
from ..models.calls import Call
from ..models.facts import (
    CallAdded,
    ExecutionFact,
    ExecutionInDoubt,
    Fact,
    LifecycleFact,
    RetryAuthorised,
    ToolApprovalRequested,
    ToolApproved,
    TurnInterrupted,
    TurnInterrupting,
    TurnOpened,
    TurnSettled,
)
from ..models.values import Json


@attrs.define(eq=False)
class CallTold:
    """One call: where it stands, and with what arguments it runs. `since` is Unix time."""

    call: Call
    arguments: Mapping[str, Json]
    phase: Phase = Phase.REQUESTED
    asked: bool = False
    attempt: int = 1
    since: float = 0.0
    retrying: bool = False

    @property
    def waits(self) -> bool:
        """Whether a person is asked about it."""
        return self.phase is Phase.REQUESTED and self.asked

    @property
    def ended(self) -> bool:
        """Whether its outcome is known."""
        return self.phase in TERMINAL

    @property
    def word(self) -> str:
        """Its phase as it is shown."""
        if self.phase is Phase.REQUESTED:
            return "asks for approval" if self.asked else "ready"
        if self.phase is Phase.STARTED:
            return "running"
        return str(self.phase).lower().replace("_", " ")


class Calls:
    """The calls of the active turn, in their order; none between turns."""

    def __init__(self) -> None:
        """Begin without a turn."""
        self.turn_id: str | None = None
        self.interrupting = False
        self.members: dict[str, CallTold] = {}
        self.at = 0.0
        """When the latest fact happened, Unix time."""

    def take(self, fact: Fact) -> None:
        """Take the next fact of the run."""
        self.at = fact.at
        if isinstance(fact, TurnOpened):
            self.turn_id, self.interrupting, self.members = fact.turn_id, False, {}
            for call in fact.calls:
                self._add(call)
        elif isinstance(fact, CallAdded):
            self._add(fact.call)
        elif isinstance(fact, TurnInterrupting):
            self.interrupting = True
        elif isinstance(fact, TurnSettled | TurnInterrupted):
            self.turn_id, self.interrupting, self.members = None, False, {}
        elif isinstance(fact, LifecycleFact | ExecutionFact):
            self._move(self.members[fact.invocation_id], fact)

    def _add(self, call: Call) -> None:
        self.members[call.invocation_id] = CallTold(call, call.arguments, since=self.at)

    def _move(self, member: CallTold, fact: LifecycleFact | ExecutionFact) -> None:
        member.since = fact.at
        if isinstance(fact, ToolApprovalRequested):
            member.asked = True
            return
        if isinstance(fact, ToolApproved) and fact.arguments is not None:
            member.arguments = fact.arguments
        if isinstance(fact, ExecutionFact):
            member.attempt = fact.attempt
            member.retrying = isinstance(fact, RetryAuthorised) or (
                member.retrying and isinstance(fact, ExecutionInDoubt)
            )
        member.phase = FOLD[member.phase, fact.type]

"""The kernel's record of one tool call.

Changed by the fold alone (engine/evolve), and kept canonical: what a phase no longer needs is
dropped when it is left, so that equal futures mean equal records, and few bytes.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from ..models.calls import CallResult
from ..models.deliveries import Match, Scope
from ..models.record import Record, choice, field, flag, json_object, record
from ..models.values import Json
from .phases import READY, REQUESTED, TERMINAL, Phase


@record
class Decision(Record):
    """What a person decided: enough to tell the same decision from another (D of section 6).

    `match` is given where the scope makes it count, `arguments` where the approval edited them.
    """

    approved: bool = field(validator=flag)
    scope: Scope = field(default=Scope.ONCE, converter=choice(Scope))
    match: Match | None = field(default=None, converter=attrs.converters.optional(choice(Match)))
    edited: Mapping[str, Json] | None = field(
        default=None, converter=attrs.converters.optional(json_object)
    )


@attrs.define(eq=False, weakref_slot=False)
class Invocation:
    """One invocation's state. `position` is its place in expected order, from 0."""

    position: int
    invocation_id: str
    tool_name: str
    provider_call_id: str | None
    arguments: Mapping[str, Json] | None
    """Those that will run, edited ones included; None once nothing can run any more."""
    requires_approval: bool
    observed: bool = False
    """Another runtime starts it: no execute is ever owed (K-58)."""
    phase: Phase = REQUESTED
    digest: str | None = None
    """Of the arguments shown; only while it waits for approval."""
    deadline: float | None = None
    """Unix time of its approval deadline while it waits, of its lease while it runs (K-34)."""
    decision: Decision | None = None
    attempt: int = 0
    """The current attempt; 0 before the first start (K-33)."""
    worker: str | None = None
    """Who holds it; only while it runs."""
    outcome: CallResult | None = None
    """How it ended; only in a terminal phase."""

    def clone(self) -> Invocation:
        """Return a copy; the values in it are frozen, and shared."""
        return Invocation(
            self.position,
            self.invocation_id,
            self.tool_name,
            self.provider_call_id,
            self.arguments,
            self.requires_approval,
            self.observed,
            self.phase,
            self.digest,
            self.deadline,
            self.decision,
            self.attempt,
            self.worker,
            self.outcome,
        )

    @property
    def gated(self) -> bool:
        """Whether it waits for approval: requires it, and no grant covered it (section 6)."""
        return self.requires_approval and self.phase is REQUESTED

    @property
    def owed(self) -> int:
        """The attempt that an executor is asked to claim (K-31, K-33); 0 when no execute is owed.

        A free call owes the first, an approved one too, an authorised retry the next (section 9).
        """
        phase = self.phase
        if phase not in READY or self.observed or (self.requires_approval and phase is REQUESTED):
            return 0
        return self.attempt + 1

    @property
    def terminal(self) -> bool:
        """Whether it has ended."""
        return self.phase in TERMINAL

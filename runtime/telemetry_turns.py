"""What a telemetry remembers of turns under way, for the spans of their calls.

An approval happens before there is a span to tell it in, and in another task; so does the opening
of the turn, whose caller's span is to be the parent. A turn that closes is forgotten.
"""

from __future__ import annotations

from typing import Final

import attrs
from opentelemetry.context import Context

from ..models.calls import Call
from ..models.facts import ToolApproved, ToolDenied, TurnFact, TurnOpened

TURNS: Final = 10_000
"""Turns that are remembered at once; beyond, the one opened first loses parent and approvals."""

ARRIVING: Final = 1_000
"""Turns whose opening was delivered and not kept yet: most of those beyond were refused."""


@attrs.define(eq=False)
class CallTold:
    """What is known of one call. `requested_at` is Unix time; None where nobody was asked."""

    provider_call_id: str | None = None
    requested_at: float | None = None
    decided: ToolApproved | ToolDenied | None = None


@attrs.define(eq=False)
class TurnTold:
    """What is known of one turn; `parent` is the context in which it was opened."""

    parent: Context | None = None
    calls: dict[str, CallTold] = attrs.field(factory=dict[str, CallTold])

    def call(self, invocation_id: str) -> CallTold:
        """Return what is known of a call; what is written to it is remembered."""
        return self.calls.setdefault(invocation_id, CallTold())

    def added(self, call: Call) -> None:
        """Remember the id under which the provider, and so the model's own span, knows it."""
        if call.provider_call_id is not None:
            self.call(call.invocation_id).provider_call_id = call.provider_call_id


class Turns:
    """The turns under way, bounded."""

    def __init__(self) -> None:
        """Begin with none."""
        self._arriving: dict[tuple[str, str], Context] = {}
        self._open: dict[tuple[str, str], TurnTold] = {}

    def arriving(self, run_id: str, turn_id: str, context: Context) -> None:
        """Remember where a turn is being opened; of several attempts the first counts."""
        self._arriving.setdefault((run_id, turn_id), context)
        _bound(self._arriving, ARRIVING)

    def opened(self, fact: TurnOpened) -> None:
        """Learn that a turn is open."""
        turn = self.turn(fact.run_id, fact.turn_id)
        turn.parent = self._arriving.pop((fact.run_id, fact.turn_id), None)
        for call in fact.calls:
            turn.added(call)

    def closed(self, fact: TurnFact) -> None:
        """Forget a turn."""
        self._open.pop((fact.run_id, fact.turn_id), None)

    def turn(self, run_id: str, turn_id: str) -> TurnTold:
        """Return what is known of a turn: nothing of one that another process opened."""
        turn = self._open.get((run_id, turn_id))
        if turn is None:
            turn = self._open[run_id, turn_id] = TurnTold()
            _bound(self._open, TURNS)
        return turn


def _bound(kept: dict[tuple[str, str], Context] | dict[tuple[str, str], TurnTold], to: int) -> None:
    if len(kept) > to:
        del kept[next(iter(kept))]  # a dict keeps the order of insertion: the oldest

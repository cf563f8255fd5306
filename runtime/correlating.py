"""What each fact is about in another runtime: a line of JSON that is kept beside it (S-63).

Whoever performs runs of another kind says the line, by the fact and by the id that its call has
there. Which id that is stands in the fact that brought the call, and in no other: it is folded here
from the facts that are written, for the turn that is open.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

from ..engine.kernel import Kernel
from ..models.calls import Call
from ..models.fact import Fact
from ..models.facts import CallAdded, LifecycleFact, TurnOpened
from ..models.run import Run
from ..models.turn_facts import ExecutionFact
from .journal.contract import Journal

Correlate: TypeAlias = Callable[[Fact, str | None], bytes | None]
"""Returns the line of a fact; the text is the `provider_call_id` of the call that it is about, None
where it is about none, or none is known. None: the fact is about nothing elsewhere. It may neither
wait nor raise, but for what is no whole envelope (S-65): then nothing is kept."""

Correlating: TypeAlias = Callable[[Run, Journal], Awaitable[Correlate | None]]
"""Finds, for whoever writes a run without performing it, how its facts are correlated."""


class Correlated:
    """The lines of one run's facts, in the order in which these are written."""

    def __init__(self, correlate: Correlate, kernel: Kernel) -> None:
        """Begin where a kernel stands."""
        self._correlate: Final = correlate
        self._ids: dict[str, str | None] = {}
        self.stand_at(kernel)

    def stand_at(self, kernel: Kernel) -> None:
        """Take the calls of a kernel that was folded: what was not kept of them is forgotten."""
        turn = kernel.turn
        members = () if turn is None else turn.order
        self._ids = {it.invocation_id: it.provider_call_id for it in members}

    def lines(self, facts: Sequence[Fact]) -> list[bytes | None]:
        """Return a line for each of the facts that come next, None where there is none."""
        return [self._correlate(fact, self._id_of(fact)) for fact in facts]

    def _id_of(self, fact: Fact) -> str | None:
        """Return the id of the call that a fact is about; what it brings is known from now on."""
        if isinstance(fact, TurnOpened):
            self._ids = dict(map(_named, fact.calls))
        elif isinstance(fact, CallAdded):
            self._ids.update([_named(fact.call)])
            return fact.call.provider_call_id
        elif isinstance(fact, LifecycleFact | ExecutionFact):
            return self._ids.get(fact.invocation_id)
        return None


def _named(call: Call) -> tuple[str, str | None]:
    return call.invocation_id, call.provider_call_id

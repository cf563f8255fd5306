"""A slice: some symbols and a run, small enough to identify every state, with what it is about."""

from __future__ import annotations

from typing import Any, Final

import attrs

from ..findings import Raw
from .symbols import Symbol, symbols

RECOVER: Final[Raw] = {"type": "recover"}
"""Throw the state away and rebuild it from the journal: for systems that declare it."""


@attrs.frozen(kw_only=True)
class Slice:
    """A part of what can be said to one run.

    Only literal symbols: a system under test is told nothing that depends on its state. `run` is
    the run object of the wire; its limits and the symbols' attempts, timers and grants bound the
    states. `about` completes the sentence "it is about …".
    """

    name: str
    about: str
    run: Raw
    symbols: tuple[Symbol, ...]

    def without(self, type_: str) -> Slice:
        """Return the slice without the deliveries of this type."""
        kept = tuple(symbol for symbol in self.symbols if symbol.delivery["type"] != type_)
        return attrs.evolve(self, symbols=kept)


def run_with(
    run_id: str = "r",
    *,
    kind: str | None = None,
    agent: str | None = None,
    **limits: Any,  # noqa: ANN401
) -> Raw:
    """Return a run object with these limits; the others are the defaults."""
    return {
        "run_id": run_id,
        "kind": kind,
        "agent_id": agent,
        "agent_name": agent,
        "limits": limits,
    }


def at_times(times: dict[float, tuple[Raw, ...]]) -> tuple[Symbol, ...]:
    """Name deliveries by the time after the clock at which they come."""
    return tuple(symbol for dt, these in times.items() for symbol in symbols(these, dt=dt))

"""One invocation's part of a recording: how it came to be, its moves, and what was refused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final

import attrs

from ...lifecycle.phases import Phase
from ...models.facts import CallAdded, TurnOpened
from ...models.safe_text import harmless
from ..errors import NothingToDraw
from .recording import Recording
from .steps import RefusedStep, Step, events

LISTED: Final = 20
"""Names that an error lists."""
NAME: Final = 60
"""Characters of a name in a message or a title."""


@attrs.frozen(kw_only=True)
class Birth:
    """How an invocation came to be: `epoch` is that of its turn, `by` the type of the delivery."""

    turn_id: str
    epoch: int
    invocation_id: str
    tool_name: str
    at: float
    by: str


@attrs.frozen(kw_only=True)
class Life:
    """One invocation: its birth, its moves, and what was refused, in order."""

    birth: Birth
    steps: tuple[Step, ...]
    refused: tuple[RefusedStep, ...]

    @property
    def arrivals(self) -> tuple[tuple[float, str], ...]:
        """When it came to which phase; a move back to the phase in which it stood is none."""
        came = [(self.birth.at, str(Phase.REQUESTED)), *((s.at, s.target) for s in self.steps)]
        return tuple(next(stay) for _, stay in groupby(came, key=lambda arrival: arrival[1]))

    def since(self, at: float) -> float:
        """Return the seconds since it was requested."""
        return at - self.birth.at


def life_in(
    recording: Recording, *, turn_id: str, invocation_id: str, epoch: int | None = None
) -> Life:
    """Return the life of an invocation, for which see `life.life_of`."""
    told = tuple(events(recording))
    births = [
        birth
        for birth in _births(recording)
        if (birth.turn_id, birth.invocation_id) == (turn_id, invocation_id)
        and epoch in {None, birth.epoch}
    ]
    if not births:
        raise NothingToDraw(_missing(recording, turn_id, invocation_id, epoch))
    birth = births[-1]
    key = turn_id, invocation_id, birth.epoch
    about = [one for one in told if (one.turn_id, one.invocation_id, one.epoch) == key]
    return Life(
        birth=birth,
        steps=tuple(event for event in about if isinstance(event, Step)),
        refused=tuple(event for event in about if isinstance(event, RefusedStep)),
    )


def _births(recording: Recording) -> Iterator[Birth]:
    epoch = 0
    for fact in recording.facts:
        if isinstance(fact, TurnOpened):
            epoch, by, calls = fact.epoch, "open_turn", fact.calls
        elif isinstance(fact, CallAdded):
            by, calls = "add_call", (fact.call,)
        else:
            continue
        for call in calls:
            yield Birth(
                turn_id=fact.turn_id,
                epoch=epoch,
                invocation_id=call.invocation_id,
                tool_name=call.tool_name,
                at=fact.at,
                by=by,
            )


def _missing(recording: Recording, turn_id: str, invocation_id: str, epoch: int | None) -> str:
    """Say what is there instead."""
    run = f"run {named(recording.run.run_id)}"
    turns = [fact.turn_id for fact in recording.facts if isinstance(fact, TurnOpened)]
    if turn_id not in turns:
        return f"{run} has no turn {named(turn_id)}; its turns: {_listed(turns)}"
    turn = f"turn {named(turn_id)} of {run}"
    births = [birth for birth in _births(recording) if birth.turn_id == turn_id]
    known = [birth.invocation_id for birth in births]
    if invocation_id not in known:
        which = f"no invocation {named(invocation_id)}"
        return f"{turn} has {which}; its invocations: {_listed(known)}"
    epochs = [str(birth.epoch) for birth in births if birth.invocation_id == invocation_id]
    which = f"invocation {named(invocation_id)} in epoch {epoch}"
    return f"{turn} has no {which}; its epochs: {', '.join(epochs[:LISTED])}"


def named(name: str) -> str:
    """Return a name from outside as a message or a title shows it."""
    return harmless(repr(name), limit=NAME)


def _listed(names: Iterable[str]) -> str:
    known = list(dict.fromkeys(names))
    more = f" and {len(known) - LISTED:,} more" if len(known) > LISTED else ""
    return (", ".join(map(named, known[:LISTED])) or "none") + more

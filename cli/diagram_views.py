"""Which picture of a recorded run is meant: of the run, of a turn, of one invocation."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import click

from ..diagrams.drawing.graphviz import Engine
from ..diagrams.picture import Picture
from ..diagrams.pictures import life_picture
from ..diagrams.recordings.recording import Recording
from ..diagrams.runs import run_picture
from ..diagrams.sequence.picture import sequence_picture
from ..diagrams.timeline.picture import timeline_picture
from ..models.facts import CallAdded, TurnOpened
from ..models.safe_text import harmless
from .choosing import chosen

_NAMED: Final = 10
"""Turns or invocations that a message names."""


class View(StrEnum):
    """How a run is looked at."""

    TIMELINE = "timeline"
    """When what happened: a bar for each invocation."""
    SEQUENCE = "sequence"
    """Who told whom what, and what was refused."""
    LIFE = "life"
    """The path of one invocation through its machine."""


def view_of(
    recording: Recording,
    *,
    view: View | None,
    turn: str | None,
    invocation: str | None,
    engine: Engine,
) -> Picture:
    """Return the picture; without a view an invocation's life, else timeline and sequence.

    Ids may be shortened as a run's may. Raises `click.UsageError` for one that is not there.
    """
    members = _members(recording)
    turn_id = None if turn is None else chosen(list(members), turn, what="turn")
    if view is View.TIMELINE:
        if invocation is not None:
            raise click.UsageError("a timeline shows all invocations; leave --invocation out")
        return timeline_picture(recording, turn_id=turn_id)
    if view is View.LIFE or invocation is not None:
        turn_id, invocation_id = _one(members, turn_id, invocation)
        if view is View.SEQUENCE:
            return sequence_picture(recording, turn_id=turn_id, invocation_id=invocation_id)
        return life_picture(recording, turn_id=turn_id, invocation_id=invocation_id, engine=engine)
    if view is View.SEQUENCE:
        return sequence_picture(recording, turn_id=turn_id)
    return run_picture(recording, turn_id=turn_id)


def _members(recording: Recording) -> dict[str, list[str]]:
    """Return the invocations of each turn, in the order in which they were asked for."""
    members: dict[str, list[str]] = {}
    for fact in recording.facts:
        if isinstance(fact, TurnOpened):
            members.setdefault(fact.turn_id, []).extend(call.invocation_id for call in fact.calls)
        elif isinstance(fact, CallAdded):
            members.setdefault(fact.turn_id, []).append(fact.call.invocation_id)
    return members


def _one(
    members: dict[str, list[str]], turn_id: str | None, invocation: str | None
) -> tuple[str, str]:
    """Find the one invocation that is meant, in the turn that was named or in any."""
    turns = members if turn_id is None else {turn_id: members[turn_id]}
    names = list(dict.fromkeys(name for inside in turns.values() for name in inside))
    if invocation is None:
        if len(names) != 1:
            raise click.UsageError(f"name one with --invocation: {_listed(names)}")
        invocation = names[0]
    name = chosen(names, invocation, what="invocation")
    where = [turn for turn, inside in turns.items() if name in inside]
    if len(where) != 1:
        raise click.UsageError(
            f"{harmless(name)!r} is in several turns; name one with --turn: {_listed(where)}"
        )
    return where[0], name


def _listed(names: list[str]) -> str:
    if not names:
        return "there is none"
    more = f" … and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(harmless(name, limit=60) for name in names[:_NAMED]) + more

"""The pictures of our own machines: plain, with the life of an invocation, with what was met."""

from __future__ import annotations

from typing import Any

from ..lifecycle.table import INVOCATION
from ..machines.rows import Machine
from ..turn.table import TURN
from .coverage.counts import Counts
from .coverage.covered import covered
from .drawing.graphviz import Engine
from .graphs.extract import graph_of
from .graphs.picture import MachinePicture
from .life import life_of
from .recordings.recording import Recording


def invocation_picture(*, refusals: bool = False, engine: Engine = Engine.AUTO) -> MachinePicture:
    """Return the machine of one invocation; with `refusals` also what each phase refuses."""
    return MachinePicture(graph=graph_of(INVOCATION), refusals=refusals, engine=engine)


def turn_picture(*, refusals: bool = False, engine: Engine = Engine.AUTO) -> MachinePicture:
    """Return the machine of one turn; with `refusals` also what each phase refuses."""
    return MachinePicture(graph=graph_of(TURN), refusals=refusals, engine=engine)


def life_picture(
    recording: Recording, *, turn_id: str, invocation_id: str, engine: Engine = Engine.AUTO
) -> MachinePicture:
    """Return the path of one invocation through its machine. Raises `NothingToDraw`."""
    graph = life_of(recording, turn_id=turn_id, invocation_id=invocation_id)
    return MachinePicture(graph=graph, engine=engine)


def coverage_picture(
    counts: Counts, machine: Machine[Any, Any] = INVOCATION, *, engine: Engine = Engine.AUTO
) -> MachinePicture:
    """Return a machine with how often each of its rows was met; what never was is marked.

    The forms that have room for tables count refusals, too.
    """
    return MachinePicture(graph=covered(machine, counts), refusals=True, engine=engine)

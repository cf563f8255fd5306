"""The peer: a trigger of the `transitions` library, as cheap as that library makes it.

One shared Machine without a model, without automatic triggers and callbacks; the model is handed to
the event itself. *Bare* is without conditions, on a model with slots; *guarded* is the machine that
is generated from the table, whose guards are conditions: nearer to what a receive has to ask.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import transitions
from timing import Work, timed

from turnlock.lifecycle.phases import Phase
from turnlock.lifecycle.table import INVOCATION
from turnlock.machines.interchange import Subject, to_transitions
from turnlock.models.inputs import Input

_WALK: Final = (
    ("approve", "REQUESTED", "APPROVED"),
    ("claim", "APPROVED", "STARTED"),
    ("report", "STARTED", "SUCCEEDED"),
)


class Model:
    """All that a machine needs of a model."""

    __slots__ = ("state",)

    def __init__(self) -> None:
        """Stand at the beginning."""
        self.state = _WALK[0][1]


def trigger_work(walks: int) -> Work:
    """Make a work that walks a model from its first phase to its last, three triggers a time."""
    machine: Any = transitions.Machine(
        model=None,
        states=["REQUESTED", "APPROVED", "STARTED", "SUCCEEDED"],
        initial="REQUESTED",
        auto_transitions=False,
        transitions=[list(step) for step in _WALK],
    )
    triggers = [machine.events[name].trigger for name, _, _ in _WALK]
    return timed(walks * len(_WALK), partial(_walk, walks, triggers))


def guarded_trigger_work(walks: int) -> Work:
    """Make a work that walks the invocation's own machine, generated from its table."""
    events = to_transitions(INVOCATION).events
    steps = [events[name].trigger for name in (Input.APPROVE, Input.CLAIM, Input.REPORT_RESULT)]
    guard = next(row.guard for row in INVOCATION.rows if row.input is Input.APPROVE and row.fact)
    model = Subject(phase=Phase.REQUESTED, guard=guard)
    for trigger in steps:
        if not trigger(model):
            raise AssertionError(model.state)
    return timed(walks * len(steps), partial(_walk_guarded, walks, steps, guard))


def _walk_guarded(walks: int, triggers: list[Any], guard: str) -> None:
    approve, claim, report = triggers
    for _ in range(walks):
        model = Subject(phase=Phase.REQUESTED, guard=guard)
        approve(model)
        claim(model)
        report(model)


def _walk(walks: int, triggers: list[Any]) -> None:
    approve, claim, report = triggers
    for _ in range(walks):
        model = Model()
        approve(model)
        claim(model)
        report(model)

"""The peer: a bare trigger of the `transitions` library, as cheap as that library makes it.

One shared Machine without a model, without automatic triggers, conditions or callbacks; a model
with slots that is handed to the event itself.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import transitions
from timing import Work, timed

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


def _walk(walks: int, triggers: list[Any]) -> None:
    approve, claim, report = triggers
    for _ in range(walks):
        model = Model()
        approve(model)
        claim(model)
        report(model)

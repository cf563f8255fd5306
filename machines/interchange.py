"""The same machine as a `transitions.Machine`, generated from the rows.

For interchange, for its diagrams, and as an independent interpreter in our tests. It is never what
the kernel runs: a trigger costs some seventy dict lookups. It needs the extra `transitions`.
"""

from __future__ import annotations

from typing import Any

from ..models.errors import TurnlockError
from .rows import InputT, Machine, PhaseT


class Subject:
    """A model for the generated machine: a phase, and the guard that holds."""

    def __init__(self, *, phase: str, guard: str = "") -> None:
        """Stand in `phase`; the condition named `guard` is true, all others are false."""
        self.state: str = phase
        self.guard = guard

    def __getattr__(self, name: str) -> bool:
        """Answer a condition by name; the machine asks for nothing else but dunders."""
        if name.startswith("__"):
            raise AttributeError(name)
        return name == self.guard


def to_transitions(machine: Machine[PhaseT, InputT]) -> Any:  # noqa: ANN401 - untyped library
    """Return a `transitions.Machine` with the moves and rests of the table.

    States are the phases, triggers the inputs, conditions the guards. A refused pair has no edge:
    triggering it raises `MachineError`, or returns False where a guard decides. No callbacks, no
    automatic ``to_<state>`` triggers, no model added: call ``machine.events[input].trigger(model)``
    with a model that has `state` and answers the guards by name, such as a `Subject`.
    """
    try:
        from transitions import Machine as Transitions  # noqa: PLC0415 - an extra, needed only here
    except ImportError as error:
        message = "the transitions package is missing: pip install 'turnlock[transitions]'"
        raise TurnlockError(message) from error
    return Transitions(
        model=None,
        states=[str(phase) for phase in machine.phases],
        initial=str(machine.initial[0]),
        auto_transitions=False,
        transitions=[
            {
                "trigger": str(row.input),
                "source": str(row.phase),
                "dest": str(row.target),
                "conditions": [row.guard] if row.guard else [],
            }
            for row in machine.rows
            if row.reason is None and row.possible
        ],
    )

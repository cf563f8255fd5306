"""The words of the status machine: the statuses, and what can be most pressing.

A turn has many calls in different phases, and the agent has one status. So the most pressing of all
that is under way decides, in the order of `Pressing`: what a person should look at first.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Status(StrEnum):
    """What the agent is doing, as a console shows it."""

    IDLE = "idle"
    """No call is under way, and no result waits for the model."""
    AWAITING_APPROVAL = "awaiting_approval"
    """A person is asked about a call. Others may run meanwhile."""
    EXECUTING = "executing"
    """A call runs, or is ready and about to be claimed."""
    PROCESSING_RESULTS = "processing_results"
    """Nothing runs or waits any more, and the model has not been told of all results."""
    INTERRUPTED = "interrupted"
    """The turn is being stopped; or it was, and nothing has happened in the run since."""
    IN_DOUBT = "in_doubt"
    """A call was started, and nobody knows whether it happened (K-35)."""


class Pressing(StrEnum):
    """What is most pressing in a run: of all that hold, the one that stands first here."""

    STOP = "stop"
    """The turn is INTERRUPTING, or the latest fact is TURN_INTERRUPTED. Before a doubt: within the
    grace the interrupt ends that, too (K-53)."""
    DOUBT = "doubt"
    """A call is IN_DOUBT, whether or not a retry was authorised: nobody knows either way. Before an
    approval: something may have gone wrong already."""
    APPROVAL = "approval"
    """A call's approval was requested and not given yet. Before work: that goes on by itself."""
    WORK = "work"
    """A call is STARTED, or ready to be claimed."""
    RESULTS = "results"
    """A continuation is owed, or a call of the active turn has ended."""
    NOTHING = "nothing"
    """None of these."""


QUESTION: Final = "what is most pressing?"

STATUS_OF: Final = {
    Pressing.STOP: Status.INTERRUPTED,
    Pressing.DOUBT: Status.IN_DOUBT,
    Pressing.APPROVAL: Status.AWAITING_APPROVAL,
    Pressing.WORK: Status.EXECUTING,
    Pressing.RESULTS: Status.PROCESSING_RESULTS,
    Pressing.NOTHING: Status.IDLE,
}

"""How systems in the field fail, as found by running them or reading their source.

Each failure is reproduced by at least one bug of the catalogue. Where a sans-I/O kernel cannot have
the failure itself, `ANALOGUES` says why, and the bug is the nearest thing that it can have.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class Field(StrEnum):
    """One failure of the field, in a sentence."""

    RESUMED_TWICE = "resuming one approval twice executes the tool twice"
    RESUMED_FROM_TWO_COPIES = "resuming from two workers or two copies of a snapshot executes twice"
    STALE_APPROVAL = "a stale approval executes after the user has moved on"
    DENIED_FLIPPED = "a denied call is flipped to success by a late output"
    PARTIAL_APPROVALS_RAISE = "partial approvals raise"
    PARTIAL_APPROVALS_EXECUTE = "partial approvals execute what was not approved"
    WEDGED = "a malformed answer wedges the thread for good"
    ID_TWICE_RUNS_TWICE = "the same call id twice in one response runs the tool twice"
    APPROVES_THE_NEXT = "an approval delivered twice approves the next call"
    ID_TWICE_NEVER_COMPLETES = "a duplicated id in one response: the turn never completes"
    REUSED_ID_DROPPED = "an id reused in the next turn: a valid result is dropped, the turn hangs"
    BOGUS_CONTINUATION = "a result with no active turn brings forth a bogus continuation"
    STREAM_AND_CONTINUATION_DISAGREE = "FAILED then success for one id: the stream disagrees"
    EMPTY_ERROR = 'error="" is counted as success'
    FAILED_ENQUEUE = "a failed enqueue of the continuation leaves the turn open"
    ARGUMENTS_OF_THE_ANSWER = "a message with arguments replaced executes the replacement"
    ANY_ARGUMENTS = "session approvals match any arguments"
    NOT_REVOKED = "a later deny does not revoke"
    ACCEPTED_IS_NOT_EXECUTED = "accepted does not mean executed"
    INTERRUPTED_IS_NOT_STOPPED = "interrupted does not mean not executed"
    LATE_COMPLETION = "completion arrives after its turn closed"
    GONE_AFTER_A_KILL = "after a kill, pending items are simply gone"
    STARTED_FIRST = "STARTED is delivered before APPROVAL_REQUESTED"
    ALIKE_TAKEN_FOR_ONE = "calls with the same name and arguments are taken for one"


ANALOGUES: Final[Mapping[Field, str]] = {
    Field.RESUMED_FROM_TWO_COPIES: (
        "a kernel has one owner and no threads (K-1): two copies are two runs. Planted: what was "
        "claimed before the copy was made is owed again by the one that recovers."
    ),
    Field.WEDGED: (
        "a malformed answer raises where its sender builds it (K-8) and never reaches a run. "
        "Planted: a well-formed approval that is refused spoils all that follow."
    ),
    Field.EMPTY_ERROR: (
        "an empty error text cannot be constructed (K-36). Planted: an error that can be."
    ),
    Field.FAILED_ENQUEUE: (
        "the kernel enqueues nothing: a continuation is owed until it is acknowledged (K-52). "
        "Planted: a turn stays open while an earlier continuation has not been taken."
    ),
    Field.INTERRUPTED_IS_NOT_STOPPED: (
        "whether a tool stops is up to its executor; the kernel asks to cancel, and takes what is "
        "reported (K-53). Planted: it says of what runs that it did not."
    ),
    Field.STARTED_FIRST: (
        "the order of a vendor's messages is its adapter's to mend; the kernel is told of a start "
        "by a claim alone (K-33). Planted: a claim is accepted before the approval."
    ),
}
"""Failures that a sans-I/O kernel cannot have as they were seen: why, and what is planted."""

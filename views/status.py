"""The agent's status: one word for a run, as a machine that follows the run's facts.

A turn has many calls in different phases, and the agent has one status. So the most pressing of all
that is under way decides, in the order of `Pressing`: what a person should look at first.

Read an entry of the table aloud: *_on(TOOL_APPROVED, {AWAITING_APPROVAL: (AWAITING_APPROVAL,
EXECUTING), …})* – when a tool is approved while an approval is awaited, the status stays if another
approval is more pressing, and is executing otherwise. One target stands for itself; of several, the
question *what is most pressing?* decides. A status that an entry does not name cannot see that
fact. The machine is stepped at every fact; between the facts of one commit its status is nobody's
business.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final, TypeAlias

from ..machines.rows import ALWAYS, Machine, Row, leads, machine, questions_of, rests, table_of
from ..models.fact import FactType


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

StatusRow: TypeAlias = Row[Status, FactType]

IDLE = Status.IDLE
AWAITING = Status.AWAITING_APPROVAL
EXECUTING = Status.EXECUTING
PROCESSING = Status.PROCESSING_RESULTS
INTERRUPTED = Status.INTERRUPTED
IN_DOUBT = Status.IN_DOUBT

_CANNOT = "this fact cannot happen while that is so"


def _on(
    fact: FactType, leading: Mapping[Status, tuple[Status, ...]], *, note: str = ""
) -> Iterator[StatusRow]:
    """Declare a fact's rows in every status; `note` says why it changes nothing where it rests."""
    for status in Status:
        targets = leading.get(status, ())
        if not targets:
            yield rests(status, fact, _CANNOT, possible=False)
        elif len(targets) == 1:
            yield _row(status, fact, targets[0], note=note)
        else:
            for pressing, target in STATUS_OF.items():
                if target in targets:
                    yield _row(status, fact, target, note="as before", when=pressing)
                else:
                    yield rests(status, fact, _CANNOT, when=pressing, possible=False)


def _row(
    status: Status, fact: FactType, target: Status, *, note: str, when: str = ALWAYS
) -> StatusRow:
    if target is status:
        return rests(status, fact, note, when=when)
    return leads(status, fact, target, when=when)


def _resting(*statuses: Status) -> dict[Status, tuple[Status, ...]]:
    return {status: (status,) for status in statuses}


_AFTER_AN_INTERRUPT = {INTERRUPTED: (INTERRUPTED, PROCESSING, IDLE)}
"""What may happen when no turn is active, or while one is being stopped."""

_TURN = (
    *_on(
        FactType.TURN_OPENED,
        {
            IDLE: (EXECUTING, IDLE),
            PROCESSING: (EXECUTING, PROCESSING),
            INTERRUPTED: (EXECUTING, PROCESSING, IDLE),
        },
    ),
    *_on(
        FactType.CALL_ADDED,
        {
            IDLE: (EXECUTING, IDLE),
            PROCESSING: (EXECUTING, PROCESSING),
            **_resting(EXECUTING, AWAITING, IN_DOUBT),
        },
        note="what is under way is at least as pressing",
    ),
    *_on(
        FactType.TURN_SEALED,
        _resting(IDLE, PROCESSING, EXECUTING, AWAITING, IN_DOUBT),
        note="no call has changed",
    ),
    *_on(
        FactType.TURN_SETTLED,
        _resting(IDLE, PROCESSING),
        note="results wait for the model, or there are none (K-52)",
    ),
    *_on(
        FactType.TURN_INTERRUPTING,
        {status: (INTERRUPTED,) for status in Status if status is not INTERRUPTED},
    ),
    *_on(
        FactType.TURN_INTERRUPTED,
        _resting(INTERRUPTED),
        note="interrupted, until something else happens",
    ),
    *_on(
        FactType.CONTINUATION_TAKEN,
        {
            PROCESSING: (PROCESSING, IDLE),
            **_resting(EXECUTING, AWAITING, IN_DOUBT),
            **_AFTER_AN_INTERRUPT,
        },
        note="an earlier turn's; a later turn is under way",
    ),
)

_APPROVAL = (
    *_on(
        FactType.TOOL_APPROVAL_REQUESTED,
        {
            IDLE: (AWAITING,),
            PROCESSING: (AWAITING,),
            EXECUTING: (AWAITING,),
            **_resting(AWAITING, IN_DOUBT),
        },
        note="what is there already is at least as pressing",
    ),
    *_on(
        FactType.TOOL_APPROVED,
        {
            IDLE: (EXECUTING,),
            PROCESSING: (EXECUTING,),
            AWAITING: (AWAITING, EXECUTING),
            **_resting(EXECUTING, IN_DOUBT),
        },
        note="what is under way is at least as pressing",
    ),
    *_on(
        FactType.TOOL_DENIED,
        {
            AWAITING: (AWAITING, EXECUTING, PROCESSING),
            **_resting(IN_DOUBT, INTERRUPTED),
        },
        note="the doubt, or the interrupt, stays",
    ),
    *_on(
        FactType.GRANT_ISSUED,
        _resting(AWAITING, EXECUTING, IN_DOUBT),
        note="what it approves is told by facts of its own",
    ),
    *(
        row
        for ended in (FactType.GRANT_REVOKED, FactType.GRANT_EXPIRED)
        for row in _on(
            ended,
            {
                **_resting(IDLE, PROCESSING, EXECUTING, AWAITING, IN_DOUBT),
                **_AFTER_AN_INTERRUPT,
            },
            note="approvals already given stay (K-42)",
        )
    ),
)

_EXECUTION = (
    *_on(
        FactType.TOOL_EXECUTION_STARTED,
        _resting(EXECUTING, AWAITING, IN_DOUBT),
        note="it was ready before; what is more pressing stays",
    ),
    *_on(
        FactType.TOOL_EXECUTION_SUCCEEDED,
        {
            EXECUTING: (EXECUTING, PROCESSING),
            IN_DOUBT: (IN_DOUBT, AWAITING, EXECUTING, PROCESSING),
            **_resting(AWAITING, INTERRUPTED),
        },
        note="another approval, or the interrupt, stays",
    ),
    *_on(
        FactType.TOOL_EXECUTION_FAILED,
        {
            EXECUTING: (EXECUTING, PROCESSING),
            AWAITING: (AWAITING, EXECUTING, PROCESSING),
            IN_DOUBT: (IN_DOUBT, AWAITING, EXECUTING, PROCESSING),
            **_resting(INTERRUPTED),
        },
        note="the interrupt stays",
    ),
    *_on(
        FactType.EXECUTION_IN_DOUBT,
        {
            EXECUTING: (IN_DOUBT,),
            AWAITING: (IN_DOUBT,),
            **_resting(IN_DOUBT, INTERRUPTED),
        },
        note="another doubt, or the interrupt, is there already",
    ),
    *_on(
        FactType.RETRY_AUTHORISED,
        _resting(IN_DOUBT),
        note="whether it happened is known no better",
    ),
    *_on(
        FactType.EXECUTION_RETRIED,
        {IN_DOUBT: (IN_DOUBT, AWAITING, EXECUTING)},
    ),
    *_on(
        FactType.LEASE_RENEWED,
        _resting(EXECUTING, AWAITING, IN_DOUBT, INTERRUPTED),
        note="it ran, and it runs",
    ),
)

STATUS: Final[Machine[Status, FactType]] = machine(
    name="status",
    phases=Status,
    inputs=tuple(FactType),
    initial=(IDLE,),
    rank={},
    questions={QUESTION: tuple(Pressing)},
    rows=_TURN + _APPROVAL + _EXECUTION,
)

_TABLE = table_of(STATUS.rows)

ASKS: Final = frozenset(questions_of(STATUS))
"""The pairs of status and fact at which the question is asked."""


def step(status: Status, fact: FactType, pressing: str = ALWAYS) -> StatusRow:
    """Return the row for this status and fact. This is the one reader of the table."""
    return _TABLE[status, fact, pressing]

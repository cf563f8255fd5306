"""Bugs in recovery: something of the state that the fold of the journal forgets (K-2, K-3).

Each is invisible as long as nobody recovers; some show only much later, in a reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Final

from turnlock.engine import recovery
from turnlock.engine.state import State
from turnlock.lifecycle.invocation import Invocation
from turnlock.lifecycle.phases import Phase
from turnlock.models.facts import Fact, ToolApproved
from turnlock.turn.memory import Grants, Memory

from .approval import unedited
from .bug import Family, Shelf
from .field import Field
from .planting import around, folding, forgetting, while_recovering


def _of_each(forget: Callable[[Invocation], None]) -> Callable[[State], None]:
    def forget_all(state: State) -> None:
        if state.turn is not None:
            for invocation in state.turn.unfinished():
                forget(invocation)

    return forget_all


def _lease(invocation: Invocation) -> None:
    if invocation.phase is Phase.STARTED:
        invocation.deadline = None


def _approval_deadline(invocation: Invocation) -> None:
    if invocation.phase is Phase.REQUESTED:
        invocation.deadline = None


def _worker(invocation: Invocation) -> None:
    invocation.worker = None


def _decision(invocation: Invocation) -> None:
    invocation.decision = None


def _authority(invocation: Invocation) -> None:
    if invocation.phase is Phase.RETRY_AUTHORISED:
        invocation.phase = Phase.IN_DOUBT


def _start(invocation: Invocation) -> None:
    if invocation.phase is Phase.STARTED:
        invocation.phase = Phase.APPROVED
        invocation.attempt -= 1


def _turn(state: State) -> None:
    state.turn = None


def _continuations(state: State) -> None:
    state.continuations.clear()


def _memory(state: State) -> None:
    limits = state.run.limits
    state.memory = Memory(capacity=limits.remembered, retention=limits.remember_for)


def _grants(state: State) -> None:
    issued = state.grants.issued
    state.grants = Grants()
    state.grants.issued = issued


def _issued(state: State) -> None:
    state.grants.issued = len(state.grants)


def _epoch(state: State) -> None:
    state.epoch = 0


def _clock(state: State) -> None:
    state.at = -math.inf


def _grace(state: State) -> None:
    if state.turn is not None:
        state.turn.grace_until = None


def _last_commit_lost(
    real: Callable[[State, Iterable[Fact]], int],
) -> Callable[[State, Iterable[Fact]], int]:
    def replay(state: State, facts: Iterable[Fact]) -> int:
        journal = list(facts)
        return real(state, [fact for fact in journal if fact.commit < journal[-1].commit])

    return replay


_bug: Final = Shelf(Family.RECOVERY)

BUGS: Final = (
    _bug(
        "the turn is gone",
        "recovery forgets the active turn and all that waits in it",
        "K-2",
        forgetting(_turn),
        Field.GONE_AFTER_A_KILL,
        also=("K-3",),
    ),
    _bug(
        "claimed, and owed again",
        "recovery owes the execution of what was claimed",
        "K-3",
        forgetting(_of_each(_start)),
        Field.RESUMED_FROM_TWO_COPIES,
        also=("K-2",),
    ),
    _bug(
        "the last commit is lost",
        "recovery drops the last commit though it is complete",
        "K-2",
        around(recovery, "replay", _last_commit_lost),
        also=("K-3", "K-9"),
    ),
    _bug(
        "the continuation is lost",
        "recovery forgets the continuations that nobody has taken",
        "K-2",
        forgetting(_continuations),
        also=("K-3", "K-52"),
    ),
    _bug("the memory is lost", "recovery forgets what closed lately", "K-2", forgetting(_memory)),
    _bug(
        "the leases are lost",
        "recovery forgets when leases run out",
        "K-2",
        forgetting(_of_each(_lease)),
        also=("K-3",),
    ),
    _bug(
        "the deadlines are lost",
        "recovery forgets until when a call waits for approval",
        "K-2",
        forgetting(_of_each(_approval_deadline)),
        also=("K-3",),
    ),
    _bug(
        "the grace is lost",
        "recovery forgets when an interrupt's grace ends",
        "K-2",
        forgetting(_grace),
        also=("K-3",),
    ),
    _bug(
        "the worker is lost",
        "recovery forgets who holds a call",
        "K-2",
        forgetting(_of_each(_worker)),
    ),
    _bug(
        "the decision is lost",
        "recovery forgets how a call was decided",
        "K-2",
        forgetting(_of_each(_decision)),
    ),
    _bug(
        "the authority is lost",
        "recovery forgets that a retry was authorised",
        "K-2",
        forgetting(_of_each(_authority)),
        also=("K-3",),
    ),
    _bug(
        "the edit is lost",
        "recovery forgets the arguments that an approval edited",
        "K-2",
        while_recovering(folding(ToolApproved, unedited)),
        also=("K-3", "K-32"),
    ),
    _bug(
        "the grants are lost",
        "recovery forgets the grants in force",
        "K-2",
        forgetting(_grants),
        also=("K-3",),
    ),
    _bug(
        "the count of grants is lost",
        "recovery counts only the grants still in force",
        "K-2",
        forgetting(_issued),
    ),
    _bug("the epoch is lost", "recovery counts epochs anew", "K-2", forgetting(_epoch)),
    _bug(
        "the clock is lost",
        "recovery forgets the time of the latest fact",
        "K-2",
        forgetting(_clock),
    ),
)

"""What a person decides about a run whose journal lost its tail: put in doubt what it has done.

Whoever wrote the tail may have run every call that is ready in what is left, and every one that had
been started there. So each is claimed and lost: it is in doubt (K-35), and its tool's policy or a
person settles it, as after any crash. What waits for approval may have been approved in the tail:
no fact can say so, and so it is told in words. Continuations are handed over again, each under the
same id.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs

from ..engine.kernel import Kernel
from ..models.deliveries import Claim, Delivery, Lose
from ..models.effects import Continue, Execute
from ..models.errors import shown
from ..models.fact import Fact
from ..views.call_view import CallView, Waits
from ..views.live import call_of, calls_of
from .copying import moved_to
from .correlating import Correlated, Correlating
from .errors import Conflict, JournalRewound
from .journal.contract import Appended, Journal
from .scheduling import Clock, SteadyClock
from .writer import correlate_of, fold_run

WORKER: Final = "turnlock recover"
"""Who claims what may have been started in the tail."""
_LEASE: Final = 1.0
"""Seconds; the claim is lost in the same append."""


@attrs.frozen(kw_only=True)
class Recovered:
    """What was decided about a run."""

    run_id: str
    why: str | None
    """Why nobody could go on with it; None where there was nothing to decide."""
    doubted: tuple[CallView, ...] = ()
    """The calls that are in doubt now, as they were before."""
    waiting: tuple[CallView, ...] = ()
    """The calls that wait for approval, and may have been approved and run in what is lost."""
    continued: tuple[str, ...] = ()
    """The ids of continuations that are handed over again."""


async def recover(
    *,
    journal: Journal,
    run_id: str,
    clock: Clock | None = None,
    correlating: Correlating | None = None,
    moved: bool = False,
) -> Recovered:
    """Put in doubt what a rewound run may have done, and let it go on; one append, or nothing.

    Whoever owns it is fenced off. A run whose row is damaged is treated alike, since nobody knows
    where it ended, and its row is written anew. One that is whole stays as it is. `correlating`
    finds what facts of a run of another kind are about there (S-63). `moved` lets a run go on
    whose journal was moved, and which goes on in both if the other one is there still. Raises
    `JournalRewound` for one without that, `UnknownRun`, `CorruptJournal` for facts that cannot be
    read, and what the journal raises.
    """
    entry = await journal.entry(run_id)
    why = entry.rewound or entry.problem
    if why is None:
        return Recovered(run_id=run_id, why=None)
    if not moved and (place := await moved_to(journal)) is not None:
        raise JournalRewound(
            f"run {shown(run_id)}: this journal was moved to {place}, and nobody goes on with a run"
            " in both: go on with it there; where that journal is lost for good, give moved"
        )
    kernel = await fold_run(entry.run, journal)
    after = kernel.sequence
    correlate = await correlate_of(entry.run, journal, correlating)
    correlated = None if correlate is None else Correlated(correlate, kernel)
    now = (clock or journal.clock or SteadyClock()).now()
    doubted: list[CallView] = []
    facts: list[Fact] = []
    for call, deliveries in tuple(_doubts(kernel)):
        found = [fact for it in deliveries for fact in kernel.receive(it, now).facts]
        if found:
            doubted.append(call)
            facts += found
    lines = None if correlated is None else correlated.lines(facts)
    kept = await journal.recover(
        run_id, after=after, facts=facts, busy=kernel.busy, correlations=lines
    )
    if kept is not Appended.OK:
        raise Conflict(f"run {run_id!r}: it has changed meanwhile; try again")
    return Recovered(
        run_id=run_id,
        why=why,
        doubted=tuple(doubted),
        waiting=tuple(calls_of(kernel, gated=True)),
        continued=tuple(it.effect_id for it in kernel.pending_effects if isinstance(it, Continue)),
    )


def _doubts(kernel: Kernel) -> Iterator[tuple[CallView, tuple[Delivery, ...]]]:
    """Yield each call that may have been run since, and what puts it in doubt."""
    for effect in kernel.pending_effects:
        if isinstance(effect, Execute):
            call = call_of(kernel, turn_id=effect.turn_id, invocation_id=effect.invocation_id)
            if call is not None:
                claim = Claim(
                    run_id=call.run_id,
                    turn_id=call.turn_id,
                    invocation_id=call.invocation_id,
                    attempt=effect.attempt,
                    worker=WORKER,
                    lease=_LEASE,
                )
                yield call, (claim, _lost(call, effect.attempt))
    for call in calls_of(kernel):
        if call.waits is Waits.REPORT:
            yield call, (_lost(call, call.attempt),)


def _lost(call: CallView, attempt: int) -> Lose:
    return Lose(
        run_id=call.run_id,
        turn_id=call.turn_id,
        invocation_id=call.invocation_id,
        attempt=attempt,
    )

"""Views taken from a live kernel: what its state says of the open turn, without any old fact."""

from __future__ import annotations

from collections.abc import Iterator

from ..engine.kernel import Kernel
from ..engine.reading import LiveCall, LiveTurn
from ..engine.state import first_float_past
from ..lifecycle.phases import DOUBTED
from ..models.run import Run
from ..turn.phases import TurnPhase
from .call_list import CallList
from .call_view import CallView, DecisionView, OutcomeView
from .turn_view import TurnView


def wake_time(kernel: Kernel) -> float | None:
    """Return when a tick is due, Unix time: the first moment past the earliest deadline (K-34).

    None where no deadline runs. It is the `at` of the wake that the kernel owes.
    """
    deadline = kernel.earliest_deadline
    return None if deadline is None else first_float_past(deadline)


def call_of(kernel: Kernel, *, turn_id: str, invocation_id: str) -> CallView | None:
    """Return one call of a kernel's open turn, None where that turn is not open or lacks it."""
    turn = kernel.turn
    if turn is None or turn.turn_id != turn_id or invocation_id not in turn.members:
        return None
    return _call_of(kernel.run, kernel.epoch, turn, turn.members[invocation_id])


def count_in_doubt(kernel: Kernel) -> int:
    """Count the calls of the open turn of which nobody knows whether they happened (K-35).

    May be called from another thread than the one that receives: it reads a copy of the roster.
    """
    turn = kernel.turn
    return 0 if turn is None else sum(it.phase in DOUBTED for it in tuple(turn.order))


def turn_of(kernel: Kernel) -> TurnView | None:
    """Return the open turn of a kernel between two receives; it costs a record for each call."""
    turn = kernel.turn
    if turn is None:
        return None
    return TurnView(
        run_id=kernel.run.run_id,
        turn_id=turn.turn_id,
        epoch=kernel.epoch,
        phase=turn.phase,
        calls=CallList.of(_call_of(kernel.run, kernel.epoch, turn, it) for it in turn.order),
        grace_until=turn.grace_until,
    )


def calls_of(kernel: Kernel, *, gated: bool = False) -> Iterator[CallView]:
    """Iterate over the unfinished calls of a kernel's open turn, in expected order, one by one.

    With `gated` only over those that wait for approval. For whoever needs a few of many calls.
    """
    turn = kernel.turn
    if turn is not None:
        for it in turn.unfinished():
            if it.gated or not gated:
                yield _call_of(kernel.run, kernel.epoch, turn, it)


def _call_of(run: Run, epoch: int, turn: LiveTurn, it: LiveCall) -> CallView:
    decision = outcome = None
    if it.decision is not None:
        decision = DecisionView(
            approved=it.decision.approved,
            scope=it.decision.scope,
            match=it.decision.match,
            arguments=it.decision.edited,
        )
    if it.outcome is not None:
        outcome = OutcomeView(
            status=it.outcome.status,
            result=it.outcome.result,
            error=it.outcome.error,
            reason=it.outcome.reason,
        )
    return CallView(
        run_id=run.run_id,
        turn_id=turn.turn_id,
        epoch=epoch,
        position=it.position,
        invocation_id=it.invocation_id,
        tool_name=it.tool_name,
        arguments=it.arguments,
        requires_approval=it.requires_approval,
        provider_call_id=it.provider_call_id,
        observed=it.observed,
        phase=it.phase,
        arguments_digest=it.digest,
        interrupting=turn.phase is TurnPhase.INTERRUPTING and not it.terminal,
        deadline=it.deadline,
        attempt=it.attempt,
        worker=it.worker,
        decision=decision,
        outcome=outcome,
    )

"""What people say of a member's calls, brought to whoever judges it (W-41, W-42, W-46).

It is a delivery for one run: handed to the runtime in this process that owns it, posted to another
process that does, or judged here where nobody owns it. The kernel alone says what it comes to; no
entry of a log is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import attrs

from ..engine.kernel import Kernel
from ..models.codec import read_fact, write
from ..models.deliveries import Decide, Delivery, Interrupt
from ..models.errors import UnknownRun
from ..models.facts import Fact
from ..models.reasons import Reason
from ..models.values import Json, arguments_digest
from ..runtime.errors import Closed, RunFenced, RunForgotten
from ..runtime.journal.contract import Journal
from ..runtime.submitting import receipt_of, submit
from ..runtime.writer import fold_run
from ..views.live import call_of
from . import passing
from .names import KIND, CallAt


@attrs.frozen(kw_only=True)
class Judgement:
    """What the kernel says of what somebody asked: accepted, or refused for a reason."""

    accepted: bool
    reason: Reason | None = None
    """Why it was refused; None where it was accepted."""
    facts: tuple[Fact, ...] = ()
    """What happened."""

    @classmethod
    def refused(cls, reason: Reason) -> Self:
        """Return a refusal of what no kernel had to be asked for."""
        return cls(accepted=False, reason=reason)

    @classmethod
    def of_receipt(cls, receipt: Mapping[str, Any]) -> Self:
        """Return what a receipt says, as the wire writes it."""
        reason = receipt.get("reason")
        return cls(
            accepted=receipt["accepted"],
            reason=None if reason is None else Reason(reason),
            facts=tuple(map(read_fact, receipt["facts"])),
        )

    def as_json(self) -> dict[str, Any]:
        """Return it as the wire writes a receipt."""
        reason = {} if self.reason is None else {"reason": self.reason.value}
        return {"accepted": self.accepted, **reason, "facts": [write(it) for it in self.facts]}


@attrs.frozen(kw_only=True)
class Shown:
    """What was shown of a call to whoever decides, as far as it was sent along."""

    tool_name: str | None = None
    arguments: Mapping[str, Json] | None = None

    def fits(self, kernel: Kernel, call: CallAt) -> bool:
        """Whether it is what waits; where nothing waits, the kernel says so."""
        waits = call_of(kernel, turn_id=call.turn_id, invocation_id=call.invocation_id)
        if waits is None or not waits.gated:
            return True
        if self.tool_name is not None and self.tool_name != waits.tool_name:
            return False
        if self.arguments is None or waits.arguments is None:
            return True
        return arguments_digest(self.arguments) == arguments_digest(waits.arguments)


async def decided(
    journal: Journal, log: str, decision: Decide, *, shown: Shown, within: float
) -> Judgement:
    """Have a decision judged; what was sent along is compared with what waits, and never runs."""

    def choose(kernel: Kernel) -> Delivery | Reason:
        at = CallAt(kernel.run.run_id, decision.turn_id, decision.invocation_id)
        return decision if shown.fits(kernel, at) else Reason.ARGUMENTS_MISMATCH

    told = shown != Shown()
    return await judged(
        journal, log, decision.run_id or "", choose if told else decision, within=within
    )


async def turn_stopped(  # noqa: PLR0913 - what an interrupt says
    journal: Journal, log: str, run_id: str, *, reason: str | None, grace: float, within: float
) -> Judgement:
    """Have the open turn of a run interrupted; it is refused where none is open."""

    def choose(kernel: Kernel) -> Delivery | Reason:
        turn = kernel.turn
        if turn is None:
            return Reason.NO_ACTIVE_TURN
        return Interrupt(run_id=run_id, turn_id=turn.turn_id, reason=reason, grace=grace)

    return await judged(journal, log, run_id, choose, within=within)


async def judged(
    journal: Journal,
    log: str,
    run_id: str,
    delivery: Delivery | Callable[[Kernel], Delivery | Reason],
    *,
    within: float,
) -> Judgement:
    """Have a delivery judged, or one that is chosen by how the run stands, or refused at once.

    Raises `Unanswered` where the process that owns the run does not answer within these seconds,
    and what the journal raises.
    """
    try:
        run = (await journal.entry(run_id)).run
        if run.kind != KIND:
            return Judgement.refused(Reason.RUN_MISMATCH)
        if not isinstance(delivery, Delivery):
            chosen = delivery(await fold_run(run, journal))
            if isinstance(chosen, Reason):
                return Judgement.refused(chosen)
            delivery = chosen
        receipt = await _by_this_process(journal, run_id, delivery)
        if receipt is None:
            receipt = (await submit(journal, run_id, delivery, within=within)).receipt
    except (UnknownRun, RunForgotten):
        return Judgement.refused(Reason.NO_ACTIVE_TURN)
    passing.wake(journal, log, run_id)
    return Judgement.of_receipt(receipt)


async def _by_this_process(
    journal: Journal, run_id: str, delivery: Delivery
) -> Mapping[str, Any] | None:
    """Return the receipt of the runtime here that owns the run; None where none does."""
    runtime = passing.runtime_of(journal, run_id)
    if runtime is None:
        return None
    try:
        return receipt_of(await runtime.deliver(run_id, delivery))
    except (Closed, UnknownRun, RunFenced):  # let go, or taken over, meanwhile
        return None

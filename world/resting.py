"""Runs of members that are none any more, brought to rest: removed, cleared, their chat closed.

Their turns are interrupted and their grants revoked before anything else of them: nobody opens such
a run as it is, since what is approved in it would be run (W-4, section 12).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Final

from ..engine.kernel import Kernel
from ..models.deliveries import Delivery, Interrupt, Revoke
from ..models.errors import UnknownRun
from ..runtime.dispatcher import Continuation
from ..runtime.errors import JournalOwned
from ..runtime.runtime import Runtime
from ..runtime.submitting import SharedRun
from ..runtime.tools.toolbox import Toolbox
from ..runtime.writer import fold_run

WHY: Final = "its agent has left the chat, or has forgotten it"
"""Why such a turn is interrupted."""
GRACE: Final = 10.0
"""Seconds in which what runs may still report (K-53)."""


async def bring_to_rest(runtime: Runtime, run_id: str) -> bool:
    """Interrupt what goes on in a run, and revoke its grants; done again, it changes nothing.

    Returns False where somebody has it still, here or in a living process elsewhere: that one does
    it, or it is tried again.
    """
    try:
        entry = await runtime.journal.entry(run_id)
    except UnknownRun:
        return True
    if entry.forgotten is not None:  # a person has removed it, and all it had
        return True
    if runtime.owns(run_id):
        await stop_here(runtime, run_id)
        return False
    kernel = await fold_run(entry.run, runtime.journal)
    if not (kernel.busy or kernel.grants) or await _ended_by_nobody(runtime, run_id):
        return True
    try:  # without tools: what is ready is rejected, and does not begin
        await runtime.open_run(entry.run, tools=Toolbox(), on_continue=_nobody_is_told)
    except JournalOwned:
        return False
    await stop_here(runtime, run_id)
    await _ended(runtime, run_id)
    await runtime.close_run(run_id)
    return True


async def _ended_by_nobody(runtime: Runtime, run_id: str) -> bool:
    """Interrupt and revoke where nobody has the run; return whether nothing goes on then."""
    shared = await SharedRun.open(runtime.journal, run_id, policies=None, clock=runtime)
    try:
        await shared.submit_chosen(lambda now: endings(run_id, now))
    except JournalOwned:
        return False
    return not shared.kernel.busy


async def stop_here(runtime: Runtime, run_id: str) -> None:
    """Interrupt the turn of a run that is performed here, and revoke its grants."""
    view = await runtime.view(run_id)
    turn_id = None if view.turn is None else view.turn.turn_id
    for delivery in _endings(run_id, turn_id, [it.grant_id for it in view.grants]):
        await runtime.deliver(run_id, delivery)


def endings(run_id: str, kernel: Kernel) -> list[Delivery]:
    """Return what ends all that goes on in a run."""
    turn_id = None if kernel.turn is None else kernel.turn.turn_id
    return [*_endings(run_id, turn_id, [it.grant_id for it in kernel.grants])]


def _endings(run_id: str, turn_id: str | None, grants: Iterable[str]) -> Iterator[Delivery]:
    if turn_id is not None:
        yield Interrupt(run_id=run_id, turn_id=turn_id, reason=WHY, grace=GRACE)
    for grant_id in grants:
        yield Revoke(run_id=run_id, grant_id=grant_id)


async def _nobody_is_told(_: Continuation) -> None:
    """Take what a model would be told, which is asked no more."""


async def _ended(runtime: Runtime, run_id: str) -> None:
    while (await runtime.journal.entry(run_id)).busy:  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(runtime.settings.poll)

"""What is noted of a journal in its host's process, and what is switched off there on purpose.

Nothing of it is in the product: a control is a wrong journal, or a wrong function in the place of a
right one, in the process of a test.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from contextvars import ContextVar
from typing import Any, Final

import attrs

from turnlock import Fact
from turnlock.models.effects import Continue
from turnlock.runtime import dispatcher, owners
from turnlock.runtime.actor import Actor
from turnlock.runtime.executions import RuntimeContext
from turnlock.runtime.journal.contract import Appended, Journal
from turnlock.runtime.tenure import Tenure

from .ledger import Kept, Ledger, Owned, Unrenewed, checksum

UNFENCED: Final = "unfenced"
"""The fence is off: whoever writes is taken for the owner, and is told that the runs are its."""
UNORDERED: Final = "unordered"
"""The check of the sequence is off: whoever writes behind another is told that it was kept."""
UNASKED: Final = "unasked"
"""Before a continuation is handed over nobody makes sure of the run (D-19)."""

SURE: ContextVar[float | None] = ContextVar("SURE", default=None)
"""When the task made sure of its run last; whoever makes use of it takes it away."""


def note_journal(journal: Journal, ledger: Ledger, *, lease: float, off: Collection[str]) -> None:
    """Have this journal note what it says to this host: what is owned, and what is kept."""
    note_owning(journal, ledger, lease=lease, fenced=UNFENCED not in off)
    append = journal.append

    async def noting(
        run_id: str, *, fence: int | None, after: int, facts: Sequence[Fact], **more: Any
    ) -> Appended:
        under = fence
        if UNFENCED in off and fence is not None:
            under = (await journal.entry(run_id)).fence
        answer = await append(run_id, fence=under, after=after, facts=facts, **more)
        if UNORDERED in off and answer is Appended.CONFLICT:
            answer = Appended.OK
        if answer is Appended.OK:
            first, last = after + 1, facts[-1].sequence
            told = checksum(facts)
            ledger.note(Kept, run=run_id, fence=fence or 0, first=first, last=last, checksum=told)
        return answer

    setattr(journal, "append", noting)  # noqa: B010 - of this journal alone


def note_owning(journal: Journal, ledger: Ledger, *, lease: float, fenced: bool) -> None:
    """Have it note what is owned, and where that was not renewed in time."""
    own, renew = journal.own, journal.renew
    owned: set[str] = set()
    since = time.monotonic()

    async def owning(run_id: str, **given: Any) -> int:
        fence = await own(run_id, **given)
        owned.add(run_id)
        ledger.note(Owned, run=run_id, fence=fence)
        return fence

    async def renewing(**given: Any) -> frozenset[str]:
        nonlocal since
        began = time.monotonic()
        renewed = await renew(**given)
        if time.monotonic() - since > lease:
            ledger.note(Unrenewed, since=since)
        since = began
        return renewed if fenced else renewed | owned

    setattr(journal, "own", owning)  # noqa: B010
    setattr(journal, "renew", renewing)  # noqa: B010
    take = getattr(journal, "take", None)
    if take is None:
        return

    async def taking(*args: Any, **given: Any) -> Any:
        fences = await take(*args, **given)
        for run_id, fence in fences.items():
            owned.add(run_id)
            ledger.note(Owned, run=run_id, fence=fence)
        return fences

    setattr(journal, "take", taking)  # noqa: B010


def note_tenure() -> None:
    """Have each task remember when it made sure of its run."""
    make_sure = Tenure.make_sure

    async def making_sure(self: Tenure, actor: Actor) -> None:
        await make_sure(self, actor)
        SURE.set(time.monotonic())

    setattr(Tenure, "make_sure", making_sure)  # noqa: B010


class Unasked:
    """In the place of `Tenure` where a continuation is handed over."""

    async def make_sure(self, actor: Actor) -> None:
        if actor.stopped is not None:
            raise actor.stopped


def hand_over_unasked() -> None:
    """Hand continuations over without making sure of the run: the control of D-19."""
    hand_over = dispatcher.hand_over

    async def unasked(actor: Actor, effect: Continue, *, runtime: RuntimeContext) -> None:
        tenure: Any = Unasked()
        await hand_over(actor, effect, runtime=attrs.evolve(runtime, tenure=tenure))

    setattr(dispatcher, "hand_over", unasked)  # noqa: B010


def be_elsewhere(host: str) -> None:
    """Be on a machine of one's own, as far as others can see: they wait for the lease (D-46)."""
    setattr(owners, "boot", lambda: host)  # noqa: B010


def set_the_clock(ahead: float) -> None:
    """Have the wall clock be so many seconds ahead before anything looks at it."""
    real = time.time
    setattr(time, "time", lambda: real() + ahead)  # noqa: B010 - of the module, for all

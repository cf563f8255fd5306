"""Deliveries from a process that performs nothing: an owner's to judge, or its own where none is.

`submit` has one delivery judged, whoever owns the run. `SharedRun` is for many processes that write
one run which nobody owns: each judges, and appends where the run still ends as it has read it.
No tool is run here: what a delivery brings is left to whoever opens the run next.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from itertools import repeat
from typing import Any, Final, Self

import attrs

from ..engine.kernel import Kernel
from ..models.codec import write
from ..models.deliveries import Delivery
from ..models.errors import TurnlockError
from ..models.verdicts import Accepted, Verdict
from .clock import Clock, SteadyClock
from .errors import Conflict, JournalOwned, RunFenced
from .journal.contract import Journal, RunEntry
from .owners import is_dead, new_owner
from .retry import retried
from .tools.policy import Policy
from .writer import Judged, RunWriter, fold_run

LEASE: Final = 10.0
"""Seconds for which a run is owned at most while a dead owner is put out of it."""
POLL: Final = 0.05
"""Seconds between two looks for an answer."""
SNAPSHOT_EVERY: Final = 2_000
"""Facts after which the writer of a shared run keeps a snapshot, for whoever opens it next."""


class Unanswered(TurnlockError):
    """A delivery was posted, and its run's owner has not answered yet; it is not lost."""


@attrs.frozen(kw_only=True)
class Submitted:
    """The receipt, as the wire writes it without effects, and whether a living owner gave it."""

    receipt: dict[str, Any]
    by_owner: bool


class SharedRun:
    """A run that nobody owns, as one of its writers has it.

    Its kernel is kept from one `submit` to the next: where others have written meanwhile only their
    facts are read and folded. Use it in one task at a time; other processes need no care.
    """

    def __init__(self, writer: RunWriter, *, journal: Journal, clock: Clock) -> None:
        """Take over what `open` has folded."""
        self._writer = writer
        self._journal = journal
        self._clock = clock
        self._snapped = writer.kept

    @classmethod
    async def open(
        cls,
        journal: Journal,
        run_id: str,
        *,
        policies: Mapping[str, Policy] | None,
        clock: Clock | None = None,
    ) -> Self:
        """Fold a run that the journal knows.

        `policies` are what the tools declare, by their names (`Toolbox.policies`): the approval
        that they ask for is added to the calls that are submitted. None where that is not known;
        then no calls can be. Raises `UnknownRun`, and what the journal raises.
        """
        clock = clock or SteadyClock()
        kernel = await fold_run((await journal.entry(run_id)).run, journal)
        writer = RunWriter(kernel, journal=journal, clock=clock, policies=policies, fence=None)
        return cls(writer, journal=journal, clock=clock)

    @property
    def kernel(self) -> Kernel:
        """The run as it was when it was last read or written here; only to look at."""
        return self._writer.kernel

    async def refresh(self) -> bool:
        """Read and fold what others have written meanwhile; return whether that was anything."""
        return await self._writer.catch_up()

    async def submit(self, *deliveries: Delivery) -> tuple[Verdict, ...]:
        """Have deliveries judged, in this order; the facts of all of them are one append.

        Raises `JournalOwned` where a process owns the run: post to it, as `submit` does. Raises
        `InvalidValue` for calls of which is not known what their tools declare.
        """
        return await self.submit_chosen(lambda _: deliveries)

    async def submit_chosen(
        self, choose: Callable[[Kernel], Iterable[Delivery]]
    ) -> tuple[Verdict, ...]:
        """Have those deliveries judged that the run, as it is now, calls for.

        What is chosen is judged in the state that it was chosen for: where another writer was
        quicker, the new facts are read, and it is chosen again. Raises as `submit` does.
        """
        judged = await retried(
            lambda: self._attempt(choose), pauses=repeat(0.0), on=(Conflict, _Freed)
        )
        if self._writer.kept - self._snapped >= SNAPSHOT_EVERY:
            self._snapped = self._writer.kept
            await self._journal.keep_snapshot(self._writer.kernel.snapshot(), fence=None)
        return tuple(one.verdict for one in judged)

    async def _attempt(self, choose: Callable[[Kernel], Iterable[Delivery]]) -> list[Judged]:
        """Judge and keep once. Without facts no append has said that nothing was missed: look."""
        writer = self._writer
        if writer.stale:
            await writer.catch_up()
        while True:
            judged = writer.judge(choose(writer.kernel))
            if any(one.verdict.facts for one in judged):
                break
            if not await writer.catch_up():
                return judged
        try:
            await writer.keep(judged)
        except RunFenced as error:
            await self._free()
            raise _Freed(str(error)) from error
        return judged

    async def _free(self) -> None:
        """Put an owner out of the run that is dead, or whose lease is over."""
        run_id = self._writer.run.run_id
        entry = await self._journal.entry(run_id)
        if entry.owner is None:
            return
        gone = entry.owner if is_dead(entry.owner) else None
        fence = await self._journal.own(
            run_id, owner=new_owner(), now=self._clock.now(), lease=LEASE, gone=gone
        )
        await self._journal.release(run_id, fence=fence)


class _Freed(TurnlockError):
    """A run had an owner that is gone: it can be written now."""


async def submit(  # noqa: PLR0913 - what a writer needs, and how long to wait
    journal: Journal,
    run_id: str,
    delivery: Delivery,
    *,
    within: float,
    policies: Mapping[str, Policy] | None = None,
    clock: Clock | None = None,
) -> Submitted:
    """Have a delivery judged, by the run's owner if there is one; wait `within` seconds for that.

    `policies` are what the tools declare, as in `SharedRun.open`; an owner knows that itself.
    Raises `UnknownRun`, `Unanswered`, `InvalidValue` for calls that are judged here without
    policies, and what the journal raises.
    """
    clock = clock or SteadyClock()
    entry = await journal.entry(run_id)
    if not is_owned(entry, now=clock.now()):
        try:
            shared = await SharedRun.open(journal, run_id, policies=policies, clock=clock)
            (verdict,) = await shared.submit(delivery)
            return Submitted(receipt=receipt_of(verdict), by_owner=False)
        except JournalOwned:
            pass  # somebody was quicker: that is its owner now
    number = await journal.post(run_id, delivery)
    give_up = time.monotonic() + within
    while (receipt := await journal.answered(number)) is None:
        if time.monotonic() >= give_up:
            raise Unanswered(
                f"run {run_id!r}: its owner {entry.owner or 'somebody'} has not answered post"
                f" {number} in {within:g} s; it is kept, and answered once that process goes on"
            )
        await asyncio.sleep(POLL)
    return Submitted(receipt=dict(receipt), by_owner=True)


def is_owned(entry: RunEntry, *, now: float) -> bool:
    """Whether a living process has the run, as far as anybody can tell."""
    return (
        entry.owner is not None
        and entry.owned_until is not None
        and now < entry.owned_until
        and not is_dead(entry.owner)
    )


def receipt_of(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as the wire writes it, without the effects: those are the owner's."""
    written: dict[str, Any] = {"accepted": isinstance(verdict, Accepted)}
    if verdict.reason is not None:
        written["reason"] = str(verdict.reason)
    return {**written, "facts": [write(fact) for fact in verdict.facts]}

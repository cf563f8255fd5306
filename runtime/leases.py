"""Whether a run may be taken from its owner: the one place that decides it.

A lease that is over lets others take the run. But time may be over for the clock alone: the machine
slept, and everybody's leases are over when it wakes; or the owner's clock was set. Where the owner
is seen to live, its lease is therefore looked at twice, half a lease apart by the clock that stands
still in a suspend (asyncio's): who is well renews in between, and keeps the run. Where nobody can
see it – another host, another container, no /proc – the lease alone counts.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from .errors import JournalOwned
from .journal.contract import Journal, RunEntry
from .owners import is_alive, is_dead, new_owner, short_name
from .scheduling import Clock, SteadyClock

SECOND_LOOK: Final = 1 / 2
"""Of a lease: how long an owner that lives has to renew. More than a third, see `RENEWALS`."""


LEASE: Final = 10.0
"""Seconds for which a run is owned at most while a dead owner is put out of it."""


class Hold(StrEnum):
    """What an owner has of a run."""

    NONE = "none"
    """Nobody owns it, or a process that has surely ended: it is taken at once."""
    OVER = "over"
    """The lease is over, and nothing is known of the process: it is taken at once."""
    OVERDUE = "overdue"
    """The lease is over, and the process lives: it is taken if it is not renewed meanwhile."""
    FIRM = "firm"
    """The lease is in force."""


class Leases:
    """Looks at owners as they are now; each process is looked at once."""

    def __init__(self, *, now: float, own: str | None = None) -> None:
        """Look at `now`, the time by which leases count; `own` is who asks, if it owns runs."""
        self._now = now
        self._own = own
        self._dead: dict[str, bool] = {}
        self._alive: dict[str, bool] = {}

    def hold(self, entry: RunEntry) -> Hold:
        """Return what its owner has of this run."""
        owner = entry.owner
        if owner is None or owner == self._own or self.is_dead(owner):
            return Hold.NONE
        if entry.owned_until is not None and self._now < entry.owned_until:
            return Hold.FIRM
        if owner not in self._alive:
            self._alive[owner] = is_alive(owner)
        return Hold.OVERDUE if self._alive[owner] else Hold.OVER

    def is_owned(self, entry: RunEntry) -> bool:
        """Whether a living process has the run, as far as anybody can tell: it is to be asked."""
        return self.hold(entry) in {Hold.FIRM, Hold.OVERDUE}

    def is_dead(self, owner: str) -> bool:
        """Whether this owner's process has surely ended."""
        if owner not in self._dead:
            self._dead[owner] = is_dead(owner)
        return self._dead[owner]


def clock_of_leases(journal: Journal, given: Clock | None) -> Clock:
    """Return what leases count by: the journal's own clock, else what was given, else ours."""
    return journal.clock or given or SteadyClock()


def time_of_takers(journal: Journal, given: Clock | None) -> float:
    """Return the time at which others' leases count as over: the clock may be off (D-44)."""
    return clock_of_leases(journal, given).now() - journal.patience


def is_owned(entry: RunEntry, *, now: float) -> bool:
    """Whether a living process has the run, as far as anybody can tell: it is to be asked."""
    return Leases(now=now).is_owned(entry)


def same_lease(before: RunEntry, entry: RunEntry) -> bool:
    """Whether nobody has renewed, let go or taken the run between two looks."""

    def lease(of: RunEntry) -> object:
        return of.owner, of.fence, of.owned_until

    return lease(before) == lease(entry)


async def put_out(journal: Journal, run_id: str, *, now: float) -> None:
    """Put an owner out of a run that is dead, or silent and not seen to live.

    Raises `JournalOwned` for any other.
    """
    entry = await journal.entry(run_id)
    if entry.owner is None:
        return
    if Leases(now=now).hold(entry) is Hold.OVERDUE:
        raise lives_still(entry)
    gone = entry.owner if is_dead(entry.owner) else None
    fence = await journal.own(run_id, owner=new_owner(), now=now, lease=LEASE, gone=gone)
    await journal.release(run_id, fence=fence)


def lives_still(entry: RunEntry) -> JournalOwned:
    """Return the error for a run whose lease seems to be over, and whose owner lives."""
    owner = short_name(entry.owner or "")
    return JournalOwned(
        f"run {entry.run.run_id!r}: its owner {owner} lives, though its lease seems to be over;"
        " post to it, stop that process, or open the run in a runtime, which waits for a sign of it"
    )

"""What a journal promises of the owners of runs: one each, for a lease, under a token that grows.

A part of the contract of `Journal`. Leases count by the time that comes in, which is the journal's
own where it has a clock (`Journal.clock`, D-44); they decide when a run is tried, and never whether
it stays whole: that is the fence's alone (D-45).
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from ...models.errors import TurnlockError, UnknownRun
from ..errors import JournalOwned, JournalRewound, RunForgotten
from .entries import RunEntry
from .given import check_limit
from .lists import Lists

FREE: Final = 100
"""Entries that `free` returns at most unless told otherwise (D-47)."""

_NOT_TO_BE_HAD: Final = (JournalOwned, JournalRewound, RunForgotten, UnknownRun)


def nobody(_: str) -> bool:
    """Whether an owner is gone: nothing is known of any."""
    return False


class Owning(Lists):
    """A place whose runs have owners."""

    @abstractmethod
    async def own(
        self, run_id: str, *, owner: str, now: float, lease: float, gone: str | None = None
    ) -> int:
        """Take a run for `lease` seconds, and return the fencing token: one more than any before.

        A run that is free, whose lease is over at `now`, that is the same owner's already, or whose
        owner is `gone` is taken; otherwise raises `JournalOwned`. `gone` is an owner of whom the
        caller knows that it is dead (see `owners`): its lease need not be waited for.
        """

    async def free(
        self,
        *,
        now: float,
        gone: Callable[[str], bool] = nobody,
        kind: str | None = None,
        after: str | None = None,
        limit: int = FREE,
    ) -> tuple[RunEntry, ...]:
        """List the next busy runs that may be taken, at most `limit`, as `runs` does (D-12).

        These are the ones that nobody owns, whose lease is over at `now`, and whose owner is
        `gone`, which is asked once for each owner, in any thread. Those that nobody may go on with
        are among them: whoever would take them says so. `kind` and `after` are as for `runs`.
        """
        check_limit(limit=limit)
        known: dict[str, bool] = {}
        found: list[RunEntry] = []
        while len(found) < limit and (page := await self.runs(busy=True, kind=kind, after=after)):
            found += [entry for entry in page if is_free(entry, now=now, gone=gone, known=known)]
            after = page[-1].run.run_id
        return tuple(found[:limit])

    async def take(
        self,
        seen: Sequence[RunEntry],
        *,
        owner: str,
        now: float,
        lease: float,
        gone: Collection[str] = (),
    ) -> Mapping[str, int]:
        """Take many runs, each as it was `seen`; return the tokens of those taken (D-13).

        Each lease ends `lease` seconds after `now`. A run is taken as `own` takes it; not one that
        somebody has renewed or taken since it was seen. `gone` are owners who are dead. What is not
        to be had is left out; an error means that nothing was taken. In one transaction, where that
        costs less.
        """

        async def take(entry: RunEntry) -> int:
            over = taken_at(entry, now=now)
            return await self.own(
                entry.run.run_id,
                owner=owner,
                now=over,
                lease=now + lease - over,
                gone=entry.owner if entry.owner in gone else None,
            )

        answers = await asyncio.gather(*map(take, seen), return_exceptions=True)
        taken: dict[str, int] = {}
        failures: list[BaseException] = []
        for entry, answer in zip(seen, answers, strict=True):
            if isinstance(answer, int):
                taken[entry.run.run_id] = answer
            elif not isinstance(answer, TurnlockError):
                raise answer
            elif not isinstance(answer, _NOT_TO_BE_HAD):
                failures.append(answer)
        if failures and not taken:
            raise failures[0]
        return taken

    @abstractmethod
    async def renew(self, *, owner: str, now: float, lease: float) -> frozenset[str]:
        """Renew the lease of every run of this owner, and return their ids.

        A lease that is over is renewed, too, as long as nobody else has taken the run; that of a
        run that stands still is not.
        """

    @abstractmethod
    async def release(self, run_id: str, *, fence: int) -> None:
        """Let a run go; without effect when another owner has it."""

    async def release_all(self, *, owner: str) -> frozenset[str]:
        """Let go of every run of this owner, and return their ids (D-46, D-49).

        For whoever knows that the owner is dead. Should it live, it is fenced, as always.
        """
        owned = [entry async for entry in self.run_entries() if entry.owner == owner]
        for entry in owned:
            await self.release(entry.run.run_id, fence=entry.fence)
        return frozenset(entry.run.run_id for entry in owned)


def is_free(
    entry: RunEntry, *, now: float, gone: Callable[[str], bool], known: dict[str, bool]
) -> bool:
    """Whether a run may be taken at `now`; what `gone` says of an owner is kept in `known`."""
    owner = entry.owner
    if owner is None or entry.owned_until is None or entry.owned_until <= now:
        return True
    if owner not in known:
        known[owner] = gone(owner)
    return known[owner]


def taken_at(seen: RunEntry, *, now: float) -> float:
    """Return the time at which a run is taken that was seen so: what was renewed since is not over.

    Of one that was free then, or whose owner is gone, nothing is known to be over.
    """
    return now if seen.owned_until is None else min(now, seen.owned_until)

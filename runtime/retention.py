"""What is kept, and for how long: runs that are over, written into an archive and removed.

Nothing that is open is ever removed: what is under way, in doubt, owned by a living process, waited
for by a post, or what has lost its tail. A run that is about to go is owned meanwhile, under a name
of our own, so that nothing is added to it between the last look and its end.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Self, TypeAlias

import attrs

from ..models.errors import CorruptJournal, InvalidValue, TurnlockError
from .archive import Archive, ArchiveError, Draft, keep_sum, read_archive, section_of
from .errors import JournalOwned, JournalRewound, RunForgotten, RunOpen
from .journal.contract import Journal, RunEntry, not_removed, run_forgotten
from .leases import clock_of_leases, is_owned
from .listing import told_entry
from .owners import new_owner
from .scheduling import Clock
from .writer import fold_run

LEASE: Final = 60.0
"""Seconds for which a run that is about to go is owned; renewed while others are written."""
AT_ONCE: Final = 100
"""Runs that are taken at once: a journal commits together what is asked together."""

Closing: TypeAlias = Callable[[RunEntry], Awaitable[RunEntry]]
"""Closes what a run that is to go has open, where whoever asks may; returns its entry then."""


@attrs.frozen(kw_only=True)
class Left:
    """A run that was to go, is still there, and why."""

    run_id: str
    why: str


@attrs.frozen(kw_only=True)
class Retired:
    """What became of the runs that were to go."""

    removed: tuple[str, ...]
    left: tuple[Left, ...]
    facts: int
    """Facts of those that were removed."""
    before: tuple[str, ...] = ()
    """Those that were removed before; they stand in the archive, where there is one."""
    digest: str | None = None
    """SHA-256 of the archive; None where none was written."""


async def forget_runs(
    journal: Journal,
    run_ids: Sequence[str] | None = None,
    *,
    older_than: float | None = None,
    clock: Clock | None = None,
    closing: Closing | None = None,
) -> Retired:
    """Remove all that is kept of these runs, for good: nobody reads it again.

    `older_than` are the seconds that must have passed since a run's latest fact; with it `run_ids`
    may be left out, for all that are that old. A run's row stays, and its id is refused
    (`RunForgotten`). What is open is left, and so is what cannot be read; `closing` may close it
    first. Raises `UnknownRun` for an id that is none, before anything happens, and what the journal
    raises.
    """
    async with _Retiring(journal, clock_of_leases(journal, clock), closing) as retiring:
        await retiring.choose(run_ids, older_than=older_than)
        await retiring.remove()
        return retiring.outcome()


async def archive_runs(  # noqa: PLR0913 - which runs, where to, and what is closed first
    journal: Journal,
    run_ids: Sequence[str] | None = None,
    *,
    path: str | os.PathLike[str],
    older_than: float | None = None,
    clock: Clock | None = None,
    closing: Closing | None = None,
) -> Retired:
    """Write these runs into a file of JSON lines, prove that they stand there, and remove them.

    They are chosen, left and removed as by `forget_runs`, the file is as `archive` says. Where it
    is there already it is not touched: a run goes if it stands there exactly as the journal has it,
    as after a crash between the two. So whatever happens a run is in one of them, and doing it
    again is safe. Raises `ArchiveError`, and then has removed nothing.
    """
    file = Path(path)
    async with _Retiring(journal, clock_of_leases(journal, clock), closing) as retiring:
        await retiring.choose(run_ids, older_than=older_than)
        archive = await retiring.archive(file)
        await retiring.remove()
        return retiring.outcome(archive)


class _Retiring:
    """The runs that are about to go, and what is known of them."""

    def __init__(self, journal: Journal, clock: Clock, closing: Closing | None) -> None:
        self._journal = journal
        self._clock = clock
        self._closing = closing
        self._owner = new_owner()
        self._renewed = clock.now()
        self._held: dict[str, RunEntry] = {}
        """Owned here, with the fence under which they are, in the order in which they came."""
        self._left: list[Left] = []
        self._removed: list[RunEntry] = []
        self._before: dict[str, RunEntry] = {}

    async def __aenter__(self) -> Self:
        """Begin with none."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Let go of what is still there."""
        for entry in self._held.values():
            with suppress(TurnlockError):  # its lease ends, and we are dead before
                await self._journal.release(entry.run.run_id, fence=entry.fence)

    async def choose(self, run_ids: Sequence[str] | None, *, older_than: float | None) -> None:
        """Take the runs that may go."""
        if run_ids is None and older_than is None:
            raise InvalidValue(
                place="run_ids", cause="no run is named", fix="name runs, or give `older_than`"
            )
        if run_ids is None:  # of all there are only those are held in memory that may go
            every = self._journal.run_entries()
            found = [it async for it in every if await self._is_old(it, older_than)]
        else:
            named = [await self._journal.entry(run_id) for run_id in dict.fromkeys(run_ids)]
            self._before = {it.run.run_id: it for it in named if it.forgotten is not None}
            found = [
                it for it in named if it.forgotten is None and await self._goes(it, older_than)
            ]
        for begins in range(0, len(found), AT_ONCE):
            await asyncio.gather(*map(self._take, found[begins : begins + AT_ONCE]))
        self._held = {
            it.run.run_id: self._held[it.run.run_id] for it in found if it.run.run_id in self._held
        }

    async def archive(self, path: Path) -> Archive | None:
        """Have all that may go stand in an archive; what does not is left."""
        archive: Archive | None = None
        there: bool = await asyncio.to_thread(path.exists)
        if there and (self._held or self._before):
            archive = await self._compare(path)
        elif self._held:
            archive = await self._write(path)
        written = frozenset[str]() if archive is None else archive.sections.keys()
        for run_id in self._before.keys() - written:
            at = self._before.pop(run_id).forgotten or 0.0
            await self._leave(run_id, run_forgotten(run_id, at=at))
        return archive

    async def remove(self) -> None:
        """Remove what may go, and give its room back."""
        for entry in tuple(self._held.values()):
            run_id = entry.run.run_id
            await self._renew()
            try:
                await self._journal.forget(
                    run_id,
                    fence=entry.fence,
                    after=entry.sequence,
                    at=self._clock.now(),
                    gone=self._owner,
                )
            except RunOpen as error:
                await self._leave(run_id, error)
            else:
                self._removed.append(self._held.pop(run_id))
        if self._removed:
            await self._journal.compact()

    def outcome(self, archive: Archive | None = None) -> Retired:
        """Return what became of all."""
        return Retired(
            removed=tuple(it.run.run_id for it in self._removed),
            left=tuple(self._left),
            facts=sum(it.sequence for it in self._removed),
            before=tuple(self._before),
            digest=None if archive is None else archive.digest,
        )

    async def _is_old(self, entry: RunEntry, seconds: float | None) -> bool:
        if seconds is None:
            return True
        changed = (await told_entry(self._journal, entry)).changed
        return changed is not None and self._clock.now() - changed >= seconds

    async def _goes(self, entry: RunEntry, seconds: float | None) -> bool:
        """Whether a run that was named is that old; it is told of if not."""
        if old := await self._is_old(entry, seconds):
            return old
        why = f"run {entry.run.run_id!r}: its latest fact is not that old"
        self._left.append(Left(run_id=entry.run.run_id, why=why))
        return False

    async def _take(self, entry: RunEntry) -> None:
        """Own a run, unless it is open."""
        run_id = entry.run.run_id
        try:
            if self._closing is not None:
                entry = await self._closing(entry)
            await self._check(entry)
            fence = await self._journal.own(
                run_id, owner=self._owner, now=self._clock.now(), lease=LEASE, gone=entry.owner
            )
            self._held[run_id] = held = attrs.evolve(entry, fence=fence)
            kernel = await fold_run(entry.run, self._journal)
        except (RunOpen, RunForgotten, JournalOwned, JournalRewound, CorruptJournal) as error:
            await self._leave(run_id, error)
            return
        self._held[run_id] = attrs.evolve(held, sequence=kernel.sequence)
        if kernel.busy:  # its row says otherwise
            await self._leave(run_id, RunOpen(f"run {run_id!r}: something is under way in it"))

    async def _check(self, entry: RunEntry) -> None:
        """Raise where a run must stay, before it is touched."""
        owned = is_owned(entry, now=self._clock.now())
        error = not_removed(
            entry,
            fence=entry.fence,
            after=entry.sequence,
            gone=None if owned else entry.owner,
            posts=len(await self._journal.posts([entry.run.run_id])),
        )
        if error is not None:
            raise error

    async def _leave(self, run_id: str, why: Exception) -> None:
        self._left.append(Left(run_id=run_id, why=str(why)))
        held = self._held.pop(run_id, None)
        if held is not None:
            await self._journal.release(run_id, fence=held.fence)

    async def _write(self, path: Path) -> Archive | None:
        draft = Draft(path)
        try:
            for entry in tuple(self._held.values()):
                await self._renew()
                try:
                    await draft.add(self._journal, entry.run)
                except (CorruptJournal, RunForgotten) as error:
                    await self._leave(entry.run.run_id, error)
            return await asyncio.to_thread(draft.publish) if self._held else None
        finally:
            draft.close()

    async def _compare(self, path: Path) -> Archive:
        """Keep those that stand in an archive of before as the journal has them."""
        archive = await asyncio.to_thread(read_archive, path)
        for entry in tuple(self._held.values()):
            await self._renew()
            run_id = entry.run.run_id
            try:
                if archive.sections.get(run_id) == await section_of(self._journal, entry.run):
                    continue
                why: Exception = ArchiveError(
                    f"archive {path}: it was there before, and does not hold run {run_id!r} as it"
                    " is now; give another name"
                )
            except (CorruptJournal, RunForgotten) as error:
                why = error
            await self._leave(run_id, why)
        await asyncio.to_thread(keep_sum, path, archive)
        return archive

    async def _renew(self) -> None:
        now = self._clock.now()
        if now - self._renewed >= LEASE / 3:
            await self._journal.renew(owner=self._owner, now=now, lease=LEASE)
            self._renewed = now

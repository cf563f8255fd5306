"""One journal copied into another, whatever kind either is: its runs go on there, and only there.

What is copied: runs as they were declared, facts, notes, gaps where notes were pruned, snapshots,
posts that wait, what the ids of workers stand for, marks of runs that were rewound or forgotten,
and shared logs. Answers to posts are not: their numbers mean something in their journal alone.

Nobody may perform a run in both. So, in this order, and each step can be done again:

1. *The target's runs belong to the copy*, from their first moment and without an end, under a name
   that is no process. Half a copy is performed by nobody.
2. *The source's runs are owned here* while they are read: who performed one is fenced. Such a lease
   ends as any does, so that a copy that is given up leaves the source as it was.
3. *The source's runs are marked as moved*: from then on nobody owns, writes or posts to them
   (`Journal.mark_rewound`). What came between the look and the mark is copied after the mark.
4. *The copy is read back*, each entry held against the other as bytes.
5. *The target's runs are let go*, once all of the above is true of all of them.

Both journals keep how far a copy is in a shared log, `LOG`, so that it is known after a kill.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from typing import Any, Final, cast

import attrs

from ..models.errors import TurnlockError, UnknownRun, shown
from .copying_run import NotCopied, RunCopy
from .errors import JournalOwned
from .journal.contract import Journal, RunEntry
from .journal.logs import Entry
from .leases import Leases, clock_of_leases
from .owners import is_dead, new_owner, short_name

__all__ = ["LOG", "Copied", "NotCopied", "copied_half", "copy_journal", "moved_to"]

LOG: Final = "Turnlock/copies"
"""The shared log in which both journals keep how far a copy is. No world can have this name."""
LEASE: Final = 60.0
"""Seconds for which runs of the source are owned; renewed while others are copied."""
FOR_EVER: Final = 100 * 365 * 86_400.0
"""Seconds for which runs of the target are owned: until the copy is whole, or somebody releases
the owner."""
NAMED: Final = 20
"""Runs that an error names at most."""

Tell = Callable[[str], None]
"""Is told how far it is."""


@attrs.frozen(kw_only=True)
class Copied:
    """What was copied."""

    runs: int
    facts: int
    logs: int
    entries: int
    """Of all shared logs."""
    before: bool = False
    """Whether it was whole before: then nothing was done."""


async def copy_journal(
    source: Journal, target: Journal, *, origin: str, place: str, tell: Tell = lambda _: None
) -> Copied:
    """Copy all of a journal into another one, from which it goes on; see the module.

    `origin` and `place` say where they are, for people. Done again after a kill it goes on. Raises
    `NotCopied` where somebody performs a run of the source, where the target has a run of the same
    name, and where the copy is not the same; and what the journals raise.
    """
    token = await _token(source)
    if await target.find_entry(LOG, _TOKEN) == await source.find_entry(LOG, _TOKEN):
        raise NotCopied(f"copy {origin} to {place}: they are the same journal; name another one")
    return await _Copying(source, target, token, origin, place, tell).done()


async def copied_half(journal: Journal) -> str | None:
    """Return from where a copy into this journal has begun that is not whole; None: there is none.

    Its runs belong to the copy, and nobody performs them.
    """
    begun: dict[str, str] = {}
    async for entry in _entries(journal, LOG):
        kind, _, token = entry.entry_id.partition("/")
        if kind == _BEGUN:
            begun[token] = str(cast("Mapping[str, Any]", entry.body)["from"])
        elif kind == _WHOLE:
            begun.pop(token, None)
    return next(iter(begun.values()), None)


async def moved_to(journal: Journal) -> str | None:
    """Return where this journal's runs went, or are going; None: they are its own.

    From the moment at which the first may be marked.
    """
    token = await journal.find_entry(LOG, _TOKEN)
    if token is None:
        return None
    name = f"{_MOVED}/{cast('Mapping[str, Any]', token.body)['token']}"
    moved = await journal.find_entry(LOG, name)
    return None if moved is None else str(cast("Mapping[str, Any]", moved.body)["to"])


_TOKEN: Final = "token"  # noqa: S105 - the id of an entry
"""Of the source: what tells it from all other journals."""
_BEGUN, _PROVED, _WHOLE, _MOVED = "begun", "proved", "whole", "moved"
"""How far a copy is: in the target it has begun, was read back, is let go; in the source, its runs
are being marked."""


@attrs.frozen
class _Copying:
    """A copy that is under way."""

    source: Journal
    target: Journal
    token: str
    origin: str
    place: str
    tell: Tell
    owner: str = attrs.field(factory=new_owner)
    """Of the source's runs."""
    workers: dict[str, str] = attrs.field(factory=dict[str, str])

    @property
    def theirs(self) -> str:
        """The owner of the target's runs until it is whole; the same one after a kill."""
        return f"copy:{self.token}"

    @property
    def over(self) -> str:
        """The owner of the source's runs from the moment at which they are marked."""
        return f"moved:{self.token}"

    @property
    def moved(self) -> str:
        """Why nobody goes on with the source's runs."""
        return f"it was moved to {self.place} (copy {self.token}): go on with it there"

    async def done(self) -> Copied:
        """Do what is left of it."""
        if await self._is(_WHOLE):
            return attrs.evolve(await self._counted(), before=True)
        try:
            await self._do()
        except Exception:
            await self._give_up()
            raise
        return await self._counted()

    async def _do(self) -> None:
        if not await self._is(_PROVED):
            await self._check()
            await self._say(self.target, _BEGUN, {"from": self.origin})
            await self._bring()
            await self._say(self.source, _MOVED, {"to": self.place})
            await self._prove()
            await self._bring_logs()
            await self._say(self.target, _PROVED, {})
        await self._let_go()
        await self._say(self.target, _WHOLE, {})

    async def _give_up(self) -> None:
        """Let the source's runs go at once, whatever has gone wrong."""
        with suppress(TurnlockError):  # their leases end
            async for entry in self.source.run_entries():
                if entry.owner == self.owner:
                    await self.source.release(entry.run.run_id, fence=entry.fence)

    async def _check(self) -> None:
        """Raise before anything is written where it cannot be done."""
        begun = await self._is(_BEGUN)
        moved = await self.source.find_entry(LOG, f"{_MOVED}/{self.token}")
        if moved is not None and not begun:
            there = cast("Mapping[str, Any]", moved.body)["to"]
            raise self._not(f"it was moved to {there} before; copy that journal")
        leases = Leases(now=self._now(self.source))
        performed: list[str] = []
        there_too: list[str] = []
        async for entry in self.source.run_entries(forgotten=True):
            run_id = entry.run.run_id
            if entry.problem is not None:
                raise self._not(f"the row of run {shown(run_id)} is damaged: {entry.problem}")
            ours = entry.owner == self.over
            if entry.rewound is None and not ours and leases.is_owned(entry):
                performed.append(f"{shown(run_id)} ({short_name(entry.owner or '')})")
            found = await _found(self.target, run_id)
            if found is not None and not (begun and found.owner in {self.theirs, None}):
                there_too.append(shown(run_id))
        if performed:
            raise self._not(f"{_some(performed)} are performed: end those processes first")
        if there_too:
            raise self._not(f"the target has {_some(there_too)} already; give an empty one")

    async def _bring(self) -> None:
        """Copy each run, in the order in which they were declared; the source's are owned here."""
        count = 0
        renewed = self._now(self.source)
        async for entry in self.source.run_entries(forgotten=True):
            if (now := self._now(self.source)) - renewed > LEASE / 4:
                await self.source.renew(owner=self.owner, now=now, lease=LEASE)
                renewed = now
            await self._bring_run(entry)
            count += 1
            self.tell(f"{count:,} runs copied")

    async def _bring_run(self, entry: RunEntry) -> None:
        run_id = entry.run.run_id
        there = await _found(self.target, run_id)
        if entry.forgotten is not None:
            await self._forget(entry, there)
            return
        if there is not None and there.rewound is not None:
            return  # a copy before this one has done all of it
        if entry.rewound is None and entry.owner != self.over:
            await self._own(entry, owner=self.owner, lease=LEASE)
        copy = await self._taken(entry)
        await copy.bring(entry)

    async def _forget(self, entry: RunEntry, there: RunEntry | None) -> None:
        """Have the target refuse the id of a run that was removed, as the source does."""
        if there is None:
            await self.target.declare(entry.run)
        await self.target.forget(
            entry.run.run_id,
            fence=0 if there is None else there.fence,
            after=0 if there is None else there.sequence,
            at=cast("float", entry.forgotten),
            gone=self.theirs,
        )

    async def _own(self, entry: RunEntry, *, owner: str, lease: float) -> None:
        gone = entry.owner if entry.owner == self.owner or is_dead(entry.owner) else None
        try:
            await self.source.own(
                entry.run.run_id,
                owner=owner,
                now=self._now(self.source),
                lease=lease,
                gone=gone,
            )
        except JournalOwned as error:
            raise self._not(f"somebody begins to perform it: {error}") from error

    async def _taken(self, entry: RunEntry) -> RunCopy:
        """Return the copy of a run; in the target it belongs to the copy from now on."""
        await self.target.declare(entry.run)
        await self.target.outdo(entry.run.run_id, fence=entry.fence)
        fence = await self.target.own(
            entry.run.run_id, owner=self.theirs, now=self._now(self.target), lease=FOR_EVER
        )
        return RunCopy(self.source, self.target, entry.run.run_id, fence)

    async def _prove(self) -> None:
        """Mark the source's runs, copy what came until then, and read all of it back."""
        await self.source.renew(owner=self.owner, now=self._now(self.source), lease=LEASE)
        count = 0
        async for entry in self.source.run_entries(forgotten=True):
            if entry.forgotten is None:
                await self._prove_run(entry)
            count += 1
            self.tell(f"{count:,} runs read back")

    async def _prove_run(self, entry: RunEntry) -> None:
        run_id = entry.run.run_id
        if entry.rewound is None:
            if entry.owner not in {self.owner, self.over, None}:
                raise self._not(f"{short_name(entry.owner or '')} has taken run {shown(run_id)}")
            await self._own(entry, owner=self.over, lease=FOR_EVER)  # who comes back is fenced
            await self.source.mark_rewound(run_id, why=self.moved)
            entry = await self.source.entry(run_id)  # nothing comes behind this
        there = await _found(self.target, run_id)
        if there is None or there.rewound is None:  # one that is, was copied and marked before
            copy = await self._taken(entry)
            await copy.bring(entry)
            await copy.bring_posts()
        else:
            copy = RunCopy(self.source, self.target, run_id, there.fence)
        await copy.workers(self.workers)
        await copy.compare(entry)
        if entry.rewound != self.moved:  # it was before, and is so there
            await self.target.mark_rewound(run_id, why=cast("str", entry.rewound))

    async def _bring_logs(self) -> None:
        """Copy the shared logs, those of chats before those of the worlds that name them."""
        for log in sorted(await self.source.logs(), reverse=True):
            if log.name == LOG:
                continue
            if log.problem is not None:
                raise self._not(f"log {shown(log.name)}: {log.problem}")
            async for it in _entries(self.source, log.name):
                await self.target.append_entry(log.name, it.entry_id, it.body, at=it.at)
            await self._compare_log(log.name)

    async def _compare_log(self, log: str) -> None:
        theirs = _entries(self.target, log)
        async for ours in _entries(self.source, log):
            if await anext(theirs, None) != ours:
                raise self._not(
                    f"entry {ours.number} of log {shown(log)} is another one there; give an empty"
                    " journal"
                )
        if await anext(theirs, None) is not None:
            raise self._not(f"log {shown(log)} has entries more there; give an empty journal")

    async def _let_go(self) -> None:
        """Let the target's runs go, whoever may perform them now."""
        async for entry in self.target.run_entries():
            if entry.owner == self.theirs:
                await self.target.release(entry.run.run_id, fence=entry.fence)

    async def _counted(self) -> Copied:
        runs = facts = 0
        async for entry in self.target.run_entries():
            runs, facts = runs + 1, facts + entry.sequence
        lasts = [it.last for it in await self.target.logs() if it.name != LOG]
        return Copied(runs=runs, facts=facts, logs=len(lasts), entries=sum(lasts))

    async def _is(self, how_far: str) -> bool:
        return await self.target.find_entry(LOG, f"{how_far}/{self.token}") is not None

    async def _say(self, journal: Journal, how_far: str, body: Mapping[str, Any]) -> None:
        found = await journal.find_entry(LOG, f"{how_far}/{self.token}")
        if found is None:
            await journal.append_entry(
                LOG, f"{how_far}/{self.token}", dict(body), at=self._now(journal)
            )

    def _not(self, why: str) -> NotCopied:
        return NotCopied(f"copy {self.origin} to {self.place}: {why}")

    def _now(self, journal: Journal) -> float:
        return clock_of_leases(journal, None).now()


async def _token(source: Journal) -> str:
    """Return what tells a journal from all others, made where it has none."""
    found = await source.find_entry(LOG, _TOKEN)
    if found is None:
        made = secrets.token_hex(8)
        await source.append_entry(LOG, _TOKEN, {"token": made}, at=source.time())
        return made
    return str(cast("Mapping[str, Any]", found.body)["token"])


async def _found(journal: Journal, run_id: str) -> RunEntry | None:
    try:
        return await journal.entry(run_id)
    except UnknownRun:
        return None


async def _entries(journal: Journal, log: str) -> AsyncIterator[Entry]:
    after = 0
    while page := await journal.entries(log, after=after):
        for entry in page:
            yield entry
        after = page[-1].number


def _some(names: list[str]) -> str:
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return f"{len(names):,} runs ({', '.join(names[:NAMED])}{more})"

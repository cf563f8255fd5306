"""What a journal promises, and which journals there are: `open_journal` opens what a URL names.

Every journal passes one suite: tests/runtime/journal/contract.py. To add one: a module of its own
beside this one, with an `open_place`; one entry in `BACKENDS`; and its fixture in
tests/runtime/journal/backends.py, so that the whole contract is held against it.

A journal keeps runs: their configuration, their facts in order, at most one snapshot of each, who
owns them, their notes, and the deliveries that others have posted; and shared logs, which nobody
owns (see `logs`). Four promises carry the
runtime:

- **Atomic and durable.** When `append` says OK, all its facts are kept, whatever happens next; when
  it says anything else, or raises, none is. (The exceptions are a crash while it answers, and an
  error whose message says so: then the next `read` tells, exactly: what was read after such an
  error stays so, however late what was asked for arrives, D-18.)
- **Fenced.** Each owner of a run has a fencing token (`fence`), which only grows. An append under
  an older one is FENCED, inside the same transaction that would have kept it: a stopped process
  that wakes up after its run was taken over writes nothing. Whoever released a run is fenced, too.
  A lease that is over fences nobody as long as nobody else takes the run.
- **Or shared.** A run that nobody owns may be written by anybody, with None for a fence. From the
  moment when somebody owns it, whatever the lease says, such a write is FENCED.
- **In order.** `after` is the sequence of the last fact that the writer knows. Where the journal
  holds another, the answer is CONFLICT.

No journal has a clock: time comes in, Unix time in seconds.

**Cancelling.** A method that writes ends only when what it asked for is settled, one way or the
other: `CancelledError` comes out after that, and does not tell which way it went. So whoever reads
next reads the truth, and no cancelled write arrives afterwards.
"""

from __future__ import annotations

import asyncio
import os
import re
from abc import abstractmethod
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Final, Protocol, Self, cast

import attrs

from ...engine.snapshot import Snapshot
from ...models.errors import TurnlockError, shown
from ...models.fact import Foldable
from ...models.facts import Fact
from ...models.run import Run
from ..errors import JournalError, NoJournal
from ..scheduling import Clock, SteadyClock
from .backups import Backup, Restored
from .copies import Copies
from .entries import PAGE, Appended, Busy, Finding, Post, RunEntry, RunsPage, Summary, Told
from .gauges import Gauge, gauges_of
from .given import check_batch, check_lease, check_limit, text_of_place
from .ledger import Note
from .ledgers import Ledgers
from .lists import RUNS
from .logs import Entered, Entry, LogEntry, Logs
from .owning import FREE, Owning
from .places import shown_place
from .posting import ANSWERS, POSTS, POSTS_WAITING, PROBLEM, Posting
from .reading import RunRead, read_each
from .refusals import (
    closed,
    findings_of,
    not_removed,
    only_read,
    owned,
    rewound,
    run_differs,
    run_forgotten,
    shown_time,
    too_many_posts,
    unknown_run,
)
from .rewinding import Rewinding

__all__ = [
    "ANSWERS", "FREE", "PAGE", "POSTS", "POSTS_WAITING", "PROBLEM", "RUNS", "Appended", "Backup",
    "Busy", "Entered", "Entry", "Finding", "Gauge", "LogEntry", "Note", "Post", "Restored",
    "RunEntry", "RunRead", "RunsPage", "Summary", "Told", "check_batch", "check_lease",
    "check_limit", "closed", "findings_of", "not_removed", "only_read", "owned", "rewound",
    "run_differs", "run_forgotten", "too_many_posts", "unknown_run",
]  # fmt: skip
"""What is from the modules beside this one, for whoever implements or asks a journal; all else here
is, too."""


class Journal(Owning, Posting, Ledgers, Rewinding, Copies, Logs):
    """A place where runs are kept. Its methods may be called by many tasks of one loop at once.

    All raise `JournalError` when the place fails, and `Closed` after `close`; those that take a
    run's id raise `UnknownRun` for one never declared, and all of these but `entry`, `release` and
    `forget` raise `RunForgotten` for one of which everything was removed.
    """

    @property
    def clock(self) -> Clock | None:
        """Its own clock, which all who use it share; None where it has none.

        Leases count by it, whatever other clock a process goes by (D-44).
        """
        return None

    @property
    def patience(self) -> float:
        """Seconds for which takers wait beyond a lease: its clock is off by less (D-44)."""
        return 0.0

    def time(self) -> float:
        """Return the time by which leases count in it, Unix time in seconds (D-11).

        It may be asked in any thread.
        """
        return (self.clock or SteadyClock()).now()

    async def __aenter__(self) -> Self:
        """Return it; it was opened when it was made."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close it."""
        await self.close()

    @abstractmethod
    async def declare(self, run: Run) -> None:
        """Make a run known. Raises `RunDiffers` if it is known with another configuration.

        Raises `RunForgotten` for one that was removed: its idempotency keys and its sequence
        numbers would come again.
        """

    @abstractmethod
    async def append(  # noqa: PLR0913 - what is asked
        self,
        run_id: str,
        *,
        fence: int | None,
        after: int,
        facts: Sequence[Fact],
        busy: Busy,
        notes: Sequence[Note] = (),
        correlations: Sequence[bytes | None] | None = None,
    ) -> Appended:
        """Keep the facts of one or more whole commits, and notes beside them, all or none.

        `fence` is what `own` returned, or None to write a run that nobody owns; `after` is the
        sequence of the last fact kept before (0: none). FENCED goes before CONFLICT. `busy` says
        whether the run has something under way afterwards, and as a `Summary` what its entry shows
        besides. Raises `InvalidValue` for what is no
        commit: no fact, another run's, a gap, half a commit; and `Overloaded` for more than one
        append may be. Notes are as for `note`; each stands `after` the last fact of a commit, or
        after the fact that was kept before. `correlations` are, for each fact, JSON on one line
        that says what it is about in another runtime (S-63).
        """

    @abstractmethod
    async def read(self, run_id: str, *, after: int = 0, limit: int = PAGE) -> tuple[Fact, ...]:
        """Return the next facts of a run, at most `limit`; empty only where there are none.

        Where facts are large it may be fewer, so that a page fits into memory; it may end inside a
        commit. Raises `CorruptJournal` at a fact that cannot be read or whose number does not
        follow.
        """

    async def read_to_fold(
        self, run_id: str, *, after: int = 0, limit: int = PAGE
    ) -> tuple[Foldable, ...]:
        """Return the next facts as `read` does, or of each at least what the fold reads of it.

        A journal that keeps bytes need not make records of them, which takes longer.
        """
        return await self.read(run_id, after=after, limit=limit)

    async def facts(self, run_id: str, *, after: int = 0) -> AsyncIterator[Fact]:
        """Iterate over all facts after a sequence that are kept now, page by page."""
        last = after
        while page := await self.read(run_id, after=last):
            for fact in page:
                yield fact
            last = page[-1].sequence

    @abstractmethod
    async def keep_snapshot(self, snapshot: Snapshot, *, fence: int | None) -> Appended:
        """Keep a snapshot instead of the run's older one.

        CONFLICT for one of a sequence that the journal has not reached, or older than the kept one.
        Raises `RunDiffers` for one of another configuration.
        """

    @abstractmethod
    async def snapshot(self, run_id: str) -> Snapshot | None:
        """Return the kept snapshot, or None. One that cannot be read is None: facts can be."""

    async def read_runs(self, run_ids: Sequence[str]) -> Mapping[str, RunRead]:
        """Return what a recovery reads of each of these runs, in few questions (D-13).

        It is what `entry`, `snapshot` and `read` tell. All of it fits into memory: of a run there
        may be only the first facts. One that is not there, was removed, is damaged or is too much
        beside the others is left out: who needs it reads it by itself, and is told why.
        """
        found = await asyncio.gather(*(read_each(self, run_id) for run_id in run_ids))
        return {it.entry.run.run_id: it for it in found if it is not None}

    async def forget(
        self, run_id: str, *, fence: int, after: int, at: float, gone: str | None = None
    ) -> None:
        """Remove all that is kept of a run, in one transaction; its id is refused from then on.

        `fence` and `after` are the run's fence and sequence as the caller has seen them, `at` is
        now, Unix time, and `gone` an owner that may be put out: it is dead, or its lease is over.
        Raises `RunOpen`, and has removed nothing, where the run is owned by another, has something
        under way, a post that waits for an answer or a tail that was lost, and where it is not as
        it was seen. One that was removed before stays as it is.
        """
        raise JournalError(
            f"run {shown(run_id)}: this journal removes nothing (fence {fence}, fact {after},"
            f" {shown_time(at)}, {gone}); give one that does"
        )

    async def findings(self, run_id: str) -> tuple[Finding, ...]:
        """Return what stands in a run's way, and which of its posts were set aside; costs little.

        All that is damaged is found by `check`.
        """
        return tuple(findings_of(await self.entry(run_id)))

    async def check(self) -> tuple[Finding, ...]:
        """Look at all that is kept, and return what is not as it should be, or cannot be read."""
        found: list[Finding] = []
        async for entry in self.run_entries():
            found += findings_of(entry)
            found += await self._check_run(entry.run.run_id)
        return (*found, *await self.check_logs())

    async def _check_run(self, run_id: str) -> list[Finding]:
        found: list[Finding] = []

        async def read_all() -> None:
            async for _ in self.facts(run_id):
                pass

        async def attempt(what: str, read: Awaitable[object]) -> None:
            try:
                await read
            except TurnlockError as error:
                found.append(Finding(run_id=run_id, what=what, cause=str(error)))

        await attempt("facts", read_all())
        await attempt("snapshot", self.snapshot(run_id))
        await attempt("notes", self.notes(run_id))
        await attempt("posts", self.posts([run_id]))
        return found

    async def backup(
        self,
        path: str | os.PathLike[str],
        *,
        force: bool = False,  # noqa: ARG002 - where it is offered
    ) -> Backup:
        """Copy all that is kept, as one moment has it, into a file, and read the copy back.

        Nobody who writes meanwhile is held up. The file is readable by nobody else; where there is
        one it is replaced only by `force`. Raises `JournalError` where it cannot be made, also for
        a journal that offers none: then its own means are to be used.
        """
        raise JournalError(
            f"backup {os.fspath(path)}: this journal offers none; use the means of the place where"
            " it is kept"
        )

    async def compact(self) -> None:
        """Give back the room of what was removed, in portions that hold up nobody for long."""

    async def gauges(self) -> tuple[Gauge, ...]:
        """Return what an operator watches, each with its bounds; see `gauges`."""
        return await gauges_of(self)

    async def standing(self) -> tuple[str, ...]:
        """Return what this place promises and what it may lose, in sentences for people."""
        return ()

    @abstractmethod
    async def close(self) -> None:
        """Finish what was begun, and let everything go. Closing twice is harmless."""


class RestorePlace(Protocol):
    """What the module of a journal has under the name `restore_place`, if it offers that."""

    async def __call__(self, place: str, backup: Path) -> Restored:
        """Put a backup in a place; see `restore_journal`."""
        ...


class OpenPlace(Protocol):
    """What the module of a journal has under the name `open_place`."""

    async def __call__(self, place: str, *, create: bool, read_only: bool) -> Journal:
        """Open the journal at a place, the URL without its scheme and colon.

        Make it where there is none, if `create` and not `read_only`. Raises `JournalError`, and
        `NoJournal` where there is none.
        """
        ...


@attrs.frozen(kw_only=True)
class Backend:
    """One kind of journal."""

    module: str
    """The module beside this one; it is imported when such a journal is opened, not before."""
    forms: str
    """What its URLs look like, for messages."""
    extra: str | None = None
    """What has to be installed for it."""


_POSTGRES: Final = Backend(
    module="postgres.journal", forms="postgresql://USER@HOST/DATABASE?schema=NAME", extra="postgres"
)

BACKENDS: Final = {
    "sqlite": Backend(module="sqlite", forms="a path, sqlite:PATH or sqlite:///ABSOLUTE/PATH"),
    "postgresql": _POSTGRES,
    "postgres": _POSTGRES,
    "memory": Backend(module="memory", forms="memory:"),
}
"""By the scheme of their URLs."""

_SCHEME: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):(?P<place>.*)", re.DOTALL)
"""Of two letters at least: `C:\\agent.db` is a path."""
ENTRY_POINTS: Final = "turnlock.journals"
"""The entry points of journals of other makers: a scheme = its `OpenPlace` (D-54)."""


async def open_journal(
    url: str | os.PathLike[str], *, create: bool = True, read_only: bool = False
) -> Journal:
    """Open the journal that a URL or a bare path names; a bare path is a SQLite file.

    `sqlite:PATH`, `sqlite:///ABSOLUTE/PATH`, `postgresql://…` and `memory:` are known, and what
    other packages name as entry points (`ENTRY_POINTS`); a path is taken as it stands, without
    escapes. Where there is none it is made, unless `create` is False. `read_only` changes
    nothing there, needs no right to write, and waits for nobody who writes; whatever would write
    raises `JournalError`. Raises `NoJournal` for a scheme that is not known, and for whatever is no
    journal.
    """
    open_place, _, place = _found(url)
    return await open_place(place, create=create and not read_only, read_only=read_only)


async def restore_journal(backup: str | os.PathLike[str], url: str | os.PathLike[str]) -> Restored:
    """Put a backup in the place of a journal, and keep what was there under another name.

    Raises `JournalOwned` where a living process performs a run of what is there. The restored
    journal has an identity of its own, so that whoever has the old one open still stops; no owner
    has a run; each fencing token is beyond those that were given out. What happened since the
    backup is not known: runs that had something under way are `rewound` until a person has decided,
    and deliveries that waited for an answer are set aside. Raises `JournalError` for a journal that
    does not offer it, too.
    """
    _, restore, place = _found(url)
    if restore is None:
        raise JournalError(
            f"journal {shown_place(url)}: it offers no restore; use the means of the place where it"
            " is kept"
        )
    return await restore(place, Path(backup))


def _found(url: str | os.PathLike[str]) -> tuple[OpenPlace, RestorePlace | None, str]:
    """Return what opens and what restores the journal that a URL names, and the place in it."""
    text = text_of_place(url)
    named = _SCHEME.fullmatch(text) if isinstance(url, str) else None
    scheme, place = (named["scheme"].lower(), named["place"]) if named else ("sqlite", text)
    if scheme == "sqlite" and place == ":memory:" and isinstance(url, str):
        raise NoJournal(
            f"journal {shown_place(text)}: no file is meant by that; give memory: for a journal"
            " that ends with its process (a file of this name: ./:memory:)"
        )
    backend = BACKENDS.get(scheme)
    if backend is not None:
        module = _module_of(backend, text)
        return module.open_place, getattr(module, "restore_place", None), place
    from importlib.metadata import entry_points  # noqa: PLC0415 - most journals are of our own

    others = entry_points(group=ENTRY_POINTS)
    if scheme in others.names:
        return cast("OpenPlace", others[scheme].load()), None, place
    known = "; ".join([*dict.fromkeys(it.forms for it in BACKENDS.values()), *sorted(others.names)])
    raise NoJournal(
        f"journal {shown_place(text)}: no journal is called {scheme!r}; give {known} (a file with a"
        f" colon in its name: ./{shown_place(text)})"
    )


def _module_of(backend: Backend, text: str) -> ModuleType:
    try:
        return import_module(f".{backend.module}", __package__)
    except ModuleNotFoundError as error:
        if backend.extra is None:
            raise
        raise NoJournal(
            f"journal {shown_place(text)}: {error.name} is not installed; pip install"
            f" 'turnlock[{backend.extra}]'"
        ) from error

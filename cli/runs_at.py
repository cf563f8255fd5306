"""What the commands ask of where the runs are: the same of a journal and of a server.

Here is the journal's side; the server's stands in `runs_of_server`, which alone loads its client.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol, TypeAlias, TypeVar

import attrs
import click

from ..adapters.correlation import correlate_of
from ..engine.kernel import Kernel
from ..models.deliveries import Delivery, Tick
from ..models.errors import TurnlockError, UnknownRun
from ..models.facts import Fact
from ..models.run import Run
from ..models.safe_text import harmless
from ..models.sealed import ID
from ..runtime.copying import moved_to
from ..runtime.forking import FORKED
from ..runtime.journal.contract import Finding, Journal, RunEntry
from ..runtime.listing import list_runs
from ..runtime.owners import is_dead, meaning_of
from ..runtime.scheduling import SteadyClock
from ..runtime.submitting import Submitted, submit
from ..runtime.tools.toolbox import Toolbox
from ..runtime.writer import fold_run
from ..views.call_view import CallView
from ..views.grants import GrantView, grants_in_force
from ..views.live import turn_of
from ..views.run_view import RunView
from ..views.turn_view import TurnView
from .databases import ended, entry_of, facts_of, with_journal
from .others_runs import is_guarded
from .places import Place

T = TypeVar("T")

Choose: TypeAlias = Callable[[TurnView | None], Delivery]
"""Chooses a delivery by the open turn, as it is."""


@attrs.frozen(kw_only=True)
class Listed:
    """A page of the list."""

    entries: Sequence[RunEntry]
    next: str | None
    """What --after is given to go on; None: there is no more."""
    now: float
    """By the clock that leases count by."""


@attrs.frozen(kw_only=True)
class Told:
    """All that is told of a run."""

    entry: RunEntry
    facts: Sequence[Fact]
    findings: Sequence[Finding]
    """What stands in its way, and the posts that nobody could read."""
    forked: Mapping[str, Any] | None
    """Where it was forked from, if it was: the note of that."""
    now: float
    """By the clock that leases count by."""
    lost: Sequence[CallView] = ()
    """Started by processes that are gone, as far as anybody can tell here: in doubt once the run
    goes on."""
    moved: bool = False
    """Whether it stands still since its journal was moved: it goes on there."""
    due: Sequence[Fact] = ()
    """What time has made of a guarded run, and nobody has kept: it has no owner who would."""

    @cached_property
    def view(self) -> RunView:
        """What the facts fold to."""
        return RunView.of(self.entry.run, [*self.facts, *self.due])

    @property
    def grants(self) -> tuple[GrantView, ...]:
        """The grants in force."""
        return grants_in_force(self.facts, now=self.now)


class RunsAt(Protocol):
    """Where the runs are. A run that is not there is wrong usage, and those there are listed."""

    async def listed(
        self, *, only_open: bool, forgotten: bool, after: str | None, limit: int
    ) -> Listed:
        """List runs."""
        ...

    async def told(self, run_id: str) -> Told:
        """Return all that is told of a run."""
        ...

    async def facts(self, run_id: str) -> list[Fact]:
        """Return all facts of a run."""
        ...

    async def run(self, run_id: str) -> Run:
        """Return how a run was declared, as far as it is told: its kind."""
        ...

    async def open_turn(self, run_id: str) -> TurnView | None:
        """Return the open turn of a run; a call that has ended may lack its arguments."""
        ...

    async def submit(
        self, run_id: str, delivery: Delivery | Choose, *, within: float, tools: Toolbox | None
    ) -> Submitted:
        """Have a delivery judged; as `runtime.submitting.submit`, whoever is asked."""
        ...


@attrs.frozen
class RunsOfJournal:
    """The runs of a journal."""

    journal: Journal

    async def listed(
        self, *, only_open: bool, forgotten: bool, after: str | None, limit: int
    ) -> Listed:
        """List them in the order in which they were declared."""
        try:
            entries = await list_runs(
                self.journal,
                busy=True if only_open else None,
                forgotten=forgotten,
                after=after,
                limit=limit + 1,  # one more tells that there are more
            )
        except UnknownRun:
            await entry_of(self.journal, after or "")  # says which there are
            raise
        more = entries[limit - 1].run.run_id if len(entries) > limit else None
        return Listed(entries=entries[:limit], next=more, now=self.journal.time())

    async def told(self, run_id: str) -> Told:
        """Return all that the journal has of a run."""
        journal = self.journal
        entry = await entry_of(journal, run_id)
        told = Told(
            entry=entry,
            facts=await facts_of(journal, run_id),
            findings=await journal.findings(run_id),
            forked=await _origin(journal, run_id),
            now=journal.time(),
            moved=entry.rewound is not None and await moved_to(journal) is not None,
        )
        if is_guarded(entry.run) and told.facts:
            told = attrs.evolve(told, due=_passed(Kernel.recover(entry.run, told.facts)))
        running = told.view.running
        lost = [it for it in running if is_dead(await meaning_of(it.worker, journal))]
        return attrs.evolve(told, lost=lost)

    async def facts(self, run_id: str) -> list[Fact]:
        """Return all facts of a run."""
        await entry_of(self.journal, run_id)
        return await facts_of(self.journal, run_id)

    async def run(self, run_id: str) -> Run:
        """Return how it was declared."""
        return (await entry_of(self.journal, run_id)).run

    async def open_turn(self, run_id: str) -> TurnView | None:
        """Fold the run, and return its open turn."""
        entry = await entry_of(self.journal, run_id)
        kernel = await fold_run(entry.run, self.journal)
        if is_guarded(entry.run):
            _passed(kernel)
        return turn_of(kernel)

    async def submit(
        self, run_id: str, delivery: Delivery | Choose, *, within: float, tools: Toolbox | None
    ) -> Submitted:
        """Have it judged: by the run's owner, or here."""
        entry = await entry_of(self.journal, run_id)
        if is_guarded(entry.run):  # what it comes to by now is what somebody decides about
            await submit(self.journal, run_id, Tick(), within=within)
        if isinstance(delivery, Delivery):
            return await submit(
                self.journal,
                run_id,
                delivery,
                within=within,
                tools=tools,
                correlating=correlate_of,
            )
        choose = delivery

        def chosen(kernel: Kernel) -> Delivery:
            return choose(turn_of(kernel))

        return await submit(
            self.journal, run_id, chosen, within=within, tools=tools, correlating=correlate_of
        )


def with_runs(
    place: Place, work: Callable[[RunsAt], Awaitable[T]], *, read_only: bool = False
) -> T:
    """Do something with the runs of a place that exists; whoever only reads says so.

    What is no journal, or no server, and a run that is not known, are wrong usage (2); the rest is
    1: as `with_journal` has it.
    """
    if place.url is None:
        return with_journal(
            place.db or "", lambda journal: work(RunsOfJournal(journal)), read_only=read_only
        )
    try:
        from .runs_of_server import asked  # noqa: PLC0415 - an extra's, where a server is asked
    except TurnlockError as error:
        raise click.UsageError(harmless(str(error))) from error
    return ended(asked(place, work))


def _passed(kernel: Kernel) -> Sequence[Fact]:
    """Return what time makes of a run that was folded, now; nothing of it is kept."""
    return kernel.receive(Tick(), SteadyClock().now()).facts


async def _origin(journal: Journal, run_id: str) -> Mapping[str, Any] | None:
    """Return where a run was forked from, if it was."""
    noted = await journal.find_note(run_id, FORKED)
    if noted is None:
        return None
    return {name: value for name, value in noted.note.body.items() if name != ID}

"""A journal: its runs held against the specification as logs are, and all that lies beside them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

import attrs

from ..models.errors import CorruptJournal
from ..models.facts import Fact
from ..models.run import Run
from ..runtime.errors import JournalError
from ..runtime.journal.contract import Finding, Journal
from ..runtime.listing import misled
from ..verification.traces.log import check
from ..verification.traces.outcome import Broken, Outcome, RunCount, Torn
from ..wire.log_lines import log_lines
from .databases import entry_of, with_journal


@attrs.frozen(kw_only=True)
class Checked:
    """What came of a whole journal: of its facts as a log, the first that is broken in `outcome`.

    All else that is not as it should be, in other runs and beside the facts, is in `findings`.
    """

    outcome: Outcome
    findings: Sequence[Finding]
    logs: int = 0
    """Shared logs, where not one run alone was checked."""
    entries: int = 0
    """Of all of these."""


def check_db(db: str, run_id: str | None) -> Checked:
    """Check one run of a journal that a place names, or all of it, as `check_journal` does."""
    return with_journal(db, lambda it: check_journal(it, run_id), read_only=True)


async def check_journal(journal: Journal, run_id: str | None = None) -> Checked:
    """Check one run of a journal, or all, each by itself, and all that lies beside their facts.

    What cannot be read in the file is broken, too: the rule is the promise to recover (K-9).
    """
    if run_id is not None:
        ids = [(await entry_of(journal, run_id)).run.run_id]
    else:
        ids = [entry.run.run_id async for entry in journal.run_entries()]
    whole = _Whole()
    brokens: list[Broken] = []
    listed: list[Finding] = []
    for it in ids:
        with suppress(JournalError):  # its configuration is damaged: that is found below
            outcome = await _checked_run(journal, it)
            brokens += [] if outcome.broken is None else [outcome.broken]
            whole.add(outcome)
            listed += await _listed(journal, it)
    told = {(it.run_id, f"fact {it.line}") for it in brokens}
    findings = [
        it
        for it in await journal.check()
        if run_id in {None, it.run_id} and (it.run_id, it.what) not in told
    ]
    others = [
        Finding(run_id=it.run_id, what=f"fact {it.line}", cause=f"{it.rule}: {it.cause}")
        for it in brokens[1:]
    ]
    first = brokens[0] if brokens else None
    lasts = [it.last for it in await journal.logs()] if run_id is None else []
    return Checked(
        outcome=whole.outcome(first),
        findings=(*others, *findings, *listed),
        logs=len(lasts),
        entries=sum(lasts),
    )


async def _listed(journal: Journal, run_id: str) -> list[Finding]:
    """Hold what a list says of a run against its facts, where these can be folded."""
    try:
        entry = await journal.entry(run_id)
        why = None if entry.problem else await misled(journal, entry)
    except CorruptJournal:  # told as a broken fact
        return []
    return [] if why is None else [Finding(run_id=run_id, what="row", cause=why)]


async def _checked_run(journal: Journal, run_id: str) -> Outcome:
    """Judge a run in a thread, which asks for its facts page by page: a run may have any number."""
    run = (await journal.entry(run_id)).run
    pages = _Pages(journal, run_id)
    try:
        return await asyncio.to_thread(_checked, run, pages.facts())
    except CorruptJournal as error:
        broken = Broken(line=error.sequence, rule="K-9", run_id=run_id, cause=str(error))
        return Outcome(lines=0, runs=(), broken=broken)
    finally:
        pages.over = True


@attrs.define
class _Pages:
    """The facts of a run, for a thread beside the loop that reads them."""

    journal: Journal
    run_id: str
    loop: asyncio.AbstractEventLoop = attrs.field(factory=asyncio.get_running_loop)
    over: bool = False
    """Whether nobody wants more of them: the command was interrupted."""

    def facts(self) -> Iterator[Fact]:
        """Yield them, a page in memory at a time."""
        after = 0
        while page := self._page(after):
            yield from page
            after = page[-1].sequence

    def _page(self, after: int) -> Sequence[Fact]:
        if self.over:
            return ()
        reading = self.journal.read(self.run_id, after=after)
        return asyncio.run_coroutine_threadsafe(reading, self.loop).result()


def _checked(run: Run, facts: Iterable[Fact]) -> Outcome:
    """Judge the facts of a run; the line that declares it counts for none."""
    outcome = check(log_lines(run, facts))
    broken = outcome.broken
    return attrs.evolve(
        outcome,
        lines=outcome.lines - 1,
        broken=None if broken is None else attrs.evolve(broken, line=broken.line - 1),
        torn=tuple(attrs.evolve(torn, line=torn.line - 1) for torn in outcome.torn),
    )


@attrs.define
class _Whole:
    """What came of all runs together."""

    lines: int = 0
    runs: list[RunCount] = attrs.field(factory=list[RunCount])
    torn: list[Torn] = attrs.field(factory=list[Torn])

    def add(self, other: Outcome) -> None:
        """Add what came of one more."""
        self.lines += other.lines
        self.runs += other.runs
        self.torn += other.torn

    def outcome(self, broken: Broken | None) -> Outcome:
        """Return it as one outcome; `broken` is the first of them."""
        return Outcome(
            lines=self.lines, runs=tuple(self.runs), broken=broken, torn=tuple(self.torn)
        )

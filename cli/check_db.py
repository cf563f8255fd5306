"""The runs of a journal, held against the specification as logs are."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from ..models.errors import CorruptJournal
from ..models.facts import Fact
from ..models.run import Run
from ..runtime.journal.contract import Journal
from ..verification.traces.log import check
from ..verification.traces.outcome import Broken, Outcome, RunCount, Torn
from ..wire.log_lines import log_lines
from .databases import entry_of, facts_of, with_journal


def check_db(db: str, run_id: str | None) -> Outcome:
    """Check one run of a journal, or all, each by itself; stop at the first that is broken.

    What cannot be read in the file is broken, too: the rule is the promise to recover (K-9).
    """

    async def work(journal: Journal) -> Outcome:
        if run_id is not None:
            runs: Sequence[Run] = [(await entry_of(journal, run_id)).run]
        else:
            runs = [entry.run async for entry in journal.entries()]
        whole = Outcome(lines=0, runs=())
        for run in runs:
            try:
                outcome = _checked(run, await facts_of(journal, run.run_id))
            except CorruptJournal as error:
                broken = Broken(
                    line=error.sequence, rule="K-9", run_id=run.run_id, cause=str(error)
                )
                outcome = Outcome(lines=0, runs=(), broken=broken)
            whole = _joined(whole, outcome)
            if whole.broken is not None:
                break
        return whole

    return with_journal(db, work, read_only=True)


def _checked(run: Run, facts: Sequence[Fact]) -> Outcome:
    """Judge the facts of a run; the line that declares it counts for none."""
    outcome = check(log_lines(run, facts))
    broken = outcome.broken
    return attrs.evolve(
        outcome,
        lines=outcome.lines - 1,
        broken=None if broken is None else attrs.evolve(broken, line=broken.line - 1),
        torn=tuple(attrs.evolve(torn, line=torn.line - 1) for torn in outcome.torn),
    )


def _joined(one: Outcome, other: Outcome) -> Outcome:
    runs: tuple[RunCount, ...] = (*one.runs, *other.runs)
    torn: tuple[Torn, ...] = (*one.torn, *other.torn)
    return Outcome(lines=one.lines + other.lines, runs=runs, broken=other.broken, torn=torn)

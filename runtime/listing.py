"""Lists of runs that are told wholly: the few whose last append did not say how they stand, too."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import attrs

from ..models.errors import CorruptJournal
from ..views.tally import Tally
from .errors import JournalError, RunForgotten
from .journal.contract import RUNS, Journal, RunEntry, Summary
from .writer import fold_run


async def list_runs(  # noqa: PLR0913 - what picks a page, as `Journal.runs` has it
    journal: Journal,
    *,
    busy: bool | None = None,
    kind: str | None = None,
    forgotten: bool = False,
    after: str | None = None,
    limit: int = RUNS,
) -> tuple[RunEntry, ...]:
    """Return the next runs of a journal, as `Journal.runs` does, each with its status and counts.

    Nothing is folded but the runs of which the last append did not say it: one of version 0.1, say.
    What cannot be read keeps None in its place.
    """
    page = await journal.runs(busy=busy, kind=kind, forgotten=forgotten, after=after, limit=limit)
    return tuple([await told_entry(journal, it) for it in page])


async def told_entry(journal: Journal, entry: RunEntry) -> RunEntry:
    """Return the entry with what the journal left out."""
    if entry.forgotten is not None or not entry.sequence:
        return entry
    try:
        if entry.began is None:  # an older process began it
            (first,) = await journal.read(entry.run.run_id, limit=1)
            entry = attrs.evolve(entry, began=first.at)
        return entry if entry.status is not None else await _folded(journal, entry)
    except (CorruptJournal, JournalError, RunForgotten):
        return entry


async def tell_untold(journal: Journal) -> None:
    """Fold the runs of which nobody has said how they stand, and have the journal keep it (F-30).

    So they are found among those that wait, and are counted. One after the other: it may take its
    time. What cannot be read stays as it is.
    """
    async for entry in journal.run_entries():
        if entry.sequence and entry.status is None and entry.problem is None:
            with suppress(CorruptJournal, JournalError, RunForgotten):
                await _tell(journal, entry)


async def _tell(journal: Journal, entry: RunEntry) -> None:
    kernel = await fold_run(entry.run, journal)
    begin = max(0, kernel.sequence - _RECENT)
    facts = [it async for it in journal.facts(entry.run.run_id, after=begin)]
    if not facts or facts[-1].sequence != kernel.sequence:
        return  # somebody writes, and says it then
    tally = Tally(kernel)
    tally.follow(kernel, facts)  # in these stands since when a call waits
    summary = Summary(
        busy=kernel.busy,
        status=tally.status(kernel, latest=facts[-1]),
        waiting=tally.waiting,
        doubts=tally.doubts,
        turn_id=None if kernel.turn is None else kernel.turn.turn_id,
        asked=tally.asked(kernel),
    )
    await journal.tell(
        entry.run.run_id, after=kernel.sequence, summary=summary, changed=facts[-1].at
    )


_RECENT: Final = 2_000
"""Facts in which it is looked for since when a call waits; before them it is not known exactly."""


async def misled(journal: Journal, entry: RunEntry) -> str | None:
    """Return what a list says of a run that its facts do not; None where all of it is so.

    It bears no checksum, and whoever is told that nothing waits looks no more.
    """
    if entry.forgotten is not None or entry.status is None or not entry.sequence:
        return None
    folded = await _folded(journal, entry)
    if (await journal.entry(entry.run.run_id)).sequence != entry.sequence:
        return None  # somebody writes: what was listed is of another moment
    wrong = [
        f"{name} {getattr(entry, name)} where its facts say {getattr(folded, name)}"
        for name in ("status", "waiting", "doubts")
        if getattr(entry, name) != getattr(folded, name)
    ]
    return f"it is listed with {', '.join(wrong)}" if wrong else None


async def _folded(journal: Journal, entry: RunEntry) -> RunEntry:
    kernel = await fold_run(entry.run, journal)
    (latest,) = await journal.read(entry.run.run_id, after=kernel.sequence - 1, limit=1)
    tally = Tally(kernel)
    return attrs.evolve(
        entry,
        changed=latest.at,
        status=tally.status(kernel, latest=latest),
        waiting=tally.waiting,
        doubts=tally.doubts,
    )

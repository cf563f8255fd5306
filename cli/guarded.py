"""What the commands of single runs need to know of guarded runs: nobody owns or performs them.

The process of somebody's framework asks its guard about each call, and the guard writes; what is
decided here it finds in the journal. So no command performs such a run or forks it, and what is
said of it says who goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from ..guards.values import KIND
from ..models.deliveries import Acknowledge
from ..models.effects import Continue
from ..models.run import Run
from ..models.safe_text import harmless

if TYPE_CHECKING:  # it would load the runtime
    from ..engine.kernel import Kernel
    from ..runtime.journal.contract import Journal, RunEntry

GOES_ON: Final = "its own process goes on by itself"
"""What becomes of a guarded run that was decided about."""


def is_guarded(run: Run) -> bool:
    """Whether the process of another framework goes on with a run, by its guard."""
    return run.kind == KIND


def refuse_guarded(run: Run) -> None:
    """Refuse to perform or fork a guarded run: its own process does, in its framework."""
    if is_guarded(run):
        raise click.UsageError(
            f"run {harmless(run.run_id)!r} is guarded: {GOES_ON}, in its framework; turnlock show,"
            " approve, deny and resolve are for people, and another conversation needs a run of"
            " its own"
        )


async def close_answered(journal: Journal, entry: RunEntry) -> RunEntry:
    """Close what a guarded run has open, where that is only the results of a turn for its model.

    Who would say that they were taken is the next answer of its model, which may never come. It is
    done for a run that is about to be removed.
    """
    from ..runtime.submitting import SharedRun  # noqa: PLC0415 - the runtime loads here

    if not is_guarded(entry.run) or not entry.busy or entry.rewound or entry.problem:
        return entry
    shared = await SharedRun.open(journal, entry.run.run_id, policies={})
    await shared.submit_chosen(_taken)
    return await journal.entry(entry.run.run_id)


def _taken(kernel: Kernel) -> list[Acknowledge]:
    """Return what says that results were taken, where nothing else is under way."""
    if kernel.turn is not None:
        return []
    owed = (it for it in kernel.pending_effects if isinstance(it, Continue))
    return [Acknowledge(turn_id=it.turn_id) for it in owed]

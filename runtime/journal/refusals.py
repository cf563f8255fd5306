"""What a journal says where it does not do what it was asked: the errors of every journal."""

from __future__ import annotations

from datetime import UTC, datetime

from ...models.errors import InvalidValue, UnknownRun, shown
from ...models.run import Run
from ..errors import (
    Closed,
    Conflict,
    JournalError,
    JournalOwned,
    JournalRewound,
    Overloaded,
    RunDiffers,
    RunForgotten,
    RunOpen,
)
from .entries import Finding, RunEntry


def closed() -> Closed:
    """Return the error for a journal that was closed before."""
    return Closed("journal: it was closed; open it again")


def only_read(where: str) -> JournalError:
    """Return the error for a write to a journal that was opened to be read only."""
    return JournalError(f"journal {where}: it was opened to be read only; open it to write")


def unknown_run(run_id: str) -> UnknownRun:
    """Return the error for a run that was never declared here."""
    return UnknownRun(f"run {shown(run_id)}: this journal does not know it; declare it first")


def run_differs(run: Run, known: Run) -> RunDiffers:
    """Return the error for a run that is known with another configuration."""
    return RunDiffers(
        f"run {run.run_id!r}: given {run}, but the journal knows {known}; recovery needs what the"
        " run had, so give that, or another run_id"
    )


def rewound(run_id: str, *, why: str) -> JournalRewound:
    """Return the error for a run that nobody may go on with."""
    return JournalRewound(
        f"run {run_id!r}: {why}; nothing is written or performed before somebody has decided: see"
        " turnlock show, then turnlock recover, which puts in doubt what may have happened"
    )


def not_restored(run_id: str, *, after: int, parts: int) -> Conflict:
    """Return the error for a run that does not end where what is to be restored begins."""
    return Conflict(
        f"run {shown(run_id)}: nothing is restored, since it does not end with fact {after} and"
        f" {parts} notes behind it, or holds others; read it again"
    )


def findings_of(entry: RunEntry) -> list[Finding]:
    """Return what a run's entry itself says is wrong."""
    causes = {"rewound": entry.rewound, "row": entry.problem}
    return [
        Finding(run_id=entry.run.run_id, what=what, cause=cause)
        for what, cause in causes.items()
        if cause is not None
    ]


def owned(run_id: str, *, owner: str, until: float) -> JournalOwned:
    """Return the error for a run whose owner's lease is not over at `until`, Unix time."""
    return JournalOwned(
        f"run {run_id!r}: {owner} owns it until {shown_time(until)}; stop that process, or wait"
    )


def run_forgotten(run_id: str, *, at: float) -> RunForgotten:
    """Return the error for a run of which everything was removed at `at`, Unix time."""
    return RunForgotten(
        f"run_forgotten: all of run {run_id!r} was removed {shown_time(at)}; its id is not used"
        " again, since its idempotency keys and cursors would repeat: give another one"
    )


def not_removed(
    entry: RunEntry, *, fence: int, after: int, gone: str | None, posts: int
) -> RunOpen | None:
    """Return the error for a run that must not be removed, as its journal has it, or None."""
    run_id = entry.run.run_id
    if entry.problem is not None:
        why = f"its row is damaged: {entry.problem}"
    elif entry.owner not in {None, gone}:
        why = f"{entry.owner} owns it; close it there first"
    elif entry.busy or entry.doubts:
        why = "something is under way in it; let it end, or interrupt its turn"
    elif entry.problem is not None:
        why = f"its row is damaged ({entry.problem}); restore the journal from a copy first"
    elif entry.rewound is not None:
        why = f"{entry.rewound}; recover it first"
    elif posts:
        why = f"{posts} posts wait for an answer; open it, so that they get one"
    elif (entry.fence, entry.sequence) != (fence, after):
        why = (
            f"it has changed meanwhile: it ends with fact {entry.sequence}, not {after}; try again"
        )
    else:
        return None
    return RunOpen(f"run {run_id!r} is not removed: {why}")


def too_many_posts(run_id: str, *, most: int) -> Overloaded:
    """Return the error for a run that has too many posts to answer."""
    return Overloaded(
        f"run {run_id!r}: {most} posts wait for an answer already (POSTS_WAITING); is its"
        " owner running? try again later"
    )


def shown_time(at: float) -> str:
    """Return Unix time as people read it."""
    try:
        return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):  # a clock of a test, or no end at all
        return f"{at} s"


def another_worker(worker: str) -> InvalidValue:
    """Return the error for a worker's id that stands for something else."""
    return InvalidValue(
        place="worker",
        cause=f"{shown(worker)} stands for something else in this journal",
        fix="make a new id for each worker",
    )

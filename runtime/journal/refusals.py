"""The errors that every journal raises, worded once."""

from __future__ import annotations

from datetime import UTC, datetime

from ...models.errors import UnknownRun, shown
from ...models.run import Run
from ..errors import Closed, JournalOwned, Overloaded, RunDiffers
from .contract import POSTS_WAITING


def closed() -> Closed:
    """Return the error for a journal that was closed before."""
    return Closed("journal: it was closed; open it again")


def unknown_run(run_id: str) -> UnknownRun:
    """Return the error for a run that was never declared here."""
    return UnknownRun(f"run {shown(run_id)}: this journal does not know it; declare it first")


def run_differs(run: Run, known: Run) -> RunDiffers:
    """Return the error for a run that is known with another configuration."""
    return RunDiffers(
        f"run {run.run_id!r}: given {run}, but the journal knows {known}; recovery needs what the"
        " run had, so give that, or another run_id"
    )


def owned(run_id: str, *, owner: str, until: float) -> JournalOwned:
    """Return the error for a run whose owner's lease is not over at `until`, Unix time."""
    return JournalOwned(
        f"run {run_id!r}: {owner} owns it until {_shown_time(until)}; stop that process, or wait"
    )


def too_many_posts(run_id: str) -> Overloaded:
    """Return the error for a run that has too many posts to answer."""
    return Overloaded(
        f"run {run_id!r}: {POSTS_WAITING} posts wait for an answer already (POSTS_WAITING); is its"
        " owner running? try again later"
    )


def _shown_time(at: float) -> str:
    try:
        return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):  # a clock of a test, or no end at all
        return f"{at} s"

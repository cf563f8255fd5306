"""Journals that other commands have written: opened, never made, and their runs found."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Final, TypeVar

import click

from ..models.errors import TurnlockError, UnknownRun
from ..models.facts import Fact
from ..models.run import Run
from ..models.safe_text import harmless, harmless_lines
from ..runtime.errors import NoJournal
from ..runtime.journal.contract import Journal, RunEntry, open_journal
from .naming import DB, JOURNAL

T = TypeVar("T")

LISTED: Final = 20
"""Runs that an unknown --run is told."""

_Command = TypeVar("_Command", bound=Callable[..., Any] | click.Command)


def _option(told: str) -> Callable[[_Command], _Command]:
    return click.option(
        "--db", required=True, envvar=DB, show_envvar=True, metavar="JOURNAL", help=told
    )


db_option = _option(JOURNAL)
made_db_option = _option(f"{JOURNAL} Made where there is none.")


def _named(_: click.Context, __: click.Parameter, db: str | None) -> str:
    if db is None:
        raise click.UsageError(
            f"name the journal: --db JOURNAL; what removes or replaces does not read {DB}"
        )
    return db


named_db_option = click.option(
    "--db",
    metavar="JOURNAL",
    callback=_named,
    help=f"{JOURNAL} {DB} is not read here.  [required]",
)
"""Of commands that replace a journal or remove runs: a variable may have been set long ago."""


def with_journal(db: str, work: Callable[[Journal], Awaitable[T]], *, read_only: bool = False) -> T:
    """Do something with a journal that exists; whoever only reads says so, and waits for nobody.

    What is no journal, and a run that it does not know, are wrong usage (2); the rest is 1.
    """

    async def do() -> T:
        async with await open_journal(db, create=False, read_only=read_only) as journal:
            return await work(journal)

    return ended(do())


def ended(work: Coroutine[Any, Any, T]) -> T:
    """Do something with journals, and say as a command does what is wrong."""
    try:
        return asyncio.run(work)
    except NoJournal as error:
        raise click.UsageError(harmless(str(error))) from error
    except TurnlockError as error:
        raise click.ClickException(harmless_lines(str(error))) from error


async def entry_of(journal: Journal, run_id: str) -> RunEntry:
    """Return a run's entry; one that is not there is wrong usage, and those there are listed."""
    try:
        return await journal.entry(run_id)
    except UnknownRun as error:
        runs = [entry.run.run_id for entry in await journal.runs(limit=LISTED + 1)]
        raise unknown_run(run_id, runs) from error


def unknown_run(run_id: str, runs: Sequence[str]) -> click.UsageError:
    """Say that a run is not there, and which are; more than `LISTED` of them are not named."""
    told = [*map(harmless, runs[:LISTED]), *("…" for _ in runs[LISTED:])] or ["(none)"]
    listed = "".join(f"\n  {it}" for it in told)
    return click.UsageError(
        f"there is no run {harmless(run_id, limit=80)!r}; these are there:{listed}"
    )


async def facts_of(journal: Journal, run_id: str) -> list[Fact]:
    """Return all facts of a run."""
    return [fact async for fact in journal.facts(run_id)]


def facts_of_db(db: str, run_id: str) -> tuple[Run, list[Fact]]:
    """Return a run of a journal file as it was declared, and all its facts, in order."""

    async def read(journal: Journal) -> tuple[Run, list[Fact]]:
        entry = await entry_of(journal, run_id)
        return entry.run, await facts_of(journal, run_id)

    return with_journal(db, read, read_only=True)


def entries_of_db(db: str) -> tuple[RunEntry, ...]:
    """Return the runs of a journal file."""

    async def read(journal: Journal) -> tuple[RunEntry, ...]:
        return tuple([entry async for entry in journal.run_entries()])

    return with_journal(db, read, read_only=True)

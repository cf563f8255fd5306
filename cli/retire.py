"""``turnlock archive`` and ``turnlock forget``: runs that are over leave a journal."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import attrs
import click

from ..models.safe_text import harmless, harmless_lines
from ..runtime.journal.contract import Journal
from ..runtime.journal.places import shown_place
from ..runtime.retention import Retired, archive_runs, forget_runs
from .databases import entry_of, named_db_option, with_journal
from .durations import duration
from .naming import run_argument, run_ids_of_db
from .others_runs import close_answered, without_members

F = TypeVar("F", bound=Callable[..., Any])

_LEFT: Final = """
Nothing that is open is ever removed: a run with something under way or in doubt, one that a living
process owns, one with posts that wait, one whose tail was lost. Each is named with why. The row of
a removed run stays: its id is refused from then on (run_forgotten), since its idempotency keys and
cursors would come again. `turnlock runs --forgotten` lists it. A guarded run whose calls have all
ended is over, whether or not its model has answered their results.
"""

_STATUS: Final = """
\b
Exit status:
  0  done
  1  a run that was named was left, or the journal or the archive failed
  2  wrong usage, no journal, or no such run
"""

_ARCHIVE: Final = f"""Write each RUN into an archive, then remove it from the journal.

FILE gets how each run was declared, its notes and all its facts, as JSON lines that `turnlock
check` and `turnlock diagram` read. It is synced and read back before anything is removed, and its
SHA-256 is written beside it (FILE.sha256). Where FILE is there already it is left as it is, and a
run is removed only if it stands there exactly as the journal has it: so after a crash the same
command goes on.
{_LEFT}{_STATUS}"""

_FORGET: Final = f"""Remove each RUN from the journal, for good: nobody can read it again.
{_LEFT}{_STATUS}"""


def _choosing(command: F) -> F:
    """Give a command what chooses runs."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead."),
        click.option(
            "--older-than",
            metavar="DURATION",
            callback=duration,
            help="Only runs whose latest fact is at least that old, such as 12h or 30d; without"
            " RUN, all of these.",
        ),
        named_db_option,
        run_argument("run_ids", metavar="[RUN]...", nargs=-1, shell_complete=run_ids_of_db),
    ):
        command = option(command)
    return command


@click.command("archive", help=_ARCHIVE, short_help="Write runs into a file and remove them.")
@_choosing
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The archive.",
)
def archive(
    *, run_ids: tuple[str, ...], db: str, older_than: float | None, as_json: bool, output: Path
) -> None:
    """Archive them, and say what became of each."""
    named = _named(run_ids, older_than)

    async def work(journal: Journal) -> Retired:
        await _all_there(journal, named)
        removed = await without_members(journal, named)
        return await archive_runs(
            journal,
            removed,
            path=output,
            older_than=older_than,
            closing=partial(close_answered, journal),
        )

    retired = with_journal(db, work)
    _tell(retired, "archived", as_json=as_json)
    if retired.digest is not None and not as_json:
        click.echo(f"{harmless(str(output))}: sha256 {retired.digest}")
    sys.exit(_status(retired, named))


@click.command("forget", help=_FORGET, short_help="Remove runs for good.")
@_choosing
@click.option("--yes", is_flag=True, help="Do not ask.")
def forget(
    *, run_ids: tuple[str, ...], db: str, older_than: float | None, as_json: bool, yes: bool
) -> None:
    """Forget them, and say what became of each."""
    named = _named(run_ids, older_than)
    if not yes:
        _ask(db, named)

    async def work(journal: Journal) -> Retired:
        await _all_there(journal, named)
        removed = await without_members(journal, named)
        return await forget_runs(
            journal, removed, older_than=older_than, closing=partial(close_answered, journal)
        )

    retired = with_journal(db, work)
    _tell(retired, "forgotten", as_json=as_json)
    sys.exit(_status(retired, named))


def _named(run_ids: tuple[str, ...], older_than: float | None) -> Sequence[str] | None:
    if not run_ids and older_than is None:
        raise click.UsageError("name a RUN, or give --older-than")
    return run_ids or None


async def _all_there(journal: Journal, named: Sequence[str] | None) -> None:
    """Say of an id that is none, before anything happens, which there are."""
    for run_id in named or ():
        await entry_of(journal, run_id)


def _ask(db: str, named: Sequence[str] | None) -> None:
    """Ask in a terminal; without one nobody can be asked."""
    if not sys.stdin.isatty():
        raise click.UsageError("what is removed is gone: give --yes, as nobody can be asked here")
    what = "all runs that are that old" if named is None else f"{len(named)} of its runs"
    click.confirm(f"Remove {what} from {harmless(shown_place(db))} for good?", abort=True)


def _tell(retired: Retired, done: str, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(attrs.asdict(retired), indent=2))
        return
    for run_id in retired.removed:
        click.echo(f"{done}: {harmless(run_id)}")
    for run_id in retired.before:
        click.echo(f"{done} before: {harmless(run_id)}")
    for left in retired.left:
        click.echo(f"left: {harmless_lines(left.why)}", err=True)
    count = len(retired.removed)
    click.echo(f"{done}: {count:,} run{'' if count == 1 else 's'}, {retired.facts:,} facts")


def _status(retired: Retired, named: Sequence[str] | None) -> int:
    return 1 if named is not None and retired.left else 0

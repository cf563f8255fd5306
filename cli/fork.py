"""``turnlock fork``: a conversation goes on from an earlier turn, as a new run."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final

import click

from ..agent.forks import fork
from ..agent.shipped import NAME
from ..models.errors import InvalidValue
from ..models.safe_text import harmless, harmless_lines
from ..runtime.forking import Forked, NotForked
from ..runtime.journal.contract import Journal
from ..runtime.journal.ledger import Domain, Noted
from ..runtime.journal.places import shown_place
from .databases import db_option, entry_of, with_journal
from .naming import run_argument
from .others_runs import refuse_below_worlds, refuse_guarded, refuse_member
from .run import EXAMPLE
from .run_resume import recording_of, spec_of

_HELP: Final = """Go on from an earlier turn of RUN, as a new run; RUN stays as it is.

The new run has what was said and done until that turn was closed, and says where it comes from
(turnlock show). What was done is done: no call of it is run again. The model answers the turn's
results anew; turnlock run with the new run's id goes on.

No authority comes along: grants are revoked, and every call that needs approval is asked about. Its
idempotency keys are its own, so a tool that is called there with what RUN did later does it again.

Killed in the middle, the same command finishes it.

\b
Exit status:
  0  it is there
  1  the journal failed, or RUN keeps things sealed, which open in it alone
  2  wrong usage, no journal, no such run, no such turn or one that is open, or
     the new run is there already
"""


@click.command("fork", help=_HELP, short_help="Go on from an earlier turn, as a new run.")
@run_argument()
@click.option("--at", required=True, metavar="TURN", help="The last turn that comes along.")
@click.option("--as", "into", metavar="ID", help="The new run; without it, RUN-TURN.")
@db_option
def command(*, run_id: str, at: str, into: str | None, db: str) -> None:
    """Fork it, and say how it goes on."""
    new = f"{run_id}-{at}" if into is None else into

    async def work(journal: Journal) -> tuple[Forked, Sequence[Noted]]:
        run = (await entry_of(journal, run_id)).run
        refuse_member(run)
        refuse_guarded(run)
        await refuse_below_worlds(journal, new)
        try:
            made = await fork(journal, run_id, at=at, into=new)
            return made, await journal.notes(new, domain=Domain.MESSAGE)
        except (NotForked, InvalidValue) as error:
            raise click.UsageError(harmless_lines(str(error))) from error

    made, notes = with_journal(db, work)
    what = f"{made.facts:,} facts and {made.notes:,} messages of {run_id} until {at}"
    told = f"{new} was there before, whole: " if made.before else f"{new}: "
    revoked = f"; {made.revoked} granted there and revoked here" if made.revoked else ""
    click.echo(harmless(f"{told}{what}{revoked}"))
    command = f"turnlock run --db {shlex.quote(shown_place(db))} --run {shlex.quote(new)}"
    click.echo(harmless(f"  {command}{_needed(notes)}"))


def _needed(notes: Sequence[Noted]) -> str:
    """Return the options with which a run goes on: who answers, and what it calls."""
    name = recording_of(notes)
    if name is None:
        return f" --model {shlex.quote(spec_of(notes) or 'PROVIDER:NAME')} --tools FILE"
    known = {NAME: "", EXAMPLE: f" --tools {EXAMPLE}"}
    return known.get(name, f" --record {shlex.quote(f'FILE#{name}')}")

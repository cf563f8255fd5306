"""``turnlock release``: let go of the runs of a process that is known to be dead (D-46)."""

from __future__ import annotations

from typing import Final

import click

from ..models.errors import TurnlockError
from ..models.safe_text import harmless
from ..runtime.journal.contract import Journal
from ..runtime.owners import is_alive, short_name
from .databases import named_db_option, with_journal

_HELP: Final = """Let go of all runs of an owner that is dead, so that nobody waits for its lease.

For whoever has proof: an orchestrator that has deleted the pod, a person who has stopped the
machine. NAME is the owner as `turnlock runs` shows it, HOST:PID, or HOST alone for all processes of
that host, or its whole name. Other runtimes take the runs within a third of a lease, and what was
running is in doubt for them.

An owner that lives all the same harms nothing: it is fenced, and what it runs is in doubt. One that
is seen to live on this machine is not let go of.

\b
Exit status:
  0  its runs are free, or it had none
  1  the owner lives, or the journal failed
  2  wrong usage, or no journal
"""


@click.command("release", help=_HELP, short_help="Let go of the runs of a dead process.")
@click.option("--owner", required=True, metavar="NAME", help="The owner, or its host.")
@named_db_option
def command(*, owner: str, db: str) -> None:
    """Release them, and say which."""

    async def work(journal: Journal) -> dict[str, frozenset[str]]:
        owners = {
            entry.owner
            async for entry in journal.run_entries()
            if entry.owner is not None and _is_meant(entry.owner, owner)
        }
        for name in sorted(filter(is_alive, owners)):
            raise TurnlockError(f"owner {short_name(name)}: it lives; stop that process first")
        return {name: await journal.release_all(owner=name) for name in sorted(owners)}

    released = with_journal(db, work)
    for name, runs in released.items():
        for run_id in sorted(runs):
            click.echo(harmless(f"released: run {run_id} of {short_name(name)}"))
    if not any(released.values()):
        click.echo(harmless(f"released: nothing; {owner} owns no run here"))


def _is_meant(name: str, owner: str) -> bool:
    """Whether somebody means this owner: by its whole name, by host and process, or by host."""
    short = short_name(name)
    return owner in {name, short} or (short != name and owner == short.partition(":")[0])

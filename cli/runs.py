"""``turnlock runs``: the runs of a journal."""

from __future__ import annotations

import json
import time
from typing import Any, Final

import click

from ..models.safe_text import harmless
from ..runtime.journal.contract import Journal, RunEntry
from ..runtime.owners import short_name
from ..runtime.writer import is_owned
from ..views.run_view import RunView
from .databases import db_option, facts_of, with_journal

_HELP: Final = """List the runs of a journal: what each is doing, and who performs it.

A run whose owner is "-" goes on when somebody opens it, for instance `turnlock run` with the same
--db and --run.

\b
Exit status:
  0  they were listed, or there are none
  1  the journal could not be read to its end
  2  wrong usage, or no journal
"""


@click.command("runs", help=_HELP, short_help="List the runs of a journal.")
@db_option
@click.option("--open", "only_open", is_flag=True, help="Only those with something under way.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array instead.")
def command(*, db: str, only_open: bool, as_json: bool) -> None:
    """List them, a line each."""

    async def read(journal: Journal) -> list[dict[str, Any]]:
        entries = await journal.runs(busy=True if only_open else None)
        return [await _told(journal, entry) for entry in entries]

    told = with_journal(db, read, read_only=True)
    if as_json:
        click.echo(json.dumps(told, indent=2))
        return
    click.echo(f"{'facts':>7}  {'status':18}  {'owner':16}  run")
    for run in told:
        owner = "-" if run["owner"] is None else short_name(run["owner"])
        tool = "" if run["tool_name"] is None else f" – {run['tool_name']}"
        line = f"{run['facts']:7,}  {run['status']:18}  {owner:16}  {run['run_id']}{tool}"
        click.echo(harmless(line))


async def _told(journal: Journal, entry: RunEntry) -> dict[str, Any]:
    run_id = entry.run.run_id
    standing = RunView.of(entry.run, await facts_of(journal, run_id)).standing
    return {
        "run_id": run_id,
        "facts": entry.sequence,
        "status": standing.status.value,
        "tool_name": standing.tool_name,
        "open": entry.busy,
        "owner": entry.owner if is_owned(entry, now=time.time()) else None,
    }

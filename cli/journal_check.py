"""``turnlock journal check``: all rows against their checksums, and what the place may lose."""

from __future__ import annotations

from typing import Final

import click

from ..models.safe_text import harmless
from ..runtime.copying import copied_half
from ..runtime.journal.contract import Finding, Journal
from ..runtime.journal.places import shown_place
from .databases import db_option, with_journal

_HELP: Final = """Read all rows of a journal against their checksums; say what its place promises.

In PostgreSQL that is on which timeline the server is, whether another server took it over, and
whether commits wait for a standby: where none is waited for, the last commits may be lost with the
server, and a tool that ran may be run again. Whether facts could have happened is another question:
turnlock check --db JOURNAL.

\b
Exit status:
  0  all is as it was written
  1  something is not, or a copy into it is not whole; or the journal failed
  2  wrong usage, or no journal
"""


@click.command("check", help=_HELP, short_help="Read all rows, and say what the place promises.")
@db_option
def check(*, db: str) -> None:
    """Read it, tell what was found, and end with the status."""

    async def work(journal: Journal) -> tuple[tuple[Finding, ...], tuple[str, ...], str | None]:
        return await journal.check(), await journal.standing(), await copied_half(journal)

    findings, standing, half = with_journal(db, work, read_only=True)
    for line in standing:
        click.echo(harmless(line))
    for it in findings:
        where = "" if it.run_id is None else f"run {it.run_id}: "
        click.echo(harmless(f"{where}{it.what}: {it.cause}"))
    place = harmless(shown_place(db))
    if half is not None:
        click.echo(harmless(f"a copy from {half} is not whole; the same command goes on with it"))
    if findings or half is not None:
        raise click.ClickException(f"{place}: {len(findings)} things are not as they were written")
    click.echo(f"{place}: all rows are as they were written")

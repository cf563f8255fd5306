"""``turnlock backup`` and ``restore``: a copy of a journal while it is written, and back again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from ..models.safe_text import harmless
from ..runtime.journal.contract import Backup, Finding, Journal, restore_journal
from ..runtime.journal.places import shown_place
from .databases import db_option, ended, named_db_option, with_journal

_BACKUP: Final = """Copy the journal into FILE, as one moment has it, while others go on writing.

The copy is read back row by row before it has its name, and nobody else may read it. It is a
journal: every command takes it as --db.

\b
Exit status:
  0  FILE is there, and whole
  1  the journal or the disk failed, and there is no FILE; or what is damaged in the journal is
     damaged in FILE, too
  2  wrong usage, no journal, or there is a FILE already
"""

_RESTORE: Final = """Put FILE, a backup, in the place of the journal.

What is there now is kept, with a name that says when. It is refused while a living process performs
a run of it. Processes that have the old one open stop by themselves.

What happened since the backup is not known here. So a run that had something under way is rewound:
nobody goes on with it before a person has looked at the world (turnlock show) and decided (turnlock
recover). A run that was idle goes on from where it was: whoever would ask it again for what was
done since, asks twice. Shared logs are as they were: numbers come again, with other entries.

\b
Exit status:
  0  it is in its place
  1  refused, or the backup or the disk failed, and nothing has changed; or FILE is damaged in part
  2  wrong usage, or FILE is no journal
"""


@click.command("backup", help=_BACKUP, short_help="Copy a journal while it is written.")
@db_option
@click.option(
    "--output",
    "-o",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Where to write it.",
)
@click.option("--force", is_flag=True, help="Replace a FILE that is there.")
def backup(*, db: str, output: Path, force: bool) -> None:
    """Write it, and say what it holds."""

    async def work(journal: Journal) -> Backup:
        return await journal.backup(output, force=force)

    made = with_journal(db, work, read_only=True)
    held = f"{made.runs:,} runs, {made.facts:,} facts{_logs(made.entries)}"
    click.echo(harmless(f"{output}: {held}, {made.size:,} bytes; whole"))
    _end(made.findings, output)


@click.command("restore", help=_RESTORE, short_help="Put a backup in the place of a journal.")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@named_db_option
def restore(*, file: Path, db: str) -> None:
    """Put it there, and say what is to be decided."""
    restored = ended(restore_journal(file, db))
    place = shown_place(db)
    told = [f"{place}: restored from {file}, {restored.runs:,} runs{_logs(restored.entries)}"]
    if restored.kept is not None:
        told.append(f"what was there is kept: {restored.kept}")
    for run_id in restored.rewound:
        told.append(f"rewound: run {run_id}; look at it, then turnlock recover")
        told.append(f"  turnlock recover --db {shlex.quote(place)} -- {shlex.quote(run_id)}")
    for line in told:
        click.echo(harmless(line))
    _end(restored.findings, file)


def _logs(entries: int) -> str:
    return f", {entries:,} entries of shared logs" if entries else ""


def _end(findings: Sequence[Finding], file: Path) -> None:
    """Say that it is damaged in part, if it is, and end with the status."""
    if findings:
        raise click.ClickException(
            harmless(
                f"{len(findings)} things in {file} are damaged, as they were where they come from:"
                f" turnlock check --db {shlex.quote(str(file))} shows them"
            )
        )

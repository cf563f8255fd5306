"""``turnlock world export`` and ``import``: a world in a file of its own (W-72)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from ..models.errors import InvalidValue
from ..models.safe_text import harmless, harmless_lines
from ..views.wording import counted
from .databases import db_option, ended, made_db_option
from .world_naming import with_world, world_argument

if TYPE_CHECKING:  # they would load the runtime
    from ..world.moving import Exported, Imported
    from ..world.publishing import World

_EXPORT: Final = """Write the world W into FILE: its logs, and the runs of its members.

It may be written while the world is performed. Each line has a checksum, and the last says that it
is whole; nobody else may read it.

\b
Exit status:
  0  FILE is there, and whole
  1  the journal or the disk failed, or FILE is there already: there is no other
  2  wrong usage, no journal, or no such world
"""

_IMPORT: Final = """Take the world of FILE, an export, into a journal, which is made if need be.

It brings no authority: what was granted there is revoked, what had started has failed, since nobody
here knows whether it happened, what was approved and had not begun is rejected, and its agents have
no tools until they are put again. Requests that wait there wait here. With --as it has another
name. Of a FILE that is damaged or cut off nothing is taken; killed in the middle, the same command
finishes it.

\b
Exit status:
  0  the world is there
  1  FILE is damaged, a world of this name is there already, or the journal
     failed; nothing of it was taken
  2  wrong usage, or no such FILE
"""


@click.command("export", help=_EXPORT, short_help="Write a world into a file.")
@world_argument
@click.option(
    "-o",
    "--output",
    "file",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Where to write it.",
)
@db_option
def export(*, world: str, file: Path, db: str) -> None:
    """Write it, and say what it holds."""
    from ..world.moving import export_world  # noqa: PLC0415 - the runtime loads here

    async def work(it: World) -> Exported:
        return await export_world(it.journal, it.name, file)

    made = with_world(db, world, work, read_only=True)
    click.echo(harmless(f"{file}: {_held(made)}; whole"))


@click.command("import", help=_IMPORT, short_help="Take a world out of a file.")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--as", "world", metavar="W", help="Its name here.  [default: as it was]")
@made_db_option
def import_world(*, file: Path, world: str | None, db: str) -> None:
    """Take it, and say what became of it."""
    from ..runtime.journal.contract import open_journal  # noqa: PLC0415 - the runtime loads here
    from ..world.moving import check_export  # noqa: PLC0415 - as above
    from ..world.moving import import_world as taken  # noqa: PLC0415 - as above

    if file.is_dir():
        raise click.UsageError(f"{harmless(str(file))}: it is a folder; name the export in it")
    if not file.is_file():
        raise click.UsageError(f"{harmless(str(file))}: there is no such file; correct the path")

    async def work() -> Imported:
        try:
            await check_export(file, world=world)  # before a journal is made for nothing
            async with await open_journal(db) as journal:
                return await taken(journal, file, world=world)
        except InvalidValue as error:
            raise click.UsageError(harmless_lines(str(error))) from error

    made = ended(work())
    was = "" if made.was == made.world else f" (it was {made.was})"
    click.echo(harmless(f"world {made.world}{was}: {_held(made)}"))
    for count, what, became in (
        (made.revoked, "grant", "revoked"),
        (made.rejected, "call", "rejected: allowed there, and not begun"),
        (
            made.lost,
            "call",
            "ended as an error: begun there, and nobody knows how it went",
        ),
    ):
        if count:
            click.echo(f"  {counted(count, what)} {became}")
    click.echo(f"  its agents have no tools: turnlock world agent put {made.world} A --tools …")


def _held(made: Exported | Imported) -> str:
    """Say how much an export holds."""
    said = f"{counted(made.chats, 'chat')}, {counted(made.entries, 'entry', 'entries')}"
    return f"{said}, {counted(made.runs, 'run')}, {counted(made.facts, 'fact')}"

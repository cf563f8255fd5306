"""``turnlock export tla``: the model of one turn, for TLC."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from ..verification.exports.model import MOST_INVOCATIONS
from ..verification.exports.technique import export

_HELP: Final = """Write the model of one turn in TLA+, made from the enforced tables.

Without --output the text goes to standard output, the configuration of TLC after the module. With
it, the files are written into DIR, which is made if need be: turnlock.tla and turnlock.cfg. The
module says in its head how to have it checked. `make check-models` does it, and compares what TLC
counts with our own exploration.
"""


@click.command("export", help=_HELP, short_help="Write the model of one turn in TLA+.")
@click.argument("kind", type=click.Choice(["tla"]), expose_value=False)
@click.option(
    "--invocations",
    type=click.IntRange(min=1, max=MOST_INVOCATIONS),
    default=2,
    show_default=True,
    metavar="N",
    help="How many calls the turn may have.",
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where to write the files, over those of the same name.",
)
def command(*, invocations: int, output: Path | None) -> None:
    """Write the texts to standard output, or as files."""
    files = export(invocations=invocations)
    if output is None:
        click.echo("\n".join(files.values()), nl=False)
        return
    for name, text in files.items():
        path = output / name
        try:
            output.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise click.ClickException(
                f"{path} cannot be written ({error.strerror}); choose another --output"
            ) from error
        click.echo(path)

"""``turnlock completion``: the script that completes commands, options and run ids in a shell."""

from __future__ import annotations

from typing import Final

import click
from click.shell_completion import get_completion_class

VARIABLE: Final = "_TURNLOCK_COMPLETE"
"""Set by the scripts below: the command then prints what could stand there, and does nothing."""
_HELP: Final = """Print the script that completes commands, options and run ids in your shell.

\b
  bash   eval "$(turnlock completion bash)"               in ~/.bashrc
  zsh    eval "$(turnlock completion zsh)"                in ~/.zshrc
  fish   turnlock completion fish | source                in ~/.config/fish/config.fish

Run ids come out of the journal of --db, where that stands before them, or of TURNLOCK_DB.

\b
Exit status:
  0  it was printed
  2  wrong usage
"""


@click.command("completion", help=_HELP, short_help="Print the completion script of a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(context: click.Context, *, shell: str) -> None:
    """Print it."""
    made = get_completion_class(shell)
    if made is None:
        raise AssertionError(shell)
    root = context.find_root()
    click.echo(made(root.command, {}, root.info_name or "turnlock", VARIABLE).source())

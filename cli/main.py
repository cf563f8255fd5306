"""``turnlock``: the command and its subcommands, each loaded only when it is asked for.

Exit status everywhere: 0 only when all was well, 1 when a check failed, 2 for wrong usage or input
of which nothing could be read; `check`, `run` and `verify` have more, which their help lists. A
closed pipe and Ctrl-C end a command with 1, `verify` by Ctrl-C with 3, without a traceback.
"""

from __future__ import annotations

import errno
import io
import sys
from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any, Final

import click

from ..models.errors import TurnlockError
from ..models.safe_text import harmless_lines
from ..runtime.version import version
from .uncaught import install

_LAZY: Final = {
    **{name: f"backup.{name}" for name in ("backup", "restore")},
    **{name: f"decide.{name}" for name in ("approve", "deny", "interrupt")},
    **{name: f"grants.{name}" for name in ("grants", "revoke")},
    **{name: f"retire.{name}" for name in ("archive", "forget")},
    **{
        name: f"{name}.command"
        for name in (
            *("check", "codex", "completion", "diagram", "explain", "export", "fork", "guard"),
            *("journal", "recover", "release", "replay", "resolve", "run", "runs", "serve", "show"),
            *("token", "trace", "tui", "verify", "world"),
        )
    },
}
"""Where subcommands live: the module beside this one, and the name there."""


class LazyGroup(click.Group):
    """A group that imports the module of a subcommand when the subcommand is looked up."""

    def __init__(self, *args: Any, lazy: Mapping[str, str], **options: Any) -> None:  # noqa: ANN401
        """`lazy` is where subcommands live: the module in this package, and the name there."""
        super().__init__(*args, **options)
        self._lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all subcommands."""
        return sorted({*super().list_commands(ctx), *self._lazy})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a subcommand, or None if there is none of that name."""
        if cmd_name not in self._lazy:
            return super().get_command(ctx, cmd_name)
        module, _, name = self._lazy[cmd_name].partition(".")
        found = getattr(import_module(f".{module}", __package__), name)
        if not isinstance(found, click.Command):
            raise TypeError(f"turnlock.cli.{module} has no click command `{name}`")
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the subcommand; for a mistyped one those are named that are spelt like it."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            likely = get_close_matches(args[0], self.list_commands(ctx))
            if likely and not ctx.resilient_parsing:
                meant = f" Did you mean {' or '.join(map(repr, likely))}?"
                vars(error)["message"] += meant  # final for type checkers
            raise

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; output that cannot be written is an error with a cause and a fix.

        What errors repeat of ids, names and texts from outside is made harmless, whoever raised
        them.
        """
        try:
            return super().invoke(ctx)
        except TurnlockError as error:
            raise click.ClickException(harmless_lines(str(error))) from error
        except click.ClickException as error:
            vars(error)["message"] = harmless_lines(error.message)  # final for type checkers
            raise
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise  # click ends quietly: whoever read the output has seen enough
            raise click.ClickException(not_written(error)) from error


def not_written(error: OSError) -> str:
    """Say that the output of a command is lost."""
    return f"the output cannot be written ({error.strerror}); free space, or write elsewhere"


def _tell_version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:  # noqa: FBT001
    if not asked or ctx.resilient_parsing:
        return
    click.echo(f"turnlock {version('(a checkout that is not installed)')}")
    ctx.exit()


@click.group(
    cls=LazyGroup,
    lazy=_LAZY,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_tell_version,
    help="Show the version and exit.",
)
def main() -> None:
    """Tool calls of LLM agents, settled exactly once whatever is delivered.

    A rule (K-33) or a reason (late) that any of these names is shown by turnlock explain.
    """
    install()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that cannot show a character gets
            stream.reconfigure(errors="backslashreplace")  # its escape, never a traceback


@main.command(short_help="Serve the kernel to any language: JSON lines on stdin and stdout.")
def stdio() -> None:
    """Serve the kernel as JSON lines: one request a line on stdin, its answer a line on stdout."""
    from ..wire.stdio import serve  # noqa: PLC0415 - the wire's codec loads only where it is spoken

    if sys.stdin is None or sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]
        raise click.UsageError("standard input or output is closed; connect both to the client")
    serve(sys.stdin.buffer, sys.stdout.buffer)

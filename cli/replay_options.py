"""What `replay` and `trace` share: their options, the person at the prompt, the exit status."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import click

from ..models.safe_text import harmless, harmless_lines
from ..models.values import Json
from ..verification.replay.calls import Decisions, Mode
from ..verification.replay.host import Settings
from ..verification.replay.lines import Problems
from ..verification.replay.tally import Tally

_SHOWN_ARGUMENTS: Final = 4_000  # characters of the arguments that somebody is asked about

EXIT_STATUS: Final = """
\b
Exit status:
  0  all was well
  1  a check failed, or part of the input could not be read (the rest was served)
  2  wrong usage, or not one batch could be read
"""

F = TypeVar("F", bound=Callable[..., Any])


def replay_options(command: F) -> F:
    """Add the options that say how the honest host behaves, and how hostile its world is."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_OPTIONS: Final = (
    click.option(
        "--decisions",
        type=click.Choice([str(mode) for mode in Mode]),
        default=str(Mode.APPROVE),
        show_default=True,
        help="Who decides. ask, approve and deny gate every call, random those that a coin picks. "
        "What was denied when it was recorded is denied again.",
    ),
    click.option(
        "--hostile",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        metavar="N",
        help="Inject N hostile deliveries for each honest one.",
    ),
    click.option(
        "--seed",
        type=int,
        default=0,
        show_default=True,
        metavar="S",
        help="Draws the order of work and the hostile deliveries: one seed, one outcome.",
    ),
)


def settings_of(*, decisions: str, hostile: int, seed: int) -> Settings:
    """Return the settings that the options mean. Asking needs a terminal on standard input."""
    mode = Mode(decisions)
    if mode is Mode.ASK and not (sys.stdin is not None and sys.stdin.isatty()):
        raise click.UsageError(
            "--decisions ask needs a terminal on standard input, and there is none; "
            "run it in a terminal, or choose --decisions approve, deny or random"
        )
    return Settings(decisions=Decisions(mode, _ask), hostile=hostile, seed=seed)


def _ask(tool_name: str, arguments: Mapping[str, Json]) -> bool:
    shown = json.dumps(arguments, indent=2, ensure_ascii=False)
    left = len(shown) - _SHOWN_ARGUMENTS
    rest = f"\n… and {left:,} more characters" if left > 0 else ""
    click.echo(
        f"\n{harmless(tool_name)} {harmless_lines(shown[:_SHOWN_ARGUMENTS])}{rest}", err=True
    )
    return click.confirm("Run it?", default=None, err=True)


def tell_problems(problems: Problems) -> None:
    """Print what is wrong with the input, on standard error."""
    for line in problems.lines():
        click.echo(line, err=True)


def tell_verdict(tally: Tally, problems: Problems) -> None:
    """Print the failed checks that were kept and, as the last line, the verdict."""
    for failure in tally.failures:
        click.echo(f"failed: {failure}")
    verdict = tally.verdict(problems.count)
    click.secho(verdict, bold=True, fg="blue" if verdict.startswith("OK") else "yellow")


def exit_status(tally: Tally, problems: Problems) -> int:
    """Return 0 if all was well, 2 if nothing could be replayed, else 1."""
    if not tally.batches:
        return 2
    return 1 if tally.failed or problems.count else 0

"""``turnlock replay``: recordings, driven through the kernel in a hostile world."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Final

import click

from ..verification.replay.calls import Mode
from ..verification.replay.host import Settings, replay_conversation
from ..verification.replay.lines import Problems
from ..verification.replay.recording import Conversation, Recording, read_recording
from ..verification.replay.tally import Tally
from .replay_options import (
    EXIT_STATUS,
    exit_status,
    replay_options,
    settings_of,
    tell_problems,
    tell_verdict,
)

_LONG: Final = 500  # batches from which a progress bar is worth showing
_NAMES_WIDTH: Final = 42

_HELP: Final = f"""Replay recorded tool batches through the kernel, and check every turn.

Each FILE holds one JSON object a line, plain or gzipped; - is standard input. A conversation
becomes a run, a batch a turn: opened, decided, claimed, reported and acknowledged in a shuffled
order. Every turn must settle once and continue once, with the recorded results in the order of its
calls; no tool may run twice; every hostile delivery must be refused and change nothing.

A line that cannot be read is told with its place, cause and fix, and the rest is served.
{EXIT_STATUS}"""


@click.command(
    "replay", help=_HELP, short_help="Replay recorded tool batches and check every turn."
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path())
@replay_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
@click.option(
    "--timing/--no-timing", default=True, help="Tell the deliveries a second, or not: it varies."
)
def command(  # noqa: PLR0913 - one parameter for each option
    *,
    files: tuple[str, ...],
    decisions: str,
    hostile: int,
    seed: int,
    as_json: bool,
    timing: bool,
) -> None:
    """Replay the files, tell the outcome, and end with its status."""
    if files.count("-") > 1:
        raise click.UsageError("standard input (-) can be read once; give - once")
    settings = settings_of(decisions=decisions, hostile=hostile, seed=seed)
    tally, problems = Tally(), Problems()
    for file in files:
        recording = read_recording(file, problems)
        _replay(recording, settings, tally)
    tell_problems(problems)
    if as_json:
        told = {**tally.as_json(problems.count), "problems": list(problems.lines())}
        click.echo(json.dumps(told, indent=2))
    else:
        if tally.batches:
            _show(tally, timing=timing)
        tell_verdict(tally, problems)
    sys.exit(exit_status(tally, problems))


def _replay(recording: Recording, settings: Settings, tally: Tally) -> None:
    tally.files += 1
    tally.oddities += recording.oddities
    began = time.perf_counter()
    for conversation in _shown(recording, settings):
        replay_conversation(conversation, settings, tally)
    tally.seconds += time.perf_counter() - began


def _shown(recording: Recording, settings: Settings) -> Iterable[Conversation]:
    """Return the conversations, with a progress bar if there are many and somebody watches."""
    watched = sys.stderr is not None and sys.stderr.isatty()
    asks = settings.decisions.mode is Mode.ASK
    if not watched or asks or recording.batches < _LONG:
        return recording.conversations
    return _with_progress(recording)


def _with_progress(recording: Recording) -> Iterator[Conversation]:
    from rich.console import Console  # noqa: PLC0415 - rich loads only where something is shown
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    console = Console(stderr=True)
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as bar:
        task = bar.add_task("replaying", total=recording.batches)
        for conversation in recording.conversations:
            yield conversation
            bar.advance(task, len(conversation.turns))


def _show(tally: Tally, *, timing: bool) -> None:
    """Print the tables of a tally on standard output, without its verdict."""
    from rich import box  # noqa: PLC0415 - rich loads only where something is shown
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    console = Console(highlight=False)
    for title, rows in tally.tables(timing=timing):
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        table.add_column(title, min_width=_NAMES_WIDTH)
        table.add_column("", justify="right")
        for name, value in rows:
            table.add_row(Text(name), Text(value))
        console.print(table)
        console.print()

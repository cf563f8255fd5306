"""``turnlock replay``: recordings, driven through the kernel in a hostile world."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Final

import click

from .corpus import Conversation, Problems, Recording, read_recording
from .host import Settings, replay_conversation
from .members import Mode
from .options import EXIT_STATUS, exit_status, hosting, settings_of, tell_problems, tell_verdict
from .tally import Tally

_LONG: Final = 500  # batches from which a progress bar is worth showing

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
@hosting
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
        from .tables import show_tally  # noqa: PLC0415 - rich loads only where something is shown

        if tally.batches:
            show_tally(tally, timing=timing)
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
    from .tables import progress  # noqa: PLC0415 - rich loads only where something is shown

    with progress() as bar:
        task = bar.add_task("replaying", total=recording.batches)
        for conversation in recording.conversations:
            yield conversation
            bar.advance(task, len(conversation.turns))

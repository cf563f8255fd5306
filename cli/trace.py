"""``turnlock trace``: one recorded conversation as a timeline of its facts."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

import click

from ..models.safe_text import harmless
from .corpus import Conversation, Problems, read_recording
from .courier import START
from .host import Settings, replay_conversation
from .options import EXIT_STATUS, exit_status, hosting, settings_of, tell_problems, tell_verdict
from .tally import Tally

_LISTED: Final = 20  # candidates that an ambiguous --run is told
_HELP: Final = f"""Show the facts of one recorded conversation as a timeline.

FILE is a recording as `turnlock replay` reads it. The run is replayed just as `replay` does with
the same options; hostile deliveries stand between the facts, dim, with the reason of their refusal.
Without --run, the runs of the file are listed.
{EXIT_STATUS}"""


@click.command("trace", help=_HELP, short_help="Show one recorded conversation as a timeline.")
@click.argument("file", type=click.Path())
@click.option(
    "--run", "run", metavar="ID", help="The run: its id, or a part of it that no other run has."
)
@hosting
def command(*, file: str, run: str | None, decisions: str, hostile: int, seed: int) -> None:
    """List the runs of a file, or show one, and end with the status."""
    settings = settings_of(decisions=decisions, hostile=hostile, seed=seed)
    problems = Problems()
    conversations = read_recording(file, problems).conversations
    tell_problems(problems)
    if not conversations:
        sys.exit(2)
    if run is None:
        _list(conversations)
        sys.exit(1 if problems.count else 0)
    _show(_chosen(conversations, run), settings, problems)


def _list(conversations: Sequence[Conversation]) -> None:
    click.echo("turns  run (show one with --run)")
    for conversation in conversations:
        click.echo(f"{len(conversation.turns):5}  {harmless(conversation.run_id)}")


def _chosen(conversations: Sequence[Conversation], run: str) -> Conversation:
    """Return the run with this id, else the one that begins with it, else the one that holds it."""
    exact = [one for one in conversations if one.run_id == run]
    starts = [one for one in conversations if one.run_id.startswith(run)]
    inside = [one for one in conversations if run in one.run_id]
    for found in (exact, starts, inside):
        if len(found) == 1:
            return found[0]
    raise _unfound(run, starts or inside, conversations)


def _unfound(
    run: str, found: Sequence[Conversation], every: Sequence[Conversation]
) -> click.UsageError:
    if found:
        message = (
            f"{len(found)} runs match {harmless(run, limit=80)!r}; give more of the id of one:"
        )
    else:
        message = f"no run matches {harmless(run, limit=80)!r}; give the id of one of these:"
    candidates = found or every
    lines = [message, *(f"  {harmless(one.run_id)}" for one in candidates[:_LISTED])]
    if len(candidates) > _LISTED:
        lines.append(f"  … and {len(candidates) - _LISTED} more (without --run, all are listed)")
    return click.UsageError("\n".join(lines))


def _show(conversation: Conversation, settings: Settings, problems: Problems) -> None:
    from .timeline import Timeline  # noqa: PLC0415 - rich loads only where something is shown

    tally = Tally()
    turns = len(conversation.turns)
    title = f"run {conversation.run_id}, {turns} turn{'' if turns == 1 else 's'}"
    timeline = Timeline(title, start=START)
    replay_conversation(conversation, settings, tally, timeline.observe)
    timeline.show()
    tell_verdict(tally, problems)
    sys.exit(exit_status(tally, problems))

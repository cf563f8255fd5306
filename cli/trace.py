"""``turnlock trace``: one recorded conversation as a timeline of its facts."""

from __future__ import annotations

import sys
from typing import Final

import click

from ..verification.replay.checked_kernel import START
from ..verification.replay.host import Settings, replay_conversation
from ..verification.replay.lines import Problems
from ..verification.replay.recording import Conversation, read_recording
from ..verification.replay.tally import Tally
from .choosing import Listing
from .replay_options import (
    EXIT_STATUS,
    exit_status,
    replay_options,
    settings_of,
    tell_problems,
    tell_verdict,
)

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
@replay_options
def command(*, file: str, run: str | None, decisions: str, hostile: int, seed: int) -> None:
    """List the runs of a file, or show one, and end with the status."""
    settings = settings_of(decisions=decisions, hostile=hostile, seed=seed)
    problems = Problems()
    conversations = read_recording(file, problems).conversations
    tell_problems(problems)
    if not conversations:
        sys.exit(2)
    listing = Listing(rows={one.run_id: (len(one.turns), one.run_id) for one in conversations})
    if run is None:
        listing.show()
        sys.exit(1 if problems.count else 0)
    picked = listing.chosen(run)
    _show(next(one for one in conversations if one.run_id == picked), settings, problems)


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

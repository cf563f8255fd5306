"""Draws one picture of one run, in a process of its own: ``python -m turnlock.server.drawing``.

A drawing takes seconds, of which nobody else is to have any. Standard input is one line of JSON
that says what is wanted, the run's configuration on the next, then its facts as lines; standard
output is the SVG. The status is 3 where there is nothing to draw, 4 where it cannot be drawn here;
then standard error says why.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any, Final

import click

from ..diagrams.errors import CannotDraw, NothingToDraw
from ..diagrams.graphs.picture import MachinePicture
from ..diagrams.life import life_of
from ..diagrams.palette import Theme
from ..diagrams.picture import Picture
from ..diagrams.recordings.reading import recording_of
from ..diagrams.recordings.recording import Recording
from ..diagrams.sequence.picture import sequence_picture
from ..diagrams.timeline.picture import timeline_picture
from ..models.codec import fact_from_json, read
from ..models.facts import TurnOpened
from ..models.run import Run
from ..models.strict_json import parse

NOTHING: Final = 3
"""The status where there is nothing to draw."""
CANNOT: Final = 4
"""The status where this installation cannot draw it."""

_NICE: Final = 10


def picture_of(recording: Recording, wanted: dict[str, Any]) -> Picture:
    """Return the picture: `kind` timeline, sequence, or life with `epoch` and `invocation_id`.

    Raises `NothingToDraw`.
    """
    if wanted["kind"] == "timeline":
        return timeline_picture(recording)
    if wanted["kind"] == "sequence":
        return sequence_picture(recording)
    epoch = wanted["epoch"]
    turns = (it for it in recording.facts if isinstance(it, TurnOpened) and it.epoch == epoch)
    turn = next(turns, None)
    if turn is None:
        raise NothingToDraw(f"the run has no turn of epoch {epoch}")
    graph = life_of(
        recording, turn_id=turn.turn_id, invocation_id=wanted["invocation_id"], epoch=epoch
    )
    return MachinePicture(graph=graph)


def draw(lines: list[bytes]) -> str:
    """Return the SVG that the lines of standard input ask for."""
    wanted: dict[str, Any] = parse(lines[0])
    recording = recording_of(read(Run, parse(lines[1])), map(fact_from_json, lines[2:]))
    return picture_of(recording, wanted).svg(theme=Theme(wanted["theme"]))


def main() -> int:
    """Draw what standard input asks for."""
    with suppress(OSError):
        os.nice(_NICE)
    try:
        drawn = draw(sys.stdin.buffer.read().splitlines())
    except NothingToDraw as error:
        click.echo(str(error), err=True, nl=False)
        return NOTHING
    except CannotDraw as error:
        click.echo(str(error), err=True, nl=False)
        return CANNOT
    sys.stdout.buffer.write(drawn.encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The timeline of a turn, or of a run: who waited, for whom, and how long."""

from __future__ import annotations

import attrs

from ...models.errors import shown
from ..drawing.tables import Table
from ..errors import NothingToDraw, not_there
from ..palette import Theme
from ..picture import Picture
from ..recordings.recording import Recording
from .folding import timeline_of
from .rows import Row, rows_of
from .spans import Timeline
from .svg import svg_of
from .words import description, tables_of, title


def timeline_picture(recording: Recording, *, turn_id: str | None = None) -> TimelinePicture:
    """Return the timeline of all turns of a run, or of one.

    Raises `NothingToDraw`, naming the turns that are there, and `CorruptJournal` for facts that
    cannot follow one another.
    """
    timeline = timeline_of(recording)
    if turn_id is None:
        if not timeline.turns:
            run_id = shown(recording.run.run_id)
            raise NothingToDraw(f"run {run_id} opened no turn; give a recording of one that did")
        return TimelinePicture(timeline)
    turns = tuple(turn for turn in timeline.turns if turn.turn_id == turn_id)
    if not turns:
        raise not_there("turn", turn_id, (turn.turn_id for turn in timeline.turns))
    return TimelinePicture(attrs.evolve(timeline, turns=turns, strays=()))


class TimelinePicture(Picture):
    """A timeline in every form but Graphviz's, which knows no time."""

    def __init__(self, timeline: Timeline) -> None:
        """Choose the rows; nothing is drawn yet."""
        self.timeline = timeline
        self.rows: tuple[Row, ...] = rows_of(timeline)

    @property
    def title(self) -> str:
        """The turn, or the number of turns, and the run."""
        return title(self.timeline)

    @property
    def description(self) -> str:
        """What came of it, and how long what took."""
        return description(self.timeline)

    def svg(self, *, theme: Theme = Theme.LIGHT) -> str:
        """Return one `svg` element, 960 pixels wide."""
        return svg_of(self.timeline, self.rows, theme)

    def mermaid(self) -> str:
        """Return a gantt chart."""
        from .mermaid import mermaid_of  # noqa: PLC0415 - one form is written at a time

        return mermaid_of(self.timeline, self.rows)

    def text(self) -> str:
        """Return the timeline as characters."""
        from .text import text_of  # noqa: PLC0415 - as above

        return text_of(self.timeline, self.rows)

    def tables(self) -> tuple[Table, ...]:
        """Return the turns, and the calls row by row."""
        return tuple(tables_of(self.timeline, self.rows))

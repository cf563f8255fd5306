"""The timeline of a turn, or of a run: who waited, for whom, and how long."""

from __future__ import annotations

from typing import Final, NoReturn

import attrs

from ...models.errors import shown
from ..drawing.page import page
from ..drawing.tables import markdown_table, plain_markdown
from ..errors import NoSuchForm, NothingToDraw
from ..palette import Theme
from ..picture import Format, Picture
from ..recordings.recording import Recording
from .folding import timeline_of
from .mermaid import mermaid_of
from .rows import Row, rows_of
from .spans import Timeline
from .svg import svg_of
from .tables import tables_of
from .text import text_of
from .words import description, summary, title

LISTED: Final = 20
"""Turns that a message names when the one asked for is not there."""


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
        there = [shown(turn.turn_id) for turn in timeline.turns]
        more = f" … and {len(there) - LISTED:,} more" if len(there) > LISTED else ""
        listed = ", ".join(there[:LISTED]) or "none"
        raise NothingToDraw(f"there is no turn {shown(turn_id)}; there are {listed}{more}")
    return TimelinePicture(attrs.evolve(timeline, turns=turns, strays=()))


class TimelinePicture(Picture):
    """A timeline in every form but Graphviz's, which knows no time."""

    formats = frozenset(Format) - {Format.DOT}

    def __init__(self, timeline: Timeline) -> None:
        """Choose the rows; nothing is drawn yet."""
        self.timeline = timeline
        self.rows: tuple[Row, ...] = rows_of(timeline)

    @property
    def title(self) -> str:
        """The turn, or the number of turns, and the run."""
        return title(self.timeline)

    def svg(self, *, theme: Theme = Theme.LIGHT) -> str:
        """Return one `svg` element, 960 pixels wide."""
        return svg_of(self.timeline, self.rows, theme)

    def dot(self, *, theme: Theme = Theme.LIGHT) -> NoReturn:  # noqa: ARG002 - as every picture's
        """Raise `NoSuchForm`."""
        raise NoSuchForm("Graphviz knows no time; ask for svg, png, mmd, md, html or txt")

    def mermaid(self) -> str:
        """Return a gantt chart."""
        return mermaid_of(self.timeline, self.rows)

    def markdown(self) -> str:
        """Return Markdown with the gantt chart and the tables."""
        tables = "\n".join(map(markdown_table, tables_of(self.timeline, self.rows)))
        return (
            f"# {plain_markdown(self.title)}\n\n{plain_markdown(summary(self.timeline))}\n\n"
            f"```mermaid\n{self.mermaid()}```\n\n{tables}"
        )

    def html(self, *, theme: Theme = Theme.LIGHT) -> str:
        """Return one page with the picture and the tables."""
        return page(
            title=self.title,
            description=description(self.timeline),
            pictures=(self.svg(theme=theme),),
            tables=tables_of(self.timeline, self.rows),
            theme=theme,
        )

    def text(self) -> str:
        """Return the timeline as characters."""
        return text_of(self.timeline, self.rows)

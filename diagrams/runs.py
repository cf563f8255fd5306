"""A run, or one turn of it: when what happened and, on a page, who told whom what besides."""

from __future__ import annotations

import attrs

from .drawing.tables import Table
from .palette import Theme
from .picture import Picture
from .recordings.recording import Recording
from .sequence.picture import SequencePicture, sequence_picture
from .timeline.picture import TimelinePicture, timeline_picture


@attrs.frozen(kw_only=True)
class RunPicture(Picture):
    """The timeline in every form; Markdown and HTML, which have room, hold the sequence, too."""

    timeline: TimelinePicture
    sequence: SequencePicture

    @property
    def title(self) -> str:
        """That of the timeline."""
        return self.timeline.title

    @property
    def description(self) -> str:
        """That of the timeline."""
        return self.timeline.description

    def svg(self, *, theme: Theme = Theme.LIGHT) -> str:
        """Return the timeline."""
        return self.timeline.svg(theme=theme)

    def drawings(self, theme: Theme) -> list[str]:
        """Return both pictures."""
        return [self.svg(theme=theme), self.sequence.svg(theme=theme)]

    def mermaid(self) -> str:
        """Return the timeline as a gantt chart."""
        return self.timeline.mermaid()

    def markdown(self) -> str:
        """Return the timeline, then the sequence as its section."""
        return f"{self.timeline.markdown().rstrip()}\n\n#{self.sequence.markdown()}"

    def text(self) -> str:
        """Return the timeline as characters."""
        return self.timeline.text()

    def tables(self) -> tuple[Table, ...]:
        """Return the tables of both."""
        return (*self.timeline.tables(), *self.sequence.tables())


def run_picture(recording: Recording, *, turn_id: str | None = None) -> RunPicture:
    """Return the picture of a run, or of one of its turns. Raises `NothingToDraw`."""
    return RunPicture(
        timeline=timeline_picture(recording, turn_id=turn_id),
        sequence=sequence_picture(recording, turn_id=turn_id),
    )

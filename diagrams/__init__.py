"""Pictures, drawn from the tables that are enforced and from recorded facts.

`invocation_picture`, `turn_picture` and `machine_picture` draw declared machines. A `Recording`
comes from a `Recorder` beside a kernel, from a log (`read_recordings`) or from a script (`played`);
`run_picture`, `timeline_picture`, `sequence_picture` and `life_picture` draw it. `coverage_picture`
draws `Counts`, `counterexample_picture` what `findings_in` a report of `turnlock verify --json`.

A picture is a value: `save` it into a file whose ending names the form, `render` it, or let a
notebook show it. A name is imported when it is first asked for, a library that draws when it must.
"""

from typing import TYPE_CHECKING

from ..models.lazy import imported_when_asked

if TYPE_CHECKING:
    from .coverage import Counts, counts_in, coverage_picture
    from .drawing.engines import Engine
    from .errors import CannotDraw, NoSuchForm, NothingToDraw
    from .graphs.picture import (
        MachinePicture,
        invocation_picture,
        machine_picture,
        turn_picture,
    )
    from .life import life_picture
    from .palette import Theme
    from .picture import Format, Picture
    from .recordings.reading import read_recordings
    from .recordings.recorder import Recorder, played
    from .recordings.recording import Moment, Recording
    from .runs import RunPicture, run_picture
    from .sequence.counterexample import counterexample_picture, findings_in
    from .sequence.picture import SequencePicture, sequence_picture
    from .timeline.picture import TimelinePicture, timeline_picture

__all__ = [
    "CannotDraw", "Counts", "Engine", "Format", "MachinePicture", "Moment", "NoSuchForm",
    "NothingToDraw", "Picture", "Recorder", "Recording", "RunPicture", "SequencePicture", "Theme",
    "TimelinePicture", "counterexample_picture", "counts_in", "coverage_picture", "findings_in",
    "invocation_picture", "life_picture", "machine_picture", "played", "read_recordings",
    "run_picture", "sequence_picture", "timeline_picture", "turn_picture",
]  # fmt: skip

if not TYPE_CHECKING:  # checkers would take any name for one that this function knows
    __getattr__ = imported_when_asked(
        __name__,
        {
            "coverage": "Counts counts_in coverage_picture",
            "drawing.engines": "Engine",
            "errors": "CannotDraw NoSuchForm NothingToDraw",
            "graphs.picture": "MachinePicture invocation_picture machine_picture turn_picture",
            "life": "life_picture",
            "palette": "Theme",
            "picture": "Format Picture",
            "recordings.reading": "read_recordings",
            "recordings.recorder": "Recorder played",
            "recordings.recording": "Moment Recording",
            "runs": "RunPicture run_picture",
            "sequence.counterexample": "counterexample_picture findings_in",
            "sequence.picture": "SequencePicture sequence_picture",
            "timeline.picture": "TimelinePicture timeline_picture",
        },
    )


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__

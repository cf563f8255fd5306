"""Pictures, drawn from the tables that are enforced and from recorded facts.

`invocation_picture`, `turn_picture` and `machine_picture` draw declared machines. A `Recording`
comes from a `Recorder` beside a kernel, from a log (`read_recordings`) or from a script (`played`);
`run_picture`, `timeline_picture`, `sequence_picture` and `life_picture` draw it. `coverage_picture`
draws `Counts`, `counterexample_picture` what `findings_in` a report of `turnlock verify --json`.

A picture is a value: `save` it into a file whose ending names the form, `render` it, or let a
notebook show it. A name is imported when it is first asked for, a library that draws when it must.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .coverage.counts import Counts
    from .coverage.stored import counts_in
    from .drawing.graphviz import Engine
    from .errors import CannotDraw, NoSuchForm, NothingToDraw
    from .graphs.picture import MachinePicture, machine_picture
    from .palette import Theme
    from .picture import Format, Picture
    from .pictures import coverage_picture, invocation_picture, life_picture, turn_picture
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

_MODULES = {
    "coverage.counts": ("Counts",),
    "coverage.stored": ("counts_in",),
    "drawing.graphviz": ("Engine",),
    "errors": ("CannotDraw", "NoSuchForm", "NothingToDraw"),
    "graphs.picture": ("MachinePicture", "machine_picture"),
    "palette": ("Theme",),
    "picture": ("Format", "Picture"),
    "pictures": ("coverage_picture", "invocation_picture", "life_picture", "turn_picture"),
    "recordings.reading": ("read_recordings",),
    "recordings.recorder": ("Recorder", "played"),
    "recordings.recording": ("Moment", "Recording"),
    "runs": ("RunPicture", "run_picture"),
    "sequence.counterexample": ("counterexample_picture", "findings_in"),
    "sequence.picture": ("SequencePicture", "sequence_picture"),
    "timeline.picture": ("TimelinePicture", "timeline_picture"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


if not TYPE_CHECKING:  # checkers would take any name for one that this function knows

    def __getattr__(name: str) -> object:
        """Import a public name from its module."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(f".{_HOMES[name]}", __name__), name)
        return found


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__

"""Pictures of large turns: drawing 10 to 10,000 calls, beside folding the same journal.

Every call is claimed and reports. The floor is `Kernel.recover` over the same facts; a picture
folds them, too, and then gathers the calls into crowds. One picture of 10,000 calls should take at
most 2 seconds. DOT and the lay-out by Graphviz are not in it: timelines and sequences need neither.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from timing import QUICK, Line, Work, measured, timed
from turns import RUN, claim, report

from turnlock import Call, Kernel, OpenTurn
from turnlock.diagrams import Recorder, Recording, sequence_picture, timeline_picture

SIZES: Final = (10, 1_000, 10_000)
QUICK_SIZES: Final = SIZES[:2]
TURN: Final = "turn-1"
BOUND: Final = 2.0
"""Seconds that a picture of the largest turn may take."""


def _recorded(size: int) -> Recording:
    names = [f"call-{number}" for number in range(size)]
    calls = tuple(
        Call(invocation_id=name, tool_name="ls", arguments={}, requires_approval=False)
        for name in names
    )
    told = [
        OpenTurn(turn_id=TURN, calls=calls),
        *(claim(TURN, name) for name in names),
        *(report(TURN, name) for name in names),
    ]
    kernel, recorder = Kernel(RUN), Recorder(RUN)
    for number, delivery in enumerate(told):
        now = number / 1_000
        recorder.observe(delivery, kernel.receive(delivery, now), now)
    return recorder.recording()


def measure(rounds: int) -> list[Line]:
    """Measure timeline, sequence and fold of each size."""
    lines: list[Line] = []
    for size in SIZES if rounds > QUICK else QUICK_SIZES:
        recording = _recorded(size)
        pictures: dict[str, Work] = {
            "timeline": timed(1, partial(_timeline, recording)),
            "sequence": timed(1, partial(_sequence, recording)),
        }
        fold = timed(1, partial(Kernel.recover, RUN, tuple(recording.facts)))
        samples = measured(rounds, {**pictures, "fold": fold})
        bound = BOUND if size == SIZES[-1] else None
        for name in pictures:
            here = samples[name]
            lines += [
                here.line(f"{name}, {size:,} calls", "s", scale=1.0, bound=bound),
                here.over(samples["fold"], f"{name} / fold, {size:,} calls"),
            ]
    return lines


def _timeline(recording: Recording) -> str:
    return timeline_picture(recording).svg()


def _sequence(recording: Recording) -> str:
    return sequence_picture(recording).svg()

"""Recordings for the tests of sequence diagrams, and what can be read off a drawn sheet."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from random import Random
from xml.etree import ElementTree as ET

import attrs
from hypothesis import strategies as st

from turnlock.diagrams.drawing.lettering import width_of
from turnlock.diagrams.recordings.recorder import Recorder
from turnlock.diagrams.recordings.recording import Recording
from turnlock.models.run import Run
from turnlock.verification.fuzz.guided import MAX_STEPS, STEP_BYTES, decode
from turnlock.verification.replay.calls import Decisions, Mode
from turnlock.verification.replay.host import Settings, replay_conversation
from turnlock.verification.replay.lines import Problems
from turnlock.verification.replay.recording import read_recording
from turnlock.verification.replay.tally import Tally

from .runs import recorded

CORPUS = Path(__file__).resolve().parents[2] / "examples" / "corpus" / "turns.jsonl"
SVG = "{http://www.w3.org/2000/svg}"
_LONG = 1 + MAX_STEPS * STEP_BYTES
RECORDINGS = (
    st.one_of(
        st.binary(min_size=1 + 8 * STEP_BYTES, max_size=_LONG),
        st.integers(0, 2**32).map(lambda seed: Random(seed).randbytes(_LONG)),
    )
    .map(decode)
    .map(lambda decoded: recorded(*decoded))
)
"""What a real kernel made of guided random scripts, half of them as long as they can be."""

INJECTIONS = (
    "end",
    'a";</script><script>alert(1)</script>',
    "x\ny;z#35;",
    '%%{init: {"theme":"dark"}}%%',
    "style a:#b;c",
    "$$x^2$$",
    "wrap:p0-)p1: spoof",
    "\u202eevil\u202c\u200b",
    "<br/>&lt;![CDATA[",
    "`code` [link](http://x) *b* | cell ]]>",
    "日本語ツール👩‍👩‍👧",
    "A" * 10_000,
    "[({<\"'",
)


def hostile_run(place: int = 0, mode: Mode = Mode.RANDOM) -> Recording:
    """One conversation of the corpus, with a hostile delivery for each honest one."""
    conversation = read_recording(str(CORPUS), Problems()).conversations[place]
    recorder = Recorder(Run(run_id=conversation.run_id))
    replay_conversation(
        conversation,
        Settings(Decisions(mode), hostile=1, seed=1),
        Tally(),
        lambda delivery, verdict, now, _: recorder.observe(delivery, verdict, now),
    )
    return recorder.recording()


@attrs.frozen
class Box:
    """Where a text stands on a sheet, about."""

    words: str
    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


def boxes(svg: str) -> Iterator[Box]:
    """The box of each text of a sheet."""
    for text in ET.fromstring(svg).iter(f"{SVG}text"):  # noqa: S314 - our own
        words = text.text or ""
        size = float(text.get("font-size", "13"))
        width = width_of(words, size, mono="font-family" in text.attrib)
        x, y = float(text.attrib["x"]), float(text.attrib["y"])
        left = x - width * {"end": 1.0, "middle": 0.5}.get(text.get("text-anchor", ""), 0.0)
        yield Box(words, left, y - 0.75 * size, left + width, y + 0.2 * size)


def assert_readable(svg: str) -> None:
    """The sheet is one element with unique ids, and no text leaves it or meets another."""
    root = ET.fromstring(svg)  # noqa: S314 - our own
    ids = [element.attrib["id"] for element in root.iter() if "id" in element.attrib]
    assert len(ids) == len(set(ids))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    found = list(boxes(svg))
    for box in found:
        assert box.left >= 0, box
        assert box.right <= width, box
        assert box.top >= 0, box
        assert box.bottom <= height, box
    for one, other in combinations(found, 2):
        assert not one.meets(other), (one, other)

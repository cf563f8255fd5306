"""The forms of a timeline: whole, safe whatever stands in names, on the sheet, and as reviewed."""

from __future__ import annotations

import os
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings

from turnlock.diagrams.drawing.lettering import width_of
from turnlock.diagrams.drawing.tables import WIDTH as COLUMNS
from turnlock.diagrams.palette import Theme
from turnlock.diagrams.picture import Format
from turnlock.diagrams.recordings.recorder import played
from turnlock.diagrams.recordings.recording import Recording
from turnlock.diagrams.sequence.picture import sequence_picture
from turnlock.diagrams.timeline.mermaid import safe
from turnlock.diagrams.timeline.picture import TimelinePicture, timeline_picture
from turnlock.diagrams.timeline.rows import LaneRow, TurnRow
from turnlock.diagrams.timeline.svg import LEFT, WIDTH
from turnlock.models.codec import read
from turnlock.models.run import Run
from turnlock.models.workers import opaque
from turnlock.verification.fuzz.machine import scripts

from .timeline_scenes import (
    INTERRUPT,
    STORY,
    about,
    asked,
    crowd,
    hostile_run,
    many_turns,
    opens,
    recorded,
)

Raw = dict[str, Any]
GOLDEN = Path(__file__).parent / "golden" / "timeline"
SVG = "{http://www.w3.org/2000/svg}"

HOSTILE = (
    '"><script>alert(1)</script>',
    "]] --> %% :::end ;#",
    "section x\ngantt\n```\n# heading",
    "click me call alert()",
    "\u202egnp.exe\u2066",
    "\x1b[31mred\x00\x07",
    "|a|b|\\ `code` $x$ <!-- & &amp; {{x}}",
    "w" * 10_000,
    "工具" * 200,
    "-",
)


def element(picture: TimelinePicture, theme: Theme = Theme.LIGHT) -> ET.Element:
    """The SVG, parsed."""
    return ET.fromstring(picture.svg(theme=theme))  # noqa: S314 - our own


def text_box(text: ET.Element) -> tuple[float, float, float, float]:
    """Left, right, baseline and size of a text, as wide as its letters are estimated to be."""
    size = float(text.get("font-size", "13"))
    mono = "mono" in text.get("font-family", "").lower()
    wide = width_of(text.text or "", size, mono=mono)
    x = float(text.get("x", "0"))
    left = x - wide / 2 if text.get("text-anchor") == "middle" else x
    return left, left + wide, float(text.get("y", "0")), size


def check_svg(picture: TimelinePicture) -> None:
    """Every row once, ids once, texts on the sheet, labels of rows clear of each other."""
    root = element(picture)
    ids = Counter(it.get("id") for it in root.iter() if it.get("id"))
    assert set(ids.values()) == {1}
    name = root.get("id")
    for row in picture.rows:
        if isinstance(row, TurnRow):
            assert f"{name}-turn-{row.turn.epoch}" in ids
        elif isinstance(row, LaneRow):
            assert f"{name}-lane-{row.lane.epoch}-{row.lane.position}" in ids
    labels: list[tuple[float, float]] = []
    height = float(root.get("height", "0"))
    for text in root.iter(f"{SVG}text"):
        left, right, baseline, size = text_box(text)
        assert left >= -0.01, text.text
        assert right <= WIDTH + 0.01, text.text
        assert size <= baseline <= height, text.text
    for group in root.iter(f"{SVG}g"):
        for text in group.findall(f"{SVG}text"):
            left, right, baseline, size = text_box(text)
            if re.search("-(turn|lane|crowd)-", group.get("id", "")) and left < LEFT:
                assert right <= LEFT, text.text
                labels.append((baseline - 0.8 * size, baseline + 0.1 * size))
    assert len(labels) == 2 * len(picture.rows)
    labels.sort()
    assert all(one[1] <= next_[0] + 0.01 for one, next_ in pairwise(labels))
    for rect in root.iter(f"{SVG}rect"):
        assert float(rect.get("x", "0")) + float(rect.get("width", "0")) <= WIDTH
        assert float(rect.get("width", "0")) >= 0


TASK = re.compile(r"    [^:\n#;%]+ :((done|active|crit|milestone), )*\d+, \d+")
NAMED = re.compile(r"    (title|section) [^:\n#;%]+")


def check_mermaid(text: str) -> None:
    """Each line is one of the gantt grammar that this writer means, and not too much of it."""
    first, title, *lines = text.splitlines()
    assert (first, bool(NAMED.fullmatch(title))) == ("gantt", True)
    assert lines[0] == "    dateFormat x"
    assert re.fullmatch(r"    axisFormat [%A-Za-z: .]+", lines[1])
    for line in lines[2:]:
        assert TASK.fullmatch(line) or NAMED.fullmatch(line), line
        word = line.split()[0]
        assert word not in {"click", "todayMarker", "gantt", "weekday", "excludes", "includes"}
    assert len(text) < 50_000


def check_text(text: str) -> None:
    """No line is too wide, none steers the terminal."""
    for line in text.splitlines():
        assert len(line) <= COLUMNS
        assert line.isprintable()


def check_all(recording: Recording) -> TimelinePicture:
    """Hold every form of a recording's timeline against what must be true of each."""
    picture = timeline_picture(recording)
    check_svg(picture)
    check_mermaid(picture.mermaid())
    check_text(picture.text())
    return picture


@settings(max_examples=40)
@given(scripts())
def test_all_forms_of_any_run_hold_together(case: tuple[Raw, list[Raw]]) -> None:
    """Whatever happened, deep states included."""
    recording = played(read(Run, case[0]), case[1])
    if any(fact.type == "TURN_OPENED" for fact in recording.facts):
        check_all(recording)


@pytest.mark.parametrize("name", HOSTILE)
def test_names_from_outside_are_text_and_nothing_else(name: str) -> None:
    """K-8 lets any text be a tool's name, an id, a worker, a reason or an error."""
    script = (
        opens(0, name, asked(name, name), asked("b", name, gated=True)),
        about("claim", 1, name, turn_id=name, worker=name),
        about("report", 3, name, turn_id=name, error=name),
        about("report", 3, name, turn_id=name, error=name),
        about("decide", 4, "b", turn_id=name, approved=False, reason=name),
        {"type": "interrupt", "now": 5, "turn_id": name, "reason": name},
    )
    picture = check_all(recorded(script, run_id=name))

    tags = {it.tag for it in element(picture).iter()}
    assert tags <= {f"{SVG}{tag}" for tag in ("svg", "g", "rect", "line", "path", "text")} | {
        f"{SVG}title",
        f"{SVG}desc",
    }
    page = picture.html()
    assert "<script" not in page
    assert page.count("<body>") == 1
    markdown = picture.markdown().splitlines()
    assert sum(line.startswith("```") for line in markdown) == 2
    assert sum(line.startswith("#") for line in markdown) == 3
    cells = {len(re.findall(r"(?<!\\)\|", line)) for line in markdown if line.startswith("|")}
    assert cells == {6, 11}
    assert "\u202e" not in page + picture.markdown() + picture.svg()


def test_ten_thousand_calls_stay_a_picture() -> None:
    """Bounded in bytes in every form, whatever the size of the turn."""
    picture = check_all(recorded(crowd(10_000)))

    assert len(picture.svg()) < 300_000
    assert len(picture.text().splitlines()) < 70
    assert len(picture.markdown()) < 60_000
    assert picture.svg().count("more calls") >= 5


def test_a_thousand_turns_stay_a_picture() -> None:
    """The run's turns that need looking at, and its tools."""
    picture = check_all(recorded(many_turns(1_000)))

    assert len(picture.svg()) < 300_000
    assert "976 more turns are not listed." in picture.html()


def test_dense_renewals_and_refusals_are_drawn_together() -> None:
    """Thousands of marks in one lane are some hundred shapes, and the counts are there."""
    script = [opens(0, "T1", asked("a", "ls")), about("claim", 0, "a", worker="w", lease=9)]
    for place in range(2_000):
        script.append(about("renew", place / 100, "a", lease=9))
        script.append(about("claim", place / 100, "a", worker="other"))

    picture = check_all(recorded(tuple(script)))

    assert len(picture.svg()) < 60_000
    counts = [
        int(it.text or "")
        for it in element(picture).iter(f"{SVG}text")
        if it.get("font-size") == "9"
    ]
    assert sum(counts) == 2_000
    assert "2,000 refused" in picture.text()


@pytest.mark.parametrize("at", [-1e300, -5.0, 0.0, 1.7e9, 1e15, 1e300])
def test_any_time_is_drawn(at: float) -> None:
    """Times are finite floats: what no calendar holds is drawn all the same."""
    script = (
        opens(at, "T1", asked("a", "ls")),
        about("claim", at + 1, "a"),
        about("report", at + 2, "a", result=1),
    )

    check_all(recorded(script))


def test_all_at_one_time_is_drawn() -> None:
    """A turn that took no time has lanes and outcomes like any other."""
    script = (
        opens(3, "T1", asked("a", "ls")),
        about("claim", 3, "a"),
        about("report", 3, "a", result=1),
        opens(3, "T2", sealed=False),
        {"type": "seal_turn", "now": 3, "turn_id": "T2"},
    )

    picture = check_all(recorded(script))

    assert "no calls" in timeline_picture(recorded(script), turn_id="T2").text()
    assert "1 call: 1 succeeded" in picture.text()


def test_each_span_says_what_it_is_when_pointed_at() -> None:
    """Phase, from when to when, how long, which attempt, by whom."""
    titles = {it.text for it in element(timeline_picture(recorded(STORY))).iter(f"{SVG}title")}

    assert "executing (STARTED) from +8.6 s to +11 s, 2.4 s; attempt 2 by w3" in titles
    assert "in doubt (IN_DOUBT) from +7 s to +8 s, 1 s; attempt 1" in titles
    assert "in doubt (RETRY_AUTHORISED) from +8 s to +8.6 s, 600 ms; attempt 1" in titles
    assert "refused claim of turn T1: not_approved at +3.1 s" in titles
    assert "deadline of the lease at +6.2 s" in titles


def test_an_error_is_not_cut_while_there_is_room() -> None:
    """Behind a bar that ends at the right there is little: it stands below, on lines of its own."""
    error = "the tool failed: " + "no such file or directory, " * 8
    script = (
        opens(0, "T1", asked("a", "read"), asked("b", "read")),
        about("claim", 0, "a"),
        about("claim", 0, "b"),
        about("report", 0.1, "a", error="short"),
        about("report", 9, "b", error=error),
    )
    picture = check_all(recorded(script))

    words = " ".join(it.text or "" for it in element(picture).iter(f"{SVG}text"))
    assert "short" in words
    assert error.strip() in words
    assert error.strip() in " ".join(
        it.text or "" for it in element_of(sequence_picture(recorded(script)).svg())
    )


def element_of(svg: str) -> list[ET.Element]:
    """The texts of a picture."""
    return list(ET.fromstring(svg).iter(f"{SVG}text"))  # noqa: S314 - our own


def test_workers_are_told_apart_on_their_bars() -> None:
    """Also those of older files, which name their processes: nobody is shown that (F-6)."""
    older = [f"turnlock:host-of-a-long-name:{n}:1:aa" for n in (4711, 4712)]
    script = (
        opens(0, "T1", asked("a", "read"), asked("b", "read")),
        about("claim", 0, "a", worker=older[0]),
        about("claim", 0, "b", worker=older[1]),
        about("report", 9, "a", result=1),
        about("report", 9, "b", result=1),
    )

    for svg in (timeline_picture(recorded(script)).svg(), sequence_picture(recorded(script)).svg()):
        words = [it.text for it in element_of(svg)]
        assert {opaque(it) for it in older} <= set(words)
        assert "4711" not in svg
        assert "host-of" not in svg


def test_a_refusal_says_which_turn_it_named() -> None:
    """In its tooltip always; on the sheet where it is not the turn of the row."""
    script = (
        opens(0, "T1", asked("a", "read")),
        about("claim", 1, "a", turn_id="T0"),
        about("claim", 2, "a"),
        about("renew", 2.5, "a", lease=-0.0, attempt=7),
        about("report", 9, "a", result=1),
    )
    root = element(timeline_picture(recorded(script)))

    titles = {it.text for it in root.iter(f"{SVG}title")}
    assert "refused claim of turn T0: turn_mismatch at +1 s" in titles
    assert "refused renew of turn T1: stale_attempt at +2.5 s" in titles
    assert [it.text for it in root.iter(f"{SVG}text")].count("turn T0") == 1


def test_open_spans_are_drawn_open() -> None:
    """A picture of a run that goes on says so, in the svg and in the terminal."""
    picture = timeline_picture(recorded(INTERRUPT))

    words = [it.text for it in element(picture).iter(f"{SVG}text")]
    assert words.count("not ended") == 2
    assert "▒▒▒→" in picture.text()


def test_the_same_picture_is_drawn_the_same_way_in_both_themes() -> None:
    """Deterministic; the themes differ in colours alone."""
    picture = timeline_picture(recorded(STORY))
    light, dark = element(picture), element(picture, Theme.DARK)

    assert picture.svg() == timeline_picture(recorded(STORY)).svg()
    assert [it.tag for it in light.iter()] == [it.tag for it in dark.iter()]
    assert picture.svg() != picture.svg(theme=Theme.DARK)


def test_a_name_that_is_nothing_is_still_a_name() -> None:
    """Mermaid refuses an empty one."""
    assert (safe(" "), safe(":"), safe("a:b")) == ("_", "_", "a_b")


@pytest.mark.parametrize("form", [Format.SVG, Format.MERMAID, Format.TEXT, Format.MARKDOWN])
def test_a_real_run_is_drawn_as_it_was_reviewed(form: Format) -> None:
    """A recorded conversation with a hostile delivery for each honest one.

    After a change that is meant: GOLDEN=write pytest tests/diagrams, and look at what changed.
    """
    golden = GOLDEN / f"hostile-run.{form}"
    picture = timeline_picture(hostile_run("bfcl/multi_turn_base_39"))
    if os.environ.get("GOLDEN") == "write":
        picture.save(golden)

    assert picture.is_saved_in(golden), f"{golden} is not what would be drawn now"

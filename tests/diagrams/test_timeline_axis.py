"""The axis of a timeline: places, cuts, ticks, sums over columns, and lengths of time in words."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlock.diagrams.recordings.recorder import played
from turnlock.diagrams.timeline.axis import Axis, duration, tick
from turnlock.diagrams.timeline.folding import timeline_of
from turnlock.diagrams.timeline.rows import profile
from turnlock.diagrams.timeline.spans import Kind
from turnlock.models.codec import read
from turnlock.models.run import Run
from turnlock.verification.fuzz.machine import scripts

Raw = dict[str, Any]
TIMES = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.tuples(TIMES, TIMES).map(sorted).map(tuple), min_size=1, max_size=9), TIMES)
def test_an_axis_keeps_order_and_stays_on_the_sheet(
    busy: list[tuple[float, float]], at: float
) -> None:
    """However far times lie apart: places are on the sheet, and later is never further left."""
    axis = Axis(busy, left=100, width=500, cut=20)

    times = sorted({time for part in busy for time in part} | {at})
    places = [axis.place(time) for time in times]
    assert all(100 <= place <= 600 + 1e-6 for place in places)
    assert all(one <= next_ + 1e-6 for one, next_ in pairwise(places))
    assert axis.place(axis.begin) == 100
    _, ticks = axis.ticks(8)
    assert all(100 <= place <= 600 + 1e-6 for place, _ in ticks)


def test_idle_time_is_cut_and_short_pauses_are_not() -> None:
    """Two seconds, an hour, two seconds: the hour takes the width of a cut."""
    axis = Axis([(0, 2), (3602, 3604), (3604.1, 3605)], left=0, width=100, cut=10)

    ((left, right, seconds),) = axis.cuts()
    assert right - left == pytest.approx(10)
    assert seconds == 3600
    assert axis.place(1802) == pytest.approx((left + right) / 2)


@given(scripts())
def test_a_profile_holds_all_the_time_that_spans_do(case: tuple[Raw, list[Raw]]) -> None:
    """On an axis without cuts, columns times seconds are the sums of the spans."""
    timeline = timeline_of(played(read(Run, case[0]), case[1]))
    lanes = list(timeline.lanes)
    begin = min((lane.since for lane in lanes), default=0.0)
    if timeline.end == begin:
        return
    axis = Axis([(begin, timeline.end)], left=7, width=90, cut=0)

    columns = profile(lanes, axis, end=timeline.end, columns=30)

    for kind in Kind:
        seconds = sum(columns[kind]) * (timeline.end - begin) / 30
        assert seconds == pytest.approx(sum(it.seconds(kind, timeline.end) for it in lanes))


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (0.00045, "450 µs"),
        (0.0123, "12.3 ms"),
        (0.9999, "1 s"),
        (2.5, "2.5 s"),
        (59.97, "1 min"),
        (200, "3 min 20 s"),
        (7200, "2 h"),
        (7384, "2 h 3 min"),
        (90_000, "1 d 1 h"),
        (1e9, "1.16e+04 d"),
        (-3, "-3 s"),
    ],
)
def test_durations_are_said_as_people_say_them(seconds: float, words: str) -> None:
    """In the largest units that say something."""
    assert duration(seconds) == words


def test_ticks_are_said_in_the_unit_of_their_step() -> None:
    """No digits that say nothing."""
    assert [tick(at, 0.5) for at in (0, 0.5, 1, 1.5)] == ["0", "500 ms", "1 s", "1.5 s"]
    assert [tick(at, 30.0) for at in (30, 90)] == ["30 s", "90 s"]
    assert [tick(at, 3600.0) for at in (3600, 7200)] == ["1 h", "2 h"]

"""W-33: the suite of kills goes red where the cursor or the ids are kept as they must not be."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from .cast import LINES
from .checks import Left, heard_in
from .controls import cursor_in_a_second_write, ids_made_when_publishing
from .explore import Deaths, played
from .living import BURIED
from .story import ENDED

pytestmark = BURIED


Control = Callable[[], AbstractContextManager[None]]


@pytest.mark.parametrize(
    ("control", "place"),
    [
        (cursor_in_a_second_write, r"before note \S+ cursor/\d+$"),
        (ids_made_when_publishing, r"after entry \S+/said/"),
    ],
)
def test_w_33_the_kills_find_what_is_not_allowed(control: Control, place: str) -> None:
    """W-5, W-30: nothing shows; killed at its weak place, something is heard or said twice."""
    with control():
        calm = played()
        assert calm.host is not None
        assert calm.left is not None
        points = calm.host.journal.points
        steps = [step for step, name in points.items() if re.match(place, name)]
        plays = [played(Deaths([step])) for step in steps]

    assert said_in(calm.left) == [(sender, text) for _, sender, text in ENDED]
    assert len(steps) > len(LINES)
    for it in plays:
        assert it.left is not None
        assert it.deaths
        assert it.wrong
        assert _twice(it.left), it.deaths


def said_in(left: Left) -> list[tuple[str, str]]:
    """Who has said what, in order."""
    return [(body["sender"], body["text"]) for _, body in left.log]


def _twice(left: Left) -> bool:
    """Whether an entry was heard twice, or an answer stands in the log twice."""
    told = [(name, number) for name, notes in left.notes.items() for number in heard_in(notes)]
    answers = [entry_id.rpartition(".")[0] for entry_id, _ in left.log if "." in entry_id]
    return len(set(told)) < len(told) or len(set(answers)) < len(answers)

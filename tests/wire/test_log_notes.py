"""Notes in a log: what a journal kept beside a run's facts is read, and passed over."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from turnlock import Run
from turnlock.models.errors import InvalidValue
from turnlock.verification.traces.log import check
from turnlock.wire.log import LogReader
from turnlock.wire.log_lines import LogLines


def test_notes_stand_before_the_facts_and_are_no_lines_of_the_run() -> None:
    lines = [*LogLines(Run(run_id="r")).head({"said/1": {"é": [1, None]}, "b": "\n"})]

    assert len(lines) == 3
    assert list(LogReader().entries(lines)) == []
    outcome = check(lines)
    assert (outcome.broken, outcome.runs) == (None, ())


@pytest.mark.parametrize(
    "note",
    [
        None,
        "said",
        {"run_id": "r", "name": "said"},
        {"run_id": 1, "name": "said", "value": 1},
        {"run_id": "r", "name": None, "value": 1},
        {"run_id": "r", "name": "said", "value": 1, "more": 2},
    ],
)
def test_what_is_no_note_is_no_line(note: Any) -> None:
    """Its place and the fix are named, as of any other line."""
    with pytest.raises(InvalidValue, match="note") as caught:
        list(LogReader().entries([msgspec.json.encode({"note": note})]))

    assert "give its run_id and name" in caught.value.fix

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

NOTE: dict[str, Any] = {"cursor": "0.1", "at": 1.0, "domain": "message", "kind": "user", "body": {}}
"""A note, but for its run."""
NAMED: dict[str, Any] = {"run_id": "r", "name": "said", "value": {"é": [1, None]}}
"""One of version 0.1."""


def test_notes_are_no_lines_of_the_run() -> None:
    """Also those that an archive of version 0.1 has before its facts."""
    log = LogLines(Run(run_id="r"))
    more = {**NOTE, "id": "said/1", "correlation": {"turn_id": None}, "body": {"b": "\n"}}
    lines = [log.head(), log.note(NOTE), log.note(more)]
    lines += [msgspec.json.encode({"note": NAMED}) + b"\n"]

    assert b"".join(lines).count(b"\n") == len(lines)
    assert list(LogReader().entries(lines)) == []
    outcome = check(lines)
    assert (outcome.broken, outcome.runs) == (None, ())


@pytest.mark.parametrize(
    "note",
    [
        None,
        "said",
        {"run_id": "r", "name": "said"},
        {**NAMED, "run_id": 1},
        {**NAMED, "name": None},
        {**NAMED, "more": 2},
        NOTE,
        {"run_id": 1, **NOTE},
        {"run_id": "r", **NOTE, "at": "1"},
        {"run_id": "r", **NOTE, "at": True},
        {"run_id": "r", **NOTE, "body": []},
        {"run_id": "r", **NOTE, "id": None},
        {"run_id": "r", **NOTE, "correlation": None},
        {"run_id": "r", **NOTE, "more": 2},
    ],
)
def test_what_is_no_note_is_no_line(note: Any) -> None:
    """Its place and the fix are named, as of any other line."""
    with pytest.raises(InvalidValue, match="note") as caught:
        list(LogReader().entries([msgspec.json.encode({"note": note})]))

    assert "give its run_id" in caught.value.fix

"""Writing logs that `log` reads: how a run was declared, its facts, what was noted beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from ..models.codec import to_json, write
from ..models.facts import Fact
from ..models.run import Run
from ..models.values import Json


class LogLines:
    """Writes one run, a line at a time, each with its line feed.

    Facts at its beginning that name no input are said to be of version 1, which wrote them (K-59):
    a journal knows that of each, its reader hands on facts. After one that does, none may lack it.
    """

    def __init__(self, run: Run) -> None:
        """Begin a run, before its first fact."""
        self._run = run
        self._written_before = True

    def head(self) -> bytes:
        """Return the line of how the run was declared."""
        return msgspec.json.encode({"run": write(self._run)}) + b"\n"

    def note(self, fields: Mapping[str, Json]) -> bytes:
        """Return the line of a note, which has these fields; it stands after its fact."""
        return msgspec.json.encode({"note": {"run_id": self._run.run_id, **fields}}) + b"\n"

    def fact(self, fact: Fact) -> bytes:
        """Return the line of the next fact."""
        self._written_before = self._written_before and fact.input is None
        if self._written_before:
            return msgspec.json.encode({**write(fact), "version": 1}) + b"\n"
        return to_json(fact) + b"\n"


def log_lines(run: Run, facts: Iterable[Fact]) -> Iterator[bytes]:
    """Yield a run as a log that `turnlock check` reads: how it was declared, then its facts."""
    lines = LogLines(run)
    yield lines.head()
    yield from map(lines.fact, facts)

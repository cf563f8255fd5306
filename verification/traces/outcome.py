"""What is said of a whole log."""

from __future__ import annotations

from enum import StrEnum

import attrs


class Kind(StrEnum):
    """What the lines of a run are."""

    FACTS = "facts"
    DELIVERIES = "deliveries"
    SCRIPTS = "deliveries of scripts"
    """Played on fresh runs, over the wire: `sequence` is that of the last script."""


@attrs.frozen(kw_only=True)
class RunCount:
    """One run of the log: how many of its lines were judged, and how far it came.

    `sequence` is that of its last fact, those of an incomplete last commit left out.
    """

    run_id: str
    kind: Kind
    count: int
    sequence: int


@attrs.frozen(kw_only=True)
class Broken:
    """The first line that cannot have happened. `line` counts from 1; so does `column`.

    `rule` is the rule of kernel.md that it breaks; it is empty for a line that is no JSON or none
    of the lines that a log holds. `instead` names what could have stood there.
    """

    line: int
    cause: str
    rule: str = ""
    run_id: str | None = None
    column: int | None = None
    instead: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Torn:
    """Where a log breaks off: inside its last line, or inside the last commit of a run.

    What stands before conforms. `incomplete` counts the facts of the commit that did not end: a
    recovery drops them (K-9).
    """

    line: int
    cause: str
    run_id: str | None = None
    incomplete: int = 0


@attrs.frozen(kw_only=True)
class Outcome:
    """What was read, and the first thing wrong with it, or where it breaks off.

    It conforms when nothing is `broken`, and wholly so when nothing is `torn` either.
    """

    lines: int
    runs: tuple[RunCount, ...]
    broken: Broken | None = None
    torn: tuple[Torn, ...] = ()

    @property
    def judged(self) -> int:
        """How many facts and deliveries were judged, over all runs."""
        return sum(run.count for run in self.runs)

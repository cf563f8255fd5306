"""What the self-test found: techniques × bugs, and the same as a table to read."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Final

import attrs

from .bug import Bug

REQUIRED: Final = {"closure": 1.0, "conformance": 1.0, "guided": 0.9}
"""The share of the bugs that a technique has to find of those that it can reach; of the other
techniques nothing is demanded, but that the edges find the bugs that they alone can reach."""
EDGES: Final = "edges"
RULES: Final = "rules"
_MAY: Final = frozenset({EDGES, RULES})
"""Who may find a bug of the edges: what users subclass is drawn from more than alphabets."""

WITHIN: Final = {200: 0.9, 1_000: 0.97}
"""The share that the rules have to find, with each seed, within so many examples."""

RIGHT: Final = 0.9
"""The share of those that it found which such a technique has to blame on the rule they break."""


@attrs.frozen(kw_only=True)
class Found:
    """A bug was seen: after how many steps, and how long the script is that shows it."""

    steps: int
    """Deliveries that were answered until then; of closure: transitions."""
    length: int
    rule: str = ""
    """The rule that was blamed for it first; empty where none was."""
    examples: tuple[int | None, ...] = ()
    """Of the rules, seed by seed: the example that showed it, or None."""


@attrs.frozen(kw_only=True)
class Cell:
    """What one technique came to in `seconds` of wall time; `failed` says why it came to nothing.

    With the healthy kernel `found` is a false alarm.
    """

    found: Found | None = None
    seconds: float
    failed: str = ""


def rightly(bug: Bug, found: Found) -> bool:
    """Whether the rule that was blamed is one that the bug breaks."""
    return found.rule in {bug.rule, *bug.also}


@attrs.frozen(kw_only=True)
class Line:
    """What every technique came to with one bug planted; `bug` None is the healthy kernel."""

    bug: Bug | None
    cells: tuple[Cell, ...]


@attrs.frozen(kw_only=True)
class Matrix:
    """Techniques × bugs. The first line is the healthy kernel; `seconds` is wall time."""

    techniques: tuple[str, ...]
    lines: tuple[Line, ...]
    seconds: float

    @property
    def bugs(self) -> int:
        """How many bugs were planted."""
        return len(self.lines) - 1

    def sought(self, technique: str) -> int:
        """How many of them this technique can reach: all but those that need the edges."""
        return sum(1 for _ in self._of_bugs(technique))

    def found(self, technique: str) -> int:
        """How many of those it found."""
        return sum(cell.found is not None for _, cell in self._of_bugs(technique))

    def missed(self, technique: str) -> tuple[Bug, ...]:
        """Which of those it did not find."""
        return tuple(bug for bug, cell in self._of_bugs(technique) if cell.found is None)

    def blamed(self, technique: str) -> int:
        """How many of those that it found it blamed on some rule."""
        return sum(bool(found and found.rule) for _, found in self._found(technique))

    def misblamed(self, technique: str) -> tuple[Bug, ...]:
        """Which of those it blamed on another rule than the bug breaks."""
        return tuple(
            bug
            for bug, found in self._found(technique)
            if found and found.rule and not rightly(bug, found)
        )

    def within(self, technique: str, examples: int) -> tuple[int, ...]:
        """How many bugs each seed of the rules found within so many examples."""
        tries = [found.examples for _, found in self._found(technique) if found is not None]
        seeds = zip(*(one for one in tries if one), strict=True)
        return tuple(sum(at is not None and at <= examples for at in seed) for seed in seeds)

    def shortfalls(self) -> tuple[str, ...]:
        """Say what is not as it must be: false alarms, failures, what was found, blamed and not."""
        return (
            *self._false_alarms(),
            *self._failures(),
            *self._poor_yields(),
            *self._poor_rules(),
            *self._wrong_blame(),
            *self._missed_edges(),
            *self._no_edges(),
        )

    def _found(self, technique: str) -> Iterator[tuple[Bug, Found | None]]:
        return ((bug, cell.found) for bug, cell in self._of_bugs(technique))

    def _wrong_blame(self) -> Iterator[str]:
        for technique in self.techniques:
            wrong, blamed = self.misblamed(technique), self.blamed(technique)
            if technique in REQUIRED and len(wrong) > (1 - RIGHT) * blamed:
                names = ", ".join(repr(bug.name) for bug in wrong)
                yield f"{technique} blames the right rule in fewer than {RIGHT:.0%}; not of {names}"

    def _of_bugs(self, technique: str) -> Iterator[tuple[Bug, Cell]]:
        column = self.techniques.index(technique)
        for line in self.lines:
            if line.bug is not None and (not line.bug.edge or technique == EDGES):
                yield line.bug, line.cells[column]

    def _false_alarms(self) -> Iterator[str]:
        for technique, cell in zip(self.techniques, self.lines[0].cells, strict=True):
            if cell.found is not None:
                yield f"{technique} raises a false alarm: it objects to the kernel itself"

    def _failures(self) -> Iterator[str]:
        for column, technique in enumerate(self.techniques):
            failed = [line for line in self.lines if line.cells[column].failed]
            if failed:
                why = f"{_name(failed[0])!r}: {failed[0].cells[column].failed}"
                yield f"{technique} failed in {len(failed)} lines, first in {why}"

    def _poor_yields(self) -> Iterator[str]:
        for technique in self.techniques:
            needed = REQUIRED.get(technique, 0.0)
            if self.found(technique) < needed * self.sought(technique):
                names = ", ".join(repr(bug.name) for bug in self.missed(technique))
                yield f"{technique} finds fewer than {needed:.0%} of the bugs; it missed {names}"

    def _missed_edges(self) -> Iterator[str]:
        if EDGES in self.techniques:
            missed = [bug for bug in self.missed(EDGES) if bug.edge]
            if missed:
                names = ", ".join(f"{bug.name!r} ({bug.edge})" for bug in missed)
                yield f"edges missed what they alone can find: {names}"

    def _no_edges(self) -> Iterator[str]:
        for line in self.lines:
            if line.bug is not None and line.bug.edge:
                pairs = zip(self.techniques, line.cells, strict=True)
                others = [name for name, cell in pairs if cell.found and name not in _MAY]
                if others:
                    found = ", ".join(others)
                    yield f"{line.bug.name!r} is no bug of the edges alone: found by {found}"

    def _poor_rules(self) -> Iterator[str]:
        for technique in self.techniques:
            for examples, needed in WITHIN.items():
                found = self.within(technique, examples)
                if found and min(found) < needed * self.sought(technique):
                    yield f"{technique} finds fewer than {needed:.0%} within {examples:,} examples"


_WIDTH: Final = 16
_NAMES: Final = 38


def render(matrix: Matrix) -> str:
    """Return the matrix as plain text, aligned: in each cell the steps, and the length.

    The last lines say how much each technique found of what it can reach (bugs that the edges alone
    find are sought by the others, too, but not counted against them), and how often the rule that
    it blamed first is one that the bug breaks.
    """
    lines = [
        "steps until found (? where another rule was blamed), and the length of the script",
        "",
        _row("", [f"{name:>{_WIDTH}}" for name in matrix.techniques]),
        _row("the kernel itself", [_healthy(cell) for cell in matrix.lines[0].cells]),
    ]
    for family, group in groupby(matrix.lines[1:], key=_family):
        lines += ["", family]
        lines += [
            _row(f"  {_name(line)}", [_cell(line.bug, cell) for cell in line.cells])
            for line in group
        ]
    seconds = [
        sum(line.cells[column].seconds for line in matrix.lines)
        for column in range(len(matrix.techniques))
    ]
    yields = [_of(matrix.found(name), matrix.sought(name)) for name in matrix.techniques]
    blamed = [
        _of(matrix.blamed(name) - len(matrix.misblamed(name)), matrix.blamed(name))
        for name in matrix.techniques
    ]
    return "\n".join(
        [
            *lines,
            "",
            _row("seconds", [f"{spent:>{_WIDTH}.1f}" for spent in seconds]),
            _row("found", [f"{text:>{_WIDTH}}" for text in yields]),
            _row("first rule right", [f"{text:>{_WIDTH}}" for text in blamed]),
            *_of_seeds(matrix),
        ]
    )


def _of_seeds(matrix: Matrix) -> Iterator[str]:
    """Say how much each seed of the rules found, and what a run takes that finds nothing."""
    if RULES not in matrix.techniques or not matrix.within(RULES, max(WITHIN)):
        return
    column = matrix.techniques.index(RULES)
    for examples in WITHIN:
        found = matrix.within(RULES, examples)
        said = ", ".join(_of(count, matrix.sought(RULES)) for count in found)
        yield f"rules, within {examples:,} examples, seed by seed: {said}"
    edges = [line.cells[column] for line in matrix.lines if line.bug and line.bug.edge]
    if edges:
        seen = sum(cell.found is not None for cell in edges)
        yield f"rules, at a glance, of the bugs of the edges: {_of(seen, len(edges))}"
    seconds = matrix.lines[0].cells[column].seconds / len(matrix.within(RULES, max(WITHIN)))
    yield f"rules: {seconds:.1f} s for {max(WITHIN):,} examples that find nothing"


def _row(name: str, cells: list[str]) -> str:
    return (f"{name:<{_NAMES}}" + "".join(cells)).rstrip()


def _healthy(cell: Cell) -> str:
    said = "failed" if cell.failed else "holds" if cell.found is None else "FALSE ALARM"
    return f"{said:>{_WIDTH}}"


def _cell(bug: Bug | None, cell: Cell) -> str:
    if cell.failed or cell.found is None:
        return f"{'failed' if cell.failed else 'missed':>{_WIDTH}}"
    wrong = bug is not None and cell.found.rule and not rightly(bug, cell.found)
    steps = f"{cell.found.steps:,}{'?' if wrong else ''}"
    return f"{steps:>{_WIDTH - 4}}{cell.found.length:>4}"


def _of(count: int, all_: int) -> str:
    """Round down: 100 % is said of all alone."""
    percent = f"{100 * count // max(1, all_)}%"
    return f"{count} of {all_} {percent:>4}"


def _name(line: Line) -> str:
    return "the kernel itself" if line.bug is None else line.bug.name


def _family(line: Line) -> str:
    return "" if line.bug is None else line.bug.family

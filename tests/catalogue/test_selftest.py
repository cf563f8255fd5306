"""The self-test tells what each technique finds, misses, and wrongly objects to."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from turnlock.engine import new_facts
from turnlock.turn.memory import Memory
from turnlock.verification.findings import Profile

from .bug import Bug, Family
from .bugs import CATALOGUE
from .matrix import Cell, Found, Line, Matrix, render
from .selftest import Technique, selftest

MUTE = next(bug for bug in CATALOGUE if bug.name == "a mute denial")
FORGETFUL = next(bug for bug in CATALOGUE if bug.name == "nothing is remembered")
FORGOTTEN = Memory.close
ROOT = Path(__file__).resolve().parents[2]


def find_words() -> Found | None:
    """A technique that looks at one constant of the kernel."""
    return None if new_facts.DENIED == "denied" else Found(steps=1_234, length=2)


def find_memory() -> Found | None:
    """A technique that looks at one function of the kernel."""
    return None if Memory.close is FORGOTTEN else Found(steps=5, length=5)


def find_process() -> Found:
    """A technique that objects to everything: what it found is the process it runs in."""
    return Found(steps=os.getpid(), length=0)


def fail() -> None:
    """A technique that cannot do its work."""
    raise ZeroDivisionError("no")


WORDS = Technique(name="conformance", find=find_words)
REMEMBERS = Technique(name="memory", find=find_memory)


def said(_: str) -> None:
    """Nobody listens."""


@pytest.mark.parametrize("jobs", [1, 2])
def test_each_bug_is_planted_alone_for_each_technique(jobs: int) -> None:
    """What is found is what is planted; the first line is the healthy kernel."""
    matrix = selftest(
        progress=said, techniques=[WORDS, REMEMBERS], bugs=[MUTE, FORGETFUL], jobs=jobs
    )

    assert matrix.techniques == ("conformance", "memory")
    assert [line.bug for line in matrix.lines] == [None, MUTE, FORGETFUL]
    assert [[cell.found for cell in line.cells] for line in matrix.lines] == [
        [None, None],
        [Found(steps=1_234, length=2), None],
        [None, Found(steps=5, length=5)],
    ]
    assert matrix.missed("conformance") == (FORGETFUL,)
    assert matrix.found("memory") == 1
    assert new_facts.DENIED == "denied"


def workers() -> set[int]:
    """Return the processes in which two jobs planted six bugs."""
    technique = Technique(name="process", find=find_process)
    matrix = selftest(progress=said, techniques=[technique], bugs=CATALOGUE[:6], jobs=2)
    found = [line.cells[0].found for line in matrix.lines]
    assert None not in found
    return {it.steps for it in found if it is not None}


ALONE = (
    "import os; from tests.catalogue.test_selftest import workers; print(os.getpid(), *workers())"
)


def test_bugs_are_planted_in_processes_of_their_own() -> None:
    """Two jobs are two workers, and neither is the process that asked.

    That is one of its own: none is forked beside threads, which other tests may have left here.
    """
    done = subprocess.run(
        [sys.executable, "-c", ALONE], cwd=ROOT, capture_output=True, text=True, check=True
    )
    asker, *found = done.stdout.split()
    assert asker not in found
    assert 1 <= len(found) <= 2


def test_progress_is_told_for_each_line() -> None:
    """Whoever waits sees how far it is."""
    told: list[str] = []

    selftest(progress=told.append, techniques=[WORDS], bugs=[MUTE], jobs=1)

    assert told == ["1 of 2: the kernel itself", "2 of 2: a mute denial"]


def test_what_is_not_as_it_must_be_is_told() -> None:
    """False alarms, failures of the kit, and techniques that find too little; nothing else."""
    techniques = [
        WORDS,
        Technique(name="process", find=find_process),
        Technique(name="broken", find=fail),
        REMEMBERS,
    ]

    matrix = selftest(progress=said, techniques=techniques, bugs=[MUTE, FORGETFUL], jobs=1)

    assert matrix.shortfalls() == (
        "process raises a false alarm: it objects to the kernel itself",
        "broken failed in 3 lines, first in 'the kernel itself': ZeroDivisionError: no",
        "conformance finds fewer than 100% of the bugs; it missed 'nothing is remembered'",
    )
    assert selftest(progress=said, techniques=[WORDS], bugs=[MUTE], jobs=1).shortfalls() == ()


def bug(name: str, family: Family, edge: str = "") -> Bug:
    """A bug for the table alone."""
    return Bug(
        name=name, family=family, intent="to be shown", rule="K-2", plant=MUTE.plant, edge=edge
    )


def of_edges(*cells: tuple[bool, bool]) -> Matrix:
    """What closure and the edges found: of an everyday bug first, then of bugs of the edges."""
    found, missed = Cell(found=Found(steps=5, length=5), seconds=0.0), Cell(seconds=0.0)
    bugs = [bug("one", Family.TURN), *[bug(f"edge {n}", Family.EDGES, "zero") for n in range(9)]]
    return Matrix(
        techniques=("closure", "edges"),
        lines=(
            Line(bug=None, cells=(missed, missed)),
            *[
                Line(bug=it, cells=(found if whole else missed, found if fixed else missed))
                for it, (whole, fixed) in zip(bugs, cells, strict=False)
            ],
        ),
        seconds=0.0,
    )


def test_what_the_edges_alone_can_find_is_asked_of_them_alone() -> None:
    """Closure need not find it, the edges must; of an everyday bug it is the other way round."""
    matrix = of_edges((True, False), (False, True))

    assert matrix.shortfalls() == ()
    assert (matrix.sought("closure"), matrix.found("closure")) == (1, 1)
    assert (matrix.sought("edges"), matrix.found("edges")) == (2, 1)
    (said,) = of_edges((False, True), (False, True)).shortfalls()
    assert said.startswith("closure finds fewer than 100%")
    (said,) = of_edges((True, True), (False, False)).shortfalls()
    assert said == "edges missed what they alone can find: 'edge 0' (zero)"


def test_a_bug_that_closure_finds_is_none_of_the_edges_alone() -> None:
    """Whatever lies inside of an alphabet is closure's to find, and must not be marked."""
    (said,) = of_edges((True, True), (True, True)).shortfalls()

    assert said == "'edge 0' is no bug of the edges alone: found by closure"


def test_a_technique_only_glances_at_a_bug_of_the_edges() -> None:
    """It takes its quicker look there, and nowhere else."""
    looks: list[str] = []

    def look(how: str) -> Callable[[], None]:
        return lambda: looks.append(how)

    technique = Technique(name="guided", find=look("whole"), glance=look("glance"))
    edge = bug("an edge", Family.EDGES, "zero")

    selftest(progress=said, techniques=[technique], bugs=[MUTE, edge], jobs=1)

    assert looks == ["whole", "whole", "glance"]


def test_the_matrix_reads_as_a_table() -> None:
    """Aligned, by family, with what was missed, and the percentages last."""
    cell = Cell(found=Found(steps=12_345, length=7, rule="K-2"), seconds=1.5)
    wrongly = Cell(found=Found(steps=12_345, length=7, rule="K-3"), seconds=1.5)
    missed = Cell(seconds=2.0)
    failed = Cell(seconds=0.5, failed="why")
    matrix = Matrix(
        techniques=("closure", "guided"),
        lines=(
            Line(bug=None, cells=(missed, failed)),
            Line(bug=bug("one", Family.TURN), cells=(cell, missed)),
            Line(bug=bug("two", Family.TURN), cells=(cell, failed)),
            Line(bug=bug("three", Family.GRANTS), cells=(cell, wrongly)),
        ),
        seconds=9.0,
    )

    assert render(matrix).splitlines() == [
        "steps until found (? where another rule was blamed), and the length of the script",
        "",
        "                                               closure          guided",
        "the kernel itself                                holds          failed",
        "",
        "turn",
        "  one                                       12,345   7          missed",
        "  two                                       12,345   7          failed",
        "",
        "grants",
        "  three                                     12,345   7     12,345?   7",
        "",
        "seconds                                            6.5             4.5",
        "found                                      3 of 3 100%     1 of 3  33%",
        "first rule right                           3 of 3 100%     0 of 1   0%",
    ]
    assert matrix.shortfalls()[-1] == (
        "guided blames the right rule in fewer than 90%; not of 'three'"
    )


def seen(*examples: int | None) -> Cell:
    """A cell of the rules: the example that showed it, seed by seed."""
    return Cell(found=Found(steps=9, length=2, rule="K-2", examples=examples), seconds=1.0)


def ruled(*cells: Cell) -> Matrix:
    """A matrix of the rules alone, in which the kernel itself took 12 seconds."""
    lines = [
        Line(bug=bug(f"bug {at}", Family.TURN), cells=(cell,)) for at, cell in enumerate(cells)
    ]
    healthy = Line(bug=None, cells=(Cell(seconds=12.0),))
    return Matrix(techniques=("rules",), lines=(healthy, *lines), seconds=1.0)


def test_the_rules_are_told_seed_by_seed() -> None:
    """Within 200 examples and within 1,000, never the best of the seeds; and what a run takes."""
    matrix = ruled(seen(1, 200), seen(201, 7), seen(1_001, None), Cell(seconds=9.0))

    assert matrix.within("rules", 200) == (1, 2)
    assert matrix.within("rules", 1_000) == (2, 2)
    assert render(matrix).splitlines()[-3:] == [
        "rules, within 200 examples, seed by seed: 1 of 4  25%, 2 of 4  50%",
        "rules, within 1,000 examples, seed by seed: 2 of 4  50%, 2 of 4  50%",
        "rules: 6.0 s for 1,000 examples that find nothing",
    ]


@pytest.mark.parametrize(
    ("examples", "told"),
    [
        ((200, 200), ()),
        ((200, 201), ("rules finds fewer than 90% within 200 examples",)),
        (
            (None, 5),
            (
                "rules finds fewer than 90% within 200 examples",
                "rules finds fewer than 97% within 1,000 examples",
            ),
        ),
    ],
)
def test_the_worst_seed_of_the_rules_has_to_find_enough(
    examples: tuple[int | None, ...], told: tuple[str, ...]
) -> None:
    assert ruled(seen(*examples)).shortfalls() == told


def test_a_false_alarm_is_shown() -> None:
    """Where the healthy kernel is objected to, the table says so in the line of the kernel."""
    technique = Technique(name="process", find=find_process)

    matrix = selftest(
        profile=Profile.DEV, progress=said, techniques=[technique], bugs=[MUTE], jobs=1
    )

    (line,) = [it for it in render(matrix).splitlines() if it.startswith("the kernel itself")]
    assert line.endswith("FALSE ALARM")

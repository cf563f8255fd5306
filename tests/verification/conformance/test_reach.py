"""What a suite is said to reach is what our kernel reads of its tables when it plays the suite."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from turnlock.lifecycle.table import INVOCATION
from turnlock.machines.rows import Row
from turnlock.turn.table import TURN
from turnlock.verification.alphabet.slice import Slice
from turnlock.verification.alphabet.slices import DEV
from turnlock.verification.closure.rows import POSSIBLE, counted_rows, read_rows, spoken
from turnlock.verification.conformance.mealy import access_words
from turnlock.verification.conformance.reach import Reach
from turnlock.verification.conformance.suite import Suite, suite
from turnlock.verification.findings import Raw
from turnlock.verification.subjects.kernel import KernelSubject

from ..depth import DEEP

ROWS: tuple[Row[Any, Any], ...] = (*INVOCATION.rows, *TURN.rows)
RESTING = {
    spoken(row.phase, row.input, row.guard)
    for row in ROWS
    if row.fact is None and row.reason is None
}


def read_by_the_kernel(part: Suite) -> Counter[str]:
    """The rows that move or refuse, as our kernel reads them at each transition of a suite."""
    reads: Counter[str] = Counter()
    for word in access_words(part.machine):
        script = [step.delivery for step in part.walks.walk(word)]
        place = part.walks.walk(word)[-1].leads_to if word else part.walks.start
        for letter in range(part.machine.inputs):
            reads += last_read(part.run, script, part.walks.step(place, letter).delivery)
    return Counter({name: count for name, count in reads.items() if name not in RESTING})


def last_read(run: Raw, script: list[Raw], last: Raw) -> Counter[str]:
    subject = KernelSubject()
    subject.reset(run)
    for delivery in script:
        play(subject, delivery)
    with counted_rows() as tables:
        play(subject, last)
        return read_rows(tables)


def play(subject: KernelSubject, delivery: Raw) -> None:
    if delivery["type"] == "recover":
        subject.recover()
    else:
        subject.receive(delivery)


@pytest.mark.parametrize("part", DEV if DEEP else DEV[1::2], ids=lambda part: part.name)
def test_rows_are_those_that_our_kernel_reads(part: Slice) -> None:
    """Every row that moves or refuses, as often as a kernel of its own run reads it."""
    whole = suite(part, k=0)
    reach = Reach()
    reach.add(whole)
    told = {name: n for name, n in reach.rows.items() if n and name not in RESTING}

    assert told == dict(read_by_the_kernel(whole))
    assert reach.rows.keys() <= set(POSSIBLE)


def test_pairs_are_the_sums_of_their_rows() -> None:
    """A pair with several guards was met as often as they were together."""
    reach = Reach()
    reach.rows.update({"REQUESTED × claim [gated]": 2, "REQUESTED × claim [free]": 3})

    assert reach.coverage.pairs["REQUESTED × claim"] == 5
    assert reach.coverage.rows["REQUESTED × claim [free]"] == 3
    assert reach.coverage.rows["REQUESTED × reject"] == 0

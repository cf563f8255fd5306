"""Plays suites on a system under test, and says where it answers otherwise."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import Final, Protocol, TypeAlias, runtime_checkable

import msgspec

from ..errors import NotDeterministic, SubjectFailed
from ..findings import Finding, Raw
from ..fuzz.differences import difference, expected_receipts
from ..judging import active
from ..oracle.reading import canonical
from ..subjects.subject import Driver, Script
from .suite import Suite, taken
from .walks import Step

TECHNIQUE: Final = "conformance"

BATCH: Final = 512
"""Scripts that are played at once: over a pipe, batching is worth ten times."""
FIRST_BATCH: Final = 64
"""The first batches are smaller: most faults show early."""
SAMPLE: Final = 40
"""Scripts of each suite that are played twice, to find a system that is not deterministic."""

Test: TypeAlias = Sequence[Step]

_encode: Final = msgspec.json.Encoder(order="deterministic").encode


@runtime_checkable
class Streaming(Protocol):
    """A driver that sends batches ahead, and yields the receipts of each in turn."""

    def play_each(self, run: Raw, batches: Iterable[Sequence[Script]]) -> Iterator[list[list[Raw]]]:
        """Play batches of scripts."""
        ...


def first_failure(driver: Driver, suites: Sequence[Suite]) -> Finding | None:
    """Return the shortest finding of the first batch that has one, or None when all suites pass.

    The suites take turns, with growing batches. Raises `SubjectFailed` as the driver does.
    """
    for batch, part in _in_turns(suites):
        for found in failures(driver, part, [batch]):
            if found:
                return shortest(found)
    return None


def failures(
    driver: Driver, part: Suite, batches: Iterable[Sequence[Test]]
) -> Iterator[list[Finding]]:
    """Play batches of tests, and yield for each a finding of each test answered otherwise.

    Raises `SubjectFailed` when the system fails before it has answered anything otherwise.
    """
    sent: deque[Sequence[Test]] = deque()

    def scripts() -> Iterator[list[Script]]:
        for batch in batches:
            sent.append(batch)
            yield [[step.delivery for step in test] for test in batch]

    try:
        for answers in _answers(driver, part.run, scripts()):
            yield _differing(part.run, sent.popleft(), answers)
    except SubjectFailed as failed:
        yield [wrong_before(failed, driver, part.run)]


def _answers(
    driver: Driver, run: Raw, batches: Iterable[Sequence[Script]]
) -> Iterator[list[list[Raw]]]:
    """Let the driver work ahead where it can: a pipe is filled while answers are compared."""
    if isinstance(driver, Streaming):
        return driver.play_each(run, batches)
    return (driver.play(run, batch) for batch in batches)


def _differing(run: Raw, batch: Sequence[Test], answers: list[list[Raw]]) -> list[Finding]:
    found: list[Finding] = []
    right: Counter[Step] = Counter()
    tests = 0
    for test, got in zip(batch, answers, strict=True):
        expected = [step.receipt for step in test]
        if got == expected and (
            not any(step.delicate for step in test) or _encode(got) == _encode(expected)
        ):
            right.update(test)
            tests += 1
            continue
        script = [step.delivery for step in test]
        finding = difference(run, script, expected, got, technique=TECHNIQUE)
        if finding is not None:
            found.append(finding)
    tally = active()
    if tally is not None:
        tally.scripts += tests
        for step, times in right.items():
            tally.right(step.delivery, step.receipt, times)
    return found


def wrong_before(failed: SubjectFailed, driver: Driver, run: Raw) -> Finding:
    """Return what was answered otherwise before the system failed: that is why it failed.

    Raises `failed` when there is nothing.
    """
    script = failed.script or []
    for length in range(1, len(script)):
        start = [dict(step) for step in script[:length]]
        try:
            (got,) = driver.play(run, [start])
        except SubjectFailed:
            break
        expected = expected_receipts(run, start)
        finding = difference(run, start, expected, got, technique=TECHNIQUE)
        if finding is not None:
            return finding
    raise failed


def check_determinism(driver: Driver, part: Suite) -> None:
    """Play a sample of tests twice. Raises `NotDeterministic` with the script that differs."""
    words = part.words[:: max(1, len(part.words) // SAMPLE)][:SAMPLE]
    scripts = [[step.delivery for step in part.walks.walk(word)] for word in words]
    once, again = driver.play(part.run, scripts), driver.play(part.run, scripts)
    for script, one, other in zip(scripts, once, again, strict=True):
        refuse_differing(part.run, script, one, other)


def refuse_differing(run: Raw, script: Sequence[Raw], one: list[Raw], other: list[Raw]) -> None:
    """Raise `NotDeterministic` when a script was answered in two ways."""
    for step, (first, second) in enumerate(zip(one, other, strict=True)):
        if canonical(first) != canonical(second):
            raise NotDeterministic(
                f"the same script was answered in two ways, first at step {step + 1}: "
                f"{canonical(first)}, then {canonical(second)}; "
                f"run {canonical(run)}, script {canonical(script[: step + 1])}"
            )


def shortest(findings: Iterable[Finding]) -> Finding:
    """Return the first of the findings with the shortest script."""
    return min(findings, key=lambda finding: len(finding.script))


def _in_turns(suites: Sequence[Suite]) -> Iterator[tuple[list[list[Step]], Suite]]:
    left = [(part, part.tests()) for part in suites]
    for turn in count():
        size = min(BATCH, FIRST_BATCH << turn)
        remaining: list[tuple[Suite, Iterator[list[Step]]]] = []
        for part, ordered in left:
            if batch := taken(ordered, size):
                yield batch, part
                remaining.append((part, ordered))
        left = remaining
        if not left:
            return

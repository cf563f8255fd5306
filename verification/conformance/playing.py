"""Plays suites on a system under test, and says where it answers otherwise."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import Final, TypeAlias

import msgspec

from ..findings import NO_ANSWER, Finding, Raw
from ..fuzz.differences import difference, refuse_unlike
from ..judging import active
from ..subjects.subject import Driver, Script
from ..subjects.watched import watched
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


def first_failure(driver: Driver, suites: Sequence[Suite]) -> Finding | None:
    """Return the shortest finding of the first batch that has one, or None when all suites pass.

    The suites take turns, with growing batches.
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

    The batch in which the system crashes is the last.
    """
    sent: deque[Sequence[Test]] = deque()

    def scripts() -> Iterator[list[Script]]:
        for batch in batches:
            sent.append(batch)
            yield [[step.delivery for step in test] for test in batch]

    player = watched(driver)
    for answers in player.play_each(part.run, scripts()):
        batch = sent.popleft()
        right = _are_right(batch, answers)
        if player.shares and not all(right):
            answers = _alone(player, part.run, batch, answers)  # noqa: PLW2901 - instead
            right = _are_right(batch, answers)
        yield _differing(part.run, batch, answers, right)


def _alone(
    player: Driver, run: Raw, batch: Sequence[Test], answers: list[list[Raw]]
) -> list[list[Raw]]:
    """Return what a batch that went wrong is answered where each test is played from a fresh run.

    A kernel that errs may change in place what its copies share, and so err in other tests, too.
    Where nothing goes wrong now, the copies are to blame: raises `NotDeterministic`.
    """
    scripts: list[Script] = [[step.delivery for step in test] for test in batch]
    alone = player.play(run, scripts)
    if not all(_are_right(batch, alone)):
        return alone
    for script, one, other in zip(scripts, answers, alone, strict=True):
        refuse_unlike(run, script, one, other)
    return answers  # a crash, which is no answer


def _are_right(batch: Sequence[Test], answers: Sequence[Sequence[Raw]]) -> list[bool]:
    """Say of each test whether all of it was answered rightly.

    Tests share steps, and where they were played together, the very receipts of these: what was
    compared once is not compared again.
    """
    known: dict[Step, Raw] = {}
    found: list[bool] = []
    for test, got in zip(batch, answers, strict=True):
        right = len(got) == len(test)
        for step, receipt in zip(test, got, strict=False):
            if known.get(step) is receipt:
                continue
            if not _is_right(step, receipt):
                right = False
                break
            known[step] = receipt
        found.append(right)
    return found


def _is_right(step: Step, receipt: Raw) -> bool:
    return receipt == step.receipt and (
        not step.delicate or _encode(receipt) == _encode(step.receipt)
    )


def _differing(
    run: Raw, batch: Sequence[Test], answers: list[list[Raw]], right: list[bool]
) -> list[Finding]:
    found: list[Finding] = []
    taken: Counter[Step] = Counter()
    for test, got, is_right in zip(batch, answers, right, strict=True):
        if is_right:
            taken.update(test)
            continue
        expected = [step.receipt for step in test]
        script = [step.delivery for step in test]
        finding = difference(run, script, expected, got, technique=TECHNIQUE)
        if finding is not None:
            found.append(finding)
    tally = active()
    if tally is not None:
        tally.scripts += sum(right)
        for step, times in taken.items():
            tally.right(step.delivery, step.receipt, times)
    return found


def check_determinism(driver: Driver, part: Suite) -> None:
    """Play a sample of tests twice. Raises `NotDeterministic` with the script that differs."""
    words = part.words[:: max(1, len(part.words) // SAMPLE)][:SAMPLE]
    scripts = [[step.delivery for step in part.walks.walk(word)] for word in words]
    play = watched(driver).play
    once, again = play(part.run, scripts), play(part.run, scripts)
    for script, one, other in zip(scripts, once, again, strict=True):
        refuse_unlike(part.run, script, one, other)


def shortest(findings: Iterable[Finding]) -> Finding:
    """Return the first of the findings with the shortest script; a wrong answer before a crash."""
    return min(findings, key=lambda it: (it.rule == NO_ANSWER, len(it.script)))


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

"""Black box: a system that crashes and recovers answers as if it had not (K-2, K-3).

A guided script is played without a crash, with a crash after every step, and, of some scripts, with
one crash after each step in turn. Every receipt is held against the oracle's, which do not depend
on the crashes; what `recover` itself answers must be all that is owed there.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from ..findings import Finding
from ..fuzz.differences import difference
from ..fuzz.guided import RUNS, STEP_BYTES, decode
from ..oracle.oracle import Oracle
from ..subjects.subject import Driver, Raw, Script

TECHNIQUE: Final = "recovery"

STEPS: Final = 24
"""Deliveries of one script."""
SINGLY: Final = 8
"""One script in so many is also played with one crash only, after each of its steps in turn."""

_RECOVER: Final[Raw] = {"type": "recover"}


@attrs.define
class Search:
    """What was played so far, and what was found."""

    scripts: int = 0
    crashes: int = 0
    steps: int = 0
    finding: Finding | None = None


@attrs.frozen
class _Story:
    """A script without crashes: what the oracle answers to each step, and what it owes after it."""

    run: Raw
    script: list[Raw]
    expected: list[Raw]
    owed: list[list[Raw]]

    def crashing_after(self, places: Sequence[int]) -> tuple[Script, list[Raw]]:
        """Return the script with a crash after each of these steps, and the right receipts."""
        script: list[Raw] = []
        expected: list[Raw] = []
        for place, delivery in enumerate(self.script):
            script.append(delivery)
            expected.append(self.expected[place])
            if place in places:
                script.append(_RECOVER)
                expected.append({"accepted": True, "facts": [], "effects": self.owed[place]})
        return script, expected


def crash_search(driver: Driver, *, seed: int, scripts: int) -> Iterator[Search]:
    """Play so many scripts with their crashes, and stop at the first finding.

    The same seed plays the same scripts. Yields the same `Search` after each script. Raises
    `SubjectFailed` as the driver does.
    """
    search = Search()
    draws = random.Random(seed)  # noqa: S311 - draws cases, not secrets
    for number in range(scripts):
        data = bytes([number % len(RUNS)]) + draws.randbytes(STEPS * STEP_BYTES)
        _play(driver, _story(data), search, singly=number % SINGLY == 0)
        yield search
        if search.finding is not None:
            return


def first_failure(driver: Driver, *, seed: int, scripts: int) -> Finding | None:
    """Return the first failure among so many scripts with their crashes."""
    finding = None
    for search in crash_search(driver, seed=seed, scripts=scripts):
        finding = search.finding
    return finding


def blamed_on_recovery(driver: Driver, finding: Finding) -> Finding:
    """Name the rule of recovery that a finding breaks, if the script without its crashes passes.

    What goes wrong without a crash, too, is left with the rule that it breaks.
    """
    plain = [step for step in finding.script if step["type"] != _RECOVER["type"]]
    if len(plain) == len(finding.script) or finding.script[-1]["type"] == _RECOVER["type"]:
        return finding
    (got,) = driver.play(finding.run, [plain])
    receive = Oracle(finding.run).receive
    expected = [receive(step) for step in plain]
    if difference(finding.run, plain, expected, got, technique=TECHNIQUE) is not None:
        return finding
    message = f"after a recovery, and not without it: {finding.message} ({finding.rule})"
    return attrs.evolve(finding, rule="K-2", message=message)


def _story(data: bytes) -> _Story:
    run, decoded = decode(data)
    script = [step for step in decoded if step["type"] != _RECOVER["type"]]
    oracle = Oracle(run)
    expected: list[Raw] = []
    owed: list[list[Raw]] = []
    for step in script:
        expected.append(oracle.receive(step))
        owed.append(oracle.pending())
    return _Story(run, script, expected, owed)


def _play(driver: Driver, story: _Story, search: Search, *, singly: bool) -> None:
    every = range(len(story.script))
    crashes: list[Sequence[int]] = [(), every]
    if singly:
        crashes += [(place,) for place in every]
    played = [story.crashing_after(places) for places in crashes]
    answers = driver.play(story.run, [script for script, _ in played])
    search.scripts += len(played)
    search.crashes += sum(map(len, crashes))
    search.steps += sum(len(script) for script, _ in played)
    for (script, expected), got in zip(played, answers, strict=True):
        search.finding = difference(story.run, script, expected, got, technique=TECHNIQUE)
        if search.finding is not None:
            return

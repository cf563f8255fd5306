"""The guided strategy: bytes decoded along the oracle, played on our kernel, receipts compared.

A step is one delivery decoded, answered by the oracle, answered by the kernel, and both receipts
compared whole. The parts are measured on the same scripts. What is built once, such as deliveries
and templates, is built before; receipts, too, where a driver has played the same scripts before.
So whole steps are measured with a new driver for each round as well, as `turnlock verify` has one,
and so again with what each step judged counted, rule by rule, as it does.
"""

from __future__ import annotations

import random
from functools import partial
from typing import Final

from timing import QUICK, Line, measured, timed

from turnlock.verification.fuzz.differences import difference
from turnlock.verification.fuzz.guided import MAX_STEPS, STEP_BYTES, Decoded, follow
from turnlock.verification.fuzz.technique import guided_search
from turnlock.verification.judging import judging
from turnlock.verification.oracle.oracle import Oracle
from turnlock.verification.subjects.kernel import kernel_driver
from turnlock.verification.subjects.subject import Driver, Raw

SCRIPTS: Final = 300
SEED: Final = 0


def _searched(driver: Driver, scripts: int) -> None:
    for search in guided_search(driver, seed=SEED, examples=scripts):
        if search.finding is not None:
            raise AssertionError(search.finding.message)


def _verified(scripts: int) -> None:
    with judging():
        _searched(kernel_driver(), scripts)


def _followed(examples: list[bytes]) -> None:
    for data in examples:
        follow(data)


def _answered(decoded: list[Decoded]) -> None:
    for one in decoded:
        receive = Oracle(one.run).receive
        for step in one.script:
            receive(step)


def _played(driver: Driver, decoded: list[Decoded]) -> list[list[Raw]]:
    return [driver.play(one.run, [one.script])[0] for one in decoded]


def _compared(decoded: list[Decoded], receipts: list[list[Raw]]) -> None:
    for one, got in zip(decoded, receipts, strict=True):
        difference(one.run, one.script, one.expected, got, technique="guided")


def measure(rounds: int) -> list[Line]:
    """Measure whole steps, then their parts."""
    scripts = SCRIPTS // 10 if rounds <= QUICK else SCRIPTS
    draws = random.Random(SEED)  # noqa: S311 - draws cases, not secrets
    examples = [draws.randbytes(1 + MAX_STEPS * STEP_BYTES) for _ in range(scripts)]
    driver = kernel_driver()
    decoded = [follow(data) for data in examples]
    receipts = _played(driver, decoded)
    steps = scripts * MAX_STEPS
    samples = measured(
        rounds,
        {
            "search": timed(steps, partial(_searched, driver, scripts)),
            "anew": timed(steps, lambda: _searched(kernel_driver(), scripts)),
            "verify": timed(steps, partial(_verified, scripts)),
            "decode": timed(steps, partial(_followed, examples)),
            "oracle": timed(steps, partial(_answered, decoded)),
            "kernel": timed(steps, partial(_played, driver, decoded)),
            "compare": timed(steps, partial(_compared, decoded, receipts)),
        },
    )
    return [
        samples["search"].rate("guided steps a second", "1/s", note="all of it; asked for: 40,000"),
        samples["anew"].rate("– by a driver that never played them", "1/s"),
        samples["verify"].rate("– and counted by rule, as in verify", "1/s"),
        samples["search"].line("guided, a step"),
        samples["decode"].line("decode a step", note="the oracle's answer with it"),
        samples["kernel"].line("play a step on our kernel", note="receipt as JSON objects"),
        samples["compare"].line("compare two receipts"),
        samples["oracle"].line("the oracle alone, a step", note="with the copies it makes"),
    ]

"""Runs the rule-based machine outside of pytest: repeatable, quiet, and with its finding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import attrs
from hypothesis import HealthCheck, Phase, Verbosity, settings
from hypothesis import seed as seeded
from hypothesis.errors import Flaky
from hypothesis.stateful import run_state_machine_as_test

from ..errors import NotDeterministic
from ..findings import Finding
from ..subjects.subject import Subject
from .machine import TurnlockMachine, Violated


@attrs.define
class Played:
    """What a run of the rules came to."""

    examples: int = 0
    steps: int = 0
    finding: Finding | None = None
    reasons: Counter[str] = attrs.field(factory=Counter[str])
    """How often the system under test refused with each reason."""


def run_rules(make_subject: Callable[[], Subject], *, examples: int, seed: int) -> Played:
    """Play the rules on fresh subjects. The same seed plays the same rules.

    Raises `SubjectFailed` when a subject raises, and `NotDeterministic` when Hypothesis cannot
    repeat a failure.
    """
    played = Played()

    class Machine(TurnlockMachine):
        def make_subject(self) -> Subject:
            return make_subject()

        def teardown(self) -> None:
            played.examples += 1
            played.steps += len(self.script)
            played.reasons.update(r["reason"] for r in self.receipts if "reason" in r)

    try:
        run_state_machine_as_test(  # pyright: ignore[reportUnknownMemberType]
            seeded(seed)(Machine),
            settings=settings(
                max_examples=examples,
                deadline=None,
                database=None,
                verbosity=Verbosity.quiet,
                phases=[Phase.generate],  # `shorten` shrinks in a fraction of the time
                report_multiple_bugs=False,
                print_blob=False,
                suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
            ),
        )
    except Violated as violated:
        played.finding = violated.finding
    except Flaky as error:
        raise NotDeterministic(f"the rules failed once and not again: {error}") from error
    return played

"""The rule-based machine that users subclass with a system of their own.

    class MyMachine(TurnlockMachine):
        def make_subject(self) -> Subject:
            return MyKernel()

    TestMyMachine = MyMachine.TestCase

Rules and invariants of your own stand beside these: a rule calls `self.send(delivery)`, an
invariant reads `self.receipts`, `self.script` and `self.oracle.state`.
"""

# ruff: noqa: S101 - an invariant asserts

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

import attrs
from hypothesis import HealthCheck, Phase, Verbosity, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from hypothesis.errors import Flaky
from hypothesis.stateful import invariant, run_state_machine_as_test

from ..errors import NotDeterministic
from ..findings import Finding
from ..subjects.subject import Raw, Subject
from .guided import MAX_STEPS, STEP_BYTES, decode
from .hostile import HostileRules
from .sending import Violated, deliveries, invocations, turns

__all__ = ["TurnlockMachine", "Violated", "deliveries", "invocations", "turns"]

_ENDS: Final = frozenset({"TOOL_EXECUTION_SUCCEEDED", "TOOL_EXECUTION_FAILED", "TOOL_DENIED"})
_LIFECYCLE: Final = _ENDS | {
    "TOOL_APPROVAL_REQUESTED",
    "TOOL_APPROVED",
    "TOOL_EXECUTION_STARTED",
}


class TurnlockMachine(HostileRules):
    """An honest host, and everything that can go wrong, on one run of a system under test.

    Override `make_subject`. Every step is compared with the oracle, whole receipts; a difference
    raises `Violated`, whose text holds the script as JSON lines. The invariants speak of the
    journal alone, as the system under test told it.
    """

    def __init__(self) -> None:
        """Have told nothing yet."""
        super().__init__()
        self._lives = Lives()
        self._heard = 0

    @property
    def journal(self) -> list[Raw]:
        """The facts that the system under test has told, in order."""
        return [fact for receipt in self.receipts for fact in receipt["facts"]]

    @invariant()
    def journal_is_lawful(self) -> None:
        """Nothing is wrong that the journal alone can show: numbers, times, lives and turns."""
        for receipt in self.receipts[self._heard :]:
            for fact in receipt["facts"]:
                self._lives.hear(fact)
        self._heard = len(self.receipts)


class Lives:
    """The lives that a journal tells, fact by fact, of a run that has only these."""

    def __init__(self) -> None:
        """Know of none."""
        self._sequence, self._at = 0, 0.0
        self._turn, self._taken = 0, 0
        self._told: set[tuple[int, str, str]] = set()
        self._ended: set[tuple[int, str]] = set()
        self._kinds = Counter[str]()

    def hear(self, fact: Raw) -> None:
        """Hold the next fact against what was told before."""
        kind = fact["type"]
        self._sequence += 1
        assert fact["sequence"] == self._sequence, "section 4: from 1, no gaps"
        assert fact["at"] >= self._at, "K-10: the clock is a fold of facts"
        self._at = fact["at"]
        self._kinds[kind] += 1
        self._turn += kind == "TURN_OPENED"
        closed = self._kinds["TURN_SETTLED"] + self._kinds["TURN_INTERRUPTED"]
        assert self._turn - closed in {0, 1}, "K-50: a turn closes once"
        assert self._kinds["CONTINUATION_TAKEN"] <= self._kinds["TURN_SETTLED"], "K-52"
        if kind in _LIFECYCLE:
            self._live(kind, (self._turn, fact["invocation_id"]))

    def _live(self, kind: str, life: tuple[int, str]) -> None:
        """K-31: at most one lifecycle fact of each kind, and nothing after the end."""
        assert life not in self._ended, f"K-31: {kind} after the end"
        assert (*life, kind) not in self._told, f"K-31: {kind} twice"
        self._told.add((*life, kind))
        if kind in _ENDS:
            self._ended.add(life)
        if kind == "TOOL_DENIED":
            assert (*life, "TOOL_EXECUTION_STARTED") not in self._told, "K-31: denied and started"


# ------------------------------------------------------------------------------
# Runs the rule-based machine outside of pytest: repeatable, quiet, and with its finding.


@attrs.define
class Played:
    """What a run of the rules came to."""

    examples: int = 0
    steps: int = 0
    finding: Finding | None = None
    reasons: Counter[str] = attrs.field(factory=Counter[str])
    """How often the system under test refused with each reason."""


RULE_STEPS: Final = 40
"""Rules of one example."""


def run_rules(make_subject: Callable[[], Subject], *, examples: int, seed: int) -> Played:
    """Play the rules on fresh subjects, `RULE_STEPS` an example. The same seed plays the same.

    Raises `SubjectFailed` when a subject raises, and `NotDeterministic` when Hypothesis cannot
    repeat a failure.
    """
    played = Played()

    class Machine(TurnlockMachine):
        def make_subject(self) -> Subject:
            return make_subject()

        def violated(self, finding: Finding) -> Violated:
            return Violated(finding)  # whoever asked makes it shorter

        def teardown(self) -> None:
            played.examples += 1
            played.steps += len(self.script)
            played.reasons.update(r["reason"] for r in self.receipts if "reason" in r)

    try:
        run_state_machine_as_test(  # pyright: ignore[reportUnknownMemberType]
            seeded(seed)(Machine),
            settings=settings(
                max_examples=examples,
                stateful_step_count=RULE_STEPS,
                deadline=None,
                database=None,
                verbosity=Verbosity.quiet,
                phases=[Phase.generate],  # `shorten` shrinks in a fraction of the time
                report_multiple_bugs=False,
                print_blob=False,
                suppress_health_check=[HealthCheck.too_slow],  # on a busy machine
            ),
        )
    except Violated as violated:
        played.finding = violated.finding
    except Flaky as error:
        raise NotDeterministic(f"the rules failed once and not again: {error}") from error
    return played


# ------------------------------------------------------------------------------
# The guided scripts as a strategy of Hypothesis, for property tests of your own.


def scripts(*, max_steps: int = MAX_STEPS) -> st.SearchStrategy[tuple[Raw, list[Raw]]]:
    """Return a strategy for pairs of a run object and a script for it, guided into deep states."""
    return st.binary(max_size=1 + max_steps * STEP_BYTES).map(decode)

"""The rule-based machine: what each hostile rule sends, and what a failure says."""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import invariant, rule, run_state_machine_as_test

from turnlock.verification.fuzz.machine import TurnlockMachine, Violated, deliveries
from turnlock.verification.oracle.oracle import Oracle
from turnlock.verification.subjects.subject import Raw, Subject

from .wrong import Forgetful, LosesEffects, TruthIsOne

HOSTILE = (
    "duplicate",
    "altered",
    "late",
    "stale_attempt",
    "stale_decision",
    "mismatched_turn",
    "unknown_id",
    "null_turn",
    "reordered",
    "time_backwards",
    "crash_and_recover",
)
TELLING = {
    "late": {"late"},
    "stale_attempt": {"stale_attempt"},
    "stale_decision": {"already_decided", "not_awaiting_approval", "arguments_mismatch"},
    "mismatched_turn": {"turn_mismatch"},
    "unknown_id": {"unknown_invocation", "unknown_grant", "run_mismatch"},
    "null_turn": {"ambiguous_invocation", "late", "unknown_invocation"},
    "reordered": {"not_started"},
}
"""The reasons that show that a rule sends its kind."""


def play(machine: type[TurnlockMachine], examples: int) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )


class Counting(TurnlockMachine):
    """Counts what each rule sends, and with which reason it is refused."""

    sent: ClassVar[Counter[str]]
    refused: ClassVar[Counter[tuple[str, str]]]
    repeated: ClassVar[int]
    earlier: ClassVar[int]

    def send(self, delivery: Raw, *, back: float = 0.0) -> Raw:
        name = sys._getframe(1).f_code.co_name  # pyright: ignore[reportPrivateUsage]
        if name == "<genexpr>":
            name = "reordered"
        self.sent[name] += 1
        before = [{key: step[key] for key in step if key != "now"} for step in self.script]
        type(self).repeated += name == "duplicate" and delivery in before
        sent = super().send(delivery, back=back)
        if self.receipts[-1].get("reason"):
            self.refused[name, self.receipts[-1]["reason"]] += 1
        latest = max((step.get("now", 0.0) for step in self.script), default=0.0)
        type(self).earlier += name == "time_backwards" and self.script[-1]["now"] < latest
        return sent

    def crash(self) -> None:
        self.sent["crash_and_recover"] += 1
        super().crash()


@pytest.fixture(scope="module")
def counted() -> type[Counting]:
    """The kernel, played by every rule."""

    class Machine(Counting):
        sent: ClassVar = Counter()
        refused: ClassVar = Counter()
        repeated = 0
        earlier = 0

    play(Machine, 60)
    return Machine


@pytest.mark.parametrize("name", HOSTILE)
def test_each_hostile_rule_is_played(name: str, counted: type[Counting]) -> None:
    assert counted.sent[name] >= 10, counted.sent


@pytest.mark.parametrize("name", TELLING)
def test_each_hostile_rule_sends_its_kind(name: str, counted: type[Counting]) -> None:
    """It is refused with a reason of its kind, and not once only."""
    told = sum(counted.refused[name, reason] for reason in TELLING[name])

    assert told >= 5, counted.refused


def test_duplicates_are_word_for_word_and_time_does_run_back(counted: type[Counting]) -> None:
    assert counted.repeated == counted.sent["duplicate"]
    assert counted.earlier >= 5


def test_a_wrong_system_fails_with_its_script_in_the_message() -> None:
    """Step, rule, both answers; the lines are the script, and playing them shows it again."""

    class Wrong(TurnlockMachine):
        def make_subject(self) -> Subject:
            return TruthIsOne()

    with pytest.raises(Violated) as failed:
        play(Wrong, 300)

    head, expected, got, run, _, *lines = str(failed.value).splitlines()
    script = [json.loads(line) for line in lines if line.startswith("{")]
    assert head.startswith(f"step {len(script)} breaks K-30 of kernel.md: ")
    oracle = Oracle(json.loads(run.partition(":")[2]))
    receipts = [oracle.receive(step) for step in script]
    assert json.loads(expected.partition(":")[2]) == receipts[-1]
    assert '"result": true' in got
    assert failed.value.finding.script == tuple(script)


def test_a_wrong_recovery_is_found() -> None:
    class Wrong(TurnlockMachine):
        def make_subject(self) -> Subject:
            return LosesEffects()

    with pytest.raises(Violated, match="K-3"):
        play(Wrong, 100)


def test_a_subject_without_recover_is_never_asked_to() -> None:
    """`Forgetful` raises if it is; the other rules go on."""
    steps = Counter[str]()

    class Machine(TurnlockMachine):
        def make_subject(self) -> Subject:
            return Forgetful()

        def teardown(self) -> None:
            steps.update(step["type"] for step in self.script)

    play(Machine, 12)

    assert steps.total() > 100
    assert not steps["recover"]


def test_rules_and_invariants_of_users_stand_beside_ours() -> None:
    """A rule sends through `send`; an invariant that does not hold fails the machine."""

    class Mine(TurnlockMachine):
        @rule(target=deliveries)
        def nudge(self) -> Raw:
            return self.send({"type": "log", "invocation_id": "a", "text": "nudge"})

        @invariant()
        def nobody_nudges_twice(self) -> None:
            assert [step.get("text") for step in self.script].count("nudge") < 2

    with pytest.raises(AssertionError):
        play(Mine, 100)

"""The rule-based machine: what each rule plays, how it is run, and what a failure says."""

from __future__ import annotations

import json
import math
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import invariant, rule, run_state_machine_as_test

from turnlock.verification import Oracle, Violated, deliveries, invocations, turns
from turnlock.verification.errors import SubjectFailed
from turnlock.verification.fuzz import sending
from turnlock.verification.fuzz.machine import TurnlockMachine, run_rules
from turnlock.verification.oracle.deadlines import deadlines
from turnlock.verification.regressions import played_again, read_regression
from turnlock.verification.subjects.in_process import InProcess
from turnlock.verification.subjects.subject import Raw, Subject

from ..depth import DEEP
from .wrong import Forgetful, LosesEffects, RaisesAtClaims, TruthIsOne, Wavering

TELLING = {
    "late": {"late"},
    "reused_turn": {"turn_reused"},
    "second_turn": {"turn_open", "turn_busy"},
    "stale_epoch": {"stale_epoch"},
    "odd_opening": {"empty_turn", "duplicate_invocation"},
    "observed": {"not_owned"},
    "mismatched_turn": {"turn_mismatch"},
    "null_turn": {"ambiguous_invocation", "late", "unknown_invocation"},
    "after_the_seal": {"turn_sealed", "duplicate"},
    "while_stopping": {"interrupting"},
    "taken_twice": {"no_continuation", "unknown_grant"},
    "second_decision": {"already_decided", "duplicate"},
    "not_shown": {"arguments_mismatch"},
    "needless_decision": {"not_awaiting_approval"},
    "stale_attempt": {"stale_attempt"},
    "second_claim": {"already_started", "not_authorised", "already_settled"},
    "second_outcome": {"duplicate", "conflicting_duplicate"},
    "reordered": {"not_started", "not_approved"},
    "doubted": {"duplicate", "not_authorised", "lease_lost", "already_started"},
    "unknown_id": {"unknown_invocation", "unknown_grant"},
    "wrong_run": {"run_mismatch"},
    "beyond_limit": {"limit_reached"},
    "unacknowledged": {"limit_reached"},
}
"""The reasons, all of which each hostile rule meets by itself, in a run that plays nothing else."""

HONEST = {
    "open_turn": {"TURN_OPENED"},
    "add_call": {"CALL_ADDED"},
    "seal_turn": {"TURN_SEALED"},
    "interrupt": {"TURN_INTERRUPTING", "TURN_INTERRUPTED"},
    "acknowledge": {"CONTINUATION_TAKEN"},
    "grant": {"GRANT_ISSUED", "GRANT_REVOKED"},
    "approve": {"TOOL_APPROVED"},
    "deny": {"TOOL_DENIED"},
    "claim": {"TOOL_EXECUTION_STARTED", "EXECUTION_RETRIED"},
    "renew": {"LEASE_RENEWED"},
    "reject": {"TOOL_EXECUTION_FAILED"},
    "report": {"TOOL_EXECUTION_SUCCEEDED", "TOOL_EXECUTION_FAILED"},
    "lose": {"EXECUTION_IN_DOUBT"},
    "resolve": {"RETRY_AUTHORISED", "TOOL_EXECUTION_SUCCEEDED"},
    "go_on": {"TURN_OPENED", "TOOL_EXECUTION_STARTED", "TURN_SETTLED"},
}
"""The facts, all of which each honest rule brings about by itself."""

OTHERS = {
    "duplicate",
    "altered",
    "anything",
    "crash_and_recover",
    "tick",
    "time_backwards",
    "at_the_bound",
    "tied_deadlines",
}
"""Rules with tests of their own."""


PAGE = Path(__file__).resolve().parents[3] / "docs" / "verification.md"


def alone(name: str, *, runs: int = 9, times: int = 20) -> list[TurnlockMachine]:
    """Play one rule and no other, on each kind of run."""
    machines: list[TurnlockMachine] = []
    for number in range(runs):
        machine: Any = TurnlockMachine()
        machine.begin(pick=number)
        for pick in range(times):
            getattr(machine, name)(pick=pick * 7_919 + number)
        machines.append(machine)
    return machines


def repeated(rule_of_ours: Any) -> None:
    """Play one rule with one number after the other."""
    for pick in range(200):
        rule_of_ours(pick=pick)


def play(machine: type[TurnlockMachine], examples: int, **more: Any) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=[HealthCheck.too_slow],
            **more,
        ),
    )


def test_every_rule_is_told_of_here() -> None:
    """A rule that is added gets a test, and a word in the page."""
    marked = "hypothesis_stateful_rule"
    named = {
        name for name in dir(TurnlockMachine) if hasattr(getattr(TurnlockMachine, name), marked)
    }

    assert named == {*TELLING, *HONEST, *OTHERS}
    page = PAGE.read_text(encoding="utf-8")
    assert [name for name in named if f"`{name}`" not in page] == []


@pytest.mark.parametrize("name", TELLING)
def test_each_hostile_rule_sends_its_kind_by_itself(name: str) -> None:
    """It goes where its story begins, and is refused with each reason of its kind."""
    refused = Counter(
        receipt.get("reason") for machine in alone(name) for receipt in machine.receipts
    )

    assert all(refused[reason] for reason in TELLING[name]), refused


@pytest.mark.parametrize("name", HONEST)
def test_each_honest_rule_gets_there_by_itself(name: str) -> None:
    told = Counter(fact["type"] for machine in alone(name) for fact in machine.journal)

    assert all(told[kind] for kind in HONEST[name]), told


def test_duplicates_are_word_for_word_and_altered_ones_are_not() -> None:
    """Of what the two rules send after the first deliveries, how much was never sent before."""
    unheard = Counter[str]()
    for name in ("duplicate", "altered"):
        for machine in alone(name):
            said = [json.dumps(template.raw) for template in machine.sent]
            unheard[name] += sum(one not in said[:place] for place, one in enumerate(said))

    assert unheard["duplicate"] == 9  # each machine opened a turn
    assert unheard["altered"] > 60, unheard


def test_time_runs_backwards() -> None:
    back = 0
    for machine in alone("time_backwards"):
        times = [step["now"] for step in machine.script if "now" in step]
        back += sum(later < before for before, later in pairwise(times))
    assert back > 30


def test_time_stands_at_a_bound_and_next_to_it() -> None:
    """Exactly at a deadline, at the last float before it, and at the first one past it."""
    met = Counter[str]()
    for machine in alone("at_the_bound", times=40):
        oracle = Oracle(machine.run)
        for step in machine.script:
            for entry in deadlines(oracle.state):
                bound = entry["deadline"]
                met["at"] += step.get("now") == bound
                met["before"] += step.get("now") == math.nextafter(bound, 0.0)
                met["past"] += step.get("now") == math.nextafter(bound, math.inf)
            oracle.receive(step)
    assert min(met["at"], met["before"], met["past"]) > 10, met


def test_deadlines_are_tied() -> None:
    """Two that are over at the same time, in different kinds, and then they are."""
    tied, over = set[tuple[str, ...]](), 0
    for machine in alone("tied_deadlines", times=40):
        oracle = Oracle(machine.run)
        for step in machine.script:
            standing = Counter(entry["deadline"] for entry in deadlines(oracle.state))
            for entry in deadlines(oracle.state):
                if standing[entry["deadline"]] > 1 and step.get("now", 0.0) > entry["deadline"]:
                    kinds = [
                        other["kind"]
                        for other in deadlines(oracle.state)
                        if other["deadline"] == entry["deadline"]
                    ]
                    tied.add(tuple(sorted({*kinds})))
                    over += 1
            oracle.receive(step)
    assert over > 10
    assert len(tied) >= 3, tied


def test_a_crash_may_come_anywhere() -> None:
    """In every phase of an invocation, and in every phase of a turn."""
    phases = set[str]()
    for machine in alone("crash_and_recover", times=40):
        oracle = Oracle(machine.run)
        for step in machine.script:
            turn = oracle.state["turn"]
            if step["type"] == "recover":
                phases |= {"IDLE"} if turn is None else {turn["phase"]}
                records: list[Raw] = [] if turn is None else turn["records"]
                phases |= {record["phase"] for record in records}
            oracle.receive(step)
    assert phases >= {"IDLE", "OPEN", "SEALED", "INTERRUPTING", "REQUESTED", "APPROVED", "STARTED"}
    assert phases >= {"IN_DOUBT", "RETRY_AUTHORISED", "SUCCEEDED", "DENIED"}


def test_the_kernel_holds_without_a_health_check_left_out() -> None:
    """Nothing is filtered away, nothing is too large; on a busy machine it may only be slow."""
    played = run_rules(KernelOnly, examples=40 if DEEP else 12, seed=3)

    assert played.finding is None
    assert played.steps > 40 * played.examples


class KernelOnly(Forgetful):
    """Our kernel, declaring nothing."""


def test_runs_are_repeated_by_their_seed() -> None:
    one, again, other = (
        run_rules(Forgetful, examples=12 if DEEP else 4, seed=seed) for seed in (1, 1, 2)
    )

    assert (one.steps, one.reasons) == (again.steps, again.reasons)
    assert one.reasons != other.reasons


def test_settings_of_hypothesis_count() -> None:
    """So many examples of so many rules."""
    rules = Counter[int]()

    class Machine(TurnlockMachine):
        played = 0

        @invariant()
        def counts(self) -> None:
            self.played += 1

        def teardown(self) -> None:
            rules[self.played] += 1

    play(Machine, 30, stateful_step_count=7)

    assert 30 <= rules.total() < 90
    assert max(rules) == 7 - 1  # one invariant after each rule that follows the two beginnings


# ----------------------------------------------------------------------------- what a failure says


class Wrong(TurnlockMachine):
    def make_subject(self) -> Subject:
        return TruthIsOne()


@pytest.fixture(scope="module")
def violated() -> Violated:
    with pytest.raises(Violated) as failed:
        play(Wrong, 300)
    return failed.value


def test_a_failure_is_told_as_its_shortest_story(violated: Violated) -> None:
    """The rule of the machine, the rule of kernel.md, numbered steps in words, both answers."""
    text = str(violated)

    assert text.startswith(f"found by the rule {violated.rule}, after ")
    assert "K-30: The first outcome is frozen" in text
    assert "The script, 3 steps, the shortest that shows it:" in text
    assert " 2. at 0 s: executor: claim " in text
    assert "differs at facts[0].result: expected 1" in text
    assert len(violated.shortest.script) == 3 <= len(violated.finding.script)


class Crashing(TurnlockMachine):
    def make_subject(self) -> Subject:
        return RaisesAtClaims()


def test_a_crash_is_told_as_its_shortest_story() -> None:
    """With its script, its step, and the file to commit."""
    with pytest.raises(SubjectFailed) as failed:
        play(Crashing, 300)
    text = str(failed.value)

    assert text.startswith("claim was not answered: it raised RuntimeError (no claims) at ")
    assert "The script, 1 step, the shortest that shows it:" in text
    assert " 1. at 0 s: executor: claim " in text
    assert "commit this as tests/regressions/no-answer-" in text


def test_a_failure_is_made_short_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hypothesis asks for the text of a failure more than once, each time of another exception."""
    texts: list[str] = []
    for _ in range(2):
        state: Any = Wrong()
        state.begin(pick=0)
        with pytest.raises(Violated) as failed:
            repeated(state.report)
        texts.append(str(failed.value))
        monkeypatch.setattr(sending, "PLAYS", 0)

    assert texts[0] == texts[1]
    assert "3 steps, the shortest" in texts[1]


def test_a_failure_has_the_file_to_commit(violated: Violated, tmp_path: Any) -> None:
    """Its name, its lines; played again, they show it again."""
    text = str(violated)
    lines = text[text.index('{"format": 1') :]
    kept = tmp_path / "kept.jsonl"
    kept.write_text(lines, encoding="utf-8")

    again = read_regression(kept)

    assert "commit this as tests/regressions/K-30-" in text
    assert again.script == violated.shortest.script
    assert played_again(InProcess(TruthIsOne, name="x"), again.run, again.script) is not None
    assert played_again(InProcess(Forgetful, name="x"), again.run, again.script) is None


def test_what_hypothesis_prints_can_be_pasted() -> None:
    """`state = Wrong()`, `state.begin(pick=…)`, `state.report(pick=…)`: it fails again."""
    state: Any = Wrong()
    state.begin(pick=0)

    with pytest.raises(Violated, match="found by the rule report, after "):
        repeated(state.report)


def test_a_wavering_system_is_not_called_shortest() -> None:
    """What does not fail again is told as it happened, with the remark."""
    Wavering.erred = False
    state: Any = TurnlockMachine()
    state.make_subject = Wavering
    state.begin(pick=0)

    with pytest.raises(Violated) as failed:
        repeated(state.late)

    assert failed.value.shortest == failed.value.finding
    assert "perhaps not the shortest" in str(failed.value)


def test_a_wrong_recovery_is_found() -> None:
    class Machine(TurnlockMachine):
        def make_subject(self) -> Subject:
            return LosesEffects()

    with pytest.raises(Violated, match="K-3"):
        play(Machine, 100)


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


# ----------------------------------------------------------------------------- what users add


class MissesOneLease(Forgetful):
    """Takes no lease of 7.25 s: no rule of ours has one, that of the page has."""

    def receive(self, delivery: Raw) -> Raw:
        if delivery["type"] == "renew" and delivery["lease"] == 7.25:
            return {"accepted": True, "facts": [], "effects": []}
        return super().receive(delivery)


@pytest.fixture(scope="module")
def example() -> str:
    """The subclass that the page on verification shows."""
    section = PAGE.read_text(encoding="utf-8").partition("## Rules of your own")[2]
    return section.partition("```python\n")[2].partition("```")[0]


def test_the_documented_subclass_is_short(example: str) -> None:
    assert 10 < len(example.splitlines()) <= 25


@pytest.mark.parametrize("kernel", [Forgetful, MissesOneLease])
def test_the_documented_subclass_finds_what_its_rule_is_for(
    example: str, kernel: type[Subject]
) -> None:
    """Nothing in a right kernel; in one that fails where only its rule looks, that."""
    names: dict[str, Any] = {"MyKernel": kernel}
    exec(example, names)  # noqa: S102 - it is ours
    machine = names["MyMachine"]

    if kernel is Forgetful:
        play(machine, 60 if DEEP else 15)
    else:
        with pytest.raises(Violated) as failed:
            play(machine, 200)
        assert failed.value.shortest.script[-1]["lease"] == 7.25
        assert not failed.value.rule


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


def test_the_bundles_hold_what_their_names_say() -> None:
    """Users' rules draw from them; what these send comes back in `deliveries`."""
    drawn: dict[str, set[str]] = {"turns": set(), "invocations": set(), "deliveries": set()}

    class Mine(TurnlockMachine):
        known: ClassVar = drawn

        @rule(target=deliveries, turn=turns, name=invocations, delivery=deliveries)
        def draw(self, turn: str, name: str, delivery: Raw) -> Raw:
            self.known["turns"].add(turn)
            self.known["invocations"].add(name)
            self.known["deliveries"].add(delivery["type"])
            return self.send({"type": "log", "turn_id": turn, "invocation_id": name, "text": "hm"})

    play(Mine, 40 if DEEP else 12)

    assert len(drawn["turns"] & {"T1", "T2", "T/3", "T4", "T5", "T6"}) >= 3
    assert len(drawn["invocations"] & {"a", "b", "c/1", "d"}) >= 3
    assert drawn["deliveries"] >= {"open_turn", "claim", "report"}

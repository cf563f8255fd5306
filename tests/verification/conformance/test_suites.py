"""The suites of the slices: their sizes, their determinism, what they reach and what they say."""

from __future__ import annotations

import pytest

from turnlock.verification.alphabet.slice import Slice
from turnlock.verification.alphabet.slices import DEV, SLICES
from turnlock.verification.alphabet.symbols import call
from turnlock.verification.conformance import suite as extraction
from turnlock.verification.conformance.hsi import identifiers
from turnlock.verification.conformance.mealy import access_words, minimal
from turnlock.verification.conformance.reach import Reach
from turnlock.verification.conformance.suite import Suite, suite
from turnlock.verification.conformance.walks import Walks, holds_values
from turnlock.verification.oracle.oracle import Oracle
from turnlock.verification.rulebook import RULES, rules_of

from ..depth import DEEP
from .small import SMALL


@pytest.fixture(scope="module")
def suites() -> list[Suite]:
    """All suites of the gate, generated once."""
    return [suite(part, k=0) for part in SLICES]


SIZES = {
    "settlement": (74, 36, 2_665, 22_345),
    "outcomes": (37, 26, 946, 5_546),
    "reuse": (98, 21, 2_023, 16_087),
    "streaming": (132, 27, 4_659, 33_763),
    "memory": (165, 27, 4_771, 46_116),
    "continuations": (286, 18, 5_149, 49_923),
    "leases": (91, 37, 4_618, 39_615),
    "deadlines": (231, 13, 4_386, 37_606),
    "interrupts": (47, 29, 1_360, 10_737),
    "decisions": (106, 34, 3_601, 42_992),
    "grants": (233, 17, 4_265, 50_199),
    "limits": (152, 27, 4_254, 53_591),
    "observed": (50, 16, 801, 6_505),
}
"""By slice: states, symbols, tests, steps."""


def test_the_sizes_are_pinned(suites: list[Suite]) -> None:
    """A change of semantics or of a slice shows here."""
    found = {
        one.part.name: (one.machine.states, one.machine.inputs, len(one.words), one.steps)
        for one in suites
    }

    assert found == SIZES
    assert sum(one.steps for one in suites) < 700_000
    assert sum(one.steps for one in suites if one.part in DEV) < 100_000


def test_every_reason_rule_and_possible_pair_is_reached(suites: list[Suite]) -> None:
    """Together the slices meet all 31 reasons, all visible rules, all pairs of both tables."""
    reach = Reach()
    for one in suites:
        reach.add(one)
    found = reach.coverage

    assert len(found.reasons) == 31
    assert rules_met(*suites) == {rule.id for rule in RULES if rule.visible}
    for counts in (found.reasons, found.pairs):
        assert [name for name, count in counts.items() if not count] == []


def test_a_suite_of_one_slice_does_not_reach_everything(suites: list[Suite]) -> None:
    """What was never reached stands there with 0: coverage that cannot be missed shows nothing."""
    reach = Reach()
    reach.add(suites[1])
    found = reach.coverage

    assert found.reasons["stale_epoch"] == found.pairs["OPEN × seal_turn"] == 0
    assert "K-55" not in rules_met(suites[1])


def rules_met(*suites: Suite) -> set[str]:
    """The rules that the tests of suites exercise."""
    met = {step for one in suites for test in one.tests() for step in test}
    return {rule for step in met for rule in rules_of(step.delivery, step.receipt)}


def test_suites_are_the_same_each_time() -> None:
    """The same words in the same order, and the same deliveries and receipts."""
    one, other = suite(SMALL, k=1), suite(SMALL, k=1)

    assert one.words == other.words
    assert [[step.delivery for step in test] for test in one.tests()] == [
        [step.delivery for step in test] for test in other.tests()
    ]


@pytest.mark.parametrize("part", DEV, ids=lambda part: part.name)
def test_expected_receipts_are_those_of_an_oracle_that_plays_the_whole_script(part: Slice) -> None:
    """Steps are shared between tests; no test says anything else for it."""
    for test in list(suite(part, k=0).tests())[:: 25 if DEEP else 100]:
        oracle = Oracle(part.run)
        assert [step.receipt for step in test] == [oracle.receive(step.delivery) for step in test]


def test_what_is_forgotten_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps beyond the bound are let go between tests, and come back the same."""
    made = suite(SMALL, k=1)
    before = [[step.receipt for step in test] for test in made.tests()]

    monkeypatch.setattr("turnlock.verification.conformance.walks.MAX_LOOSE", 0)

    assert [[step.receipt for step in test] for test in made.tests()] == before
    made.walks.clear()
    assert [[step.receipt for step in test] for test in made.tests()] == before


def test_a_slice_with_too_many_states_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """An alphabet that is not finite by design must not run on for ever: it is named."""
    monkeypatch.setattr(extraction, "MAX_STATES", 3)

    with pytest.raises(ValueError, match="'small' has more than 3 states"):
        extraction.extracted(SMALL, Walks(SMALL.run, SMALL.symbols))


def test_states_of_a_slice_are_told_apart_by_exact_payloads() -> None:
    """1 and true are two results: the machine has a state for each, and a word that parts them."""
    machine = minimal(extraction.extracted(SMALL, Walks(SMALL.run, SMALL.symbols)))
    one, true = machine.after(0, bytes([0, 1, 2])), machine.after(0, bytes([0, 1, 3]))

    assert one != true
    assert any(
        machine.response(one, word) != machine.response(true, word)
        for word in identifiers(machine)[one]
    )


def test_times_and_counters_do_not_make_states() -> None:
    """Any number of ticks, turns and retries later the state is the one it was: few states do."""
    machine = minimal(extraction.extracted(SMALL, Walks(SMALL.run, SMALL.symbols)))

    assert machine.states == len(access_words(machine)) < 10
    assert machine.after(0, bytes([4, 4, 4])) == 0


def test_a_slice_without_recovery_has_no_such_symbol() -> None:
    """For systems that do not declare it the symbol is dropped, and nothing else."""
    without = SMALL.without("recover")

    assert without.symbols == SMALL.symbols[:-1]
    assert suite(without, k=0).machine.inputs == len(SMALL.symbols) - 1


def test_the_guarantee_names_states_and_symbols() -> None:
    """n + k states over m symbols, and no word more."""
    made = suite(SMALL, k=1)

    assert made.guarantee == (
        f"small: if it behaves as a deterministic machine of at most {made.machine.states + 1} "
        "states over these 6 symbols, it answers every sequence of them as kernel.md says"
    )


@pytest.mark.parametrize(
    ("said", "held"),
    [
        ({"result": 0}, True),
        ({"result": False}, True),
        ({"result": [1]}, True),
        ({"result": "1"}, False),
        ({"result": None}, False),
        ({"results": [{"result": 1.0}]}, True),
        ({"calls": [call("a", arguments={"n": 1})]}, True),
        ({"call": call("a", gated=True)}, False),
    ],
)
def test_values_that_equality_confuses_are_noticed(said: dict[str, object], held: bool) -> None:
    """Numbers and truth values in payloads, wherever receipts hold them; nothing else is slow."""
    assert holds_values({"accepted": True, "facts": [said], "effects": []}) is held
    assert holds_values({"accepted": True, "facts": [], "effects": [said]}) is held

"""Minimisation, identifiers and HSI, on machines small enough to try every fault."""

from __future__ import annotations

import random
from itertools import combinations, pairwise

import pytest

from turnlock.verification.conformance.hsi import identifiers
from turnlock.verification.conformance.hsi import words as hsi
from turnlock.verification.conformance.mealy import Mealy, access_words, minimal, refinements

from .machines import drawn, equivalent, faults, found, with_one_more_state

# Accepts words of a and b that end in ab; states 1 and 3 are one state, and 4 is never reached.
REDUNDANT = Mealy(
    outputs=((0, 0), (0, 1), (0, 0), (0, 1), (1, 1)),
    targets=((1, 0), (3, 2), (1, 0), (1, 2), (4, 4)),
)


def test_minimisation_merges_what_answers_alike_and_drops_what_is_out_of_reach() -> None:
    """States 0 and 2 are one, so are 1 and 3; 4 is gone."""
    assert minimal(REDUNDANT) == Mealy(outputs=((0, 0), (0, 1)), targets=((1, 0), (1, 0)))


@pytest.mark.parametrize("seed", range(20))
def test_the_minimal_machine_answers_as_before_and_cannot_shrink(seed: int) -> None:
    """A machine beside a copy of itself shrinks to one; once more changes nothing."""
    machine = drawn(random.Random(seed), states=5, inputs=3)
    doubled = Mealy(
        outputs=machine.outputs * 2,
        targets=(
            *(tuple(target + 5 for target in row) for row in machine.targets),
            *machine.targets,
        ),
    )

    merged = minimal(doubled)

    assert merged == machine
    assert minimal(merged) == machine


def test_partitions_part_by_length() -> None:
    """Only a word of three inputs tells states 0 and 1 of this chain apart."""
    chain = Mealy(outputs=((0,), (0,), (0,), (1,)), targets=((1,), (2,), (3,), (3,)))

    assert refinements(chain) == [(0, 0, 0, 0), (0, 0, 0, 1), (0, 0, 1, 2), (0, 1, 2, 3)]


def test_access_words_are_shortest_and_closed_under_prefixes() -> None:
    """Each leads to its state; no shorter word does, since the way there is a shortest one."""
    machine = drawn(random.Random(7), states=8, inputs=2)

    words = access_words(machine)

    assert [machine.after(0, word) for word in words] == list(range(8))
    assert all(word[:-1] in words for word in words)
    assert [len(word) for word in words] == sorted(len(word) for word in words)


@pytest.mark.parametrize("seed", range(20))
def test_identifiers_part_every_two_states_by_a_common_prefix(seed: int) -> None:
    """Harmonised: for any two states some prefix of a word of either is answered differently."""
    machine = drawn(random.Random(seed), states=9, inputs=2)

    identified = identifiers(machine)

    for one, other in combinations(range(9), 2):
        common = _prefixes(identified[one]) & _prefixes(identified[other])
        assert any(machine.response(one, word) != machine.response(other, word) for word in common)


def test_what_is_not_minimal_has_no_identifiers() -> None:
    """Two states that answer alike can never be told apart: that is said."""
    with pytest.raises(ValueError, match="minimal"):
        identifiers(REDUNDANT)


@pytest.mark.parametrize("seed", range(10))
def test_every_single_fault_is_found(seed: int) -> None:
    """Each output and each target of a machine changed, one at a time: none passes with k = 0."""
    machine = drawn(random.Random(seed), states=7, inputs=3)
    words = hsi(machine, k=0)

    broken = [faulty for faulty in faults(machine) if not equivalent(machine, faulty)]

    assert len(broken) > 100
    assert [faulty for faulty in broken if not found(machine, faulty, words)] == []


def test_every_machine_of_as_many_states_is_found() -> None:
    """All machines of two states over two inputs, of any number of faults: only equals pass."""
    machine = Mealy(outputs=((0, 0), (0, 1)), targets=((1, 0), (1, 0)))
    words = hsi(machine, k=0)
    rows = [(one, other) for one in (0, 1) for other in (0, 1)]
    every = [
        Mealy(outputs=(a, b), targets=(c, d))
        for a in rows
        for b in rows
        for c in rows
        for d in rows
    ]

    passed = [other for other in every if not found(machine, other, words)]

    assert machine in passed
    assert all(equivalent(machine, other) for other in passed)


@pytest.mark.parametrize("seed", range(5))
def test_one_more_state_is_found_with_k_1(seed: int) -> None:
    """A sample of machines with an extra state: k = 1 finds all that differ, k = 0 need not."""
    rng = random.Random(seed)
    machine = drawn(rng, states=5, inputs=3)
    words = hsi(machine, k=1)

    broken = [with_one_more_state(machine, rng) for _ in range(400)]
    broken = [faulty for faulty in broken if not equivalent(machine, faulty)]

    assert len(broken) > 100
    assert [faulty for faulty in broken if not found(machine, faulty, words)] == []


def test_no_extra_state_misses_what_hides_in_one_more_state() -> None:
    """The guarantee is no more than it says: some machine of n + 1 states passes k = 0."""
    rng = random.Random(1)
    missed = 0
    for _ in range(200):
        machine = drawn(rng, states=5, inputs=3)
        faulty = with_one_more_state(machine, rng)
        differs = not equivalent(machine, faulty)
        missed += differs and not found(machine, faulty, hsi(machine, k=0))

    assert missed > 0


def test_no_test_is_the_beginning_of_another() -> None:
    """What a longer test shows is not asked twice, and nothing is asked in another order."""
    machine = drawn(random.Random(3), states=6, inputs=3)

    words = hsi(machine, k=1)

    assert words == hsi(machine, k=1)
    assert len(set(words)) == len(words)
    assert not any(after.startswith(word) for word, after in pairwise(sorted(words)))


def _prefixes(words: tuple[bytes, ...]) -> set[bytes]:
    return {word[:length] for word in words for length in range(len(word) + 1)}

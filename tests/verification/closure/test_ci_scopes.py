"""The ci profile: every state that its scopes can reach, and what they cover."""

from __future__ import annotations

from typing import Any

from turnlock import Reason
from turnlock.verification.alphabet.scopes import CI, DEV, NIGHTLY
from turnlock.verification.closure.rows import POSSIBLE

STATES_AND_TRANSITIONS = {
    "outcomes": (100, 5_600),
    "leases": (265, 17_225),
    "observed": (207, 5_796),
    "limits": (680, 42_840),
    "alike": (1_194, 93_132),
    "memory": (2_667, 154_686),
    "edits": (2_797, 142_647),
    "grants": (4_121, 222_534),
    "reuse": (3_175, 266_700),
}

Explored = dict[str, dict[str, Any]]


def test_nothing_speaks_against_the_kernel(explored: Explored) -> None:
    """Every scope is explored to its fixpoint, without a finding."""
    assert {name: found["findings"] for name, found in explored.items()} == {
        scope.name: [] for scope in CI
    }
    assert all(found["complete"] for found in explored.values())


def test_the_counts_are_those(explored: Explored) -> None:
    """A change of semantics, or of an alphabet, shows here as another number of states."""
    counts = {name: (found["states"], found["transitions"]) for name, found in explored.items()}

    assert counts == STATES_AND_TRANSITIONS


def test_every_letter_was_fired_at_every_state(explored: Explored) -> None:
    """A transition is a state and a symbol: none is left out."""
    for scope in CI:
        found = explored[scope.name]
        assert found["transitions"] == found["states"] * len(scope.symbols)


def test_every_possible_row_of_both_tables_was_met(explored: Explored) -> None:
    """K-4: nothing of the tables stands outside of what was explored."""
    met = {row for found in explored.values() for row in found["rows"]}

    assert set(POSSIBLE) - met == set()


def test_every_reason_was_given(explored: Explored) -> None:
    """Section 11, the closed list."""
    given = {reason for found in explored.values() for reason in found["reasons"]}

    assert given == set(Reason)


def test_merged_states_were_fired_at_again(explored: Explored) -> None:
    """Each scope had merges to look at."""
    assert all(found["re_expanded"] > 0 for found in explored.values())


def test_the_profiles_hold_one_another() -> None:
    """What a quicker profile explores the slower ones explore, too; names are unique."""
    dev, ci, nightly = ({scope.name for scope in scopes} for scopes in (DEV, CI, NIGHTLY))

    assert dev < ci < nightly
    assert len(nightly) == len(NIGHTLY)

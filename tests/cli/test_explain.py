"""``turnlock explain``: each rule and each reason, however it is asked for, and what is near."""

from __future__ import annotations

import pytest

from turnlock.models.reasons import Reason
from turnlock.verification.rulebook.specification import specification

from .recordings import turnlock

RULES = [rule.id for rule in specification().rules]


def test_a_rule_has_its_words_its_section_and_its_tests() -> None:
    result = turnlock("explain", "K-33")

    assert result.exit_code == 0
    assert result.output.startswith(
        "K-33 claim before start\n"
        "kernel.md, section 6: One invocation\n"
        "\n"
        "An accepted claim of the owed attempt is the only way to start: "
    )
    assert "test_k_33_two_executors_execute_once" in result.output


def test_a_reason_has_the_clauses_and_the_rows_that_give_it() -> None:
    result = turnlock("explain", "turn_sealed")

    assert result.exit_code == 0
    assert "- K-22: `add_call`: SEALED → turn_sealed\n" in result.output
    assert "- turn: SEALED × add_call → turn_sealed\n" in result.output


@pytest.mark.parametrize("name", [*RULES, *(str(reason) for reason in Reason)])
def test_everything_that_is_listed_can_be_explained(name: str) -> None:
    assert name in turnlock("explain").output

    assert turnlock("explain", name).exit_code == 0


@pytest.mark.parametrize("asked", ["K-7", "k7", "7", "k 7", "K-07"])
def test_a_rule_may_be_written_in_any_usual_way(asked: str) -> None:
    assert turnlock("explain", asked).output.startswith("K-7 ids\n")


@pytest.mark.parametrize("asked", [["section", "9"], ["section 9"], ["§9"]])
def test_a_section_is_shown_whole(asked: list[str]) -> None:
    told = turnlock("explain", *asked).output

    assert told.startswith("kernel.md, section 9: Effects\n")
    assert "\n| `wake(at)` |" in told


@pytest.mark.parametrize(
    ("asked", "near"),
    [
        ("lat", "did you mean late?"),
        ("K-333", "did you mean K-33"),
        ("turn busy!", "did you mean turn_busy"),
        ("claim before", "did you mean K-33?"),
        ("zzz", "all are listed by turnlock explain"),
    ],
)
def test_what_is_not_there_is_told_with_what_is_near(asked: str, near: str) -> None:
    result = turnlock("explain", asked)

    assert result.exit_code == 2
    assert f"there is no rule and no reason '{asked}'; {near}" in result.output

"""``turnlock explain``: each rule, reason and code, however it is asked for, and what is near."""

from __future__ import annotations

import re

import pytest

from turnlock.models.reasons import Reason
from turnlock.server.problems import STATUS
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
    ("asked", "told"),
    [
        (
            "d-13",
            "D-13\ndistributed.md, section 2: What the contract needs (D-10 … D-18)\n\n`take(",
        ),
        ("F6", "F-6\nface.md, section 1: Common to all endpoints\n\nNothing that the server adds"),
        ("F-33a", "F-33a\nface.md, section 4: Reading\n\n`GET /v1/models"),
        ("S-86", "S-86\nserver.md, section 11: Commands (S-80 … S-87)\n\nUnknown fields are"),
        ("W-10", "W-10\nworld.md, section 3: Logs (W-10 … W-15)\n\nAny process appends;"),
    ],
)
def test_a_rule_of_another_text_is_shown_as_it_is_written(asked: str, told: str) -> None:
    result = turnlock("explain", asked)

    assert result.exit_code == 0
    assert result.output.startswith(told)


def test_a_rule_that_is_a_row_has_the_head_of_its_table() -> None:
    _, _, _, head, row, *_ = turnlock("explain", "G-4").output.splitlines()

    assert head.startswith("| fault | OpenAI Agents | LangGraph |")
    assert row.startswith("| **G-4** kill -9 in the tool, then resume |")


@pytest.mark.parametrize("letter", "DFGSW")
def test_all_rules_of_the_other_texts_are_listed_and_can_be_explained(letter: str) -> None:
    listed = re.findall(rf"\b{letter}-\d+[a-z]?\b", turnlock("explain").output)

    assert len(listed) >= 16
    for rule in listed:
        assert turnlock("explain", rule).output.startswith(f"{rule}\n"), rule


def test_a_code_that_an_error_names_is_explained() -> None:
    result = turnlock("explain", "run_forgotten")

    assert result.exit_code == 0
    assert (
        "face.md, section 9: Errors\n\nErrors of commands and of the runtime alone:"
        in result.output
    )


def test_a_code_is_shown_with_its_status_and_the_rules_that_name_it() -> None:
    told = turnlock("explain", "forbidden").output

    assert "401 / 403: `unauthenticated` / `forbidden`, `wrong_origin`\n" in told
    assert told.endswith("Named by F-11\n")


@pytest.mark.parametrize("code", sorted(STATUS))
def test_every_code_of_the_server_can_be_explained(code: str) -> None:
    assert turnlock("explain", code).output.startswith(f"{code}, a ")


@pytest.mark.parametrize(
    ("asked", "near"),
    [
        ("F-999", "did you mean F-99"),
        ("W-100", "did you mean W-10"),
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
    assert f"there is no rule, reason or code '{asked}'; {near}" in result.output

"""kernel.md as data: its rules can be found by a machine, and say what the code says."""

from __future__ import annotations

import re

import pytest

from turnlock.models.fact import FactType
from turnlock.models.inputs import Input
from turnlock.models.reasons import Reason
from turnlock.verification.errors import HarnessFailed
from turnlock.verification.rulebook import RULES
from turnlock.verification.rulebook.specification import document, parsed, specification

NUMBERS = (*range(1, 12), *range(20, 23), *range(30, 37), *range(40, 43), *range(50, 62))


def fact_rows() -> dict[str, list[str]]:
    """The rows of section 4's table: each fact, and its inputs."""
    (facts,) = (section for section in specification().sections if section.number == 4)
    rows = re.findall(r"^\|[^|]*\| `(\w+)` \|.*\| ([\w, ]+) \|$", facts.text, re.MULTILINE)
    return {name: inputs.split(", ") for name, inputs in rows}


def test_every_rule_is_found_with_its_words_and_its_section() -> None:
    """K-1 … K-61, each once; the ranges between were never given."""
    rules = {rule.id: rule for rule in specification().rules}

    assert sorted(rules, key=lambda name: int(name[2:])) == [f"K-{number}" for number in NUMBERS]
    assert rules["K-33"].title == "claim before start"
    assert rules["K-33"].sentence.startswith("An accepted claim of the owed attempt is the only")
    assert rules["K-33"].text.endswith("until that claim the old attempt is the current one.")
    assert rules["K-33"].section.title == "One invocation"


def test_sections_count_up_from_one() -> None:
    """What has no number of its own is cited by its section."""
    assert [section.number for section in specification().sections] == list(range(1, 14))


def test_the_rulebook_has_the_titles_of_the_text() -> None:
    """What reports print stands in the text under the same words."""
    titles = {rule.id: rule.title for rule in specification().rules}

    for rule in RULES:
        assert titles.get(rule.id, rule.title) == rule.title


def test_the_closed_lists_of_the_text_are_those_of_the_code() -> None:
    """Sections 4 and 11 name every fact and every reason, in order."""
    (reasons,) = (section for section in specification().sections if section.number == 11)
    listed = re.findall(r"`([a-z_ \n]+)`", reasons.text)[0].split()

    assert listed == [*Reason]
    assert set(fact_rows()) == {*FactType}


def test_the_inputs_of_lifecycle_facts_are_inputs_of_the_table() -> None:
    """K-59: but for an approval request, which the opening of its call brings."""
    rows = fact_rows()
    told = {fact: inputs for fact, inputs in rows.items() if fact.startswith("TOOL_")}

    assert told.pop("TOOL_APPROVAL_REQUESTED") == ["open_turn", "add_call"]
    assert {name for inputs in told.values() for name in inputs} <= {*Input}


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("## 1. A\n- **K-1** *a* – one.\n- **K-1** *b* – two.\n", "K-1 is stated twice"),
        ("## 1. A\n- **K-1** one.\n", "line 2: K-1 is not in the form of a rule"),
        ("## 1. A\n**K-1** *a* – one.\n", "line 2: K-1 is not in the form of a rule"),
        ("- **K-1** *a* – one.\n", "line 1: K-1 is not in the form of a rule"),
    ],
)
def test_a_rule_that_nobody_would_find_is_told(text: str, cause: str) -> None:
    """The negative control: a rule in another form is no rule, and must not be lost in silence."""
    with pytest.raises(ValueError, match=cause):
        parsed(text)


def test_a_rule_ends_where_its_item_ends() -> None:
    text = "## 1. A\n- **K-1** *a* – one,\n  two.\nThree.\n- **K-2** *b* – 4. Five.\n\n## 2. B\nx"

    first, second = parsed(text).rules

    assert (first.text, first.sentence) == ("one, two.", "one, two.")
    assert (second.text, second.sentence) == ("4. Five.", "4.")
    assert [section.text for section in parsed(text).sections][1] == "x"


def test_an_installation_without_the_text_is_told() -> None:
    with pytest.raises(HarnessFailed, match="the specification is not there"):
        document("none.md")

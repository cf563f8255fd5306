"""Section 12 of docs/spec/world.md: each row of the table of faults has a test that names it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from turnlock.runtime.executions import Executions

from ..named import names_in
from .explore import Deaths, played, writes_of_host, writes_of_person, wrong_with
from .living import BURIED

pytestmark = BURIED


TESTS: Final = Path(__file__).resolve().parents[2]
SPEC: Final = TESTS.parent / "docs" / "spec" / "world.md"

SWEPT: Final[dict[str, str]] = {
    "message kept, not heard": r"after entry say/",
    "prompt kept": r"after note \S+ said/[1479]$",
    "answer kept, turn not opened": r"before append \S+ TURN_OPENED",
    "request open": r"after append \S+ .*TOOL_APPROVAL_REQUESTED",
    "approved, not claimed": r"after append \S+ TOOL_APPROVED$",
    "running": r"after append \S+ .*TOOL_EXECUTION_STARTED",
    "settled, model not asked": r"after append \S+ .*TURN_SETTLED",
    "last answer kept, not published": r"before entry \S+/said/",
    "published, next not heard": r"after entry \S+/said/",
    "`passed/` noted, handoff not appended": r"before entry \S+/limit/",
    "`say` sent, not kept": r"before entry say/",
}
"""Rows that the story comes by, and where it is killed for each."""
APART: Final = "approved, not claimed"
"""The row that is there only where a claim is an append of its own: it waited for a slot, say."""
ELSEWHERE: Final[dict[str, str]] = {
    "while the model speaks": "world/crash/test_everywhere.py::test_w_33_killed_at_every_step",
    "while it speaks, early calls added": "world/crash/test_everywhere.py"
    "::test_w_58_killed_before_and_after_every_write_with_early_calls",
    "title asked": "world/test_idle_and_titles.py"
    "::test_w_70_killed_while_the_title_is_asked_it_is_asked_again",
    "question open, host dies": "world/test_mcp_questions.py"
    "::test_w_67_a_host_that_dies_has_its_question_cancelled_by_the_next",
    "reply kept, its call gone": "world/test_questions.py"
    "::test_w_67_a_reply_stands_though_its_call_is_gone",
    "MEMORY_CLEARED, AGENT_REMOVED, CHAT_CLOSED with a turn open": "world/test_leaving.py"
    "::test_w_4_who_leaves_with_a_turn_open_is_interrupted",
    "ownership lost": "world/test_two_hosts.py"
    "::test_w_36_two_processes_perform_one_world_and_one_is_killed",
    "a trusted MCP server changes its tools under a grant for a tool": "world/test_changed_tools.py"
    "::test_w_4_a_tool_that_changes_under_a_grant_waits_for_a_person",
    "disk full": "world/test_oracle.py::test_w_6_a_journal_that_fails_delays_and_changes_nothing",
}
"""Rows that have a story of their own."""


def rows() -> list[str]:
    """The first column of the table."""
    section = SPEC.read_text(encoding="utf-8").partition("## 12.")[2].partition("\n## ")[0]
    found = re.findall(r"^\| (.+?) \|", section, re.MULTILINE)
    return [it for it in found if it != "at" and not it.startswith("-")]


def apart(*_: object) -> tuple[()]:
    """Instead of `Executions.claims`: claim nothing together with what asks for it."""
    return ()


@pytest.mark.parametrize("row", SWEPT)
def test_the_story_is_killed_at_this_row(row: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Section 12: wherever the story comes by it, the next process does what the row says."""
    points = writes_of_host()
    if row == APART:
        monkeypatch.setattr(Executions, "claims", apart)
        host = played(Deaths()).host
        assert host is not None
        points = host.journal.points
    steps = [step for step, name in points.items() if re.match(SWEPT[row], name)]
    of_person = [step for step, name in writes_of_person().items() if re.match(SWEPT[row], name)]

    deaths = [Deaths([step]) for step in steps]
    deaths += [Deaths(of_person=[step]) for step in of_person]
    found = [played(it) for it in deaths]

    assert found
    assert [(it.deaths, wrong_with(it)) for it in found if wrong_with(it)] == []


def test_each_row_has_a_test() -> None:
    """Section 12: none is left out in silence, and each test that is named is there."""
    assert {*SWEPT, *ELSEWHERE} == {*rows()}
    for named in ELSEWHERE.values():
        file, _, test = named.partition("::")
        assert test in names_in(TESTS / file), named

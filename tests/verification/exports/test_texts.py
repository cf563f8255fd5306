"""The text for TLC: each row that moves stands there, and what it says is done."""

from __future__ import annotations

import re

import pytest

from turnlock.lifecycle.phases import Phase
from turnlock.models.inputs import Input
from turnlock.verification.exports.derive import derive
from turnlock.verification.exports.explore import INVARIANTS
from turnlock.verification.exports.model import Gate, Scope
from turnlock.verification.exports.technique import export
from turnlock.verification.exports.tla import tla

from .plants import MOVING, PLANTS


def text(*, invocations: int = 2) -> str:
    return "\n".join(export(invocations=invocations).values())


def test_the_files_have_the_names_that_tlc_expects() -> None:
    """TLC wants a module in a file of its name, with a configuration beside it."""
    assert list(export(invocations=1)) == ["turnlock.tla", "turnlock.cfg"]


def test_the_text_is_deterministic() -> None:
    """The same tables give the same bytes, so that a diff shows what changed."""
    assert text() == text()


def test_every_row_that_moves_is_read_aloud() -> None:
    """Whoever knows the tables finds each of their rows in the text."""
    assert [row for row in MOVING if row not in text()] == []


def test_a_wrong_row_shows_in_the_text() -> None:
    """The negative control: the text is made from the rows, not from a memory of them."""
    wrong = "\n".join(tla(PLANTS["RunsOnlyWhatWasOwed"]()).values())

    assert "REQUESTED × claim [gated] → STARTED / TOOL_EXECUTION_STARTED" in wrong
    assert "REQUESTED × claim [gated]" not in text()


@pytest.mark.parametrize("name", [*INVARIANTS, "RankNeverFalls"])
def test_every_property_is_stated(name: str) -> None:
    """TLC checks what our own exploration checks."""
    assert name in text()


ACTION = re.compile(
    r"^\\\* (?P<from>\w+) × \w+(?: \[\w+\])? → (?P<to>\w+)[^\n]*\n"
    r"\w+\(i\) ==\n(?P<body>(?:    .*\n)+)",
    re.MULTILINE,
)


def test_each_action_does_what_its_row_says() -> None:
    """Equal counts do not show where a transition leads: each text must begin and lead as read."""
    found = list(ACTION.finditer(text()))

    moves = [action for action in derive(Scope(invocations=2)).actions if action.move is not None]
    assert len(found) == len(moves) > 15
    for action in found:
        assert f'member[i].phase = "{action["from"]}"' in action["body"]
        assert f'"{action["to"]}", ' in action["body"]


def test_a_guard_of_an_action_is_no_disjunction() -> None:
    """TLC would count each true branch of one as a successor of its own."""
    module = export(invocations=2)["turnlock.tla"]

    actions, following = module.split("\nNext ==")
    assert "\\/" not in actions.split("Happens(to")[1]
    assert following.count("\\/ \\E") == 1


def test_the_words_of_the_text_are_those_of_the_tables() -> None:
    """Phases are never renamed."""
    assert all(str(phase) in text() for phase in Phase)


def test_the_number_of_calls_is_that_asked_for() -> None:
    """In the configuration."""
    assert "N = 3" in export(invocations=3)["turnlock.cfg"]


def test_gates_bound_where_a_call_may_stand() -> None:
    """A gated call may stand first only, where the second gate is free."""
    bounded = "\n".join(export(invocations=2, gates=(Gate.GATED, Gate.FREE)).values())

    assert "members \\in {0}" in bounded
    assert "members \\in {0}" not in text()


def test_refused_rows_are_no_actions() -> None:
    """What is refused changes nothing (K-2): the text does not speak of it."""
    assert f"× {Input.SEAL_TURN} → duplicate" not in text()

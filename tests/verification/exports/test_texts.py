"""The texts for TLC and Spin: each row that moves stands there, and what it says is done."""

from __future__ import annotations

import re

import pytest

from turnlock.lifecycle.phases import Phase
from turnlock.turn.phases import TurnInput
from turnlock.verification.exports.derive import derive
from turnlock.verification.exports.explore import INVARIANTS
from turnlock.verification.exports.model import Gate, Scope
from turnlock.verification.exports.promela import promela
from turnlock.verification.exports.technique import Kind, export
from turnlock.verification.exports.tla import tla

from .plants import MOVING, PLANTS

KINDS: tuple[Kind, ...] = ("tla", "promela")


def text(kind: Kind, *, invocations: int = 2) -> str:
    return "\n".join(export(kind, invocations=invocations).values())


def test_the_files_have_the_names_that_the_tools_expect() -> None:
    """TLC wants a module in a file of its name, with a configuration beside it."""
    assert list(export("tla", invocations=1)) == ["turnlock.tla", "turnlock.cfg"]
    assert list(export("promela", invocations=1)) == ["turnlock.pml"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_is_deterministic(kind: Kind) -> None:
    """The same tables give the same bytes, so that a diff shows what changed."""
    assert text(kind) == text(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_every_row_that_moves_is_read_aloud(kind: Kind) -> None:
    """Whoever knows the tables finds each of their rows in the text."""
    assert [row for row in MOVING if row not in text(kind)] == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_row_shows_in_the_text(kind: Kind) -> None:
    """The negative control: the text is made from the rows, not from a memory of them."""
    writer = {"tla": tla, "promela": promela}[kind]

    wrong = "\n".join(writer(PLANTS["RunsOnlyWhatWasOwed"]()).values())

    assert "REQUESTED × claim [gated] → STARTED / TOOL_EXECUTION_STARTED" in wrong
    assert "REQUESTED × claim [gated]" not in text(kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [*INVARIANTS, "RankNeverFalls"])
def test_every_property_is_stated(kind: Kind, name: str) -> None:
    """Both tools check what our own exploration checks; Promela has no names, but the rules."""
    rules = {
        "TypeOK": "asked <= 1",
        "ExactlyOneContinuation": "K-52",
        "NeverDeniedAndStarted": "K-31",
        "RunsOnlyWhatWasOwed": "K-33",
        "ClosedIffAllTerminal": "K-50",
        "RankNeverFalls": "K-5",
    }

    assert (name if kind == "tla" else rules[name]) in text(kind)


TLA_ACTION = re.compile(
    r"^\\\* (?P<from>\w+) × \w+(?: \[\w+\])? → (?P<to>\w+)[^\n]*\n"
    r"\w+\(i\) ==\n(?P<body>(?:    .*\n)+)",
    re.MULTILINE,
)
PROMELA_OPTION = re.compile(
    r"/\* (?P<from>\w+) × \w+(?: \[\w+\])? → (?P<to>\w+)[^\n]*\*/\n"
    r"    :: d_step (?P<body>[^\n]*me < members[^\n]*\n[^\n]*)\n"
)


@pytest.mark.parametrize(
    ("kind", "pattern", "begins", "leads"),
    [
        ("tla", TLA_ACTION, 'member[i].phase = "{}"', '"{}", '),
        ("promela", PROMELA_OPTION, "phase[me] == {} ", "moves(me, {}, "),
    ],
)
def test_each_action_does_what_its_row_says(
    kind: Kind, pattern: re.Pattern[str], begins: str, leads: str
) -> None:
    """Equal counts do not show where a transition leads: each text must begin and lead as read."""
    found = list(pattern.finditer(text(kind)))

    moves = [action for action in derive(Scope(invocations=2)).actions if action.move is not None]
    assert len(found) == len(moves) > 15
    for action in found:
        assert begins.format(action["from"]) in action["body"]
        assert leads.format(action["to"]) in action["body"]


def test_a_guard_of_a_tla_action_is_no_disjunction() -> None:
    """TLC would count each true branch of one as a successor of its own."""
    module = export("tla", invocations=2)["turnlock.tla"]

    actions, following = module.split("\nNext ==")
    assert "\\/" not in actions.split("Happens(to")[1]
    assert following.count("\\/ \\E") == 1


@pytest.mark.parametrize("kind", KINDS)
def test_the_words_of_the_text_are_those_of_the_tables(kind: Kind) -> None:
    """Phases are never renamed."""
    assert all(str(phase) in text(kind) for phase in Phase)


def test_the_number_of_calls_is_that_asked_for() -> None:
    """In the configuration of TLC, and at the head of the Promela."""
    assert "N = 3" in export("tla", invocations=3)["turnlock.cfg"]
    assert re.search(r"#define N +3 ", text("promela", invocations=3))


@pytest.mark.parametrize(
    ("kind", "told"),
    [("tla", "members \\in {0}"), ("promela", "(members == 0)")],
)
def test_gates_bound_where_a_call_may_stand(kind: Kind, told: str) -> None:
    """A gated call may stand first only, where the second gate is free."""
    gates = (Gate.GATED, Gate.FREE)

    bounded = "\n".join(export(kind, invocations=2, gates=gates).values())

    assert told in bounded
    assert told not in text(kind)


def test_refused_rows_are_no_actions() -> None:
    """What is refused changes nothing (K-2): the texts do not speak of it."""
    assert f"× {TurnInput.SEAL_TURN} → duplicate" not in text("tla")
    assert "not_approved" not in text("promela")

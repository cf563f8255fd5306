"""Section 8, every (phase, input) pair: the table of kernel.md, written down by hand once more.

A cell holds the facts that must come of it, or the reason; `-` is nothing. Closed turns are not
the active one, so admission answers for them (K-22).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ..outcome import Outcome
from ..script import Script

MATRIX = """
phase                  | add_call     | add_call again       | seal_turn                | becomes terminal | the last becomes terminal | interrupt                          | grace over
OPEN, all terminal     | CALL_ADDED   | duplicate_invocation | TURN_SEALED TURN_SETTLED | n/a              | n/a                       | TURN_INTERRUPTING TURN_INTERRUPTED | -
OPEN, empty            | CALL_ADDED   | n/a                  | TURN_SEALED TURN_SETTLED | n/a              | n/a                       | TURN_INTERRUPTING TURN_INTERRUPTED | -
OPEN, something runs   | CALL_ADDED   | duplicate_invocation | TURN_SEALED              | -                | -                         | TURN_INTERRUPTING                  | -
SEALED, something runs | turn_sealed  | turn_sealed          | duplicate                | -                | TURN_SETTLED              | TURN_INTERRUPTING                  | -
INTERRUPTING, it runs  | interrupting | interrupting         | interrupting             | -                | TURN_INTERRUPTED          | duplicate                          | TURN_INTERRUPTED
SETTLED                | late         | late                 | late                     | n/a              | n/a                       | late                               | -
INTERRUPTED            | late         | late                 | late                     | n/a              | n/a                       | late                               | -
"""  # noqa: E501

WAYS: dict[str, list[Callable[[Script], Outcome]]] = {
    "OPEN, all terminal": [
        lambda play: play.opens("T1", "a", sealed=False),
        lambda play: play.rejects("a"),
    ],
    "OPEN, empty": [lambda play: play.opens("T1", sealed=False)],
    "OPEN, something runs": [
        lambda play: play.opens("T1", "a", "b", sealed=False),
        lambda play: play.claims("a"),
        lambda play: play.claims("b"),
    ],
    "SEALED, something runs": [
        lambda play: play.opens("T1", "a", "b"),
        lambda play: play.claims("a"),
        lambda play: play.claims("b"),
    ],
    "INTERRUPTING, it runs": [
        lambda play: play.opens("T1", "a", "b", sealed=False),
        lambda play: play.claims("a"),
        lambda play: play.claims("b"),
        lambda play: play.interrupts(grace=100.0),
    ],
    "SETTLED": [lambda play: play.opens("T1", "a"), lambda play: play.rejects("a")],
    "INTERRUPTED": [lambda play: play.opens("T1", "a"), lambda play: play.interrupts()],
}


def the_last_ends(play: Script) -> Outcome:
    play.reports("a")
    return play.reports("b")


INPUTS: dict[str, Callable[[Script], Outcome]] = {
    "add_call": lambda play: play.adds("c"),
    "add_call again": lambda play: play.adds("a"),
    "seal_turn": lambda play: play.seals(),
    "becomes terminal": lambda play: play.reports("a"),
    "the last becomes terminal": the_last_ends,
    "interrupt": lambda play: play.interrupts(),
    "grace over": lambda play: play.at(200.0).ticks(),
}


def cells() -> list[tuple[str, str, str]]:
    head, *rows = MATRIX.strip().splitlines()
    _, *inputs = (cell.strip() for cell in head.split("|"))
    found: list[tuple[str, str, str]] = []
    for row in rows:
        situation, *expected = (cell.strip() for cell in row.split("|"))
        found += [
            (situation, by, cell)
            for by, cell in zip(inputs, expected, strict=True)
            if cell != "n/a"
        ]
    return found


@pytest.mark.parametrize(
    ("situation", "by", "expected"), cells(), ids=[f"{cell[0]} - {cell[1]}" for cell in cells()]
)
def test_every_turn_pair(situation: str, by: str, expected: str) -> None:
    """The facts of the turn are those of the cell, or the reason is, and then nothing happens."""
    play = Script()
    for line in WAYS[situation]:
        assert line(play).reason is None

    outcome = INPUTS[by](play)

    turn_facts = [name.split()[0] for name in outcome.facts if name.startswith(("TURN", "CALL"))]
    if expected == "-":
        assert (outcome.reason, turn_facts) == (None, [])
    elif expected.isupper():
        assert (outcome.reason, turn_facts) == (None, expected.split())
    else:
        assert (outcome.reason, outcome.facts, outcome.asks) == (expected, (), ())


def test_every_turn_pair_has_its_situation() -> None:
    """No row of the matrix is left out, and none is invented."""
    assert {cell[0] for cell in cells()} == set(WAYS)
    assert {cell[1] for cell in cells()} == set(INPUTS)

"""Section 8, every (phase, input) pair: the table of kernel.md, written down by hand once more.

A cell holds the facts that must come of it, or the reason; `-` is nothing. Closed turns are not
the active one, so admission answers for them (K-22).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from turnlock import Reason

from ..outcome import Outcome, gated, happens, refused
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


# ----------------------------------------------------------------------- section 4, the order


def test_section_4_order_of_the_facts_of_an_opening() -> None:
    """TURN_OPENED, then per call in order its request, its approval by grant, or nothing."""
    play = Script()
    play.opens("T0", gated("g", n=1))
    play.approves("g", "session")  # type: ignore[arg-type]
    play.interrupts()

    assert play.opens("T1", gated("c", n=2), "free", gated("b", n=1), gated("a", n=3)) == happens(
        "TURN_OPENED T1",
        "TOOL_APPROVAL_REQUESTED c",
        "TOOL_APPROVED b",
        "TOOL_APPROVAL_REQUESTED a",
    ).asking("execute free 1", "execute b 1")


@pytest.mark.parametrize("reason", [None, ""])
def test_section_4_a_deny_without_a_reason_says_denied(reason: str | None) -> None:
    """Absent or empty: the fact and the continuation say why all the same."""
    play = Script()
    play.opens("T1", gated("a"))

    play.denies("a", reason)

    assert play.results() == [("a", "denied", "denied")]


def test_section_11_the_closed_list_of_reasons() -> None:
    """These and no others, and their names are their values."""
    listed = """
        run_mismatch late no_active_turn turn_mismatch unknown_invocation ambiguous_invocation
        stale_attempt stale_epoch turn_open turn_busy turn_reused duplicate_invocation empty_turn
        turn_sealed interrupting duplicate conflicting_duplicate already_decided
        not_awaiting_approval not_approved not_started already_started already_settled
        not_authorised not_in_doubt lease_lost arguments_mismatch no_continuation unknown_grant
        limit_reached
    """

    assert [str(reason) for reason in Reason] == listed.split()
    assert refused(Reason("late")) == refused(Reason.LATE)

"""The status machine is one, and what its table calls possible is what can happen."""

from __future__ import annotations

import pytest

from turnlock import Fact, Run, Scope
from turnlock.machines.interchange import Subject, to_transitions
from turnlock.machines.proof import prove
from turnlock.machines.rows import Row
from turnlock.models.fact import FactType
from turnlock.views import run_fold
from turnlock.views.run_view import RunView
from turnlock.views.status import STATUS, STATUS_OF, Status, StatusRow, step

from ..outcome import gated
from ..script import Script
from .played import viewed

SEEDS = range(400)


def test_the_machine_is_proved() -> None:
    """Total over every status and every fact, without overlap, every status reachable."""
    prove(STATUS)


def test_it_goes_round() -> None:
    """No status is the end: an agent can always be given more to do."""
    assert STATUS.terminal == frozenset()


def test_where_the_question_is_asked_its_answer_is_followed() -> None:
    """A guarded row leads to the status of what is most pressing, and nowhere else."""
    asked = [row for row in STATUS.rows if row.guard and row.possible]
    assert asked
    for row in asked:
        assert row.target is STATUS_OF[next(it for it in STATUS_OF if it == row.guard)]


def a_grant_that_expires_while_idle() -> list[Fact]:
    """The one possible row that random scripts take thousands of steps to meet."""
    play = Script()
    play.opens("T1", gated("a"))
    play.approves("a", Scope.SESSION, expires_in=60)
    play.claims("a")
    play.reports("a", 1)
    play.acknowledges("T1")
    play.at(100).ticks()
    return play.journal


def test_what_is_possible_happens_and_what_is_not_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of the rows that guided scripts step through, each is possible, and none is missing."""
    stepped: set[tuple[Status, FactType, str]] = set()

    def watching(status: Status, fact: FactType, pressing: str) -> StatusRow:
        row = step(status, fact, pressing)
        stepped.add((row.phase, row.input, row.guard))
        return row

    monkeypatch.setattr(run_fold, "step", watching)
    for seed in SEEDS:
        for view, facts in viewed(seed):
            view.after(facts)
    RunView.of(Run(run_id="r"), a_grant_that_expires_while_idle())
    possible = {(row.phase, row.input, row.guard) for row in STATUS.rows if row.possible}
    assert {*map(str, stepped - possible)} == set()
    assert {*map(str, possible - stepped)} == set()


def test_another_interpreter_goes_the_same_way() -> None:
    """A `transitions.Machine` of the rows agrees about every possible row: it can be drawn."""
    machine = to_transitions(STATUS)
    rows: list[Row[Status, FactType]] = [row for row in STATUS.rows if row.possible]
    for row in rows:
        subject = Subject(phase=str(row.phase), guard=row.guard)
        machine.events[str(row.input)].trigger(subject)
        assert subject.state == row.target

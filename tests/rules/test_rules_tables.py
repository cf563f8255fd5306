"""K-4 and K-5: tables that rule alone, and their proof."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import Any

import pytest

import turnlock.lifecycle.table as invocation_table
from turnlock import (
    Accepted,
    Kernel,
    Reason,
    Refused,
    Tick,
)
from turnlock.lifecycle.phases import Phase
from turnlock.lifecycle.table import INVOCATION
from turnlock.machines.proof import prove
from turnlock.machines.rows import Machine, refuses
from turnlock.models.inputs import Input
from turnlock.turn.phases import TurnPhase
from turnlock.turn.table import TURN

from ..outcome import refused
from ..script import Script
from .story import CROWD, RUN, STORY

MACHINES: tuple[Machine[Any, Any], ...] = (INVOCATION, TURN)

# ------------------------------------------------------------------------------------------- K-4


@pytest.mark.parametrize("machine", [INVOCATION, TURN], ids=lambda machine: machine.name)
def test_k_4_every_pair_stands_in_the_table(machine: Machine[StrEnum, StrEnum]) -> None:
    """Every phase × every input; what neither moves nor refuses says why."""
    pairs = {(row.phase, row.input) for row in machine.rows}

    assert pairs == {(phase, input_) for phase in machine.phases for input_ in machine.inputs}
    for row in machine.rows:
        assert (row.fact is not None) + (row.reason is not None) + bool(row.note) == 1, row


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_k_4_every_row_says_whether_it_can_be_met(machine: Machine[Any, Any]) -> None:
    """With true or false: what is exported of a table says so, too."""
    assert {type(row.possible) for row in machine.rows} == {bool}


DUE = {
    Input.APPROVAL_OVER: {Phase.REQUESTED},
    Input.LEASE_OVER: {Phase.STARTED},
    Input.GRACE_OVER: set(Phase) - {Phase.REQUESTED, Phase.APPROVED, Phase.RETRY_AUTHORISED},
}
"""Where a deadline of an invocation can pass: what waits for it, and what an interrupt left."""


def test_k_4_what_cannot_be_met_is_a_deadline_that_does_not_run_or_a_closed_turn() -> None:
    """The rows are there for totality; coverage does not ask for them."""
    never = {
        (phase, over) for over, phases in DUE.items() for phase in Phase if phase not in phases
    }
    closed = {TurnPhase.SETTLED, TurnPhase.INTERRUPTED}
    shut = {(phase, input_) for phase in closed for input_ in TURN.inputs}
    no_grace = {(phase, Input.GRACE_OVER) for phase in (TurnPhase.OPEN, TurnPhase.SEALED)}

    def impossible(machine: Machine[Any, Any]) -> set[tuple[Any, Any]]:
        return {(row.phase, row.input) for row in machine.rows if not row.possible}

    assert impossible(INVOCATION) == never
    assert impossible(TURN) == shut | no_grace


def test_k_4_a_refusal_of_a_table_names_its_row() -> None:
    """Whatever the crowd meets: the phase and input of a refusal are a row with that reason."""
    rows = {
        (str(row.phase), str(row.input), row.reason)
        for machine in MACHINES
        for row in machine.rows
        if row.reason is not None and row.possible
    }
    kernel = Kernel(RUN)
    facts: list[Any] = []
    seen: set[tuple[str, str, Reason]] = set()
    for now, line in STORY:
        facts += kernel.receive(line, now).facts
        probe = Kernel.recover(RUN, facts)
        for delivery in CROWD:
            verdict = probe.receive(delivery, now)
            if verdict.accepted:
                probe = Kernel.recover(RUN, facts)
            if isinstance(verdict, Refused) and verdict.phase and verdict.input:
                seen.add((verdict.phase, verdict.input, verdict.reason))

    assert seen <= rows
    assert len(seen) > len(rows) / 2


def test_k_4_the_code_reads_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another row, another behaviour: nothing but the table says what a lost execution becomes."""
    table = vars(invocation_table)["_TABLE"]
    row = refuses(Phase.STARTED, Input.LOSE, Reason.LEASE_LOST, "K-22")
    monkeypatch.setitem(table, (Phase.STARTED, Input.LOSE, ""), row)
    play = Script()
    play.opens("T1", "a")
    play.claims("a")

    assert play.loses("a") == refused(Reason.LEASE_LOST)


# ------------------------------------------------------------------------------------------- K-5


@pytest.mark.parametrize("machine", [INVOCATION, TURN], ids=lambda machine: machine.name)
def test_k_5_the_tables_are_proved(machine: Machine[StrEnum, StrEnum]) -> None:
    """Silence is the proof (its own failing examples stand in tests/machines)."""
    prove(machine)


@pytest.mark.parametrize("machine", [INVOCATION, TURN], ids=lambda machine: machine.name)
def test_k_5_the_proof_says_what_can_be_seen(machine: Machine[StrEnum, StrEnum]) -> None:
    """The same properties once more, by looking: this proof shares nothing with the other."""
    keys = Counter((row.phase, row.input, row.guard) for row in machine.rows)
    assert set(keys.values()) == {1}
    guards: dict[tuple[StrEnum, StrEnum], set[str]] = {}
    for row in machine.rows:
        guards.setdefault((row.phase, row.input), set()).add(row.guard)
    questions = [set(answers) for answers in machine.questions.values()]
    for given in guards.values():
        assert given == {""} or given in questions

    reached = set(machine.initial)
    for _ in machine.phases:
        reached |= {row.target for row in machine.rows if row.phase in reached}
    assert reached == set(machine.phases)

    for row in machine.rows:
        assert machine.rank[row.target] >= machine.rank[row.phase]
        if row.phase in machine.terminal:
            assert row.target is row.phase
            assert row.fact is None


def test_k_5_phases_of_the_spec_are_the_phases_of_the_tables() -> None:
    """Sections 6 and 8: these and no others, and these are the terminal ones."""
    assert {str(it) for it in INVOCATION.phases} == {
        *("REQUESTED", "APPROVED", "STARTED", "IN_DOUBT", "RETRY_AUTHORISED"),
        *("SUCCEEDED", "FAILED", "DENIED"),
    }
    assert {str(it) for it in INVOCATION.terminal} == {"SUCCEEDED", "FAILED", "DENIED"}
    shared = (Phase.STARTED, Phase.IN_DOUBT, Phase.RETRY_AUTHORISED)
    assert len({INVOCATION.rank[phase] for phase in shared}) == 1
    assert {str(it) for it in TURN.phases} == {
        *("OPEN", "SEALED", "INTERRUPTING", "SETTLED", "INTERRUPTED")
    }
    assert {str(it) for it in TURN.terminal} == {"SETTLED", "INTERRUPTED"}
    assert isinstance(Kernel(RUN).receive(Tick(), 0.0), Accepted)

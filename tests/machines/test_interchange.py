"""The generated `transitions.Machine`, an independent interpreter, must agree with the table."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Any

import pytest
from transitions import MachineError

from turnlock.lifecycle.table import INVOCATION
from turnlock.machines.interchange import Subject, to_transitions
from turnlock.machines.rows import ALWAYS, Machine
from turnlock.models.errors import TurnlockError
from turnlock.turn.table import TURN

MACHINES = [INVOCATION, TURN]
each_machine = pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)


def guards_of(machine: Machine[StrEnum, StrEnum]) -> list[str]:
    """Every answer to every question, and none."""
    answers = {guard for question in machine.questions.values() for guard in question}
    return [ALWAYS, *sorted(map(str, answers))]


@each_machine
def test_it_agrees_on_every_phase_input_and_guard(machine: Machine[StrEnum, StrEnum]) -> None:
    """Where the table moves or rests: the same target. Where it does not: False or an error."""
    generated = to_transitions(machine)
    rows = {(row.phase, row.input, str(row.guard)): row for row in machine.rows if row.possible}
    agreed = 0
    for phase in machine.phases:
        for input_ in machine.inputs:
            for guard in guards_of(machine):
                row = rows.get((phase, input_, ALWAYS)) or rows.get((phase, input_, guard))
                subject = Subject(phase=str(phase), guard=guard)
                accepted = triggered(generated, str(input_), subject)
                if row is None or row.reason is not None:
                    assert not accepted, (phase, input_, guard)
                    assert subject.state == str(phase)
                else:
                    assert accepted, row
                    assert subject.state == str(row.target), row
                    agreed += 1

    assert agreed >= len([row for row in machine.rows if row.reason is None and row.possible])


def triggered(generated: Any, name: str, subject: Subject) -> bool:
    """Whether the generated machine accepts; refusing is an error, or False where guards decide."""
    event = generated.events.get(name)
    if event is None:
        return False
    try:
        return bool(event.trigger(subject))
    except MachineError:
        return False


@each_machine
def test_a_pair_without_any_edge_raises(machine: Machine[StrEnum, StrEnum]) -> None:
    """An input that a phase can only refuse is an error there, and the state is untouched."""
    generated = to_transitions(machine)
    edges = {(row.phase, row.input) for row in machine.rows if row.reason is None and row.possible}
    raised = 0
    for phase in machine.phases:
        for input_ in machine.inputs:
            event = generated.events.get(str(input_))
            if event is None or (phase, input_) in edges:
                continue
            subject = Subject(phase=str(phase))
            with pytest.raises(MachineError):
                event.trigger(subject)
            assert subject.state == str(phase)
            raised += 1

    assert raised > 0


@each_machine
def test_it_has_the_phases_and_nothing_automatic(machine: Machine[StrEnum, StrEnum]) -> None:
    """Its states are the phases, its triggers inputs; nothing teleports, nothing calls back."""
    generated = to_transitions(machine)

    assert list(generated.states) == [str(phase) for phase in machine.phases]
    assert set(generated.events) <= {str(input_) for input_ in machine.inputs}
    assert not [name for name in generated.events if name.startswith("to_")]
    assert generated.initial == str(machine.initial[0])
    assert generated.models == []
    for event in generated.events.values():
        for transitions in event.transitions.values():
            for edge in transitions:
                assert edge.before == edge.after == edge.prepare == []


@each_machine
def test_every_edge_is_a_row_and_every_such_row_an_edge(machine: Machine[StrEnum, StrEnum]) -> None:
    """One to one, guards included."""
    generated = to_transitions(machine)
    edges = [
        (edge.source, name, edge.dest, [str(it.func) for it in edge.conditions])
        for name, event in generated.events.items()
        for transitions in event.transitions.values()
        for edge in transitions
    ]

    rows = [
        (str(row.phase), str(row.input), str(row.target), [str(row.guard)] if row.guard else [])
        for row in machine.rows
        if row.reason is None and row.possible
    ]
    assert sorted(edges) == sorted(rows)


def test_a_subject_answers_its_guard_alone() -> None:
    """One condition holds at a time; what Python itself asks for is no condition."""
    subject = Subject(phase="OPEN", guard="new")

    assert subject.new is True
    assert subject.known is False
    assert not hasattr(subject, "__no_such_name__")


def test_without_the_package_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is an extra: nothing else of the project needs it."""
    monkeypatch.setitem(sys.modules, "transitions", None)

    with pytest.raises(TurnlockError, match=r"pip install 'turnlock\[transitions\]'"):
        to_transitions(TURN)

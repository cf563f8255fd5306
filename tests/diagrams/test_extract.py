"""The small graph says what the machine says: ours, foreign ones, and nothing else."""

from __future__ import annotations

from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from transitions import Machine as Transitions
from transitions import State
from transitions.extensions import HierarchicalMachine

from turnlock.diagrams.errors import NothingToDraw
from turnlock.diagrams.graphs.extract import graph_of
from turnlock.diagrams.graphs.graph import Graph, Mark
from turnlock.lifecycle.table import INVOCATION
from turnlock.machines.interchange import to_transitions
from turnlock.turn.table import TURN

from .machines import AnyMachine, machines, moves_of, names_of


def drawn_moves(graph: Graph) -> set[tuple[str, str, str, str, str]]:
    """What a graph says can move."""
    return {
        (edge.source, edge.target, move.input, move.guard, move.fact)
        for edge in graph.edges
        for move in edge.moves
    }


@given(machines())
def test_a_graph_has_the_phases_and_moves_of_its_table(machine: AnyMachine) -> None:
    """Every phase and move, in the order of the table, one edge a pair; every row is a cell."""
    graph = graph_of(machine)

    assert [node.name for node in graph.nodes] == names_of(machine.phases)
    assert {node.name for node in graph.nodes if node.initial} == set(map(str, machine.initial))
    assert {node.name for node in graph.nodes if node.terminal} == set(map(str, machine.terminal))
    assert drawn_moves(graph) == moves_of(machine)
    assert sum(len(edge.moves) for edge in graph.edges) == sum(
        row.fact is not None for row in machine.rows
    )
    ends = [(edge.source, edge.target) for edge in graph.edges]
    assert ends == list(
        dict.fromkeys((str(r.phase), str(r.target)) for r in machine.rows if r.fact is not None)
    )
    assert len(graph.cells) == len(machine.rows)


@pytest.mark.parametrize("machine", [INVOCATION, TURN], ids=lambda machine: machine.name)
def test_cells_say_one_thing_each(machine: AnyMachine) -> None:
    """A cell leads somewhere, or is refused, or rests; and they come by phase, then by input."""
    cells = graph_of(machine).cells

    assert all((cell.target != "") + (cell.reason != "") + (cell.rest != "") == 1 for cell in cells)
    phases, inputs = names_of(machine.phases), names_of(machine.inputs)
    places = [(phases.index(cell.phase), inputs.index(cell.input)) for cell in cells]
    assert places == sorted(places)


def test_what_was_asked_for_is_in_the_words() -> None:
    """A title may be given; the description names where it begins and ends."""
    graph = graph_of(TURN, title="One turn")

    assert (graph.name, graph.title) == ("turn", "One turn")
    assert graph.description == (
        "A state diagram of 5 phases and 6 moves. It begins in OPEN or SEALED. It ends in SETTLED"
        " or INTERRUPTED."
    )


@pytest.mark.parametrize("machine", [INVOCATION, TURN], ids=lambda machine: machine.name)
def test_our_machine_as_a_foreign_one_moves_alike(machine: AnyMachine) -> None:
    """What `to_transitions` made is drawn with the same moves, and the rests as loops."""
    graph = graph_of(to_transitions(machine))

    ours = {move[:4] for move in moves_of(machine)}
    theirs = {move[:4] for move in drawn_moves(graph)}
    assert ours <= theirs
    assert all(source == target for source, target, *_ in theirs - ours)
    assert {node.name for node in graph.nodes if node.terminal} == set(map(str, machine.terminal))


def test_a_foreign_machine_keeps_guards_loops_and_final_states() -> None:
    """Conditions and unless are guards; internal and reflexive transitions are loops."""

    def ready() -> bool:
        return True

    machine = Transitions(
        model=None,
        states=["a", "a_b", State("end", final=True)],
        initial="a",
        name="door",
        transitions=[
            {"trigger": "go", "source": "a", "dest": "a_b", "conditions": ["x", ready]},
            {"trigger": "go", "source": "a", "dest": "end", "conditions": "x", "unless": "y"},
            {"trigger": "stay", "source": "a", "dest": None},
            {"trigger": "again", "source": "a", "dest": "="},
            {"trigger": "raise", "source": "end", "dest": "a"},
        ],
    )

    graph = graph_of(machine)

    assert drawn_moves(graph) == {
        ("a", "a_b", "go", "x and ready", ""),
        ("a", "end", "go", "x and not y", ""),
        ("a", "a", "stay", "", ""),
        ("a", "a", "again", "", ""),
        ("end", "a", "raise", "", ""),
    }
    assert [(node.name, node.initial, node.terminal) for node in graph.nodes] == [
        ("a", True, False),
        ("a_b", False, True),
        ("end", False, True),
    ]
    assert graph.title == "door"
    assert "Automatic to_<state> triggers" in graph.description


def test_a_nested_machine_is_flattened_by_whole_names() -> None:
    """A state inside can be left by its parent's edges; scopes inside name relatively."""
    inside = {"name": "d", "children": ["e", "f"], "transitions": [["in", "e", "f"]]}
    machine = HierarchicalMachine(
        model=None,
        states=["a", {"name": "b", "children": ["c", inside], "transitions": [["y", "c", "d"]]}],
        initial="b_c",
        auto_transitions=False,
        transitions=[["go", "b", "a"]],
    )

    graph = graph_of(machine)

    assert drawn_moves(graph) == {
        ("b", "a", "go", "", ""),
        ("b_c", "b_d", "y", "", ""),
        ("b_d_e", "b_d_f", "in", "", ""),
    }
    assert [node.name for node in graph.nodes if node.terminal] == ["a"]
    assert [node.name for node in graph.nodes if node.initial] == ["b_c"]


def test_states_may_be_members_of_an_enum() -> None:
    """Their names are drawn, as the library names them."""

    class Light(Enum):
        RED = 1
        GREEN = 2

    machine = Transitions(
        model=None,
        states=Light,
        initial=Light.RED,
        auto_transitions=False,
        transitions=[{"trigger": "go", "source": Light.RED, "dest": Light.GREEN}],
    )

    graph = graph_of(machine)

    assert drawn_moves(graph) == {("RED", "GREEN", "go", "", "")}
    assert [node.name for node in graph.nodes if node.initial] == ["RED"]


def test_a_target_that_is_no_state_is_drawn_and_says_so() -> None:
    """The library takes it silently; a picture does not."""
    machine = Transitions(model=None, states=["a"], initial="a", auto_transitions=False)
    machine.add_transition("go", "a", "nowhere")

    (unknown,) = [node for node in graph_of(machine).nodes if node.name == "nowhere"]

    assert (unknown.mark, unknown.note) == (Mark.NEVER, "not a declared state")


@pytest.mark.parametrize("thing", [None, "machine", {"states": 1}])
def test_what_is_no_machine_is_told(thing: Any) -> None:
    """The error names what was given, and what to give."""
    with pytest.raises(NothingToDraw, match=r"is no machine: give a turnlock Machine"):
        graph_of(thing)

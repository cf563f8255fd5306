"""DOT: what Graphviz reads in it is the table, whatever the names are."""

from __future__ import annotations

import re
import sys
from xml.etree import ElementTree as ET

import attrs
import pytest
from hypothesis import given, settings

from turnlock.diagrams.drawing.engines import Engine, svg_of
from turnlock.diagrams.errors import CannotDraw
from turnlock.diagrams.graphs.dot import dot_of
from turnlock.diagrams.graphs.extract import graph_of
from turnlock.diagrams.graphs.graph import Edge, Graph, Mark, Move, Node
from turnlock.diagrams.palette import Theme, look_of
from turnlock.lifecycle.phases import Phase
from turnlock.lifecycle.table import INVOCATION

from .machines import HOSTILE, AnyMachine, hostile_graph, lines_of, machines, names_of

SVG = "{http://www.w3.org/2000/svg}"


def read(dot: str) -> dict[str, list[str]]:
    """What Graphviz understood: the lines of text at ``p0``, at ``p0->p1``, and so on."""
    root = ET.fromstring(svg_of(dot, engine=Engine.WASI))  # noqa: S314 - our own drawing
    return {
        group.findtext(f"{SVG}title", ""): [line.text or "" for line in group.iter(f"{SVG}text")]
        for group in root.iter(f"{SVG}g")
        if group.get("class") in {"node", "edge"}
    }


def phases_and_edges(dot: str) -> tuple[list[str], dict[tuple[str, str], list[str]]]:
    """The names without their signs, and the lines at each edge between them."""
    drawn = read(dot)
    names = {
        id_: lines[0].partition(" ")[2]
        for id_, lines in drawn.items()
        if re.fullmatch(r"p\d+", id_)
    }
    edges = {
        (names[ends[1]], names[ends[2]]): lines
        for id_, lines in drawn.items()
        if (ends := re.fullmatch(r"(p\d+)->(p\d+)", id_))
    }
    return list(names.values()), edges


@given(machines())
@settings(max_examples=40)
def test_what_graphviz_reads_is_the_table(machine: AnyMachine) -> None:
    """K-4, drawn: every phase and every move, with the very words; none besides."""
    names, edges = phases_and_edges(dot_of(graph_of(machine)))

    assert sorted(names) == sorted(names_of(machine.phases))
    assert edges == lines_of(machine)


def test_hostile_names_are_words_only() -> None:
    """Every name is shown (its unprintable parts as escapes, its end cut); nothing else is made."""
    graph = hostile_graph()

    drawn = read(dot_of(graph))

    phases = [lines for id_, lines in drawn.items() if re.fullmatch(r"p\d+", id_)]
    assert len(phases) == len(HOSTILE)
    assert len(drawn) == 2 * len(HOSTILE) + 2  # and the mark of the beginning, and its arrow
    shown = {lines[0].partition(" ")[2] for lines in phases}
    assert {'a"b', "]]>", "-->", r"\N\l\\", r"two\nlines", '""', "[*]", "{x}|y"} <= shown
    assert all(len(name) < 60 for name in shown)


def test_marks_are_told_by_more_than_colour() -> None:
    """Here and never are words, and dashes; what was refused ends in a bar."""
    nodes = (Node(name="a", mark=Mark.CURRENT), Node(name="b", mark=Mark.NEVER))
    loop = attrs.evolve(graph_of(INVOCATION).edges[0], source="a", target="b", mark=Mark.REFUSED)
    graph = Graph(name="g", title="g", description="", nodes=nodes, edges=(loop,))

    dot = dot_of(graph)

    first, second, arrow = [line for line in dot.splitlines() if line.startswith("\tp")]
    assert "here" in first
    assert "penwidth=4.5" in first
    assert "never" in second
    assert "dashed" in second
    assert "style=dashed" in arrow
    assert "arrowhead=tee" in arrow


@pytest.mark.parametrize("theme", list(Theme))
def test_phases_have_the_colours_of_the_palette(theme: Theme) -> None:
    """The same in every picture; the ends have two frames."""
    dot = dot_of(graph_of(INVOCATION), theme=theme)

    for phase in Phase:
        (line,) = [line for line in dot.splitlines() if f'id="phase-{phase}"' in line]
        assert f'fillcolor="{look_of(phase).fill(theme)}"' in line
        assert ("peripheries=2" in line) == (phase in INVOCATION.terminal)


def test_what_was_refused_is_written_in_the_box() -> None:
    """Loops would cross each other's labels; of many deliveries the number is said."""
    moves = tuple(Move(input=f"m{number}", note="late", mark=Mark.REFUSED) for number in range(10))
    loop = Edge(source="a", target="a", moves=moves, mark=Mark.REFUSED)
    graph = Graph(name="g", title="g", description="", nodes=(Node(name="a"),), edges=(loop,))

    drawn = read(dot_of(graph))

    assert drawn == {
        "p0": ["· a", *(f"✕ m{number} · late" for number in range(8)), "and 2 more"],
    }


def test_weight_is_thickness() -> None:
    """From none to full, and no further."""
    edge = attrs.evolve(graph_of(INVOCATION).edges[0], source="a", target="a")
    node = Node(name="a")

    widths = [
        dot_of(
            Graph(
                name="g",
                title="g",
                description="",
                nodes=(node,),
                edges=(attrs.evolve(edge, weight=weight),),
            )
        )
        for weight in (0.0, 0.5, 1.0, 7.0)
    ]

    assert ["penwidth=1.2" in widths[0], "penwidth=3.0" in widths[1]] == [True, True]
    assert widths[2] == widths[3]
    assert "penwidth=4.7" in widths[2]


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """DOT is written by the `graphviz` package, an extra."""
    monkeypatch.setitem(sys.modules, "graphviz", None)

    with pytest.raises(CannotDraw, match=r"pip install 'turnlock\[diagrams\]'"):
        dot_of(graph_of(INVOCATION))

"""SVG: read back, the picture is the table; it is accessible, harmless and the same every time."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import attrs
import pytest
from hypothesis import given, settings

from turnlock.diagrams.drawing.engines import Engine
from turnlock.diagrams.drawing.lettering import width_of
from turnlock.diagrams.errors import CannotDraw
from turnlock.diagrams.graphs.extract import graph_of
from turnlock.diagrams.graphs.graph import Edge, Graph, Mark, Move, Node
from turnlock.diagrams.graphs.layout import layout_of
from turnlock.diagrams.graphs.svg import svg_text
from turnlock.diagrams.palette import PAPERS, Theme
from turnlock.lifecycle.table import INVOCATION
from turnlock.turn.table import TURN

from .machines import HOSTILE, AnyMachine, hostile_graph, machines, names_of

SVG = "{http://www.w3.org/2000/svg}"


def drawn(graph: Graph, theme: Theme = Theme.LIGHT) -> ET.Element:
    """The root of the picture."""
    return ET.fromstring(svg_text(graph, theme=theme, engine=Engine.WASI))  # noqa: S314 - our own drawing


def titles(root: ET.Element, kind: str) -> list[str]:
    """The titles of all groups of a kind: phase, edge or move."""
    name = root.attrib["id"]
    return sorted(
        group.findtext(f"{SVG}title", "")
        for group in root.iter(f"{SVG}g")
        if group.get("id", "").startswith(f"{name}-{kind}-")
        and group.find(f"{SVG}title") is not None
    )


def told(machine: AnyMachine) -> list[str]:
    """What the moves of a table are called."""
    return sorted(
        f"{row.phase} → {row.target}: {row.input}"
        f"{f' [{row.guard}]' if row.guard else ''} / {row.fact}"
        for row in machine.rows
        if row.fact is not None
    )


@given(machines())
@settings(max_examples=40)
def test_the_picture_is_the_table(machine: AnyMachine) -> None:
    """K-4, drawn: a group for every phase, pair and move of the table; none besides."""
    root = drawn(graph_of(machine))

    phases = [
        re.sub(r" \((begins here|ends here|, )+\)$", "", name) for name in titles(root, "phase")
    ]
    assert sorted(phases) == sorted(names_of(machine.phases))
    assert titles(root, "move") == told(machine)
    pairs = {(row.phase, row.target) for row in machine.rows if row.fact is not None}
    assert len(titles(root, "edge")) == len(pairs)


@pytest.mark.parametrize("machine", [INVOCATION, TURN], ids=lambda machine: machine.name)
@pytest.mark.parametrize("theme", list(Theme))
def test_ids_are_made_of_names(machine: AnyMachine, theme: Theme) -> None:
    """They stay when rows come and go, and none is given twice."""
    root = drawn(graph_of(machine), theme)

    ids = [element.attrib["id"] for element in root.iter() if "id" in element.attrib]
    assert len(ids) == len(set(ids))
    expected = {f"{machine.name}-phase-{phase}" for phase in names_of(machine.phases)}
    for row in machine.rows:
        if row.fact is not None:
            guard = f"-{row.guard}" if row.guard else ""
            expected.add(f"{machine.name}-move-{row.phase}-{row.input}{guard}")
            expected.add(f"{machine.name}-edge-{row.phase}-{row.target}")
    assert expected <= set(ids)


def test_those_who_cannot_see_it_are_told() -> None:
    """An image with a title and a description, and a ground of its own."""
    graph = graph_of(TURN)
    root = drawn(graph, Theme.DARK)

    assert root.attrib["role"] == "img"
    assert root.attrib["aria-labelledby"] == "turn-title turn-desc"
    assert root.findtext(f"{SVG}title") == graph.title
    assert root.findtext(f"{SVG}desc") == graph.description
    ground = root.find(f"{SVG}rect")
    assert ground is not None
    assert ground.attrib["fill"] == PAPERS[Theme.DARK].ground
    assert (ground.attrib["width"], ground.attrib["height"]) == (
        root.attrib["width"],
        root.attrib["height"],
    )
    assert root.attrib["viewBox"] == f"0 0 {root.attrib['width']} {root.attrib['height']}"


def test_the_invocation_machine_fits_a_page() -> None:
    """1,090 pixels for its eight phases, no letter smaller than 11."""
    root = drawn(graph_of(INVOCATION))

    assert float(root.attrib["width"]) <= 1090
    assert min(float(text.get("font-size", "13")) for text in root.iter(f"{SVG}text")) >= 11


def test_no_two_labels_of_the_invocation_machine_overlap() -> None:
    """Nor does a label lie on a phase; widths are estimated as everywhere, a little generously."""
    root = drawn(graph_of(INVOCATION))

    boxes: list[tuple[float, float, float, float]] = []
    for text in root.iter(f"{SVG}text"):
        x, y = float(text.attrib["x"]), float(text.attrib["y"])
        size = float(text.get("font-size", "13"))
        width = width_of(text.text or "", size) * 0.9
        left = x - width / 2 if text.get("text-anchor") == "middle" else x
        boxes.append((left, y - size * 0.7, left + width, y))
    for place, one in enumerate(boxes):
        for other in boxes[place + 1 :]:
            apart = (
                one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
            )
            assert apart, (one, other)


def test_the_same_graph_is_drawn_the_same_way() -> None:
    """No date, no version, no comment."""
    graph = graph_of(INVOCATION)

    first = svg_text(graph, engine=Engine.WASI)

    assert svg_text(graph, engine=Engine.WASI) == first
    assert "<!--" not in first
    assert "raphviz" not in first


def test_hostile_names_are_words_only() -> None:
    """Elements and attributes are ours alone; every name is there, harmless, in a title."""
    root = drawn(hostile_graph())

    tags = {element.tag.removeprefix(SVG) for element in root.iter()}
    assert tags <= {"svg", "title", "desc", "rect", "g", "path", "text", "line"}
    names = {name for element in root.iter() for name in element.attrib}
    assert not [name for name in names if name.startswith("on") or "href" in name]
    assert len(titles(root, "phase")) == len(titles(root, "move")) == len(HOSTILE)
    everything = "".join(root.itertext())
    assert not {"\u202e", "\x00", "\x1b"} & set(everything)
    assert all(len(text.text or "") < 100 for text in root.iter(f"{SVG}text"))


def test_marks_and_the_legend_are_words_too() -> None:
    """Here, never and the words of the legend can be read."""
    nodes = (Node(name="a", mark=Mark.CURRENT, note="since 3 s"), Node(name="b", mark=Mark.NEVER))
    move = Move(input="go", mark=Mark.NEVER)
    edge = Edge(source="a", target="b", moves=(move,), mark=Mark.NEVER)
    legend = ((Mark.NEVER, "never taken"), (Mark.CURRENT, "where it stands"))
    graph = Graph(name="g", title="g", description="d", nodes=nodes, edges=(edge,), legend=legend)
    plain = attrs.evolve(graph, legend=())

    root = drawn(graph)

    words = {text.text for text in root.iter(f"{SVG}text")}
    assert {"here · since 3 s", "never", "go · never", "never taken", "where it stands"} <= words
    assert float(root.attrib["height"]) > float(drawn(plain).attrib["height"])


def test_what_was_refused_is_in_the_box_with_ids_of_its_own() -> None:
    """Each delivery a group with its title, below a dashed line."""
    moves = tuple(Move(input=name, note="late", mark=Mark.REFUSED) for name in ("x", "y"))
    own = Edge(source="a", target="a", moves=(Move(input="go", fact="F"),))
    loop = Edge(source="a", target="a", moves=moves, mark=Mark.REFUSED)
    graph = Graph(
        name="g", title="g", description="d", nodes=(Node(name="a", note="n"),), edges=(own, loop)
    )

    root = drawn(graph)

    assert titles(root, "move") == ["a → a: go / F", "a → a: x · late", "a → a: y · late"]
    ids = {element.get("id") for element in root.iter()}
    assert {"g-edge-a-a", "g-edge-a-a-refused", "g-move-a-go", "g-move-a-x"} <= ids
    assert [line.get("stroke-dasharray") for line in root.iter(f"{SVG}line")] == ["5,2"]
    words = [text.text for text in root.iter(f"{SVG}text")]
    assert [word for word in words if word in {"a", "n", "x · late", "y · late"}] == [
        "a",
        "n",
        "x · late",
        "y · late",
    ]


def test_many_moves_at_one_arrow_are_counted() -> None:
    """So that one label does not fill the sheet; none is lost from the title."""
    moves = tuple(Move(input=f"m{number}", fact="F") for number in range(40))
    graph = Graph(
        name="g",
        title="g",
        description="d",
        nodes=(Node(name="a"),),
        edges=(Edge(source="a", target="a", moves=moves),),
    )

    root = drawn(graph)

    assert "and 16 more" in {text.text for text in root.iter(f"{SVG}text")}
    (title,) = [name for name in titles(root, "edge") if name]
    assert "m39" in title


@pytest.mark.parametrize(
    "wrong",
    [
        "<svg",
        "<svg/>",
        '<svg viewBox="0 0 1 1"/>',
        '<svg viewBox="0 0 one 1"><g/></svg>',
        '<!DOCTYPE svg [<!ENTITY a "b">]><svg viewBox="0 0 1 1">&a;</svg>',
    ],
)
def test_what_graphviz_never_writes_is_not_drawn(wrong: str) -> None:
    """An error of ours, whatever a program called dot may say."""
    with pytest.raises(CannotDraw, match="what Graphviz gave"):
        layout_of(wrong)

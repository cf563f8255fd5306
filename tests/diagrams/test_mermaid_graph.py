"""Mermaid: read back line by line, the diagram is the table, whatever the names are."""

from __future__ import annotations

import json
import re

from hypothesis import given

from turnlock.diagrams.graphs.extract import graph_of
from turnlock.diagrams.graphs.plain import mermaid_of
from turnlock.diagrams.palette import look_of
from turnlock.lifecycle.table import INVOCATION

from .machines import HOSTILE, AnyMachine, hostile_graph, lines_of, machines, names_of

GRAMMAR = tuple(
    re.compile(line)
    for line in (
        r"---",
        r'title: "(?P<title>[^"]*(\\"[^"]*)*)"',
        r"stateDiagram-v2",
        r"    acc(Title|Descr): [^{}<>%|]+",
        r"    direction TB",
        r'    state "(?P<name>[^"{}<>%|:;]|#\d+;)+" as s\d+',
        r"    \[\*\] --> s\d+",
        r"    s\d+ --> s\d+ : ([^\"{}<>%|:;]|#\d+;|<br/>)+",
        r"    s\d+ --> \[\*\]",
        (
            r"    classDef s\d+look fill:#\w{6},stroke:#\w{6},stroke-width:[\d.]+px,color:#\w{6}"
            r"(,stroke-dasharray:5 3)?"
        ),
        r"    class s\d+ s\d+look",
    )
)


def plain(label: str) -> str:
    """A label as Mermaid shows it."""
    return re.sub(r"#(\d+);", lambda found: chr(int(found[1])), label)


def states(diagram: str) -> dict[str, str]:
    """The declared states: what they show, by their ids."""
    found = re.findall(r'^    state "(.*)" as (s\d+)$', diagram, re.MULTILINE)
    return {id_: plain(label) for label, id_ in found}


def arrows(diagram: str) -> list[tuple[str, str, list[str]]]:
    """The arrows between states: from, to, lines."""
    found = re.findall(r"^    (s\d+) --> (s\d+) : (.*)$", diagram, re.MULTILINE)
    return [(source, target, plain(label).split("<br/>")) for source, target, label in found]


@given(machines())
def test_the_diagram_is_the_table(machine: AnyMachine) -> None:
    """Every phase, move, beginning and end of the table, with the very words; none besides."""
    diagram = mermaid_of(graph_of(machine))

    phases = names_of(machine.phases)
    assert states(diagram) == {
        f"s{place}": f"{look_of(phase).sign} {phase}" for place, phase in enumerate(phases)
    }
    drawn = {
        (phases[int(source[1:])], phases[int(target[1:])]): told
        for source, target, told in arrows(diagram)
    }
    assert drawn == lines_of(machine)
    begun = {phases[int(number)] for number in re.findall(r"\[\*\] --> s(\d+)", diagram)}
    ended = {phases[int(number)] for number in re.findall(r"s(\d+) --> \[\*\]", diagram)}
    assert (begun, ended) == (set(machine.initial), set(machine.terminal))


@given(machines())
def test_every_line_is_one_of_our_statements(machine: AnyMachine) -> None:
    """No name makes a statement, a comment, a directive, an entity or markup."""
    for line in mermaid_of(graph_of(machine)).splitlines():
        assert any(statement.fullmatch(line) for statement in GRAMMAR), line


def test_hostile_names_are_words_only() -> None:
    """As many states and arrows as the graph has, each line a statement of ours."""
    diagram = mermaid_of(hostile_graph())

    assert len(states(diagram)) == len(arrows(diagram)) == len(HOSTILE)
    for line in diagram.splitlines():
        assert any(statement.fullmatch(line) for statement in GRAMMAR), line
    assert max(map(len, diagram.splitlines())) < 2_500
    assert "```" not in diagram


def test_the_title_has_its_key() -> None:
    """Front matter is YAML, whose quoted strings are those of JSON."""
    lines = mermaid_of(hostile_graph()).splitlines()

    assert lines[0] == lines[2] == "---"
    title = json.loads(lines[1].removeprefix("title: "))
    assert title == r"<b>&amp;#35;</b>%%{init}%%\u202eevil\x00\x1b[2J"
    assert mermaid_of(graph_of(INVOCATION)).startswith('---\ntitle: "The invocation machine"\n---')

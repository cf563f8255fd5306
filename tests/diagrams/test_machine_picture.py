"""State diagrams in every form, against copies on disk that were looked at.

After a wanted change: .venv/bin/python -m tests.diagrams.test_machine_picture, and look again.
"""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given

from turnlock.diagrams.drawing.engines import Engine
from turnlock.diagrams.graphs.extract import graph_of
from turnlock.diagrams.graphs.picture import MachinePicture, machine_picture
from turnlock.diagrams.graphs.plain import text_of
from turnlock.diagrams.palette import Theme
from turnlock.diagrams.picture import Format
from turnlock.lifecycle.table import INVOCATION
from turnlock.turn.table import TURN

from .machines import HOSTILE, AnyMachine, hostile_graph, machines

GOLDEN = Path(__file__).with_name("golden") / "graphs"
BUNDLE = "_repr_mimebundle_"  # what notebooks ask for
COPIES = [
    *(
        (f"{name}.{form}", Theme.LIGHT)
        for name in ("invocation", "turn")
        for form in ("dot", "mmd", "txt", "svg")
    ),
    ("invocation-dark.svg", Theme.DARK),
]


def picture_of(name: str) -> MachinePicture:
    """The picture that a file of that name holds, by the engine that draws alike everywhere."""
    machine: AnyMachine = INVOCATION if name.startswith("invocation") else TURN
    return MachinePicture(graph=graph_of(machine), engine=Engine.WASI)


@pytest.mark.parametrize(("name", "theme"), COPIES, ids=[name for name, _ in COPIES])
def test_it_is_drawn_as_it_was_when_it_was_looked_at(name: str, theme: Theme) -> None:
    """Whoever changes a picture sees what changed."""
    assert picture_of(name).is_saved_in(GOLDEN / name, theme=theme), "see above how to draw it anew"


@given(machines())
def test_text_says_the_table_within_its_columns(machine: AnyMachine) -> None:
    """A line for each phase and each move; none wider than a terminal's hundred columns."""
    lines = text_of(graph_of(machine)).splitlines()

    assert max(map(len, lines)) <= 100
    moves = [line.strip().removeprefix("── ") for line in lines if line.startswith("   ── ")]
    assert sorted(moves) == sorted(
        f"{row.input}{f' [{row.guard}]' if row.guard else ''} / {row.fact} ──▶ {row.target}"
        for row in machine.rows
        if row.fact is not None
    )


def test_hostile_names_stay_on_their_lines() -> None:
    """Nothing moves the cursor, nothing is wider than the terminal, every phase is there."""
    picture = MachinePicture(graph=hostile_graph())

    text = picture.text()

    assert max(map(len, text.splitlines())) <= 100
    assert text.replace("\n", "").isprintable()
    assert len(re.findall(r"^ . ── ", text, re.MULTILINE)) == len(HOSTILE)


class Page(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, page: str) -> None:
        """Read it whole."""
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember the element, and whatever could load something or run."""
        self.tags.add(tag)
        self.links += [
            name for name, _ in attrs if name in {"src", "href"} or name.startswith("on")
        ]


def test_a_page_holds_the_picture_and_loads_nothing() -> None:
    """Hostile names make no element; the page needs no network, no script, no other file."""
    page = Page(MachinePicture(graph=hostile_graph(), engine=Engine.WASI).html())

    assert {"svg", "h1"} <= page.tags
    assert not page.tags & {"b", "script", "img", "link", "iframe"}
    assert page.links == []


def test_with_refusals_every_form_with_room_says_them() -> None:
    """A reason that is no edge stands in the tables."""
    plain = picture_of("invocation")
    full = MachinePicture(graph=plain.graph, refusals=True, engine=Engine.WASI)

    for form in (Format.MARKDOWN, Format.HTML, Format.TEXT):
        assert b"arguments_mismatch" in full.render(form).replace(b"\\_", b"_")
        assert b"arguments_mismatch" not in plain.render(form).replace(b"\\_", b"_")
    assert full.svg() == plain.svg()


def test_markdown_is_a_heading_a_diagram_and_tables() -> None:
    """The block is closed where it ends, whatever the names hold."""
    markdown = MachinePicture(graph=hostile_graph()).markdown()

    fences = [line for line in markdown.splitlines() if line.startswith("```")]
    assert fences == ["```mermaid", "```"]
    assert machine_picture(TURN).markdown().startswith("# The turn machine\n\nA state diagram of")


@pytest.mark.parametrize("form", list(Format))
def test_a_file_holds_what_its_name_says(form: Format, tmp_path: Path) -> None:
    """SVG in .svg, a PNG in .png, and so on; drawn twice it is the same."""
    starts = {
        Format.SVG: b"<svg ",
        Format.PNG: b"\x89PNG",
        Format.DOT: b"digraph",
        Format.MERMAID: b"---\ntitle:",
        Format.MARKDOWN: b"# The turn",
        Format.HTML: b"<!DOCTYPE html>",
        Format.TEXT: b"The turn",
    }
    picture = picture_of("turn")
    target = tmp_path / f"turn.{form}"

    picture.save(target)

    assert target.read_bytes().startswith(starts[form])
    assert picture.is_saved_in(target)
    assert [path.name for path in tmp_path.iterdir()] == [target.name]


def test_notebooks_show_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """As SVG where it can be drawn, as text in any case."""
    lacking = MachinePicture(graph=graph_of(TURN), engine=Engine.DOT)
    monkeypatch.setenv("PATH", "")

    bundle, lesser = (getattr(one, BUNDLE)(include=None) for one in (picture_of("turn"), lacking))

    assert set(bundle) == {"text/plain", "text/markdown", "image/svg+xml"}
    assert set(lesser) == {"text/plain", "text/markdown"}


def test_titles_of_pages_are_plain() -> None:
    """What stands in front matter can be read back."""
    title = picture_of("turn").mermaid().splitlines()[1].removeprefix("title: ")

    assert json.loads(title) == "The turn machine"


if __name__ == "__main__":
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for copy, its_theme in COPIES:
        picture_of(copy).save(GOLDEN / copy, theme=its_theme)

"""What all pictures are drawn with: letters, sheets, tables and pages."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnlock.diagrams.drawing.canvas import Canvas
from turnlock.diagrams.drawing.lettering import (
    LONGEST,
    columns_of,
    cut_to,
    fitted,
    folded,
    short_names,
    width_of,
)
from turnlock.diagrams.drawing.tables import (
    CELL,
    WIDTH,
    Table,
    html_table,
    markdown_table,
    page,
    plain_html,
    plain_markdown,
    text_table,
)
from turnlock.diagrams.palette import IN_THE_DARK, PAPERS, Theme
from turnlock.diagrams.runs import run_picture
from turnlock.models.safe_text import CUT, harmless
from turnlock.models.workers import opaque

from .sequence_scenes import INJECTIONS, SVG, hostile_run

TEXTS = st.text(max_size=120) | st.sampled_from(INJECTIONS)
WIDTHS = st.floats(30, 600)
SIZES = st.sampled_from([11.0, 12.0, 13.0, 16.0])


@given(TEXTS, WIDTHS, SIZES, st.booleans())
@settings(max_examples=100)
def test_what_is_fitted_fits(text: str, width: float, size: float, mono: bool) -> None:
    """A text is no wider than asked; one that is narrow enough stays whole."""
    cut = fitted(text, width, size, mono=mono)

    assert width_of(cut, size, mono=mono) <= width
    assert cut.isprintable()
    whole = harmless(text, limit=LONGEST)
    if width_of(whole, size, mono=mono) <= width:
        assert cut == whole
    else:
        assert cut.endswith(CUT)
        assert whole.startswith(cut.removesuffix(CUT))


@given(TEXTS, WIDTHS, SIZES, st.integers(1, 4))
@settings(max_examples=100)
def test_what_is_folded_fits(text: str, width: float, size: float, lines: int) -> None:
    """At most so many lines, none too wide; nothing but spaces is lost unless a mark says so."""
    made = folded(text, width, size, lines=lines)

    assert len(made) <= lines
    assert all(width_of(line, size) <= width for line in made)
    told = "".join(made).replace(" ", "")
    whole = harmless(text, limit=LONGEST).replace(" ", "")
    assert told == whole or (told.endswith(CUT) and whole.startswith(told.removesuffix(CUT)))


@given(TEXTS, st.integers(2, 100))
@settings(max_examples=100)
def test_what_is_cut_fits_a_terminal(text: str, columns: int) -> None:
    """Letters of East Asian width take two columns, marks upon letters none."""
    cut = cut_to(text, columns)

    assert columns_of(cut) <= columns
    assert cut.isprintable()
    assert cut == harmless(text) or cut.endswith(CUT)


def test_columns() -> None:
    """What terminals agree on."""
    assert [columns_of(text) for text in ("", "ab", "日本", "e\u0301", "→×…")] == [0, 2, 4, 1, 3]
    assert cut_to("日本語", 5) == "日本…"
    assert cut_to("日本語", 4) == "日…"


def test_wide_letters_are_wider() -> None:
    """Estimates know narrow and wide letters, capitals, and those of East Asian width."""
    widths = [width_of(letter * 10, 10) for letter in "iaAM日"]

    assert widths == sorted(set(widths))
    assert width_of("i" * 10, 10, mono=True) == width_of("M" * 10, 10, mono=True)
    assert width_of("ab", 20) == 2 * width_of("ab", 10)


def canvas(theme: Theme = Theme.LIGHT, *, name: str = "p", title: str = "T") -> Canvas:
    return Canvas(name=name, title=title, description="D", width=200, theme=theme)


@pytest.mark.parametrize("evil", INJECTIONS)
def test_nothing_on_a_sheet_becomes_markup(evil: str) -> None:
    """Titles and texts are read back as harmless text, whatever they were."""
    sheet = canvas(title=evil)
    with sheet.group("g", title=evil):
        sheet.text(1, 2, evil)
        sheet.rect(0, 0, 1, 1, title=evil)

    root = ET.fromstring(sheet.done(50))  # noqa: S314 - our own

    assert [text.text for text in root.iter(f"{SVG}text")] == [harmless(evil, limit=LONGEST)]
    assert {title.text for title in root.iter(f"{SVG}title")} == {harmless(evil, limit=2000)}
    assert {element.tag for element in root.iter()} == {
        f"{SVG}{tag}" for tag in ("svg", "title", "desc", "rect", "g", "text")
    }


def test_a_sheet_tells_what_it_is_and_how_large() -> None:
    """One image with title and description, on a ground of its own, over all of its size."""
    sheet = canvas(Theme.DARK)
    root = ET.fromstring(sheet.done(50.25))  # noqa: S314 - our own

    assert root.attrib["role"] == "img"
    assert root.attrib["viewBox"] == "0 0 200 50.2"
    ids = {element.attrib["id"]: element.text for element in root.iter() if "id" in element.attrib}
    assert [ids[name] for name in root.attrib["aria-labelledby"].split()] == ["T", "D"]
    ground = root.find(f"{SVG}rect")
    assert ground is not None
    assert ground.attrib["fill"] == PAPERS[Theme.DARK].ground
    assert (ground.attrib["width"], ground.attrib["height"]) == ("200", "50.2")


def test_shapes_on_a_sheet() -> None:
    """Attributes are spelt as SVG does, numbers are short, groups hold what is drawn in them."""
    sheet = canvas()
    with sheet.group("a", class_="big"), sheet.group("b"):
        sheet.line(0, 0.04, 1, 2.5, stroke_width="2")
        sheet.path("M0 0L1 1")
    sheet.text(1, 2, "x", size=11, mono=True, text_anchor="end")

    root = ET.fromstring(sheet.done(10))  # noqa: S314 - our own

    outer = root.find(f"{SVG}g")
    assert outer is not None
    assert outer.attrib == {"id": "p-a", "class": "big"}
    line, path = root.findall(f"{SVG}g/{SVG}g/*")
    assert line.attrib == {
        "x1": "0",
        "y1": "0",
        "x2": "1",
        "y2": "2.5",
        "stroke": PAPERS[Theme.LIGHT].grid,
        "stroke-width": "2",
    }
    assert path.attrib == {"d": "M0 0L1 1", "fill": "none"}
    text = root.find(f"{SVG}text")
    assert text is not None
    assert (text.attrib["font-size"], text.attrib["text-anchor"]) == ("11", "end")
    assert "monospace" in text.attrib["font-family"]


CELLS = st.lists(st.tuples(TEXTS, TEXTS, TEXTS), max_size=4)


@given(TEXTS, CELLS)
@settings(max_examples=60)
def test_tables_keep_their_shape_in_every_form(title: str, rows: list[tuple[str, ...]]) -> None:
    """As many rows and cells as were given, none wider than a terminal, nothing that is markup."""
    table = Table(title=title, head=("a", "b", "c"), rows=tuple(rows), note=title)

    markdown = markdown_table(table)
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    assert len(lines) == len(rows) + 2
    assert all(len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) == 4 for line in lines)
    assert max(map(columns_of, text_table(table).splitlines())) <= WIDTH
    html = html_table(table)
    assert html.count("<tr>") == len(rows) + 1
    assert html.count("<td>") == 2 * len(rows)
    assert html.count("<th ") == 3 + len(rows)


def test_tables_in_words() -> None:
    """The widest column gives way; heading, note and rule stand where they belong."""
    table = Table(title="T", head=("a", "b"), rows=(("1", "x" * 150), ("22", "y")), note="N")

    title, note, head, rule, wide, short = text_table(table).splitlines()

    assert (title, note) == ("T", "N")
    assert head == "a   b"
    assert rule == "─" * WIDTH
    assert wide == "1   " + "x" * 95 + CUT
    assert short == "22  y"
    assert markdown_table(table, level=3).splitlines()[:4] == ["### T", "", "N", ""]
    assert "<h2>T</h2><p class='soft'>N</p>" in html_table(table)


@given(TEXTS)
@settings(max_examples=60)
def test_cells_are_plain(text: str) -> None:
    """In Markdown every sign that means something is escaped; in HTML it is an entity."""
    markdown, html = plain_markdown(text), plain_html(text)

    assert re.sub(r"\\([\\`*_{}\[\]<>#|~!&$])", r"\1", markdown) == harmless(text, limit=CELL)
    assert not re.search(r"[<>\"']", html)
    assert "\n" not in markdown + html


class _Reader(HTMLParser):
    """Notes the tags of a page, and their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("theme", Theme)
@pytest.mark.parametrize("evil", INJECTIONS)
def test_a_page_is_whole_and_needs_nothing(evil: str, theme: Theme) -> None:
    """Balanced tags, no script, nothing that is fetched, no attribute that anybody injected."""
    table = Table(title=evil, head=(evil,), rows=((evil,),), note=evil)
    sheet = canvas(theme, title=evil).done(10)

    whole = page(title=evil, description=evil, pictures=[sheet], tables=[table], theme=theme)

    reader = _Reader()
    reader.feed(whole)
    assert reader.open == []
    assert "script" not in reader.tags
    assert not {"src", "href", "onload", "onerror"} & set(reader.attributes)
    assert PAPERS[theme].ground in whole
    assert "@import" not in whole
    assert "url(" not in whole


def test_a_light_page_is_dark_for_those_who_want_it() -> None:
    """Every colour, of the page and of its pictures, follows the reader's scheme; no word does."""
    canvas = Canvas(name="p", title="#ffffff", description="d", width=100, theme=Theme.LIGHT)
    canvas.text(0, 20, 'fill="#1f2328"')
    canvas.line(0, 0, 9, 9)
    whole = page(
        title="t", description="d", pictures=[canvas.done(40)], tables=[], theme=Theme.LIGHT
    )

    schemes, rest = whole.split("}}", 1)
    assert "@media (prefers-color-scheme:dark)" in schemes
    assert re.findall("#[0-9a-f]{6}", rest) == ["#ffffff", "#1f2328"]  # the words
    for light, dark in IN_THE_DARK.items():
        assert f"--{light[1:]}:{light};" in schemes
        assert f"--{light[1:]}:{dark};" in schemes


def test_all_colours_of_a_run_have_their_like_in_the_dark() -> None:
    """Otherwise a page would hold a light colour on dark ground; the other theme is the proof."""
    picture = run_picture(hostile_run())
    light, dark = (
        re.findall("#[0-9a-f]{6}", picture.svg(theme=theme) + picture.sequence.svg(theme=theme))
        for theme in Theme
    )

    assert {one: IN_THE_DARK[one] for one in light} == dict(zip(light, dark, strict=True))


OWNERS = [f"turnlock:build-7:{1000 + n}:98{n}5:{n}fe3" for n in range(3)]


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["w1", "w2"], ["w1", "w2"]),
        (OWNERS, [opaque(it) for it in OWNERS]),
        ([*OWNERS[:1], "w1"], [opaque(OWNERS[0]), "w1"]),
        ([f"arn:aws:lambda:eu:{n:040}" for n in (1, 2)], [f"{CUT}{n:015}" for n in (1, 2)]),
        ([f"{n}{'x' * 30}" for n in (1, 2)], ["worker 1", "worker 2"]),
        (["kernel", "w"], ["worker 1", "worker 2"]),
        ([], []),
    ],
)
def test_names_of_workers_are_short_and_distinct(names: list[str], told: list[str]) -> None:
    """Cut at the end some would all be called alike; none tells its host or process (F-6)."""
    assert short_names(names, taken={"kernel"}) == dict(zip(names, told, strict=True))


@given(st.lists(TEXTS, unique=True))
def test_no_two_workers_share_a_name(names: list[str]) -> None:
    short = short_names(names)

    assert list(short) == names
    assert len(set(short.values())) == len(names)
    assert all(0 < len(it) <= 16 for it in short.values())

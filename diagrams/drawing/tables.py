"""Tables beside pictures, as Markdown, HTML and text; every cell is a string from anywhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import escape
from typing import Final

import attrs

from ...models.safe_text import harmless
from ..palette import IN_THE_DARK, PAPERS, Theme
from .canvas import FONT, MONO
from .lettering import columns_of, cut_to

CELL: Final = 200
"""Characters of a cell; the rest is cut."""
WIDTH: Final = 100
"""Columns of text in a terminal."""
_GAP: Final = 2
_MARKDOWN: Final = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_{}[]<>#|~!&$"})


@attrs.frozen(kw_only=True)
class Table:
    """A table that stands below a picture: plain strings, which the writers make safe."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def plain_markdown(text: str) -> str:
    """Return text that Markdown shows as it is, on one line."""
    return harmless(text, limit=CELL).translate(_MARKDOWN)


def plain_html(text: str, *, limit: int = CELL) -> str:
    """Return text that HTML shows as it is, on one line."""
    return escape(harmless(text, limit=limit), quote=True)


def markdown_table(table: Table, *, level: int = 2) -> str:
    """Return a heading of that level, the table and its note."""
    lines = [f"{'#' * level} {plain_markdown(table.title)}", ""]
    if table.note:
        lines += [plain_markdown(table.note), ""]
    lines += [_markdown_row(table.head), "|---" * len(table.head) + "|"]
    lines += [_markdown_row(row) for row in table.rows]
    return "\n".join((*lines, ""))


def _markdown_row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(plain_markdown(cell) for cell in cells) + " |"


def html_table(table: Table) -> str:
    """Return a heading, the note and the table; the first cell of a row is its header."""
    note = f"<p class='soft'>{plain_html(table.note)}</p>" if table.note else ""
    head = "".join(f"<th scope='col'>{plain_html(cell)}</th>" for cell in table.head)
    body = "".join(f"<tr>{_html_row(row)}</tr>" for row in table.rows)
    return (
        f"<h2>{plain_html(table.title)}</h2>{note}<div class='scroll'><table>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _html_row(row: tuple[str, ...]) -> str:
    first, *others = row
    cells = "".join(f"<td>{plain_html(cell)}</td>" for cell in others)
    return f"<th scope='row'>{plain_html(first)}</th>{cells}"


def text_table(table: Table) -> str:
    """Return the title, the note and the table in at most `WIDTH` columns; wide cells are cut."""
    rows = [tuple(harmless(cell, limit=CELL) for cell in row) for row in (table.head, *table.rows)]
    widths = _widths(rows)
    lines = [cut_to(table.title, WIDTH)]
    if table.note:
        lines.append(cut_to(table.note, WIDTH))
    head, *body = _text_lines(rows, widths)
    return "\n".join(
        (*lines, head, "─" * min(WIDTH, sum(widths) + _GAP * (len(widths) - 1)), *body)
    )


def _widths(rows: list[tuple[str, ...]]) -> list[int]:
    """Return the width of each column; the widest gives way until all fit."""
    widths = [max(map(columns_of, column)) for column in zip(*rows, strict=True)]
    while sum(widths) + _GAP * (len(widths) - 1) > WIDTH and max(widths) > 1:
        widths[widths.index(max(widths))] -= 1
    return widths


def _text_lines(rows: list[tuple[str, ...]], widths: list[int]) -> Iterator[str]:
    for row in rows:
        cells = (_padded(cell, width) for cell, width in zip(row, widths, strict=True))
        yield (" " * _GAP).join(cells).rstrip()


def _padded(cell: str, width: int) -> str:
    cut = cut_to(cell, width)
    return cut + " " * (width - columns_of(cut))


_LONGEST: Final = 2000
"""Characters of the description."""

_STYLE: Final = """
body{{margin:2rem auto;max-width:1080px;padding:0 1rem;background:{ground};color:{ink};
font:15px/1.5 {font}}}
h1{{font-size:1.5rem}}h2{{font-size:1.1rem;margin-top:2rem}}
.soft{{color:{soft}}}.scroll{{overflow-x:auto}}svg{{max-width:100%;height:auto}}
table{{border-collapse:collapse;font-size:13px}}
th,td{{border:1px solid {grid};padding:.25rem .5rem;text-align:left;vertical-align:top}}
code,td{{font-family:{mono}}}
"""
_TAG: Final = re.compile(r"<[^>]*>")
_COLOUR: Final = re.compile("#([0-9a-f]{6})(?![0-9a-f])")
_VARIABLE: Final = r"var(--\1)"
_SCHEMES: Final = (
    f":root{{color-scheme:light dark;{''.join(f'--{it[1:]}:{it};' for it in IN_THE_DARK)}}}\n"
    "@media (prefers-color-scheme:dark){:root{"
    f"{''.join(f'--{it[1:]}:{other};' for it, other in IN_THE_DARK.items())}}}}}"
)
"""The colours of light pages as variables, which a dark scheme sets otherwise."""


def in_page(svg: str) -> str:
    """Return a light picture for a page of somebody else's, dark where its reader wants that."""
    element = _following(svg).replace(' xmlns="http://www.w3.org/2000/svg"', "", 1)
    return f"<div class='scroll'><style>{_SCHEMES}</style>{element}</div>"


def _following(svg: str) -> str:
    """Return a light picture with variables for its colours, which a dark scheme sets otherwise."""
    return _TAG.sub(lambda tag: _COLOUR.sub(_VARIABLE, tag[0]), svg)


def page(
    *, title: str, description: str, pictures: Iterable[str], tables: Iterable[Table], theme: Theme
) -> str:
    """Return the page; `pictures` are SVG elements, everything else is made safe here.

    A light page is dark for readers who want dark pages; a dark one is dark for all.
    """
    paper = PAPERS[theme]
    style = _STYLE.format(
        ground=paper.ground, ink=paper.ink, soft=paper.soft, grid=paper.grid, font=FONT, mono=MONO
    )
    if theme is Theme.LIGHT:
        style = _SCHEMES + _COLOUR.sub(_VARIABLE, style)
        pictures = map(_following, pictures)
    drawn = "".join(f"<div class='scroll'>{picture}</div>" for picture in pictures)
    return (
        "<!DOCTYPE html>\n"
        '<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{plain_html(title)}</title><style>{style}</style></head>\n"
        f"<body><h1>{plain_html(title)}</h1><p>{plain_html(description, limit=_LONGEST)}</p>\n"
        f"{drawn}\n" + "\n".join(map(html_table, tables)) + "</body></html>\n"
    )

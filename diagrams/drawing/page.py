"""One self-contained HTML page around a picture: no network, no script, no other file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from ..palette import IN_THE_DARK, PAPERS, Theme
from .canvas import FONT, MONO
from .tables import Table, html_table, plain_html

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
    drawn = "".join(f"<div class='scroll'>{picture}</div>" for picture in pictures)
    if theme is Theme.LIGHT:
        style = _SCHEMES + _COLOUR.sub(_VARIABLE, style)
        drawn = _TAG.sub(lambda tag: _COLOUR.sub(_VARIABLE, tag[0]), drawn)
    return (
        "<!DOCTYPE html>\n"
        '<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{plain_html(title)}</title><style>{style}</style></head>\n"
        f"<body><h1>{plain_html(title)}</h1><p>{plain_html(description, limit=_LONGEST)}</p>\n"
        f"{drawn}\n" + "\n".join(map(html_table, tables)) + "</body></html>\n"
    )

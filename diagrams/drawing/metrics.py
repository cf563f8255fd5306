"""How wide Graphviz takes text to be, so that it can be drawn just so, whatever letters there are.

Graphviz leaves room for the letters that it measures. A reader's machine may have wider ones: a
text that says its length is fitted into the room there is.
"""

from __future__ import annotations

from typing import Final

_THOUSANDTHS: Final = {
    **dict.fromkeys("ijl", 222),
    **dict.fromkeys(" !,./:;I[]ft\\·", 278),
    **dict.fromkeys("()-r`", 333),
    **dict.fromkeys("{}", 334),
    **dict.fromkeys("Jcksvxyz", 500),
    **dict.fromkeys("0123456789#$?L_abdeghnopquµ–", 556),
    **dict.fromkeys("+<=>~×±", 584),
    **dict.fromkeys("FTZ", 611),
    **dict.fromkeys("&ABEKPSVXY", 667),
    **dict.fromkeys("CDHNRUw", 722),
    **dict.fromkeys("GOQ", 778),
    **dict.fromkeys("Mm", 833),
    "'": 191,
    "|": 260,
    '"': 355,
    "*": 389,
    "^": 469,
    "%": 889,
    "W": 944,
    "…": 1000,
    "@": 1015,
}
"""Of the size in pixels: the advance widths of Helvetica, and so of Arial."""


def measured(text: str, size: float) -> float | None:
    """Return how many pixels wide the text is in Arial; None where a letter is not in the table."""
    widths = [_THOUSANDTHS.get(letter) for letter in text]
    known = [width for width in widths if width is not None]
    return sum(known) * size / 1000 if len(known) == len(widths) else None

"""How wide text is, and how it is cut or folded to fit: SVG wraps nothing itself.

Widths are estimates for a common sans-serif, on the generous side, because the letters that a
reader's machine has are not known. What comes from outside is made harmless first: on one line,
nothing that steers, hides or reverses text, nothing that XML forbids.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Container, Iterable, Iterator
from typing import Final

from ...models.safe_text import CUT, harmless
from ...models.workers import opaque

LONGEST: Final = 400
"""Characters of one text that are looked at before it is cut to what fits."""

SHORT: Final = 16
"""Characters of a short name."""

_NARROW: Final = frozenset("iIljtf|.,:;'!()[]{} `/\\-")
_WIDE: Final = frozenset("mwMWGOQ@%_—…✓✗→≥≤")
_SHARES: Final = (0.36, 0.58, 0.92)
"""Of the size: a narrow letter, one between, a wide one; capitals lie between the latter two."""
_CAPITAL: Final = 0.70
_MONO: Final = 0.62
_FULL: Final = 1.05
"""A letter of East Asian width, or a picture."""


def width_of(text: str, size: float, *, mono: bool = False) -> float:
    """Return about how many pixels wide a text is at a size in pixels."""
    return size * sum(map(_share_mono if mono else _share, text))


def columns_of(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0
        if unicodedata.combining(letter)
        else 1 + (unicodedata.east_asian_width(letter) in {"W", "F"})
        for letter in text
    )


def cut_to(text: str, columns: int) -> str:
    """Return the text, harmless and cut so that it takes no more columns of a terminal."""
    whole = harmless(text, limit=columns)
    if columns_of(whole) <= columns:
        return whole
    left = columns - len(CUT)
    for place, letter in enumerate(whole):
        left -= columns_of(letter)
        if left < 0:
            return whole[:place] + CUT
    return whole


def short_names(names: Iterable[str], *, taken: Container[str] = ()) -> dict[str, str]:
    """Return a name for each of these, short enough for a head or a bar, and none twice.

    Long names of one make begin alike, so a long one is told by its end; where that does not do,
    they are counted. None tells a host or a process (F-6). `taken` are names that others have.
    """
    given = list(dict.fromkeys(names))
    for form in (_whole, _end):
        shown = {name: opaque(name) for name in given}
        told = {name: _whole(it) if len(it) <= SHORT else form(it) for name, it in shown.items()}
        distinct = len(set(told.values())) == len(told)
        if distinct and not any(len(it) > SHORT or it in taken or not it for it in told.values()):
            return told
    return {name: f"worker {place}" for place, name in enumerate(given, start=1)}


def _whole(name: str) -> str:
    return harmless(name)


def _end(name: str) -> str:
    return CUT + harmless(name[1 - SHORT :])


def fitted(text: str, width: float, size: float, *, mono: bool = False) -> str:
    """Return the text, harmless and cut so that it is no wider than `width` pixels."""
    whole = harmless(text, limit=LONGEST)
    if width_of(whole, size, mono=mono) <= width:
        return whole
    return _beginning(whole, width - width_of(CUT, size, mono=mono), size, mono=mono) + CUT


def folded(text: str, width: float, size: float, *, lines: int = 3) -> tuple[str, ...]:
    """Return the text, harmless, on at most so many lines of at most `width` pixels each."""
    made: list[str] = []
    words = list(_words(harmless(text, limit=LONGEST), width, size))
    line = ""
    for place, word in enumerate(words):
        longer = f"{line} {word}" if line else word
        if width_of(longer, size) <= width:
            line = longer
            continue
        if len(made) == lines - 1:
            rest = " ".join((line, *words[place:])) if line else " ".join(words[place:])
            return (*made, fitted(rest, width, size))
        made.append(line)
        line = word
    return (*made, line) if line else tuple(made)


def _words(text: str, width: float, size: float) -> Iterator[str]:
    """Yield the words; one that is wider than a line comes in pieces."""
    for word in text.split(" "):
        rest = word
        while rest and width_of(rest, size) > width:
            piece = _beginning(rest, width, size) or rest[0]
            yield piece
            rest = rest[len(piece) :]
        if rest:
            yield rest


def _beginning(text: str, width: float, size: float, *, mono: bool = False) -> str:
    left = width
    for place, letter in enumerate(text):
        left -= size * (_share_mono(letter) if mono else _share(letter))
        if left < 0:
            return text[:place].rstrip()
    return text


def _share(letter: str) -> float:
    narrow, between, wide = _SHARES
    if letter in _NARROW:
        return narrow
    if letter in _WIDE:
        return wide
    if unicodedata.east_asian_width(letter) in {"W", "F"}:
        return _FULL
    return _CAPITAL if letter.isupper() else between


def _share_mono(letter: str) -> float:
    return _FULL * 1.2 if unicodedata.east_asian_width(letter) in {"W", "F"} else _MONO


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

"""Recorded text made safe to look at: nothing in it may move a cursor or hide what it says."""

from __future__ import annotations

import re
from typing import Final

CUT = "…"

_UNSEEN: Final = (
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0e\uffa0"
    "\U000e0100-\U000e01ef]|(?<![^\ufe0f])\ufe0f"
)
"""What counts as printable, and shows nothing: letters and marks that are ignored by default, and
the blank of Braille. One U+FE0F after a character only asks for its picture."""


def harmless(text: str, *, limit: int | None = None) -> str:
    r"""Return `text` on one line, with what cannot be printed as escapes (``\x1b``, ``\u202e``).

    Control characters, bidirectional overrides, zero-width and blank ones are all escaped. With
    `limit` the outcome has at most that many characters, the last of them ``…`` if it was cut.
    """
    whole = text if limit is None else text[: limit + 1]
    if not whole.isprintable():
        whole = "".join(map(_shown, whole))
    if not whole.isascii():
        whole = re.sub(_UNSEEN, _seen, whole)
    if limit is None or len(whole) <= limit:
        return whole
    return whole[: max(0, limit - 1)] + CUT


def harmless_lines(text: str) -> str:
    """Return `text` with its line breaks kept and each line made harmless."""
    return "\n".join(harmless(line) for line in text.split("\n"))


def _shown(character: str) -> str:
    return character if character.isprintable() else _escaped(character)


def _seen(unseen: re.Match[str]) -> str:
    return _escaped(unseen.group())


def _escaped(text: str) -> str:
    return text.encode("unicode_escape").decode("ascii")

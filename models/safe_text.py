"""Recorded text made safe to look at: nothing in it may move a cursor or hide what it says."""

from __future__ import annotations

CUT = "…"


def harmless(text: str, *, limit: int | None = None) -> str:
    r"""Return `text` on one line, with what cannot be printed as escapes (``\x1b``, ``\u202e``).

    Control characters, bidirectional overrides and zero-width characters are all escaped. With
    `limit` the outcome has at most that many characters, the last of them ``…`` if it was cut.
    """
    whole = text if limit is None else text[: limit + 1]
    if not whole.isprintable():
        whole = "".join(map(_shown, whole))
    if limit is None or len(whole) <= limit:
        return whole
    return whole[: max(0, limit - 1)] + CUT


def harmless_lines(text: str) -> str:
    """Return `text` with its line breaks kept and each line made harmless."""
    return "\n".join(harmless(line) for line in text.split("\n"))


def _shown(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode("ascii")

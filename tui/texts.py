"""What the terminal console writes of recorded values: whole, and harmless (F-91)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from difflib import SequenceMatcher
from typing import Final

from ..models.safe_text import harmless
from ..models.values import Json, canonical

_SPECIAL: Final = re.compile(r"[^\x20-\x7e\n]")
_COMPARED: Final = 1_000
"""Lines that differ are compared one by one up to so many; beyond it they stand as blocks."""
_UNITS: Final = (("d", 86_400), ("h", 3_600), ("m", 60))
_ROUND: Final = 2


def spelt(value: Json | Mapping[str, Json]) -> str:
    r"""Return a value as JSON over lines, nothing cut, which is read back as the same value.

    Control, bidirectional, zero-width and blank characters stand as JSON's escapes (``\u202e``).
    """
    text = json.dumps(json.loads(canonical(value)), indent=2, ensure_ascii=False)
    return text if text.isascii() and text.replace("\n", "").isprintable() else _escaped(text)


def _escaped(text: str) -> str:
    return _SPECIAL.sub(lambda found: _spelt_character(found[0]), text)


def _spelt_character(character: str) -> str:
    if harmless(character) == character:
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    pairs = (units[place : place + 2].hex() for place in range(0, len(units), 2))
    return "".join(f"\\u{it}" for it in pairs)


def differing(before: str, after: str) -> Iterator[tuple[str, str]]:
    """Yield the lines of a difference: ``-``, ``+`` or a blank, and the line.

    Of what is alike only the neighbours of a change are there.
    """
    old, new = before.split("\n"), after.split("\n")
    if len(old) + len(new) > _COMPARED:
        yield from _blocks(old, new)
        return
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for group in matcher.get_grouped_opcodes(1):
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                yield from ((" ", line) for line in old[i1:i2])
                continue
            yield from (("-", line) for line in old[i1:i2])
            yield from (("+", line) for line in new[j1:j2])


def _blocks(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, str]]:
    least = min(len(old), len(new))
    start = next((it for it in range(least) if old[it] != new[it]), least)
    end = next((it for it in range(least - start) if old[-1 - it] != new[-1 - it]), least - start)
    yield from (("-", line) for line in old[start : len(old) - end])
    yield from (("+", line) for line in new[start : len(new) - end])


def clock_time(at: float | None) -> str:
    """Return the time of the day, here."""
    if at is None:
        return "-"
    try:
        return datetime.fromtimestamp(at).astimezone().strftime("%H:%M:%S")
    except (OverflowError, ValueError, OSError):  # beyond the calendar
        return f"{at:.6g} s"


def span(seconds: float) -> str:
    """Return a span in the largest unit of which there are at least two."""
    for unit, length in _UNITS:
        if seconds >= _ROUND * length:
            return f"{int(seconds // length)}{unit}"
    return f"{max(0, int(seconds))}s"

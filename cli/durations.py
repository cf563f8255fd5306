"""Durations as people type and read them: ``90`` or ``90s``, ``15m``, ``12h``, ``30d``, ``2w``."""

from __future__ import annotations

import re
from typing import Final

import click

from ..models.safe_text import harmless

_UNITS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_TYPED: Final = re.compile(r"(?P<count>\d{1,9}(\.\d{1,3})?)(?P<unit>[smhdw]?)")
_ROUND: Final = 2
"""A unit is used from so many of them on: 90 s say more than 1 min."""


def duration(_: click.Context, __: click.Parameter, value: str | None) -> float | None:
    """Return the seconds that an option names: its callback. What is none is wrong usage."""
    if value is None:
        return None
    typed = _TYPED.fullmatch(value)
    if typed is None:
        raise click.BadParameter(
            f"{harmless(value, limit=40)!r} is no duration; give a number and its unit, such as"
            " 90s, 15m, 12h, 30d or 2w"
        )
    return float(typed["count"]) * _UNITS[typed["unit"] or "s"]


def told_duration(seconds: float) -> str:
    """Return a duration in the largest unit of which there are at least two; 0s at the least."""
    for unit in ("d", "h", "m"):
        if seconds >= _ROUND * _UNITS[unit]:
            return f"{int(seconds // _UNITS[unit])}{unit}"
    return f"{int(seconds)}s"

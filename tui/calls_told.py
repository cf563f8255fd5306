"""Calls, facts and ignored deliveries as rows: their columns, and how some of it is said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..diagrams.palette import Theme, look_of
from ..models.safe_text import harmless
from ..views.call_view import CallView
from .lines import Column
from .machine import Line, colour_of
from .texts import span, spelt

OF_CALLS: Final = (
    Column("turn", 8),
    Column("call", 24),
    Column("arguments"),
    Column("phase", 20),
    Column("time", 7, right=True),
)
"""Of the calls of a turn."""
OF_FACTS: Final = (
    Column("fact", 7, right=True),
    Column("at", 8),
    Column("what", 28),
    Column("detail"),
)
"""Of facts."""
OF_IGNORED: Final = (Column("at", 8), Column("reason", 16), Column("delivery"))
"""Of deliveries that were refused."""


def took(seconds: float) -> str:
    """Say how long something took."""
    return f"{max(seconds, 0.0) * 1_000:.0f} ms" if seconds < 1.0 else span(seconds)


def as_it_was(calls: Sequence[CallView]) -> list[Line]:
    """Tell calls as they stood at another moment: nothing is decided there (F-98)."""
    lines: list[Line] = []
    for call in calls:
        name = f"{look_of(call.phase).sign} {harmless(call.tool_name)} "
        lines.append([(name + harmless(call.invocation_id), colour_of(call.phase, Theme.DARK))])
        lines += [[(f"  {it}", "")] for it in spelt(call.arguments or {}).split("\n")]
    return lines

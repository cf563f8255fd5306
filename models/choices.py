"""What people choose when they decide: how far an approval reaches, and what a doubt becomes.

Apart from the deliveries that carry them: who only passes a choice on needs none of those.
"""

from __future__ import annotations

from enum import StrEnum


class Scope(StrEnum):
    """How far an approval reaches (K-40)."""

    ONCE = "once"
    TURN = "turn"
    SESSION = "session"


class Match(StrEnum):
    """Which calls a grant covers: those with the very arguments, or all of the tool (K-40)."""

    EXACT = "exact"
    TOOL = "tool"


class Resolution(StrEnum):
    """What somebody decides about an unknown outcome (K-35)."""

    RETRY = "retry"
    RESULT = "result"
    ERROR = "error"

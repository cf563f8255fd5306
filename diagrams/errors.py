"""What can go wrong when a picture is asked for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ..models.errors import TurnlockError, shown
from ..models.safe_text import harmless

LISTED: Final = 20
"""What there is instead: so many of them are named."""
NAME: Final = 40
"""Characters of a name in a message."""


class NoSuchForm(TurnlockError):
    """A picture of this kind has no such form; the message names those it has."""


class CannotDraw(TurnlockError):
    """A library or program that draws is missing or failed; the message says how to get it."""


class NothingToDraw(TurnlockError):
    """What was asked for is not in what was given; the message names what is there."""


def not_there(what: str, asked: str, there: Iterable[str]) -> NothingToDraw:
    """Return the error for a turn or an invocation that was not recorded: it names those that were.

    ``no turn 'U' was recorded; choose one of: T1, T2 … and 5 more``
    """
    names = [harmless(name, limit=NAME) for name in dict.fromkeys(there)]
    listed = ", ".join(names[:LISTED])
    more = f" … and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    choice = f"choose one of: {listed}{more}" if names else f"the recording has no {what} at all"
    return NothingToDraw(f"no {what} {shown(asked)} was recorded; {choice}")

"""What can go wrong when a picture is asked for."""

from __future__ import annotations

from ..models.errors import TurnlockError


class NoSuchForm(TurnlockError):
    """A picture of this kind has no such form; the message names those it has."""


class CannotDraw(TurnlockError):
    """A library or program that draws is missing or failed; the message says how to get it."""


class NothingToDraw(TurnlockError):
    """What was asked for is not in what was given; the message names what is there."""

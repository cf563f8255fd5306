"""What variables of the environment hold: secrets, handed on and told to nobody (W-15)."""

from __future__ import annotations

import os

from ..models.errors import InvalidValue


def held(variable: str, place: str) -> str:
    """Return what a variable holds. Raises `InvalidValue` at `place`, which does not repeat it."""
    value = os.environ.get(variable)
    if not value:
        raise InvalidValue(
            place=place, cause=f"the variable {variable} is not set", fix="set it, or leave it out"
        )
    if "\n" in value or "\r" in value:
        raise InvalidValue(
            place=place,
            cause=f"the variable {variable} holds more than one line",
            fix="set it to one line, without a line break at its end",
        )
    return value


def sendable(variable: str, place: str) -> str:
    """Return what a variable holds, which is to be sent in a header.

    Clients repeat a header that cannot be sent in what they raise: it is refused here.
    """
    value = held(variable, place)
    if not (value.isascii() and value.isprintable()) or value != value.strip():
        raise InvalidValue(
            place=place,
            cause=f"the variable {variable} holds what cannot be sent in a header",
            fix="set it to visible ASCII characters, without blanks around them",
        )
    return value

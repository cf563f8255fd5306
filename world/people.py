"""Who may speak as a person, or decide as one (W-10, F-12)."""

from __future__ import annotations

import unicodedata
from typing import Final

from ..models.errors import InvalidValue, shown
from .configuration import Configuration
from .names import SYSTEM, WORLD

NAME: Final = 128
"""Characters of a person's name, at most: it is a token's name where there are tokens."""
NO_PERSON: Final = frozenset({"runtime", "grant", WORLD, SYSTEM})
"""Who decides or speaks without being a person."""


def check_person(name: object, known: Configuration, *, place: str) -> str:
    """Return the name of a person in a world, or raise `InvalidValue`.

    Nobody is called like an agent of the world, however it is written, nor like what decides or
    speaks by itself.
    """
    if (
        type(name) is not str
        or not name
        or len(name) > NAME
        or not name.isprintable()
        or " " in name
    ):
        raise InvalidValue(
            place=place,
            cause=f"{shown(name)} is no name of a person",
            fix=f"give 1 to {NAME} visible characters without a space",
        )
    plain = unicodedata.normalize("NFKC", name).casefold()
    if plain in NO_PERSON or plain in known.agents:
        what = "an agent of the world" if plain in known.agents else "no person"
        raise InvalidValue(
            place=place,
            cause=f"{shown(name)} is the name of {what}",
            fix="speak under a name of your own",
        )
    return name

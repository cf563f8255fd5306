"""Values that a journal holds in another form: sealed with a key of the host, or as a digest alone.

An envelope is ``{"sealed": "<base64>"}``, a text ``sealed:<base64>``. Whoever has no key can still
fold, check and decide by digest, and shows that there is something, not what.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeGuard, cast

from .values import Json, canonical

FIELD: Final = "sealed"
"""The one field of an envelope."""
ID: Final = "id"
"""The field beside it where a note is sealed: its id."""
TEXT: Final = "sealed:"
"""Begins a text that is sealed."""
HIDDEN: Final = "(sealed)"
"""What people are shown in its place."""


def is_sealed(value: object) -> TypeGuard[Mapping[str, str]]:
    """Whether a value has the form of an envelope; only the key tells whether it is one."""
    if not isinstance(value, Mapping):
        return False
    held = cast("Mapping[str, object]", value)
    return len(held) == 1 and isinstance(held.get(FIELD), str)


def is_sealed_body(body: Mapping[str, object]) -> bool:
    """Whether the body of a note holds nothing but its id and an envelope."""
    return is_sealed({name: value for name, value in body.items() if name != ID})


def shown_json(value: Json) -> str:
    """Return a value as people are shown it: its canonical text, or that it is sealed."""
    return HIDDEN if is_sealed(value) else canonical(value)


def shown_text(text: str) -> str:
    """Return a text as people are shown it."""
    return HIDDEN if text.startswith(TEXT) else text

"""Fields of JSON that somebody else wrote: what may be missing or null reads as empty."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast


def members(value: object) -> Mapping[str, Any]:
    """Return an object; null is an empty one. Raises TypeError for what is none."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"{type(value).__name__} where an object should be")
    return cast("Mapping[str, Any]", value)


def items(value: object) -> list[Any]:
    """Return a list; null is an empty one. Raises TypeError for what is none."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise TypeError(f"{type(value).__name__} where a list should be")
    return [*cast("Iterable[Any]", value)]


def text(value: object) -> str:
    """Return a text; empty for anything else."""
    return value if isinstance(value, str) else ""


def only_text(value: object) -> str:
    """Return a text. Raises TypeError for what is none."""
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} where a text should be")
    return value


def number(value: object) -> int:
    """Return an integer; 0 for anything else."""
    return value if isinstance(value, int) else 0


def complaint(error: object) -> str:
    """Return what an error says of itself."""
    try:
        return str(members(error).get("message") or error)
    except TypeError:
        return str(error)

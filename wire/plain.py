"""Messages of the wire as plain JSON values, for those who only look at them (section 12)."""

from __future__ import annotations

from typing import Any, Final, TypeAlias, cast

from ..models.errors import InvalidValue

Raw: TypeAlias = dict[str, Any]

RECOVER: Final = "recover"
DIGEST: Final = "digest"
HARNESS: Final = (RECOVER, DIGEST)
"""The types of delivery that belong to harnesses: they never reach the kernel's `receive`."""


def is_receipt(value: object) -> bool:
    """Whether it has what every receipt has."""
    if not isinstance(value, dict):
        return False
    fields = cast("Raw", value)
    return isinstance(fields.get("accepted"), bool) and all(
        isinstance(fields.get(name), list)
        and all(isinstance(part, dict) for part in cast("list[object]", fields[name]))
        for name in ("facts", "effects")
    )


def alike(one: object, other: object) -> bool:
    """Whether two JSON values are equal: numbers by value, and no boolean is a number."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        mine, others = cast("Raw", one), cast("Raw", other)
        return mine.keys() == others.keys() and all(
            alike(mine[name], others[name]) for name in mine
        )
    if isinstance(one, list) and isinstance(other, list):
        items, rest = cast("list[object]", one), cast("list[object]", other)
        return len(items) == len(rest) and all(map(alike, items, rest))
    return one == other


def scripts_of(message: Raw) -> list[list[Raw]]:
    """Return the scripts of a request, or the receipts of an answer. Raises `InvalidValue`."""
    scripts = message.get("scripts")
    if not isinstance(scripts, list):
        raise InvalidValue(place="scripts", cause="is no JSON array", fix="give a list of scripts")
    for place, script in enumerate(cast("list[object]", scripts)):
        if not isinstance(script, list) or not all(
            isinstance(step, dict) for step in cast("list[object]", script)
        ):
            raise InvalidValue(
                place=f"scripts[{place}]", cause="is no list of objects", fix="give objects"
            )
    return cast("list[list[Raw]]", scripts)

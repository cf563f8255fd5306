"""Where two receipts for one delivery first differ, and how to say it in a sentence."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any, Final, cast

import attrs

from ...wire.plain import Raw, alike, is_receipt


class Absent(Enum):
    """The value of what is not there."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT

# What the whole of a fact or an effect is about comes first, what merely numbers it last.
_FIRST: Final = ("accepted", "reason", "type")
_LAST: Final = ("at", "sequence", "commit")


@attrs.frozen
class Difference:
    """The first place where an answer is not the expected one.

    `path` is where, as deep as it goes: ``effects[0].results[1].status``. `part` is the fact or
    effect that it is about: the expected one, or the one too many; None outside of both.
    """

    path: str
    expected: Any
    got: Any
    part: Raw | None = None

    @property
    def field(self) -> str:
        """The field of the fact or effect that differs; empty where all of it does."""
        return self.path.partition(".")[2].partition(".")[0].partition("[")[0]


def first_difference(expected: Raw, got: Raw | None) -> Difference | None:
    """Return the first difference, or None.

    What is missing or has another value goes before what is there beyond the expected. Numbers are
    equal by value (a kernel in another language writes 1 for 1.0), effects in any order. `commit`,
    by which our journals mark what K-9 joins, may be left out: kernel.md does not name it.
    """
    if not is_receipt(got):
        return Difference("", expected, ABSENT if got is None else got)
    received = cast("Raw", got)
    for name in ("accepted", "reason"):
        one, other = expected.get(name, ABSENT), received.get(name, ABSENT)
        if not alike(one, other):
            return Difference(name, one, other)
    return _between_facts(expected["facts"], received["facts"]) or _between_effects(
        expected["effects"], received["effects"]
    )


def _between_facts(expected: Sequence[Raw], got: Sequence[Raw]) -> Difference | None:
    for place, fact in enumerate(expected):
        path = f"facts[{place}]"
        if place >= len(got):
            return Difference(path, fact, ABSENT, part=fact)
        if _named(fact) == _named(got[place]):
            found = _between_fields(path, fact, got[place])
            if found is not None:
                return found
        elif _named(fact) in map(_named, got[place:]):
            return Difference(path, ABSENT, got[place], part=got[place])
        else:
            return Difference(path, fact, got[place], part=fact)
    if len(got) > len(expected):
        extra = got[len(expected)]
        return Difference(f"facts[{len(expected)}]", ABSENT, extra, part=extra)
    return None


def _between_effects(expected: Sequence[Raw], got: Sequence[Raw]) -> Difference | None:
    missing = [effect for effect in expected if not any(alike(effect, other) for other in got)]
    extra = [effect for effect in got if not any(alike(effect, other) for other in expected)]
    for effect in missing:
        path = f"effects[{expected.index(effect)}]"
        meant = next((other for other in extra if _named(other) == _named(effect)), None)
        if meant is None:
            return Difference(path, effect, ABSENT, part=effect)
        return _between_fields(path, effect, meant)
    if extra:
        return Difference(f"effects[{got.index(extra[0])}]", ABSENT, extra[0], part=extra[0])
    if len(got) != len(expected):
        return Difference("effects", len(expected), len(got))
    return None


def _named(part: Raw) -> tuple[Any, ...]:
    """Tell what a fact or an effect is and what it is about, whatever else it says."""
    kind = part.get("type")
    about = "turn_id" if kind == "continue" else "invocation_id"
    return kind, part.get(about)


def _between_fields(path: str, expected: Raw, got: Raw) -> Difference | None:
    for name in _in_order([*expected, *(name for name in got if name not in expected)]):
        one, other = expected.get(name, ABSENT), got.get(name, ABSENT)
        if not alike(one, other) and (name, other) != ("commit", ABSENT):
            return _inside(f"{path}.{name}", one, other, expected)
    return None


def _inside(path: str, expected: object, got: object, part: Raw) -> Difference:
    """Go down to the one value that differs, where the rest is alike."""
    for name, one, other in _paired(expected, got):
        if not alike(one, other):
            return _inside(f"{path}{name}", one, other, part)
    return Difference(path, expected, got, part=part)


def _paired(expected: object, got: object) -> Iterator[tuple[str, object, object]]:
    if isinstance(expected, dict) and isinstance(got, dict):
        mine, others = cast("Raw", expected), cast("Raw", got)
        if mine.keys() == others.keys():
            yield from ((f".{name}", mine[name], others[name]) for name in mine)
    elif isinstance(expected, list) and isinstance(got, list):
        items, rest = cast("list[object]", expected), cast("list[object]", got)
        if len(items) == len(rest):
            pairs = enumerate(zip(items, rest, strict=True))
            yield from ((f"[{place}]", one, other) for place, (one, other) in pairs)


def _in_order(names: Sequence[str]) -> Iterator[str]:
    yield from (name for name in _FIRST if name in names)
    yield from (name for name in names if name not in _FIRST and name not in _LAST)
    yield from (name for name in _LAST if name in names)


def described(delivery: Raw, expected: Raw, got: Raw | None) -> str:
    """Say in one plain sentence what differs first in the answer to a delivery."""
    kind = delivery["type"]
    found = first_difference(expected, got)
    if found is None:
        return f"the answer to {kind} is the expected one"
    if not found.path:
        return f"{kind} was answered by no receipt"
    if found.path in {"accepted", "reason"}:
        return f"{kind} was to be {_verdict(expected)} and was {_verdict(cast('Raw', got))}"
    if found.expected is ABSENT:
        return f"the answer to {kind} has {found.path} too many: {_said(found.got)}"
    if found.got is ABSENT:
        return f"the answer to {kind} lacks {found.path}: {_said(found.expected)}"
    return (
        f"in the answer to {kind}, {found.path} was to be {_said(found.expected)}"
        f" and is {_said(found.got)}"
    )


def _verdict(receipt: Raw) -> str:
    return "accepted" if receipt["accepted"] else f"refused as {receipt.get('reason')}"


def _said(value: Any) -> str:  # noqa: ANN401 - any JSON
    """Name a fact or an effect by its type and what it is about; say anything else as JSON."""
    if isinstance(value, dict) and "type" in value:
        part = cast("Raw", value)
        about = part.get("invocation_id") or part.get("grant_id") or part.get("turn_id")
        return f"{part['type']} of {about}" if about else str(part["type"])
    return json.dumps(value, ensure_ascii=False)

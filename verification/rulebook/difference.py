"""Where two receipts for one delivery differ, the worst first, and how to say it in a sentence."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from enum import Enum
from itertools import pairwise
from typing import Any, Final, cast

import attrs

from ...wire.plain import Raw, alike, is_receipt
from .payloads import CALL, CALL_AT_WILL, COMMIT, CORRELATION, DECISION, EFFECTS, PAYLOADS, RESULT


class Absent(Enum):
    """The value of what is not there."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT


@attrs.frozen
class Difference:
    """One place where an answer is not the expected one.

    `path` is where, as deep as it goes: ``effects[0].results[1].status``. What is too many has its
    place in the answer, all else in the expected one; `at` is the place in the answer where that is
    another one. `part` is the fact or effect that it is about: the expected one, or the one too
    many; None outside of both. `decided` names the decision that speaks of it, where kernel.md
    leaves it open (docs/wire.md).
    """

    path: str
    expected: Any
    got: Any
    part: Raw | None = None
    at: str = ""
    decided: str = ""

    @property
    def field(self) -> str:
        """The field of the fact or effect that differs; empty where all of it does."""
        return self.path.partition(".")[2].partition(".")[0].partition("[")[0]

    @property
    def too_many(self) -> bool:
        """Whether it is a whole fact or effect beyond the expected ones."""
        return self.expected is ABSENT and self.part is not None and not self.field

    @property
    def misplaced(self) -> bool:
        """Whether it is a fact that is there, and comes before one which it is to follow."""
        same = not self.field and self.at not in {"", self.path}
        return same and _about_fact(self.expected) == _about_fact(self.got)

    @property
    def missing(self) -> bool:
        """Whether it is a whole fact or effect that ought to be there."""
        return self.got is ABSENT and self.part is not None and not self.field


def first_difference(expected: Raw, got: Raw | None) -> Difference | None:
    """Return the difference that is told first, or None: the first of `differences`."""
    return next(iter(differences(expected, got)), None)


def differences(expected: Raw, got: Raw | None) -> tuple[Difference, ...]:
    """Return all the differences of an answer, the worst first.

    An execute too many is the most dangerous; then come the verdict, the facts, the effects, what
    merely numbers facts, and last what only docs/wire.md says. Numbers are equal by value (a kernel
    in another language writes 1 for 1.0), effects in any order. Fields that kernel.md does not know
    are passed over, as section 12 does; so is a `commit` left out, by which our journals mark what
    K-9 joins, the arguments of a start, which seed 001 lets be absent, and the provider's id of a
    call, whose name is ours.
    """
    if not is_receipt(got):
        return (Difference("", expected, ABSENT if got is None else got),)
    received = cast("Raw", got)
    if alike(expected, received):
        return ()
    found = [*_between_verdicts(expected, received), *_between_parts(expected, received)]
    return tuple(sorted(found, key=lambda one: (_rank(one), _place(one))))


def _rank(found: Difference) -> int:
    if found.decided:
        return 5
    if found.too_many and found.got.get("type") == "execute":
        return 0
    if found.path in {"accepted", "reason"}:
        return 1
    if found.field in {"sequence", "commit"} and found.path.startswith("facts"):
        return 4
    return 2 if found.path.startswith("facts") else 3


def _place(found: Difference) -> int:
    """Tell where in the facts it stands: the first that is wrong is nearest to the cause."""
    inside = re.match(r"facts\[(\d+)\]", found.path)
    return int(inside[1]) if inside else 0


def _between_verdicts(expected: Raw, got: Raw) -> Iterator[Difference]:
    for name in ("accepted", "reason"):
        one, other = expected.get(name, ABSENT), got.get(name, ABSENT)
        if not alike(one, other):
            null = one is ABSENT and other is None
            yield Difference(name, one, other, decided=DECISION if null else "")
            return


def _between_parts(expected: Raw, got: Raw) -> Iterator[Difference]:
    facts = list(_matched("facts", expected["facts"], got["facts"], _about_fact))
    whole = any(not found.field for found in facts)
    for found in facts:
        if not whole or found.field not in {"sequence", "commit"}:  # these follow from it
            yield found
    yield from _matched("effects", expected["effects"], got["effects"], _about_effect)


def _matched(
    name: str,
    expected: Sequence[Raw],
    got: Sequence[Raw],
    about: Any,  # noqa: ANN401
) -> Iterator[Difference]:
    """Pair what is about the same, and tell what is missing, too many, misplaced or otherwise."""
    left = dict(enumerate(got))
    meant = _places(got, about)
    pairs: list[tuple[int, int]] = []
    missing: list[int] = []
    for place, part in enumerate(expected):
        places = meant.get(about(part))
        if not places:
            missing.append(place)
            continue
        at = next((at for at in places if alike(got[at], part)), places[0])
        pairs.append((place, at))
        places.remove(at)
        del left[at]
    yield from _unpaired(name, expected, missing, left)
    if name == "facts":
        yield from _misplaced(expected, got, pairs)
    for place, at in pairs:
        yield from _between_fields(name, place, at, expected[place], got[at])


def _places(got: Sequence[Raw], about: Any) -> dict[tuple[Any, ...], list[int]]:  # noqa: ANN401
    """Return where each thing stands that a right answer could be about: texts, or nothing."""
    places: dict[tuple[Any, ...], list[int]] = {}
    for at, part in enumerate(got):
        key = about(part)
        if all(one is None or isinstance(one, str) for one in key):
            places.setdefault(key, []).append(at)
    return places


def _unpaired(
    name: str, expected: Sequence[Raw], missing: Sequence[int], extra: dict[int, Raw]
) -> Iterator[Difference]:
    """Tell what is missing and what is too many; one in the place of another about one call."""
    for place in missing:
        part = expected[place]
        instead = next((at for at, other in extra.items() if _replaces(other, part)), None)
        if instead is not None:
            other = extra.pop(instead)
            path = f"{name}[{place}]"
            yield Difference(path, part, other, part=part, at=f"{name}[{instead}]")
        else:
            yield Difference(f"{name}[{place}]", part, ABSENT, part=part)
    for at, other in extra.items():
        yield Difference(f"{name}[{at}]", ABSENT, other, part=other)


def _replaces(other: Raw, part: Raw) -> bool:
    """Whether one fact stands in the place of another: about one call or grant, or closing."""
    names = [name for name in ("invocation_id", "grant_id") if name in part]
    if names:
        return all(other.get(name) == part[name] for name in names)
    closings = {"TURN_SETTLED", "TURN_INTERRUPTED"}
    return {part.get("type"), other.get("type")} <= closings


def _misplaced(
    expected: Sequence[Raw], got: Sequence[Raw], pairs: Sequence[tuple[int, int]]
) -> Iterator[Difference]:
    """Tell the first fact that comes before one which it is to follow."""
    for (_, before), (place, at) in pairwise(pairs):
        if at < before:
            fact = expected[place]
            yield Difference(f"facts[{place}]", fact, got[at], part=fact, at=f"facts[{at}]")
            return


def _about_fact(part: Raw) -> tuple[Any, ...]:
    """Tell what a fact is and what it is about, whatever else it says."""
    return part.get("type"), part.get("invocation_id")


def _about_effect(part: Raw) -> tuple[Any, ...]:
    """Tell what an effect asks for."""
    about = "turn_id" if part.get("type") == "continue" else "invocation_id"
    return part.get("type"), part.get(about)


# ------------------------------------------------------------------------------
# Field by field, with what may be left out, and what only docs/wire.md says.


def _between_fields(
    name: str, place: int, at: int, expected: Raw, got: Raw
) -> Iterator[Difference]:
    path, there = f"{name}[{place}]", f"{name}[{at}]"
    found = list(_differing(path, expected, got, expected))
    for one in sorted(found, key=lambda one: one.field in {"at", "sequence", "commit"}):
        yield one if place == at else attrs.evolve(one, at=there + one.path.removeprefix(path))


def _differing(path: str, expected: Raw, got: Raw, part: Raw) -> Iterator[Difference]:
    kind = str(part.get("type"))
    known = PAYLOADS.get(kind, {})
    names = [*expected, *(name for name in got if name not in expected)]
    for name in names:
        one, other = expected.get(name, ABSENT), got.get(name, ABSENT)
        if alike(one, other) or (one is ABSENT and not _is_known(kind, name)):
            continue
        field = known.get(name)
        if other is ABSENT and field is not None and field.may_be_left_out:
            continue
        for found in _inside(f"{path}.{name}", name, one, other, part):
            yield attrs.evolve(found, decided=found.decided or _decided(kind, name, found, got))


def _is_known(kind: str, name: str) -> bool:
    return name in PAYLOADS[kind] if kind in PAYLOADS else name in EFFECTS.get(kind, {name})


def _decided(kind: str, name: str, found: Difference, got: Raw) -> str:
    """Return the decision that speaks of a field, if no rule of kernel.md does."""
    if name == "commit":
        return COMMIT
    if found.expected is ABSENT and found.got is None:
        return DECISION
    field = PAYLOADS.get(kind, {}).get(name)
    if field is None or not field.decided:
        return ""
    if kind == "TOOL_DENIED" and name in {"reason", "error"}:  # one of the two, at least
        return DECISION if got.get("error") and got.get("reason") is None else ""
    return field.decided if found.got is ABSENT or found.got is None else ""


def _inside(path: str, name: str, expected: object, got: object, part: Raw) -> Iterator[Difference]:
    """Go down to the values that differ; the calls and results in it are held field by field."""
    known = CALL if name in {"call", "calls"} else RESULT if name == "results" else None
    pairs = None if known is None else _records(expected, got)
    if known is None or pairs is None:
        yield from _deepest(path, expected, got, part)
        return
    for suffix, one, other in pairs:
        for field in [*one, *(field for field in other if field not in one)]:
            mine, its = one.get(field, ABSENT), other.get(field, ABSENT)
            if alike(mine, its) or (mine is ABSENT and field not in known):
                continue
            if field == CORRELATION and its is ABSENT:
                continue
            at_will = known is CALL and field in CALL_AT_WILL and its in (ABSENT, None)
            decided = DECISION if at_will or (mine is ABSENT and its is None) else ""
            for found in _deepest(f"{path}{suffix}.{field}", mine, its, part):
                yield attrs.evolve(found, decided=decided)


def _records(expected: object, got: object) -> list[tuple[str, Raw, Raw]] | None:
    """Pair one call, or the calls or results of two lists; None where they cannot be paired."""
    if isinstance(expected, dict) and isinstance(got, dict):
        return [("", cast("Raw", expected), cast("Raw", got))]
    if not isinstance(expected, list) or not isinstance(got, list):
        return None
    mine, its = cast("list[object]", expected), cast("list[object]", got)
    if len(mine) != len(its) or not all(isinstance(one, dict) for one in (*mine, *its)):
        return None
    pairs = enumerate(zip(mine, its, strict=True))
    return [(f"[{place}]", cast("Raw", one), cast("Raw", other)) for place, (one, other) in pairs]


def _deepest(path: str, expected: object, got: object, part: Raw) -> Iterator[Difference]:
    below = list(_paired(expected, got))
    if not below:
        yield Difference(path, expected, got, part=part)
    for name, one, other in below:
        if not alike(one, other):
            yield from _deepest(f"{path}{name}", one, other, part)


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


# ------------------------------------------------------------------------------
# In words.


def described(delivery: Raw, expected: Raw, got: Raw | None) -> str:
    """Say in one plain sentence what differs first in the answer to a delivery.

    With an execute too many goes the verdict that let it come.
    """
    found = differences(expected, got)
    if not found:
        return f"the answer to {delivery['type']} is the expected one"
    verdict = [one for one in found[1:] if one.path in {"accepted", "reason"}]
    told = [found[0], *(verdict if found[0].too_many else ())]
    return "; ".join(_described(delivery["type"], one, expected, got) for one in told)


def _described(kind: str, found: Difference, expected: Raw, got: Raw | None) -> str:
    if not found.path:
        return f"{kind} was answered by no receipt"
    if found.path == "accepted" or (found.path == "reason" and not expected["accepted"]):
        return f"{kind} was to be {verdict_of(expected)} and was {verdict_of(cast('Raw', got))}"
    by = f", as docs/wire.md has it by decision ({found.decided})" if found.decided else ""
    if found.misplaced:
        return f"in the answer to {kind}, {_said(found.expected)} stands at {found.at} too early"
    if found.expected is ABSENT:
        return f"the answer to {kind} has {found.path} too many{by}: {_said(found.got)}"
    if found.got is ABSENT:
        return f"the answer to {kind} lacks {found.path}{by}: {_said(found.expected)}"
    return (
        f"in the answer to {kind}, {found.path} was to be {_said(found.expected)}"
        f"{by} and is {_said(found.got)}"
    )


def verdict_of(receipt: Raw) -> str:
    """Say how a receipt answers: that it accepts, or the reason for which it refuses."""
    if receipt["accepted"]:
        return "accepted"
    reason = receipt.get("reason")
    return "refused as an empty text" if reason == "" else f"refused as {reason}"


def _said(value: Any) -> str:  # noqa: ANN401 - any JSON
    """Name a fact or an effect by its type and what it is about; say anything else as JSON."""
    if isinstance(value, dict) and "type" in value:
        part = cast("Raw", value)
        about = part.get("invocation_id") or part.get("grant_id") or part.get("turn_id")
        return f"{part['type']} of {about}" if about else str(part["type"])
    return json.dumps(value, ensure_ascii=False)

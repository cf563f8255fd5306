"""A finding as a story: its steps in words, the answers on the way, and where the last differs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, cast

import attrs

from ..findings import Finding, Raw
from ..oracle.oracle import Oracle
from ..rulebook import ABSENT, Difference, Rule, first_difference, is_receipt, rule_called
from .words import compact, seconds, sender, told

_INLINE_BELOW: Final = 3
"""How deep JSON is written field by field: a fact's fields have lines, their values have none."""


@attrs.frozen(kw_only=True)
class Step:
    """One delivery: who sends it, when, in words, and the right receipt where it is known."""

    number: int
    sender: str
    at: str
    words: str
    delivery: Raw
    receipt: Raw | None


@attrs.frozen
class Line:
    """One line of JSON text, and the path of the value that it shows."""

    text: str
    path: str


def steps(finding: Finding) -> tuple[Step, ...]:
    """Tell the script step by step, with the oracle's answers where it can be played."""
    receipts = list(_right_receipts(finding))
    return tuple(
        Step(
            number=place + 1,
            sender=sender(delivery),
            at=seconds(delivery["now"]) if "now" in delivery else "",
            words=told(delivery),
            delivery=delivery,
            receipt=receipts[place] if place < len(receipts) else None,
        )
        for place, delivery in enumerate(finding.script)
    )


def rule_of(finding: Finding) -> Rule:
    """Return the rule that it breaks; one that kernel.md does not number has its own words."""
    try:
        return rule_called(finding.rule)
    except KeyError:
        return Rule(finding.rule, "", "")


def difference(finding: Finding) -> Difference | None:
    """Return where the answer differs first, if it was a receipt that was expected."""
    if not is_receipt(finding.expected):
        return None
    return first_difference(cast("Raw", finding.expected), finding.got)


def pointed(found: Difference) -> str:
    """Say where it differs: the path, what was expected there, what was got."""
    there = [
        "nothing" if value is ABSENT else compact(value) for value in (found.expected, found.got)
    ]
    return f"{found.path or 'the answer'}: expected {there[0]}, got {there[1]}"


def json_lines(value: object) -> list[Line]:
    """Write JSON with a line for each field of each fact and effect."""
    return list(_lines(value, path="", name="", depth=0, last=True))


def marked(line: Line, found: Difference | None) -> bool:
    """Whether a line shows what differs: the field itself, or any line of a fact that is wrong."""
    if found is None or not found.path:
        return False
    return line.path == found.path or line.path.startswith(f"{found.path}.")


def _lines(value: Any, *, path: str, name: str, depth: int, last: bool) -> Iterator[Line]:  # noqa: ANN401 - any JSON
    indent, comma = "  " * depth, "" if last else ","
    label = f"{json.dumps(name, ensure_ascii=False)}: " if name else ""
    parts = _parts(value, path) if depth < _INLINE_BELOW else []
    if not parts:
        yield Line(f"{indent}{label}{compact(value)}{comma}", path)
        return
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    yield Line(f"{indent}{label}{opening}", path)
    for place, (key, at, part) in enumerate(parts):
        yield from _lines(part, path=at, name=key, depth=depth + 1, last=place + 1 == len(parts))
    yield Line(f"{indent}{closing}{comma}", path)


def _parts(value: Any, path: str) -> list[tuple[str, str, Any]]:  # noqa: ANN401 - any JSON
    """Return what a JSON object or array is made of: name (or none), path, value."""
    if isinstance(value, dict):
        fields = cast("Raw", value)
        return [(name, f"{path}.{name}".lstrip("."), part) for name, part in fields.items()]
    if isinstance(value, list):
        items = cast("list[object]", value)
        return [("", f"{path}[{place}]", part) for place, part in enumerate(items)]
    return []


def _right_receipts(finding: Finding) -> Iterator[Raw]:
    """Play the script on the oracle as far as it goes: not every finding is about a script."""
    if "run_id" not in finding.run:
        return
    oracle = Oracle(finding.run)
    for delivery in finding.script:
        if "type" not in delivery or "now" not in delivery:
            return
        yield oracle.receive(delivery)

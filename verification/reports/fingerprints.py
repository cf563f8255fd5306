"""A stable name for a finding, whichever technique found it: its rule and the shape of its script.

The shape keeps the deliveries in order, who each is about, and what makes one kind of delivery
another (an approval or a denial, a result or an error). Names are counted in the order in which
they first appear, times and payloads are left out: another seed, another alphabet and another
spelling of the ids give the same fingerprint.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final, cast

from ..findings import Finding, Raw
from ..rulebook import first_difference, is_receipt

_KINDS: Final = ("approved", "as", "scope", "match", "sealed")
"""Fields whose value, not their presence, makes another kind of delivery."""
_NAMES: Final = ("turn_id", "invocation_id", "grant_id", "run_id", "worker")
_LEFT_OUT: Final = frozenset({"type", "now", "calls", "call", *_KINDS, *_NAMES})


def fingerprint(finding: Finding) -> str:
    """Return 16 hexadecimal digits: equal for findings of one rule, one shape, one difference."""
    shape = json.dumps([finding.rule, _shape(finding.script), _difference(finding)])
    return hashlib.sha256(shape.encode()).hexdigest()[:16]


def _shape(script: tuple[Raw, ...]) -> list[Any]:
    names: dict[tuple[str, str], int] = {}

    def counted(kind: str, name: object) -> int:
        return names.setdefault((kind, str(name)), len(names))

    def shaped(fields: Raw) -> list[Any]:
        calls = fields.get("calls") or ([fields["call"]] if "call" in fields else [])
        return [
            fields.get("type", "call"),
            [fields[name] for name in _KINDS if fields.get(name) is not None],
            [
                f"{name} {counted(name, fields[name])}"
                for name in _NAMES
                if fields.get(name) is not None
            ],
            sorted(name for name, value in fields.items() if name not in _LEFT_OUT and value),
            [shaped(call) for call in calls],
        ]

    return [shaped(delivery) for delivery in script]


def _difference(finding: Finding) -> list[Any]:
    """Tell one wrong answer to a step from another: by verdict, or by the field that differs."""
    if not is_receipt(finding.expected):
        return []
    expected = cast("Raw", finding.expected)
    found = first_difference(expected, finding.got)
    if found is None:
        return []
    if found.path in {"accepted", "reason"}:
        return [expected.get("reason"), cast("Raw", finding.got).get("reason")]
    return [None if found.part is None else found.part.get("type"), found.field]

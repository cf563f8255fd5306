"""What facts and effects carry, field by field: which rule says it, and what only we have decided.

The fields, their types and whether they may be absent are read from the kernel's records; the rule
of each stands here. docs/wire.md shows the table (`make tables`), answers are blamed by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

import attrs

from ...models.calls import Call
from ...models.facts import FACTS, Fact, FactType
from ...models.record import Record

WIRE: Final = "wire.md"
"""Stands in the place of a rule where kernel.md leaves open what docs/wire.md says."""

_RULES: Final[Mapping[str, str]] = {
    "run_id": "section 4",
    "sequence": "section 4",
    "commit": WIRE,
    "at": "K-10",
    "input": "K-59",
    "turn_id": "section 4",
    "invocation_id": "section 4",
    "tool_name": "section 4",
    "agent_id": "section 4",
    "agent_name": "section 4",
    "arguments": "K-32",
    "arguments_digest": "K-32",
    "deadline": "K-34",
    "scope": "K-40",
    "match": "K-40",
    "reason": "section 4",
    "decided_by": "section 4",
    "cause": "section 4",
    "attempt": "K-33",
    "worker": "K-33",
    "lease_until": "K-34",
    "result": "K-30",
    "error": "K-30",
    "epoch": "K-21",
    "sealed": "K-21",
    "calls": "K-21",
    "call": "K-22",
    "grace_until": "K-53",
    "grant_id": "K-40",
    "expires_at": "K-40",
}
"""By field, the rule that says what it holds."""

_RULES_OF: Final[Mapping[tuple[str, str], str]] = {
    (FactType.TOOL_DENIED, "error"): "section 4",
    (FactType.GRANT_ISSUED, "arguments_digest"): "K-40",
    (FactType.GRANT_ISSUED, "tool_name"): "K-40",
    (FactType.GRANT_REVOKED, "grant_id"): "K-42",
    (FactType.GRANT_EXPIRED, "grant_id"): "K-42",
    (FactType.TOOL_APPROVED, "grant_id"): "K-41",
    (FactType.RETRY_AUTHORISED, "attempt"): "K-31",
    (FactType.EXECUTION_RETRIED, "attempt"): "K-33",
}
"""Where a fact means another thing by a field than the others do."""

DECISION: Final = "ADR-115"
"""What kernel.md leaves open, and we have settled (docs/decisions.md)."""
COMMIT: Final = "ADR-5"

_AT_WILL: Final = frozenset(
    {
        (FactType.TOOL_DENIED, "reason"),
        (FactType.TOOL_DENIED, "error"),
    }
)
"""One of the two is enough for kernel.md."""
_LEFT_OUT: Final = frozenset(
    {(FactType.TOOL_EXECUTION_STARTED, "arguments"), *((fact.type, "commit") for fact in FACTS)}
)
"""What an answer may leave out and be right: seed 001 has such starts, journals their own marks."""


@attrs.frozen(kw_only=True)
class Field:
    """One field of a fact. `decided` is the decision that speaks of it where no rule does."""

    name: str
    type: str
    optional: bool
    rule: str
    decided: str = ""
    may_be_left_out: bool = False


def attributes(record: type[Record]) -> tuple[attrs.Attribute[Any], ...]:
    """Return the fields of a record, as attrs has them."""
    fields: tuple[attrs.Attribute[Any], ...] = attrs.fields(cast("Any", record))
    return fields


def _fields(fact: type[Fact]) -> dict[str, Field]:
    found: dict[str, Field] = {}
    kind = fact.type
    for field in attributes(fact):
        at_will = (kind, field.name) in _AT_WILL
        found[field.name] = Field(
            name=field.name,
            type=str(field.type),
            optional=field.default is not attrs.NOTHING or field.name == "commit",
            rule=_RULES_OF.get((kind, field.name)) or _RULES[field.name],
            decided=COMMIT if field.name == "commit" else DECISION if at_will else "",
            may_be_left_out=(kind, field.name) in _LEFT_OUT,
        )
    found["input"] = attrs.evolve(found["input"], optional=False)  # in old journals alone
    return found


PAYLOADS: Final[Mapping[str, Mapping[str, Field]]] = {fact.type: _fields(fact) for fact in FACTS}
"""The fields of every fact, by its name."""

CALL: Final = frozenset(field.name for field in attributes(Call) if field.init)
"""The fields of a call in TURN_OPENED and CALL_ADDED."""
CORRELATION: Final = "provider_call_id"
"""The field of a call that the kernel never looks at: it may be left out, but not be another."""
CALL_AT_WILL: Final = frozenset({"approval_timeout", CORRELATION})
"""Those of them that the fold does not need: what they ask for stands in other facts."""
RESULT: Final = frozenset({"invocation_id", "tool_name", "status", "result", "error", "reason"})
"""The fields of a result in a continuation (section 9)."""
EFFECTS: Final[Mapping[str, frozenset[str]]] = {
    "execute": frozenset(
        {
            *("type", "effect_id", "turn_id", "invocation_id", "attempt"),
            *("tool_name", "arguments", "idempotency_key"),
        }
    ),
    "cancel": frozenset({"type", "effect_id", "turn_id", "invocation_id", "attempt"}),
    "continue": frozenset({"type", "effect_id", "turn_id", "results"}),
    "wake": frozenset({"type", "effect_id", "at"}),
}

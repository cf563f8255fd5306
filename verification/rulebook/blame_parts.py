"""Which rule a wrong fact or effect breaks, where the verdict is right."""

# ruff: noqa: C901, PLR0911 - one answer for each case, in the order in which they are looked at

from __future__ import annotations

from typing import Final, TypeAlias

from ...wire.plain import Raw
from .attribution import is_falsy, is_falsy_result, rule_of_effect, rule_of_fact
from .before import Step, by_time
from .difference import ABSENT, Difference
from .payloads import PAYLOADS

Rules: TypeAlias = tuple[str, ...]

_CLOSING: Final = frozenset({"TURN_SETTLED", "TURN_INTERRUPTED"})
_ENDINGS: Final = _CLOSING | {"GRANT_REVOKED", "GRANT_EXPIRED", "TOOL_DENIED"}
"""What may be taken for the end of a grant that is still in force (K-42)."""
_REPORTS: Final = frozenset({"report_result", "report_error"})
_BY_THE_TABLE: Final = frozenset({"approve", "deny", "reject"})
"""The inputs whose rows cite a rule that says nothing of their fact: section 6 alone does."""
_MEMBERS: Final = frozenset({"CALL_ADDED", "TURN_SEALED"})
"""What K-22 does not tell of: it says which turn is reached, and the table of turns what comes."""
_DEADLINE_FIELDS: Final = frozenset({"deadline", "lease_until"})
_TIMES: Final = _DEADLINE_FIELDS | {"grace_until", "expires_at"}


def blamed_fact(step: Step, found: Difference) -> Rules:
    """Name the rule of a fact that is missing, too many, misplaced, or wrong in a field."""
    if found.field:
        return _field(step, found)
    if found.missing:
        return _missing(step, found.expected)
    if found.too_many:
        return _too_many(step, found.got)
    if found.misplaced:
        return blamed_order(step, found)
    return _instead(step, found.expected, found.got)


def _kind(fact: Raw) -> str:
    return str(fact.get("type"))


def _missing(step: Step, fact: Raw) -> Rules:
    kind = _kind(fact)
    if kind == "TURN_SETTLED":
        others = [one for one in step.expected["facts"] if one is not fact]
        denied = [one for one in others if _denies(one)]
        return ("K-51", "K-50") if denied else ("K-50", "K-51")
    if step.observes(fact):
        return ("K-58", rule_of_fact(fact))
    if kind == "TOOL_APPROVAL_REQUESTED":
        return ("section 4", "K-31")
    if kind == "TOOL_APPROVED" and fact.get("grant_id"):
        return _coverage(step, fact, fact)
    if is_falsy_result(fact):
        return ("K-36", rule_of_fact(fact))
    if fact.get("input") in {*_BY_THE_TABLE, *_REPORTS} and _went_on(step, fact):
        return ("section 4", "K-2", rule_of_fact(fact))
    return _of_the_row(fact)


def _of_the_row(fact: Raw) -> Rules:
    """Name the rule of a fact's row, after the section of the table where it alone says it."""
    row, asked = rule_of_fact(fact), fact.get("input")
    if asked in _BY_THE_TABLE and row != "K-40":
        return ("section 6", row)
    return ("section 8", row) if _kind(fact) in _MEMBERS else (row,)


def _went_on(step: Step, fact: Raw) -> bool:
    """Whether a fact was not told, and yet had happened: what it owes came, or what it closes."""
    name = fact.get("invocation_id")
    told = {_kind(one) for one in step.got["facts"]}
    owed = any(one.get("invocation_id") == name for one in step.got["effects"])
    return bool(told & _CLOSING) or owed


def _denies(fact: Raw) -> bool:
    return _kind(fact) == "TOOL_DENIED" or fact.get("cause") == "rejected"


def _too_many(step: Step, fact: Raw) -> Rules:
    kind, delivered = _kind(fact), step.delivery["type"]
    if kind in _CLOSING:
        stops = step.interrupting or delivered == "interrupt"
        return ("K-53", "K-50") if stops else ("K-50", "K-22")
    if not step.expected["accepted"]:
        return ("K-2",)
    if delivered == "log":
        return ("section 3", "K-2")
    if kind == "TOOL_APPROVED":
        if fact.get("grant_id") is None:
            return ("K-40", "K-41")
        return ("K-41", "K-40")
    if kind == "TOOL_DENIED":
        return ("K-53",) if delivered == "interrupt" else ("K-42", "section 4")
    if kind == "TOOL_APPROVAL_REQUESTED":
        name = fact.get("invocation_id")
        covered = any(
            _kind(one) == "TOOL_APPROVED" and one.get("invocation_id") == name
            for one in step.expected["facts"]
        )
        return ("K-41", "section 4") if covered else ("section 4", "K-31")
    if kind == "TOOL_EXECUTION_STARTED":
        return ("K-33",)
    return (rule_of_fact(fact),)


def _instead(step: Step, expected: Raw, got: Raw) -> Rules:
    """Blame one fact in the place of another about the same call, grant or turn."""
    kinds = {_kind(expected), _kind(got)}
    if kinds == {"TOOL_APPROVAL_REQUESTED", "TOOL_APPROVED"}:
        return _coverage(step, expected, got)
    if _kind(got) not in PAYLOADS:
        return ("section 4", rule_of_fact(expected))  # no such fact is in its list
    if kinds <= _CLOSING:
        return ("K-53", "K-52") if _kind(expected) == "TURN_INTERRUPTED" else ("K-50", "K-53")
    if is_falsy_result(expected):
        return ("K-36", rule_of_fact(expected))
    if _kind(expected) == "TOOL_EXECUTION_FAILED" and _kind(got) == "TOOL_EXECUTION_SUCCEEDED":
        return ("K-36", "K-30")
    if _kind(expected) == "EXECUTION_RETRIED":
        return ("K-31",)
    return _of_the_row(expected)


def _coverage(step: Step, expected: Raw, got: Raw) -> Rules:
    """Blame a grant that covers what it may not, or not what it does: it ended, or did not."""
    approved = expected if _kind(expected) == "TOOL_APPROVED" else got
    grant_id, state = approved.get("grant_id"), step.before.judged
    if grant_id is None or state is None:
        return ("K-41",)
    if approved is not expected:
        ended = step.happened("GRANT_ISSUED", grant_id=grant_id) and all(
            grant["grant_id"] != grant_id for grant in state["grants"]
        )
        return ("K-42", "K-41") if ended else ("K-41", "K-40")
    facts = list(step.before.journal)
    issued = next((n for n, one in enumerate(facts) if one.get("grant_id") == grant_id), len(facts))
    ends = any(_kind(one) in _ENDINGS for one in facts[issued:])
    return ("K-42", "K-40", "K-41") if ends else ("K-41", "K-40")


def blamed_order(step: Step, found: Difference) -> Rules:
    """Blame facts that came in another order."""
    if found.part in by_time(step.expected["facts"]):
        return ("K-11",)
    if (
        found.part is not None
        and found.part.get("grant_id")
        and _kind(found.part) == "TOOL_APPROVED"
    ):
        return ("K-41", "section 4")
    return ("section 4", "K-53") if step.delivery["type"] == "interrupt" else ("section 4",)


def _field(step: Step, found: Difference) -> Rules:
    name, fact = found.field, found.part or {}
    kind = _kind(fact)
    if name in _DEADLINE_FIELDS and found.expected is ABSENT:
        return ("K-57",)
    if name in {"result", "error"} and is_falsy_result(fact):
        return ("K-36",)
    if name in _TIMES and _counted_from(step, found):
        return ("K-10", PAYLOADS[kind][name].rule)
    if name == "sequence":
        return ("section 4", "K-9")
    if found.path.endswith(".observed"):
        return ("K-58",)
    if fact.get("input") in {"interrupt", "grace_over"} and name in {"reason", "error", "cause"}:
        return ("section 4", "K-53") if name == "cause" else ("K-53",)
    if fact.get("input") == "approval_over" and name == "reason":
        return ("section 6", "K-34")
    if name == "grace_until":
        return ("K-53",)
    if kind == "TOOL_APPROVED" and fact.get("grant_id") and name in {"scope", "match"}:
        return ("K-41",)
    if name == "error" and fact.get("cause") == "rejected":
        return ("K-30", "section 4")
    field = PAYLOADS.get(kind, {}).get(name)
    rule = "section 4" if field is None else field.rule
    return (rule, *_ALSO.get((kind, name), ()))


def _counted_from(step: Step, found: Difference) -> bool:
    """Whether a time was counted from a clock that had run backwards (K-10): one is there."""
    at = None if step.before.state is None else step.before.state["at"]
    given = isinstance(found.expected, int | float) and isinstance(found.got, int | float)
    return given and at is not None and step.delivery["now"] < at


_ALSO: Final[dict[tuple[str, str], Rules]] = {
    ("TURN_OPENED", "epoch"): ("K-55",),
    ("GRANT_ISSUED", "arguments_digest"): ("K-32",),
    ("GRANT_ISSUED", "grant_id"): ("K-7",),
    ("GRANT_ISSUED", "expires_at"): ("K-42",),
    ("TOOL_EXECUTION_STARTED", "worker"): ("section 4",),
    ("EXECUTION_RETRIED", "worker"): ("section 4",),
}


# ------------------------------------------------------------------------------
# Effects: what is owed, and what a receive returns of it.


def blamed_effect(step: Step, found: Difference) -> Rules:
    """Name the rule of an effect that is missing, too many, or wrong in a field."""
    effect = found.part
    if effect is None:
        return ("K-3",)
    if found.too_many:
        return _owed_too_much(step, effect)
    if found.missing:
        return _owed_too_little(step, effect)
    if found.field in {"effect_id", "idempotency_key"}:
        return ("K-7", "section 9")
    if effect["type"] == "execute":
        first = {"arguments": "K-32", "attempt": "K-33"}.get(found.field)
        return (first, "section 9") if first else ("section 9",)
    if effect["type"] == "continue" and ".result" in found.path and is_falsy(found.expected):
        return ("K-36", "K-52") if found.path.endswith(".result") else ("K-52",)
    if effect["type"] == "wake":
        return ("section 9",)
    return (rule_of_effect(effect), "section 9")


def _owed_too_much(step: Step, effect: Raw) -> Rules:
    kind = effect.get("type")
    if not step.expected["accepted"] and not step.expected["facts"]:
        return ("K-2", "K-3")
    if step.delivery["type"] == "revoke":
        return ("K-42", rule_of_effect(effect))
    if kind == "execute":
        return _execute_too_many(step, effect)
    if kind == "continue":
        stopped = any(_kind(one) == "TURN_INTERRUPTED" for one in step.expected["facts"])
        return ("K-53", "K-52") if stopped else ("K-52",)
    if kind == "wake":
        known = step.before.state is not None and not step.deadlines
        return ("K-57", "section 9") if known else ("section 9", "K-3")
    return (rule_of_effect(effect), "K-3")


def _execute_too_many(step: Step, effect: Raw) -> Rules:
    if step.observes(effect):
        return ("K-58",)
    about = [one for one in step.expected["facts"] if one.get("invocation_id") == (
        effect.get("invocation_id")
    )]  # fmt: skip
    kinds = {_kind(one) for one in about}
    if "EXECUTION_IN_DOUBT" in kinds:
        return ("K-35",)
    if kinds & {"TOOL_EXECUTION_STARTED", "EXECUTION_RETRIED"}:
        return ("K-33", "K-3")
    if "TOOL_DENIED" in kinds:
        return ("K-31", "K-33")
    if "TOOL_APPROVAL_REQUESTED" in kinds:
        return ("section 9", "K-33", "K-31")
    if kinds:
        return ("section 9", "K-33", "K-3")
    return ("K-3", "section 9", "K-33")


def _owed_too_little(step: Step, effect: Raw) -> Rules:
    kind = effect.get("type")
    if kind == "continue" and len(by_time(step.expected["facts"])) == len(step.expected["facts"]):
        denied = all(one.get("status") == "denied" for one in effect["results"])
        return ("K-52", "K-51", "K-11", "K-3") if denied else ("K-11", "K-3", "K-52")
    if kind == "execute":
        retried = any(_kind(one) == "RETRY_AUTHORISED" for one in step.expected["facts"])
        return ("K-31", "K-3") if retried else ("section 9", "K-3")
    if kind == "wake":
        return ("section 9", *_deadline_rules(step))
    return (rule_of_effect(effect), "K-3")


def _deadline_rules(step: Step) -> Rules:
    delivered = step.delivery["type"]
    return {"decide": ("K-42",), "interrupt": ("K-53",)}.get(delivered, ("K-34",))

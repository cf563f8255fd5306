"""Which rule a wrong verdict breaks: it refuses, and was not heard, or refused what it may not."""

# ruff: noqa: C901, PLR0911, PLR0912 - an answer for each case, in the order in which it is looked at

from __future__ import annotations

from typing import Final, TypeAlias

from ..oracle.reading import is_remembered
from .attribution import (
    REASON_RULES,
    input_of,
    is_falsy,
    rule_of_phase,
    rule_of_reason,
)
from .before import Step

Rules: TypeAlias = tuple[str, ...]

_ADMISSION: Final = frozenset({"no_active_turn", "turn_mismatch", "unknown_invocation"})
_CHECKED: Final = (
    *("turn_open", "turn_busy", "turn_reused", "stale_epoch"),
    *("duplicate_invocation", "empty_turn", "limit_reached"),
)
"""In the order of K-21."""
_OF_A_TURN: Final = frozenset({"add_call", "seal_turn", "interrupt"})
_ANSWERED_BY_PHASE: Final = frozenset({"claim", "renew", "reject", "lose", "resolve"})
"""Why these are refused, where an invocation is found, the table of section 6 alone says."""
_GRANT_ENDS: Final = frozenset({"GRANT_REVOKED", "GRANT_EXPIRED"})
_SECOND_OUTCOMES: Final = frozenset({"duplicate", "conflicting_duplicate"})


def blamed_verdict(step: Step) -> Rules:
    """Name the rule that refuses what is to be refused, or that accepts what was not."""
    right = None if step.expected["accepted"] else str(step.expected["reason"])
    given = None if step.got["accepted"] else step.got.get("reason")
    if step.expected["accepted"] and step.got["accepted"]:
        return ("section 12",)  # accepted, and yet with a reason
    if given is not None and given not in REASON_RULES:
        return ("section 11",)
    if "run_mismatch" in {right, given}:
        return ("section 5",)
    kind = step.delivery["type"]
    if kind in {"log", "tick"}:
        return ("section 3",)
    limited = right == "limit_reached" or (right is None and given == "limit_reached")
    if kind != "open_turn" and limited:
        return ("K-42", "K-56") if right is None and _ended_are_counted(step) else ("K-56",)
    special = {
        "open_turn": _opening,
        "acknowledge": _acknowledgement,
        "revoke": _revocation,
    }.get(kind)
    if special is not None:
        return special(step, right, given)
    return _admission(step, right, given) or _table(step, right, given)


def _ended_are_counted(step: Step) -> bool:
    """Whether as many grants were ever issued as may be in force: what has ended counts on."""
    issued = sum(fact["type"] == "GRANT_ISSUED" for fact in step.before.journal)
    state = step.before.state
    return (
        step.delivery["type"] == "decide"
        and state is not None
        and issued >= state["run"]["limits"]["grants"]
    )


def _opening(step: Step, right: str | None, given: str | None) -> Rules:
    """Blame the check of K-21 that was left out, or the one that refused what it may not."""
    places = {reason: place for place, reason in enumerate(_CHECKED)}
    left_out = places.get(str(right), len(_CHECKED)) < places.get(str(given), len(_CHECKED))
    asked = right if left_out else given
    if asked == "turn_reused":
        return _reused(step, right)
    if asked == "stale_epoch":
        return ("K-55", "K-21")
    if given == "limit_reached" and not left_out and step.happened("CONTINUATION_TAKEN"):
        return ("K-52", "K-56")  # it is taken, and counted all the same
    if asked == "turn_busy" and given is None and step.interrupting:
        return ("K-53", "K-21")
    return ("K-56", "K-21") if asked == "limit_reached" else ("K-21",)


def _reused(step: Step, right: str | None) -> Rules:
    """Blame the memory, but where a continuation alone keeps the id, or nothing ever did (K-21)."""
    state, turn_id = step.before.state, step.delivery["turn_id"]
    if state is None:
        return ("K-54", "K-21")
    of_memory = turn_id in step.closed
    if right == "turn_reused":
        now = max(float(step.delivery["now"]), state["at"] or 0.0)
        of_memory = is_remembered(state, turn_id, None, now)
    return ("K-54", "K-21") if of_memory else ("K-21", "K-54")


def _acknowledgement(step: Step, right: str | None, _: str | None) -> Rules:
    """Blame what K-22 says of the name, but where a continuation is taken again (K-52)."""
    taken = step.happened("CONTINUATION_TAKEN", turn_id=step.delivery["turn_id"])
    return ("K-52", "K-22") if right is not None and taken else ("K-22", "K-52")


def _revocation(step: Step, _: str | None, __: str | None) -> Rules:
    """Blame what K-22 says of the name, but where the grant, or a turn, has ended (K-42)."""
    grant = step.delivery["grant_id"]
    ended = any(step.happened(kind, grant_id=grant) for kind in _GRANT_ENDS) or bool(step.closed)
    return ("K-42", "K-22") if ended else ("K-22", "K-42")


# ------------------------------------------------------------------------------
# Section 5: which turn, which invocation, which attempt.


def _admission(step: Step, right: str | None, given: str | None) -> Rules:
    naming: Rules = ("K-22",) if step.delivery["type"] in _OF_A_TURN else ("K-20", "section 5")
    if step.withdrawn and step.delivery["type"] in {"claim", "resolve"}:
        return ("K-53", "K-60")
    if given == "interrupting" and step.delivery["type"] == "report":
        return ("K-53", "section 6")
    if given == "not_approved" and step.record is not None:
        return _not_approved(step)
    if "late" in {right, given}:
        return _memory(step, right, given, naming)
    if right in {*_ADMISSION, "ambiguous_invocation"}:
        return naming
    if given == "ambiguous_invocation":
        return naming
    if given in _ADMISSION:
        if step.interrupting and step.delivery["type"] not in _OF_A_TURN:
            return ("K-53", *naming)
        name = step.delivery.get("invocation_id")
        if any(
            fact["type"] == "CALL_ADDED" and fact["call"]["invocation_id"] == name
            for fact in step.before.journal
        ):
            return ("K-50", "K-22", *naming)
        return naming
    if right == "stale_attempt":
        return ("K-33", "section 5")
    if given == "stale_attempt":
        record = step.record
        if step.delivery.get("attempt") is None:
            return ("section 5", "K-33")  # where none is given, none is looked at
        if record is not None and record["observed"]:
            return ("K-58", "section 5")
        if record is not None and not record["attempt"]:
            return ("section 5", "K-33")
        return ("K-33", "section 5")
    return ()


def _not_approved(step: Step) -> Rules:
    """Blame the end of a grant, its coverage, or the claim itself."""
    if step.record is None or step.record["phase"] != "APPROVED":
        return ("K-33", "section 6")
    facts = (*step.before.journal, *step.expected["facts"])
    if any(fact["type"] in _GRANT_ENDS for fact in facts):
        return ("K-42", "K-33")  # also of the call whose approval issued it
    return ("K-41", "K-33") if step.covered else ("K-33", "section 6")


def _memory(step: Step, right: str | None, given: str | None, naming: Rules) -> Rules:
    """Blame what was forgotten or remembered wrongly, or an id that was taken for another's."""
    if right == "late":
        if (given is None or given not in _ADMISSION) and _elsewhere(step):
            return (*naming, "K-54")
        return ("K-54", *naming)
    turn_id = step.delivery.get("turn_id")
    closed = step.closed if turn_id is None else step.closed & {turn_id}
    return ("K-54", *naming) if closed and right in _ADMISSION else naming


def _elsewhere(step: Step) -> bool:
    """Whether another turn could have answered: the active one, where it holds such an id."""
    if step.delivery["type"] in _OF_A_TURN or step.before.state is None:
        return True
    name = step.delivery.get("invocation_id")
    return step.turn is not None and any(
        record["invocation_id"] == name for record in step.turn["records"]
    )


# ------------------------------------------------------------------------------
# Sections 6 and 8: what the tables say.


def _table(step: Step, right: str | None, given: str | None) -> Rules:
    """Blame the row, or what a rule of its own says of the pair; section 6 has them all."""
    record, kind = step.record, step.delivery["type"]
    if kind in _OF_A_TURN:
        return (rule_of_reason(step.delivery, str(right or given)),)
    phase = None if record is None else record["phase"]
    row = rule_of_phase(phase, input_of(step.delivery), right)
    row = row or rule_of_reason(step.delivery, str(right or given))
    said: Rules = ("section 6", row) if _is_silent(step, row, right, given) else (row,)
    return (*_of_the_pair(step, right, given, phase), *said, *_beside(right), "section 6")


def _is_silent(step: Step, row: str, right: str | None, given: str | None) -> bool:
    """Whether the rule that a row cites says nothing of this answer: the table alone does."""
    if row == "K-31":
        return not step.story_broken
    kind = step.delivery["type"]
    if right is not None and given is not None:
        return kind in _ANSWERED_BY_PHASE or row == "K-33"
    if row == "K-34":
        return right not in {None, "lease_lost"}
    if kind == "report":
        return right is None and row == "K-30" and given not in _SECOND_OUTCOMES
    return kind == "reject" and given is None and right == "already_started"


def _of_the_pair(step: Step, right: str | None, given: str | None, phase: str | None) -> Rules:
    record, kind = step.record, step.delivery["type"]
    asks_of_another = kind in {"claim", "resolve"} and right in {None, "not_approved"}
    if "not_owned" in {right, given} or (
        record is not None and record["observed"] and asks_of_another
    ):
        return ("K-58",)
    if kind in {"report", "resolve"} and right is None:
        return _outcome_refused(step, phase)
    if right == "already_settled" and kind == "report":
        return ("K-31", "K-30") if given is None else ("section 6", "K-30")
    if kind == "decide" and right is None and given == "arguments_mismatch":
        return ("K-32",)
    if right == "already_decided" and given is None and "arguments" in step.delivery:
        return ("K-32",)
    if kind == "resolve" and right == "duplicate" and given is None:
        return ("K-35",)
    return ("section 6",) if kind == "reject" and right is None else ()


def _beside(right: str | None) -> Rules:
    return ("K-30",) if right == "already_settled" else ()


def _outcome_refused(step: Step, phase: str | None) -> Rules:
    """Blame a refusal of what ends an invocation, and may."""
    if step.delivery["type"] == "report" and step.interrupting:
        return ("K-53",)
    if phase in {"IN_DOUBT", "RETRY_AUTHORISED"}:
        return ("K-35",)  # whatever the result: a falsy one is refused sooner, while it runs
    falsy = "result" in step.delivery and is_falsy(step.delivery["result"])
    return ("K-36",) if falsy else ()

"""Which rule a wrong answer breaks: the most specific that the step allows to name, then others.

What decides is looked at in the order of the text: what time brought, closings included (K-11),
then the verdict, an execute too many, the facts, the effects. `Before` tells where the run stood.
"""

# ruff: noqa: PLR0911 - one answer for each case, in the order in which they are looked at

from __future__ import annotations

from typing import Final, TypeAlias

from ...wire.plain import Raw, is_receipt
from .attribution import input_of
from .before import UNKNOWN, Before, Step, by_time
from .blame_parts import blamed_effect, blamed_fact
from .blame_verdict import blamed_verdict
from .difference import ABSENT, Difference, differences
from .payloads import WIRE

Rules: TypeAlias = tuple[str, ...]

_HARNESS: Final = ("recover",)


def blamed(delivery: Raw, expected: Raw, got: Raw | None, before: Before = UNKNOWN) -> str:
    """Return the id of the rule that this answer breaks: the first of `rules_broken`."""
    return rules_broken(delivery, expected, got, before)[0]


def rules_broken(delivery: Raw, expected: Raw, got: Raw | None, before: Before = UNKNOWN) -> Rules:
    """Return the ids of the rules that this answer breaks, the most specific first.

    What only docs/wire.md says breaks none: `WIRE` stands for it, where nothing else differs.
    """
    if got is None or not is_receipt(got):
        return ("section 12",)
    found = [one for one in differences(expected, got) if not one.decided]
    if not found:
        return (WIRE,)
    step = Step(delivery, expected, got, before)
    rules = _of_recovery(step, found[0]) if delivery["type"] in _HARNESS else _of_step(step, found)
    return tuple(dict.fromkeys(rules))


def _of_recovery(step: Step, found: Difference) -> Rules:
    if not found.path.startswith("effects"):
        return ("K-2",)
    if found.too_many and step.observes(found.got):
        return ("K-58", "K-3")
    return ("K-3", "K-2")


def _of_step(step: Step, found: list[Difference]) -> Rules:
    timed = _of_time(step, found)
    if timed:
        return timed
    verdict = next((one for one in found if one.path in {"accepted", "reason"}), None)
    if verdict is not None:
        return blamed_verdict(step)
    worst = found[0]
    if worst.path.startswith("effects"):
        # An execute too many stands first, but says less than the fact that let it come.
        worst = next((one for one in found if not one.path.startswith("effects")), worst)
    return (
        blamed_effect(step, worst)
        if worst.path.startswith("effects")
        else (blamed_fact(step, worst))
    )


# ------------------------------------------------------------------------------
# What time brought: what was due and did not happen, or did before it was over (K-11, K-34).


def _of_time(step: Step, found: list[Difference]) -> Rules:
    due, came = by_time(step.expected["facts"]), by_time(step.got["facts"])
    if not due and not came:
        return ()
    whole = [one for one in found if one.path.startswith("facts") and not one.field]
    ours = [one for one in whole if one.part in due or one.got in came]
    if due and any(one.misplaced and one.part not in due for one in whole):
        return ("K-11",)
    for one in ours:
        if one.missing or (one.part in due and one.got not in [*came, *due] and not one.misplaced):
            return _not_happened(step, one.expected)
        if one.too_many:
            return _too_early(step, one.got)
        if not one.misplaced:
            return blamed_fact(step, one)
        return ("section 4", "K-53") if _grace_is_out_of_order(due, came) else ("K-11",)
    fields = [one for one in found if one.field and one.part in due]
    if not fields:
        return ()
    first, part = fields[0], fields[0].part
    if part is not None and first.field == "input" and first.got == input_of(step.delivery):
        return _not_happened(step, part)  # the delivery brought about what time was to bring
    return ("K-11",) if first.field == "at" else blamed_fact(step, first)


def _grace_is_out_of_order(due: list[Raw], came: list[Raw]) -> bool:
    """Whether what a grace ends comes in another order among itself, whatever else came due."""
    ends = [[one.get("invocation_id") for one in facts if _of_grace(one)] for facts in (due, came)]
    return ends[0] != ends[1]


def _of_grace(fact: Raw) -> bool:
    return fact.get("input") == "grace_over"


def _not_happened(step: Step, fact: Raw) -> Rules:
    """Blame a deadline that brought nothing, or not all that it brings."""
    if fact.get("input") == "settle":
        return blamed_fact(step, Difference("facts[0]", fact, ABSENT, part=fact))
    if _of_grace(fact):
        return ("K-53", "K-11", "K-34")
    return ("K-11", "K-42", "K-34") if fact["type"] == "GRANT_EXPIRED" else ("K-11", "K-34")


def _too_early(step: Step, fact: Raw) -> Rules:
    if fact.get("input") == "settle":
        return blamed_fact(step, Difference("facts[0]", ABSENT, fact, part=fact))
    if step.before.state is not None and not step.deadlines:
        return ("K-57", "K-34")
    return ("K-34", "K-11")

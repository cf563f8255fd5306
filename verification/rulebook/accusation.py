"""Makes the finding of a wrong answer: what differs, in words, and the rules that it breaks."""

from __future__ import annotations

from math import inf
from typing import Final

import attrs

from ...wire.plain import RECOVER, Raw, is_receipt
from ..findings import Finding
from ..oracle.deadlines import deadlines
from ..oracle.oracle import Oracle
from .attribution import has_nulls
from .before import before_last, by_time
from .blame import Rules, rules_broken
from .difference import described
from .payloads import WIRE

_SECOND_OUTCOMES: Final = frozenset({"duplicate", "conflicting_duplicate"})
_DEADLINES: Final = {"grant_over": "K-42", "grace_over": "K-53"}
_OF_ITS_OWN: Final = frozenset({"K-10", "K-32", "K-54"})
"""What no refusal may change, and has a rule of its own: clock, arguments that run, memory."""


def accused(
    technique: str,
    run: Raw,
    script: tuple[Raw, ...],
    expected: Raw,
    got: Raw | None,
) -> Finding:
    """Return the finding of a script whose last step is answered otherwise than expected."""
    rule, *also = rules_broken(script[-1], expected, got, before_last(run, script))
    return Finding(
        technique=technique,
        rule=rule,
        also=tuple(also),
        message=described(script[-1], expected, got),
        run=run,
        script=script,
        expected=expected,
        got=got,
    )


def of_its_story(finding: Finding) -> Finding:
    """Blame what a script needs to go wrong, where each step of it is known to be needed.

    A recovery on the way changed what was to come (K-2), and so did a delivery that was refused; a
    field that is null, and cannot be left out, was not taken for an absent one (section 3). A tick
    may be how time passes, step by step.
    """
    rules = (finding.rule, *finding.also)
    earlier = finding.script[:-1]
    if not is_receipt(finding.expected) or finding.rule in {"K-58", WIRE}:
        return finding
    if any(step["type"] == RECOVER for step in earlier):
        message = f"after a recovery, and not without it: {finding.message} ({finding.rule})"
        return _blamed(finding, ("K-2", *rules), message)
    oracle, clock = Oracle(finding.run), -inf
    for step in earlier:
        receipt, passed = oracle.receive(step), step["type"] == "tick" and step["now"] > clock
        clock = max(clock, step["now"])
        changed = receipt["facts"] or receipt["effects"] or passed
        if not changed and finding.rule not in _OF_ITS_OWN:
            return _of_silence(finding, step, receipt, rules)
    if any(map(_tells_of_null, finding.script)):
        return _blamed(finding, ("section 3", *rules), finding.message)
    return finding


def _tells_of_null(step: Raw) -> bool:
    """Whether a field is null that could be left out; a turn that is not named may be told so."""
    return has_nulls({name: value for name, value in step.items() if name != "turn_id"})


def tick_after(finding: Finding) -> Raw | None:
    """Return a tick past every deadline that stands, where it is a wake that was wrong."""
    if finding.rule != "section 9" or "run_id" not in finding.run:
        return None
    oracle = Oracle(finding.run)
    for step in finding.script:
        oracle.receive(step)
    over = [float(one["deadline"]) for one in deadlines(oracle.state)]
    return {"type": "tick", "now": max(over) + 1.0} if over else None


def of_its_tick(finding: Finding, expected: Raw, got: Raw) -> Finding:
    """Blame a wake that was not asked for on the deadline, if it does not happen either (K-11)."""
    came = [(fact.get("type"), fact.get("invocation_id")) for fact in got.get("facts", ())]
    for fact in by_time(expected["facts"]):
        if (fact["type"], fact.get("invocation_id")) not in came:
            rule = _DEADLINES.get(fact["input"], "K-34")
            return _blamed(finding, (rule, "K-11", finding.rule, *finding.also), finding.message)
    return finding


def _of_silence(finding: Finding, step: Raw, receipt: Raw, rules: Rules) -> Finding:
    """Blame a step that was to change nothing, and did."""
    if receipt["accepted"]:
        return _blamed(finding, ("section 3", *rules), finding.message)
    if step["type"] == "report" and receipt["reason"] in _SECOND_OUTCOMES:
        return _blamed(finding, ("K-30", "K-2", *rules), finding.message)
    message = f"after a {step['type']} that was refused, and not without it: {finding.message}"
    return _blamed(finding, ("K-2", *rules), f"{message} ({finding.rule})")


def _blamed(finding: Finding, rules: Rules, message: str) -> Finding:
    rule, *also = dict.fromkeys(rules)
    return attrs.evolve(finding, rule=rule, also=tuple(also), message=message)

"""Makes the finding of a wrong answer: what differs, in words, and the rules that it breaks."""

from __future__ import annotations

from typing import Final

import attrs

from ...wire.plain import RECOVER, Raw, is_receipt
from ..findings import Finding
from ..oracle.oracle import Oracle
from .before import before_last
from .blame import Rules, rules_broken
from .difference import described

_SECOND_OUTCOMES: Final = frozenset({"duplicate", "conflicting_duplicate"})
_OF_TIME: Final = frozenset({"K-10", "K-54"})
"""What a look or a clock may not change has rules of its own."""


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

    A recovery on the way changed what was to come (K-2), and so did a delivery that was refused.
    """
    rules = (finding.rule, *finding.also)
    earlier = finding.script[:-1]
    if not is_receipt(finding.expected) or finding.rule == "K-58":
        return finding
    if any(step["type"] == RECOVER for step in earlier):
        message = f"after a recovery, and not without it: {finding.message} ({finding.rule})"
        return _blamed(finding, ("K-2", *rules), message)
    oracle = Oracle(finding.run)
    for step in earlier:
        receipt = oracle.receive(step)
        if not receipt["facts"] and not receipt["effects"] and finding.rule not in _OF_TIME:
            return _of_silence(finding, step, receipt, rules)
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

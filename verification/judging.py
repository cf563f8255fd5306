"""How many steps judged each rule: counted at the one place where answers are compared.

After a wrong answer a system is in another state than the oracle, and what it answers then says
nothing. So a script is judged up to its first wrong answer; of that step itself, the rule that it
breaks. A rule that is exercised by later steps only was not judged, and is never green.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import chain
from typing import Final

import attrs

from .findings import NO_ANSWER, Finding, Judged, Raw, Result
from .rulebook import ABSENT, RULES, first_difference, rules_of, verdict_of

VISIBLE: Final = tuple(rule.id for rule in RULES if rule.visible)
"""The rules that receipts can show, in order."""


@attrs.define
class Tally:
    """What the scripts that were held against the oracle came to, so far."""

    scripts: int = 0
    steps: int = 0
    exercised: Counter[str] = attrs.field(factory=Counter[str])
    """By rule: steps that were sent, and exercise it."""
    judged: Counter[str] = attrs.field(factory=Counter[str])
    """By rule: those of them that were judged."""
    wrongly: Counter[str] = attrs.field(factory=Counter[str])
    """By rule: the scripts whose first wrong answer breaks it."""
    wrong: Counter[str] = attrs.field(factory=Counter[str])
    """What was answered wrongly first, in short: in how many scripts."""

    def right(self, delivery: Raw, expected: Raw, times: int = 1) -> None:
        """Count a step that was answered rightly so many times."""
        self.steps += times
        for rule in rules_of(delivery, expected):
            self.exercised[rule] += times
            self.judged[rule] += times

    def left(self, delivery: Raw, expected: Raw) -> None:
        """Count a step that came too late to be judged."""
        self.exercised.update(rules_of(delivery, expected))

    def broken(self, finding: Finding) -> None:
        """Count the first wrong answer of a script, by the rule that it breaks."""
        self.wrong[in_short(finding)] += 1
        if finding.rule != NO_ANSWER:
            self.steps += 1
            self.judged[finding.rule] += 1
            self.wrongly[finding.rule] += 1

    def script(self, script: Sequence[Raw], expected: Sequence[Raw], found: Finding | None) -> None:
        """Count a whole script, with its first wrong answer if it has one."""
        self.scripts += 1
        right = len(script) if found is None else len(found.script) - 1
        steps = [rules_of(*step) for step in zip(script, expected, strict=True)]
        judged = [*chain.from_iterable(steps[:right])]
        self.steps += right
        self.judged.update(judged)
        self.exercised.update(judged)
        self.exercised.update(chain.from_iterable(steps[right:]))
        if found is not None:
            self.broken(found)

    @property
    def reached(self) -> dict[str, int]:
        """How many steps exercised each visible rule; nothing where no script was held."""
        return {rule: self.exercised[rule] for rule in VISIBLE} if self.scripts else {}

    @property
    def result(self) -> Judged:
        """The same as a part of a result."""
        return Judged(
            scripts=self.scripts,
            steps=self.steps,
            rules={rule: self.judged[rule] for rule in VISIBLE} if self.scripts else {},
            broken=dict(self.wrongly),
            wrong=dict(self.wrong.most_common()),
        )


_TALLY: Final = ContextVar[Tally | None]("tally", default=None)


def active() -> Tally | None:
    """Return the tally that counts now, if one does."""
    return _TALLY.get()


@contextmanager
def judging() -> Generator[Tally]:
    """Count what is compared meanwhile, wherever that is done."""
    tally = Tally()
    before = _TALLY.set(tally)
    try:
        yield tally
    finally:
        _TALLY.reset(before)


@contextmanager
def not_counted() -> Generator[None]:
    """Leave out what is compared meanwhile: variations of a script that was counted."""
    before = _TALLY.set(None)
    try:
        yield
    finally:
        _TALLY.reset(before)


# ------------------------------------------------------------------------------
# What was wrong first, in short, and which rules that leaves without a judgement.


def in_short(finding: Finding) -> str:
    """Say what was answered wrongly without a name in it: many scripts come to the same."""
    kind = str(finding.script[-1]["type"]) if finding.script else "the reset"
    expected, got = finding.expected, finding.got
    if finding.rule == NO_ANSWER:
        return f"{kind} was not answered"
    found = first_difference(expected, got)
    if found is None or not found.path:
        return f"{kind} was answered by no receipt"
    if found.path == "reason" and got["accepted"]:
        return f"{kind} was accepted with a reason"
    if found.path in {"accepted", "reason"}:
        return f"{kind} was {verdict_of(got)} and not {verdict_of(expected)}"
    part = str((found.part or {}).get("type") or "effects")
    if found.field:
        return f"{kind} was answered with another {found.field} in {part}"
    how = f"one {part} too many" if found.expected is ABSENT else f"no {part}"
    return f"{kind} was answered with {how}"


def together(results: Iterable[Result]) -> Judged:
    """Add up what techniques judged; what was wrong in most scripts comes first."""
    rules: Counter[str] = Counter()
    broken: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    scripts = steps = 0
    for judged in (result.judged for result in results):
        scripts += judged.scripts
        steps += judged.steps
        rules.update(judged.rules)
        broken.update(judged.broken)
        wrong.update(judged.wrong)
    return Judged(
        scripts=scripts,
        steps=steps,
        rules=dict(rules),
        broken=dict(broken),
        wrong=dict(wrong.most_common()),
    )


def not_judged(results: Sequence[Result]) -> dict[str, int]:
    """Return the visible rules that nothing judged, each with the steps that exercised it."""
    judged = together(results).rules
    reached: Counter[str] = Counter()
    for result in results:
        reached.update(result.coverage.rules)
    return {rule: reached[rule] for rule in VISIBLE if not judged.get(rule)}


def why_broken(scripts: int) -> str:
    """Say that a rule is broken for which no script of its own was made."""
    said = "one script" if scripts == 1 else f"{scripts:,} scripts"
    return f"broken by the first wrong answer of {said}; shorter ones are told, of other rules"


def why_not_judged(steps: int) -> str:
    """Say why a rule was not judged that so many steps exercised."""
    if not steps:
        return "not judged: no step of what was run exercises it"
    said = "the one step" if steps == 1 else f"each of the {steps:,} steps"
    return f"not judged: {said} that exercise it came with or after a wrong answer"

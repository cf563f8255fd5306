"""What one verification came to: the one value that every renderer is a pure function of."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Final, cast

import attrs

from ..errors import HarnessFailed, NotDeterministic, SubjectFailed
from ..findings import Coverage, Finding, Judged, Profile, Raw, Result, Status
from ..judging import not_judged, together
from ..rulebook import differences, is_receipt
from .stories import OWN_COMMAND


class Verdict(StrEnum):
    """What is to be said of the system under test."""

    HOLDS = "holds"
    VIOLATED = "violated"
    NOT_DONE = "not done"
    """A technique could not be run, or nothing that was run says anything: never green."""
    HARNESS_FAILED = "the harness failed"
    NOT_DETERMINISTIC = "not deterministic"
    SUBJECT_FAILED = "crashed or timed out"


EXIT_STATUS: Final = {
    Verdict.HOLDS: 0,
    Verdict.VIOLATED: 1,
    Verdict.NOT_DONE: 3,
    Verdict.HARNESS_FAILED: 3,
    Verdict.NOT_DETERMINISTIC: 4,
    Verdict.SUBJECT_FAILED: 5,
}
"""Of `turnlock verify`; 2 is for usage."""

_STOPS: Final = (
    (Verdict.HARNESS_FAILED, HarnessFailed),
    (Verdict.NOT_DETERMINISTIC, NotDeterministic),
    (Verdict.SUBJECT_FAILED, SubjectFailed),
)


@attrs.frozen(kw_only=True)
class Stop:
    """A technique that did not come to its end, and why.

    `finding` shows it, where a script does: its last step was not answered, or in two ways.
    """

    technique: str
    verdict: Verdict
    message: str
    finding: Finding | None = None

    @classmethod
    def because(cls, technique: str, error: Exception) -> Stop:
        """Make one of what a technique raised; what it was not meant to raise is the kit's own."""
        meant = (verdict for verdict, kind in _STOPS if isinstance(error, kind))
        verdict = next(meant, Verdict.HARNESS_FAILED)
        shown = error.shown if isinstance(error, NotDeterministic) else None
        message = str(error) or repr(error)
        return cls(technique=technique, verdict=verdict, message=message, finding=shown)


@attrs.frozen(kw_only=True)
class Violation:
    """Findings of one fingerprint, told once: the shortest, and every technique that has it."""

    fingerprint: str
    finding: Finding
    techniques: tuple[str, ...]
    known: bool
    """Whether the baseline holds it: then it does not fail the verification."""


@attrs.frozen
class Story:
    """Violations of one cause, as far as receipts show: the shortest, and as what else it shows."""

    violation: Violation
    also: tuple[Violation, ...] = ()


@attrs.frozen(kw_only=True)
class Report:
    """One verification of one system under test.

    `started` is ISO 8601 text, in UTC; `seconds` wall time; `versions` of turnlock, python and
    platform, by name; `command` repeats it. `known` holds the fingerprints of the baseline, and
    `now_passing` those of its entries that are answered rightly now. `stdio` is the command that
    answers the wire's lines: the system under test, or our own.
    """

    subject: str
    profile: Profile
    seed: int
    versions: Mapping[str, str]
    started: str
    seconds: float
    command: str
    results: tuple[Result, ...]
    stops: tuple[Stop, ...] = ()
    known: tuple[str, ...] = ()
    now_passing: tuple[str, ...] = ()
    stdio: str = OWN_COMMAND

    @property
    def violations(self) -> tuple[Violation, ...]:
        """The findings, each told once; new ones before known ones, the shortest first."""
        found: dict[str, list[tuple[str, Finding]]] = {}
        for result in self.results:
            for finding in result.findings:
                found.setdefault(fingerprint(finding), []).append((result.technique, finding))
        violations = [
            Violation(
                fingerprint=key,
                finding=min((finding for _, finding in told), key=lambda one: len(one.script)),
                techniques=tuple(dict.fromkeys(technique for technique, _ in told)),
                known=key in self.known,
            )
            for key, told in found.items()
        ]
        return tuple(sorted(violations, key=lambda one: (one.known, len(one.finding.script))))

    @property
    def stories(self) -> tuple[Story, ...]:
        """The violations, those of one cause together; new ones before known ones."""
        stories: list[Story] = []
        for violation in self.violations:
            place = next((n for n, it in enumerate(stories) if _one_cause(it, violation)), None)
            if place is None:
                stories.append(Story(violation))
            else:
                told = stories[place]
                stories[place] = attrs.evolve(told, also=(*told.also, violation))
        return tuple(stories)

    @property
    def verdict(self) -> Verdict:
        """What is to be said: doubt in all the rest first, then what is wrong, then a crash."""
        stopped = {stop.verdict for stop in self.stops}
        for verdict in (Verdict.HARNESS_FAILED, Verdict.NOT_DETERMINISTIC):
            if verdict in stopped:
                return verdict
        unexplained = any(
            result.status is Status.VIOLATED and not result.findings for result in self.results
        )
        if unexplained or self.now_passing or any(not one.known for one in self.violations):
            return Verdict.VIOLATED
        if Verdict.SUBJECT_FAILED in stopped:
            return Verdict.SUBJECT_FAILED
        statuses = {result.status for result in self.results}
        if Status.NOT_DONE in statuses or statuses <= {Status.SKIPPED}:
            return Verdict.NOT_DONE
        if any(self.not_judged.values()):
            return Verdict.NOT_DONE  # all that is wrong is known, and hides what else there is
        return Verdict.HOLDS

    @property
    def exit_status(self) -> int:
        """The status to exit with."""
        return EXIT_STATUS[self.verdict]

    @property
    def coverage(self) -> Coverage:
        """What all techniques together reached."""
        every = [result.coverage for result in self.results]
        return Coverage(
            reasons=_summed(one.reasons for one in every),
            pairs=_summed(one.pairs for one in every),
            rules=_summed(one.rules for one in every),
            rows=_summed(one.rows for one in every),
        )

    @property
    def judged(self) -> Judged:
        """How far all techniques together could judge."""
        return together(self.results)

    @property
    def not_judged(self) -> dict[str, int]:
        """The rules that no technique judged, each with the steps that exercised it in vain."""
        return not_judged(self.results)

    @property
    def techniques(self) -> dict[str, tuple[str, ...]]:
        """The names of the techniques, by how they ended; those not run apart from the others."""
        ends = {
            "passed": Status.HOLDS,
            "violated": Status.VIOLATED,
            "skipped": Status.SKIPPED,
            "not done": Status.NOT_DONE,
        }
        names = {
            how: tuple(one.technique for one in self.results if one.status is status)
            for how, status in ends.items()
        }
        return {**names, "stopped": tuple(stop.technique for stop in self.stops)}


def _summed(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Add up by name; a name that is counted 0 everywhere stays, as never reached."""
    total: Counter[str] = Counter()
    for count in counts:
        for name, times in count.items():
            total[name] += times
    return dict(total)


# ------------------------------------------------------------------------------
# A stable name for a finding, whichever technique found it: its rule and the shape of its script.
#
# The shape keeps the deliveries in order, who each is about, and what makes one kind of delivery
# another (an approval or a denial, a result or an error). Names are counted in the order in which
# they first appear, times and payloads are left out: another seed, another alphabet and another
# spelling of the ids give the same fingerprint.


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
    return [*next(iter(_symptoms(finding)), ())]


def _symptoms(finding: Finding) -> tuple[tuple[Any, ...], ...]:
    """Tell all that is wrong with the answer, the worst first, whatever step it answers."""
    if not is_receipt(finding.expected):
        return ()
    expected = cast("Raw", finding.expected)
    found: list[tuple[Any, ...]] = []
    for one in differences(expected, finding.got):
        if one.path in {"accepted", "reason"}:
            found.append((expected.get("reason"), cast("Raw", finding.got).get("reason")))
        else:
            how = "lacks" if one.missing else "too many" if one.too_many else ""
            found.append((None if one.part is None else one.part.get("type"), one.field, how))
    return tuple(found)


def _one_cause(story: Story, other: Violation) -> bool:
    """Whether a violation looks like the one that a story is about.

    It breaks the same rule, or what is worst in one of the two answers is wrong in the other, too.
    Known ones stay by themselves.
    """
    told, finding = story.violation.finding, other.finding
    if story.violation.known or other.known:
        return False
    if told.rule == finding.rule:
        return True
    ours, its = _symptoms(told), _symptoms(finding)
    return bool(ours and its) and (ours[0] in its or its[0] in ours)

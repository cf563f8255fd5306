"""The verdict and the exit status of a verification, and how findings are told once."""

from __future__ import annotations

import attrs
import pytest

from turnlock.verification.errors import HarnessFailed, NotDeterministic, SubjectFailed
from turnlock.verification.findings import Result, Status
from turnlock.verification.reports.report import Report, Stop, Verdict, fingerprint

from .samples import HELD, NOT_DONE, SKIPPED, broken, double_start, report, wrong_result

FOUND = broken(double_start())
KNOWN = (fingerprint(double_start()),)


@pytest.mark.parametrize(
    ("made", "verdict", "status"),
    [
        (report(HELD), Verdict.HOLDS, 0),
        (report(HELD, SKIPPED), Verdict.HOLDS, 0),
        (report(HELD, FOUND), Verdict.VIOLATED, 1),
        (report(broken()), Verdict.VIOLATED, 1),
        (report(FOUND, known=KNOWN), Verdict.HOLDS, 0),
        (report(HELD, FOUND, known=KNOWN), Verdict.HOLDS, 0),
        (report(broken(double_start(), wrong_result()), known=KNOWN), Verdict.VIOLATED, 1),
        (report(HELD, now_passing=("K-33: it was known",)), Verdict.VIOLATED, 1),
        (report(HELD, NOT_DONE), Verdict.NOT_DONE, 3),
        (report(SKIPPED), Verdict.NOT_DONE, 3),
        (report(), Verdict.NOT_DONE, 3),
    ],
)
def test_the_verdict_follows_from_the_results(made: Report, verdict: Verdict, status: int) -> None:
    """Nothing checked is never green; what is known fails nothing; what passes now does."""
    assert (made.verdict, made.exit_status) == (verdict, status)


@pytest.mark.parametrize(
    ("error", "verdict", "status"),
    [
        (HarnessFailed("a bug of ours"), Verdict.HARNESS_FAILED, 3),
        (NotDeterministic("two answers"), Verdict.NOT_DETERMINISTIC, 4),
        (ZeroDivisionError(), Verdict.HARNESS_FAILED, 3),
    ],
)
def test_a_stop_is_no_violation(error: Exception, verdict: Verdict, status: int) -> None:
    """What kept a technique from a result decides; what it was not meant to raise is the kit's."""
    made = report(FOUND, stops=(Stop.because("guided", error),))
    assert (made.verdict, made.exit_status) == (verdict, status)
    assert made.stops[0].message


def test_what_is_wrong_outweighs_a_crash() -> None:
    """A wrong answer came first; where none is new, the crash decides."""
    stops = (Stop.because("guided", SubjectFailed("no answer")),)

    assert report(FOUND, stops=stops).exit_status == 1
    for made in (report(HELD, stops=stops), report(FOUND, stops=stops, known=KNOWN)):
        assert (made.verdict, made.exit_status) == (Verdict.SUBJECT_FAILED, 5)


def test_the_kits_own_failure_outweighs_the_others() -> None:
    stops = [Stop.because("guided", kind("x")) for kind in (SubjectFailed, HarnessFailed)]
    assert report(HELD, stops=tuple(stops)).verdict is Verdict.HARNESS_FAILED


def test_one_fault_is_told_once() -> None:
    """By the shortest script, with every technique that found it."""
    longer = double_start()
    long = attrs.evolve(longer, script=(longer.script[0], *longer.script))
    again = broken(double_start(), technique="conformance")
    made = report(broken(double_start()), again, broken(long))
    first, other = made.violations
    assert first.techniques == ("closure", "conformance")
    assert len(first.finding.script) < len(other.finding.script)


def test_a_fingerprint_is_of_the_fault_not_of_the_telling() -> None:
    """Other names, times and payloads: the same; another rule, shape or difference: another."""
    finding = double_start()
    renamed = [
        {**step, "turn_id": "T9", "now": step["now"] + 5.0} if "turn_id" in step else step
        for step in finding.script
    ]
    assert fingerprint(attrs.evolve(finding, script=tuple(renamed))) == fingerprint(finding)
    assert fingerprint(double_start("other tool")) == fingerprint(finding)
    others = [
        attrs.evolve(finding, rule="K-31"),
        attrs.evolve(finding, script=finding.script[1:]),
        attrs.evolve(finding, got=None),
        wrong_result(),
    ]
    assert fingerprint(finding) not in {fingerprint(other) for other in others}


def test_coverage_is_added_up() -> None:
    """What one technique reached counts; what none reached stays, as never."""
    covered = report(HELD, HELD, Result(technique="x", status=Status.HOLDS, guarantee="")).coverage
    assert covered.rules["K-33"] == 2 * HELD.coverage.rules["K-33"]
    assert covered.reasons["lease_lost"] == 0

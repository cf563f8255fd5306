"""What running the techniques adds to their results."""

from __future__ import annotations

from typing import Any

import pytest

from turnlock.verification.alphabet.life_scopes import LEASES, OUTCOMES
from turnlock.verification.alphabet.turn_scopes import LIMITS
from turnlock.verification.closure import technique as closure
from turnlock.verification.closure.rows import POSSIBLE
from turnlock.verification.findings import Profile, Result, Status
from turnlock.verification.subjects.in_process import InProcess
from turnlock.verification.subjects.process import ProcessDriver, own_command
from turnlock.verification.subjects.subject import Capability, Driver, Raw
from turnlock.verification.techniques import verify

from .depth import DEEP
from .oracle_subject import OracleSubject, Right


def result_of(driver: Driver | None, technique: str) -> Result:
    (result,), stops = verify(
        driver, profile=Profile.DEV, seed=0, progress=lambda _: None, only=(technique,)
    )
    assert stops == ()
    return result


def test_the_rows_that_our_kernel_read_are_counted() -> None:
    """A black-box technique on our own kernel: each row with how often it was read, or 0."""
    rows = result_of(None, "recovery").coverage.rows

    assert rows.keys() == set(POSSIBLE)
    assert rows["REQUESTED × claim [free]"] > 10


def test_nobody_elses_kernel_reads_our_rows() -> None:
    """No rows at all stand there then, rather than zeros."""
    driver = InProcess(Right, name="theirs")

    assert result_of(driver, "guided").coverage.rows == {}


class Explained(OracleSubject):
    """Takes a second, other outcome for a duplicate: found where every state is looked at."""

    def receive(self, delivery: Raw) -> Raw:
        receipt = super().receive(delivery)
        if receipt.get("reason") == "conflicting_duplicate":
            return {**receipt, "reason": "duplicate"}
        return receipt


def test_closure_is_for_those_who_declare_clone_and_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others than our own kernel, too: all of every small scope, and no row of ours."""
    if not DEEP:
        monkeypatch.setattr(closure, "SCOPES", {Profile.DEV: (OUTCOMES, LEASES, LIMITS)})
    result = result_of(InProcess(OracleSubject, name="theirs"), "closure")

    assert result.status is Status.HOLDS, result.findings
    assert result.figures["complete"] == result.figures["scopes"]
    assert int(result.figures["states"]) > 1_000
    assert result.coverage.rows == {}
    assert "rows_covered" not in result.figures


def test_closure_finds_what_is_wrong_with_others() -> None:
    """The control: one wrong reason, with the shortest script and its rule."""
    result = result_of(InProcess(Explained, name="theirs"), "closure")

    assert result.status is Status.VIOLATED
    assert {finding.rule for finding in result.findings} == {"K-30"}
    assert min(len(finding.script) for finding in result.findings) == 3


@pytest.mark.parametrize(
    ("driver", "why"),
    [
        (InProcess(Right, name="theirs"), "the capability clone and digest"),
        (
            ProcessDriver(own_command(), capabilities=frozenset(Capability)),
            "none but those in this process",
        ),
    ],
)
def test_closure_is_skipped_by_name(driver: Any, why: str) -> None:
    """What is not declared is not asked for; a process can be copied by nobody."""
    result = result_of(driver, "closure")

    assert result.status is Status.SKIPPED
    assert why in result.why

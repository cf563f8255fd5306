"""A system that crashes answers as if it had not; one that forgets something is found."""

from __future__ import annotations

from typing import Any

import pytest

from turnlock.verification.errors import SubjectFailed
from turnlock.verification.findings import Finding, Profile, Status
from turnlock.verification.oracle.oracle import Oracle
from turnlock.verification.recovery.technique import STEPS, check, crash_search, first_failure
from turnlock.verification.subjects.in_process import InProcess
from turnlock.verification.subjects.kernel import kernel_driver
from turnlock.verification.subjects.subject import Capability

from ...catalogue.bug import Bug
from ...catalogue.recovery import BUGS

Raw = dict[str, Any]


class OracleSubject:
    """The oracle as a subject; `recover` may be overridden to go wrong."""

    capabilities = frozenset({Capability.RECOVER})

    def __init__(self) -> None:
        self.oracle = Oracle({"run_id": "unset"})

    def reset(self, run: Raw) -> None:
        self.oracle = Oracle(run)

    def receive(self, delivery: Raw) -> Raw:
        return self.oracle.receive(delivery)

    def recover(self) -> Raw:
        return self.oracle.receive({"type": "recover"})


class OwesNothing(OracleSubject):
    """Recovers, and does not say what is owed."""

    def recover(self) -> Raw:
        return {**super().recover(), "effects": []}


class CountsAnew(OracleSubject):
    """Recovers all but the sequence: it numbers its facts from 1 again."""

    def recover(self) -> Raw:
        receipt = super().recover()
        self.oracle.state["sequence"] = 0
        return receipt


class RecoversOnce(OracleSubject):
    """Loses everything when it crashes a second time."""

    crashed = False

    def recover(self) -> Raw:
        if self.crashed:
            self.reset(self.oracle.run)
        self.crashed = True
        return super().recover()


class WrongAnyway(OracleSubject):
    """Accepts whatever is stale, crash or no crash."""

    def receive(self, delivery: Raw) -> Raw:
        return super().receive({name: delivery[name] for name in delivery if name != "epoch"})


def driver_of(kind: type[OracleSubject]) -> InProcess:
    return InProcess(kind, name=kind.__name__)


@pytest.mark.parametrize(
    "driver", [driver_of(OracleSubject), kernel_driver()], ids=["oracle", "kernel"]
)
def test_what_recovers_holds(driver: InProcess) -> None:
    """No false alarm, and the figures are those of what was played."""
    result = check(driver, profile=Profile.DEV, progress=lambda _: None)

    assert result.status is Status.HOLDS, result.findings
    assert {"scripts", "crashes", "steps"} == result.figures.keys()
    assert 0 not in result.figures.values()


def test_a_crash_comes_after_every_step_and_after_each_alone() -> None:
    """The first script: without a crash, with one after each step, then with a single one."""
    search = next(crash_search(kernel_driver(), seed=0, scripts=1))
    crashes = search.crashes // 2

    assert search.scripts == 2 + crashes
    assert search.steps == search.scripts * crashes + 2 * crashes
    assert crashes <= STEPS


@pytest.mark.parametrize(
    ("wrong", "rules"),
    [
        (OwesNothing, {"K-3"}),
        (CountsAnew, {"K-2"}),
        (RecoversOnce, {"K-2", "K-3"}),
        (WrongAnyway, {"K-55"}),
    ],
)
def test_a_wrong_recovery_is_found_with_its_rule(
    wrong: type[OracleSubject], rules: set[str]
) -> None:
    """What goes wrong only after a crash is recovery's; the rest keeps the rule it breaks."""
    result = check(driver_of(wrong), profile=Profile.CI, progress=lambda _: None)

    assert result.status is Status.VIOLATED
    (finding,) = result.findings
    assert finding.rule in rules
    assert shows(finding, driver_of(wrong))
    assert not shows(finding, driver_of(OracleSubject))


def shows(finding: Finding, driver: InProcess) -> bool:
    """Whether the script of a finding ends with the step that a system answers wrongly."""
    (got,) = driver.play(finding.run, [finding.script])
    return bool(got[-1] == finding.got) and finding.got != finding.expected


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_everything_that_recovery_can_forget_is_missed(bug: Bug) -> None:
    """Each bug of the catalogue's recovery family is found from outside."""
    with bug.planted():
        try:
            finding = first_failure(kernel_driver(), seed=0, scripts=300)
        except SubjectFailed:
            return  # it refuses the journal that it wrote
        assert finding is not None


def test_a_system_that_does_not_declare_recovery_is_skipped() -> None:
    """By name: nothing is played."""
    silent = type("Silent", (OracleSubject,), {"capabilities": frozenset[Capability]()})

    result = check(driver_of(silent), profile=Profile.DEV, progress=lambda _: None)

    assert result.status is Status.SKIPPED
    assert "RECOVER" in result.why

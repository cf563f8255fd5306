"""A journal torn anywhere gives the state after its last whole commit; what does not is found."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from turnlock import Fact, InvalidValue, Kernel, Run
from turnlock.engine.kernel import state_of
from turnlock.engine.snapshot import Snapshot
from turnlock.models.codec import fact_from_json, record_from_json
from turnlock.models.record import changed
from turnlock.verification.findings import Finding, Profile, Status
from turnlock.verification.recovery import torn
from turnlock.verification.recovery.technique import check_journal
from turnlock.verification.recovery.torn import torn_journals


def test_our_kernel_holds() -> None:
    result = check_journal(profile=Profile.DEV, progress=lambda _: None)

    assert result.status is Status.HOLDS, result.findings
    assert 0 not in result.figures.values()


def finding_with(recover: Callable[..., Kernel]) -> Finding | None:
    finding = None
    for tally in torn_journals(seed=0, journals=4, recover=recover):
        finding = tally.finding
    return finding


def keeps_torn_commits(run: Run, facts: Iterable[Fact], snapshot: Snapshot | None = None) -> Kernel:
    """Folds what stands there, whether its commit is whole or not."""
    ended = [changed(fact, commit=fact.sequence) for fact in facts]
    return Kernel.recover(run, ended, snapshot=snapshot)


def drops_whole_commits(
    run: Run, facts: Iterable[Fact], snapshot: Snapshot | None = None
) -> Kernel:
    """Takes the last commit for a torn one, always."""
    journal = list(facts)
    kept = [fact for fact in journal if fact.commit < journal[-1].commit]
    return Kernel.recover(run, kept, snapshot=snapshot)


def drops_torn_facts(run: Run, facts: Iterable[Fact], snapshot: Snapshot | None = None) -> Kernel:
    """Takes everything after a snapshot for what the snapshot holds."""
    return Kernel.recover(run, [] if snapshot else facts, snapshot=snapshot)


def forgets_to_rearm(run: Run, facts: Iterable[Fact], snapshot: Snapshot | None = None) -> Kernel:
    """Recovers all of the state, and no wake for its deadlines."""
    kernel = Kernel.recover(run, facts, snapshot=snapshot)
    state_of(kernel).deadlines.clear()
    return kernel


@pytest.mark.parametrize(
    ("wrong", "rule", "message"),
    [
        (keeps_torn_commits, "K-9", "the journal torn behind fact"),
        (drops_whole_commits, "K-9", "the journal torn behind fact"),
        (drops_torn_facts, "K-9", "and the facts after it do not give the state"),
        (forgets_to_rearm, "K-3", "the journal torn behind fact"),
    ],
)
def test_a_wrong_recovery_is_found(wrong: Callable[..., Kernel], rule: str, message: str) -> None:
    finding = finding_with(wrong)

    assert finding is not None
    assert finding.rule == rule
    assert message in finding.message
    assert finding.expected != finding.got


def test_a_reader_that_takes_torn_lines_for_facts_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that closes what is open, say."""

    def generous(line: bytes) -> Fact:
        return fact_from_json(line if line.endswith(b"}") else line + b"}")

    monkeypatch.setattr(torn, "fact_from_json", generous)
    finding = finding_with(Kernel.recover)

    assert finding is not None
    assert (finding.rule, finding.message) == ("K-9", "a torn line is read as a fact")


def test_a_reader_that_takes_torn_snapshots_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that closes what is open, say."""

    def generous(cls: type[Snapshot], text: bytes) -> Snapshot:
        try:
            return record_from_json(cls, text)
        except InvalidValue:
            return record_from_json(cls, text + b"}")

    monkeypatch.setattr(torn, "record_from_json", generous)
    finding = finding_with(Kernel.recover)

    assert finding is not None
    assert (finding.rule, finding.message) == ("K-2", "a torn snapshot is read")

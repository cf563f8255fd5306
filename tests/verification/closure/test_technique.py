"""The technique as a whole: what it reports, side by side or one after the other."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import threading
from functools import cache

import pytest

from turnlock.lifecycle import table
from turnlock.lifecycle.phases import Phase
from turnlock.models.inputs import Input
from turnlock.models.reasons import Reason
from turnlock.models.record import changed
from turnlock.verification.alphabet.life_scopes import LEASES, OUTCOMES
from turnlock.verification.closure import technique
from turnlock.verification.closure.rows import POSSIBLE, counted_rows, read_rows
from turnlock.verification.findings import Profile, Result, Status

FEW = (OUTCOMES, LEASES)


@cache
def healthy(*, jobs: int) -> tuple[Result, list[str]]:
    """What is said of our kernel as it is; asked once."""
    with pytest.MonkeyPatch.context() as patch:
        return checked(patch, jobs=jobs)


def checked(monkeypatch: pytest.MonkeyPatch, *, jobs: int) -> tuple[Result, list[str]]:
    """The result of a profile of two scopes, and what was told on the way."""
    monkeypatch.setattr(technique, "SCOPES", {Profile.DEV: FEW})
    told: list[str] = []
    return technique.check(profile=Profile.DEV, progress=told.append, jobs=jobs), told


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_figures_are_those_of_all_scopes(jobs: int) -> None:
    """Whether in one process or in two."""
    result, told = healthy(jobs=jobs)

    assert result.status is Status.HOLDS
    assert result.findings == ()
    assert {name: result.figures[name] for name in ("scopes", "complete", "states")} == {
        "scopes": 2,
        "complete": 2,
        "states": 365,
    }
    assert result.figures["transitions"] == 100 * len(OUTCOMES.symbols) + 265 * len(LEASES.symbols)
    assert result.figures["transitions_per_second"] != 0
    assert [line.partition(":")[0] for line in told] == ["leases", "outcomes"]


def test_coverage_tells_what_was_met_and_what_was_not() -> None:
    """What was never reached counts 0, and is named."""
    result, _ = healthy(jobs=1)

    assert result.coverage.reasons["lease_lost"] > 0
    assert result.coverage.reasons["stale_epoch"] == 0
    assert result.coverage.pairs["STARTED × report_result"] > 0
    assert result.coverage.pairs["STARTED × lease_over"] > 0
    assert result.coverage.pairs["REQUESTED × approval_over"] == 0
    assert "REQUESTED × approval_over" in result.figures["rows_not_covered"]  # type: ignore[operator]


@pytest.mark.parametrize("jobs", [1, 2])
def test_coverage_counts_the_rows_of_all_scopes(jobs: int) -> None:
    """Each row stands there, with how often the kernel read it; what it never read counts 0."""
    result, _ = healthy(jobs=jobs)
    rows = result.coverage.rows

    assert rows.keys() == set(POSSIBLE)
    assert min(rows["STARTED × renew"], rows["STARTED × lease_over"]) > 100
    assert rows["REQUESTED × grant [gated]"] == 0
    assert result.figures["rows_covered"] == sum(count > 0 for count in rows.values())
    assert [name for name, count in rows.items() if not count] == str(
        result.figures["rows_not_covered"]
    ).split(", ")


def test_reads_are_counted_one_by_one() -> None:
    """Each look into a table counts; one for a row that is not there raises, and does not."""
    with counted_rows() as tables:
        table.step(Phase.STARTED, Input.LOSE)
        table.step(Phase.STARTED, Input.LOSE)
        with pytest.raises(KeyError):
            table.step(Phase.STARTED, Input.LOSE, "no such guard")
    table.step(Phase.STARTED, Input.LOSE)

    assert +read_rows(tables) == {"STARTED × lose": 2}


def test_what_is_found_in_another_process_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """A finding is plain data; a fault planted here is there in the forked process too."""
    key = (Phase.STARTED, Input.REJECT, "")
    monkeypatch.setitem(table._TABLE, key, changed(table._TABLE[key], reason=Reason.NOT_STARTED))

    result, _ = checked(monkeypatch, jobs=2)

    assert result.status is Status.VIOLATED
    assert {finding.technique for finding in result.findings} == {"closure"}


def test_beside_other_threads_it_stays_in_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """To fork a process that has threads can hang it."""
    monkeypatch.setattr(technique, "ProcessPoolExecutor", None)
    hold = threading.Event()
    other = threading.Thread(target=hold.wait)
    other.start()
    try:
        result, _ = checked(monkeypatch, jobs=2)
    finally:
        hold.set()
        other.join()

    assert result.status is Status.HOLDS

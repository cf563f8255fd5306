"""What running the techniques adds to their results."""

from __future__ import annotations

from turnlock.verification.closure.rows import POSSIBLE
from turnlock.verification.findings import Profile, Result
from turnlock.verification.oracle.oracle import Oracle
from turnlock.verification.subjects.in_process import InProcess
from turnlock.verification.subjects.subject import Capability, Driver, Raw
from turnlock.verification.techniques import verify


class Right:
    """A kernel of somebody else's: the oracle."""

    capabilities: frozenset[Capability] = frozenset()

    def reset(self, run: Raw) -> None:
        self.oracle = Oracle(run)

    def receive(self, delivery: Raw) -> Raw:
        return self.oracle.receive(delivery)


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

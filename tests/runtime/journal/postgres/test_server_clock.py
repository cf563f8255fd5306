"""The clock that leases count by: the server's, slewed (D-44)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import asyncpg
import pytest

from turnlock.runtime.journal.contract import open_journal
from turnlock.runtime.journal.postgres import server_clock
from turnlock.runtime.journal.postgres.server_clock import RATE, ServerClock
from turnlock.runtime.journal.postgres.url import place_of

from ....postgres.servers import journal_url


class Boot:
    """The clock of a machine, set by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(server_clock, "since_boot", lambda: self.now)


@pytest.fixture
def boot(monkeypatch: pytest.MonkeyPatch) -> Boot:
    return Boot(monkeypatch)


def test_the_first_offset_counts_at_once(boot: Boot) -> None:
    clock = ServerClock()
    clock.set(1_000.0, error=0.1)
    assert (clock.now(), clock.error) == (1_100.0, 0.1)


@pytest.mark.parametrize("step", [-3_600.0, -10.0, 0.001, 10.0, 3_600.0])
def test_d_44_each_other_is_slewed_to(boot: Boot, step: float) -> None:
    """Never a jump, never back; and it gets there, however often it is measured meanwhile."""
    clock = ServerClock()
    clock.set(1_000.0, error=0.0)
    clock.set(1_000.0 + step, error=0.0)
    before = clock.now()
    assert before == 1_100.0
    seconds = 0
    while clock.now() != pytest.approx(boot.now + 1_000.0 + step):
        boot.now += 1.0
        seconds += 1
        if seconds % 7 == 0:
            clock.set(1_000.0 + step, error=0.0)
        now = clock.now()
        assert 1 - RATE - 1e-6 <= now - before <= 1 + RATE + 1e-6
        before = now
    assert seconds <= abs(step) / RATE + 1


def test_the_quickest_answer_counts(boot: Boot) -> None:
    """Half of its round trip is the error."""
    took = iter([0.5, 0.1, 0.9, 0.3, 0.7])

    class Connection:
        async def fetchval(self, _: str) -> float:
            way = next(took)
            boot.now += way
            return 2_000.0 + boot.now - way / 2 + (way - 0.1)  # the slower, the more it is off

    clock = ServerClock()
    asyncio.run(clock.measure(Connection()))  # type: ignore[arg-type]
    assert clock.error == pytest.approx(0.05)
    assert clock.now() == pytest.approx(2_000.0 + boot.now)


def test_it_is_the_servers(tmp_path: Path) -> None:
    """Within the error that it tells of, and what was measured meanwhile."""

    async def run() -> None:
        url = journal_url(tmp_path)
        async with await open_journal(url) as journal:
            connection = await asyncpg.connect(place_of(url).dsn)
            before = journal.time()
            there = await connection.fetchval(
                "SELECT extract(epoch FROM clock_timestamp())::float8"
            )
            after = journal.time()
            await connection.close()
            clock = journal.clock
            assert isinstance(clock, ServerClock)
            assert before - clock.error - 0.01 <= there <= after + clock.error + 0.01
            assert journal.patience == 1.0

    asyncio.run(run())

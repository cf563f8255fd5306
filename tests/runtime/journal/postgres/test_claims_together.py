"""An opening and its claim in one transaction (K-9), whose answer does not come.

PostgreSQL tells nobody then what became of it: the run is folded anew, and the tool runs once.
"""

# Looks inside: what is reserved.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Generator

import pytest

from turnlock import Call, FactType, Run
from turnlock.runtime.dispatcher import Continuation
from turnlock.runtime.errors import JournalError
from turnlock.runtime.journal.postgres.journal import PostgresJournal
from turnlock.runtime.journal.postgres.url import place_of
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.settings import Settings
from turnlock.runtime.tools.tool import tool
from turnlock.runtime.tools.toolbox import Toolbox

from ....postgres.cluster import Cluster, cluster
from ....postgres.proxy import Proxy, When, proxy
from ....postgres.servers import with_options

APPEND = "INSERT INTO .*appends"
PATIENCE = 60


@pytest.fixture(scope="module")
def server() -> Generator[Cluster]:
    """One for this file."""
    with cluster() as it:
        yield it


@pytest.fixture
def way(server: Cluster) -> Generator[Proxy]:
    """A way to it, and no journal there."""
    server.sql("DROP SCHEMA IF EXISTS turnlock CASCADE")
    with proxy(server) as it:
        yield it


@pytest.mark.parametrize("when", [*When])
def test_k_33_what_was_claimed_with_its_opening_runs_once_whatever_is_answered(
    way: Proxy, when: When
) -> None:
    """Cut before the server has it, once it was sent on, or once it is kept: opened again."""
    ledger = Counter[str]()
    done = asyncio.Event()

    @tool
    async def act() -> None:
        ledger["act"] += 1

    async def on_continue(_: Continuation) -> None:
        done.set()

    async def play() -> list[FactType]:
        place = place_of(with_options(way.url, unsafe="on"))
        call = Call(invocation_id="act", tool_name="act", arguments={}, requires_approval=False)
        async with await PostgresJournal.open(place) as journal:
            settings = Settings(retry_first=0.05, retry_longest=0.05)
            runtime = Runtime(
                journal=journal, tools=Toolbox([act]), on_continue=on_continue, settings=settings
            )
            async with runtime, asyncio.timeout(PATIENCE):
                await runtime.open_run(Run(run_id="r"))
                plan = way.at(APPEND, when)
                with pytest.raises(JournalError):
                    await runtime.open_turn("r", [call], turn_id="t1")
                await plan.met()
                while True:
                    try:
                        await runtime.open_turn("r", [call], turn_id="t1")
                    except JournalError:
                        await asyncio.sleep(0.05)
                    else:
                        break
                await done.wait()
                assert len(runtime._runtime.slots) == 0
            return [fact.type async for fact in journal.facts("r")]

    facts = asyncio.run(play())

    assert ledger == {"act": 1}
    assert facts[:2] == [FactType.TURN_OPENED, FactType.TOOL_EXECUTION_STARTED]
    assert facts.count(FactType.TOOL_EXECUTION_STARTED) == 1
    assert FactType.EXECUTION_IN_DOUBT not in facts

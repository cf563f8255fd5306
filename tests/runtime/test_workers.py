"""Facts name workers by ids that tell nothing; the journal knows what they mean (F-6, S-50)."""

from __future__ import annotations

import asyncio
import os
import platform

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from turnlock import Call, Claim, FactType, OpenTurn, Run
from turnlock.models.codec import to_json
from turnlock.models.facts import ToolExecutionStarted
from turnlock.models.workers import OPAQUE, opaque
from turnlock.runtime.errors import JournalError
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.owners import Worker, meaning_of, new_owner
from turnlock.runtime.submitting import SharedRun

from .faulty_journal import Fault, FaultyJournal
from .test_runtime import World
from .virtual import run, settled

RUN = Run(run_id="r")
CALL = Call(invocation_id="a", tool_name="act", arguments={}, requires_approval=False)


def test_f_6_a_fact_names_no_host_and_no_process() -> None:
    """Its worker stands for the owner, as the journal alone says."""
    world = World()

    async def story() -> None:
        async with world.process(world.tool("act")) as process:
            await process.open_run(RUN)
            await process.open_turn("r", [CALL], turn_id="t1")
            await settled()
            owner = process.owner
        facts = [fact async for fact in world.journal.facts("r")]
        (started,) = [fact for fact in facts if isinstance(fact, ToolExecutionStarted)]
        assert started.worker is not None
        assert started.worker.startswith(OPAQUE)
        assert await meaning_of(started.worker, world.journal) == owner
        told = b"".join(map(to_json, facts)).decode()
        assert owner not in told
        assert platform.node() not in told
        assert f":{os.getpid()}" not in told
        assert f":{os.getpid()}" in owner  # the control

    run(story())


@pytest.mark.parametrize("fault", [Fault.LOST, Fault.UNACKNOWLEDGED])
def test_s_50_no_claim_is_made_before_its_worker_is_known(fault: Fault) -> None:
    """Where that is not kept, the tool waits; it is kept once for all claims of a process."""

    class Refusing(FaultyJournal):
        attempts = 0

        async def put_worker(self, worker: str, meaning: str) -> None:
            self.attempts += 1
            if fault is Fault.UNACKNOWLEDGED:
                await super().put_worker(worker, meaning)
            if self.attempts < 3:
                facts = [fact.type async for fact in self.inner.facts("r")]
                assert FactType.TOOL_EXECUTION_STARTED not in facts
                raise JournalError("put_worker: failed")
            await super().put_worker(worker, meaning)

    journal = Refusing(MemoryJournal())
    world = World(journal=journal)

    async def story() -> None:
        async with world.process(world.tool("act")) as process:
            await process.open_run(RUN)
            for turn_id in ("t1", "t2"):
                await process.open_turn("r", [CALL], turn_id=turn_id)
                await asyncio.sleep(60.0)
                assert len(world.told) == int(turn_id[1:])
        assert journal.attempts == 3
        assert world.ledger["act"] == 2

    run(story())


OLDER = "turnlock:host:4711:boot:1.2:77:0f"


@pytest.mark.parametrize(
    ("worker", "meaning", "is_lost"),
    [
        (OLDER, None, True),  # a fact of an older version names its process
        ("w/0123456789abcd", OLDER, True),
        ("w/0123456789abcd", None, False),
        ("w/0123456789abcd", "codex/host/1/2", False),
        ("somebody", None, False),
        ("somebody", OLDER, True),
    ],
)
def test_what_a_runtime_before_ran_is_in_doubt_at_once_and_no_other(
    worker: str, meaning: str | None, is_lost: bool
) -> None:
    """K-35: also where a run was written half by an older version; others have their leases."""
    world = World()

    async def story() -> None:
        await world.journal.declare(RUN)
        if meaning is not None:
            await world.journal.put_worker(worker, meaning)
        shared = await SharedRun.open(world.journal, "r", policies={})
        claim = Claim(turn_id="t1", invocation_id="a", attempt=1, worker=worker, lease=3_600.0)
        await shared.submit(OpenTurn(turn_id="t1", calls=(CALL,)), claim)
        async with world.process(world.tool("act")) as process:
            await process.open_run(RUN)
            await settled()
            assert (FactType.EXECUTION_IN_DOUBT in await world.facts()) is is_lost

    run(story())


def test_two_runtimes_never_share_a_worker() -> None:
    journal = MemoryJournal()
    workers = {Worker(journal=journal, meaning=new_owner()).name for _ in range(1_000)}
    assert len(workers) == 1_000


@given(st.text())
@example(OLDER)
@example("turnlock:")
@example("turnlock:\ud800")
def test_f_6_what_is_shown_of_a_worker_is_not_its_process(worker: str) -> None:
    """The same for the same, another for another; ids of ours and of others stay as they are."""
    shown = opaque(worker)
    assert shown == opaque(worker) == opaque(shown)
    if worker.startswith("turnlock:"):
        assert shown.startswith(OPAQUE)
        assert len(shown) == 16
        assert shown != opaque(worker + "x")
    else:
        assert shown == worker

"""Nobody knows whether it happened: who has died, what its tool declares, and what time brings."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from turnlock import FactType
from turnlock.guards.engine import Engine
from turnlock.guards.errors import InDoubt, StillRunning
from turnlock.guards.values import At
from turnlock.models.calls import Status
from turnlock.models.deliveries import Resolution
from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.owners import OWNER_PREFIX
from turnlock.runtime.scheduling import Clock
from turnlock.runtime.tools.calling import ToolContext
from turnlock.runtime.tools.policy import InDoubt as Rule
from turnlock.runtime.tools.policy import Policy
from turnlock.runtime.tools.results import Failed, Happened, NeverHappened, StillUnknown

from ..runtime.test_ownership import dead_owner
from ..runtime.virtual import LoopClock, run
from .engines import call, claimed, conforms, engine, facts_of, open_turn, replayed, starts

A = At("r", "t1", "a")


def dead_engine(journal: Journal) -> Engine:
    """An engine of a process that has surely ended."""
    found = engine(journal)
    found._worker._meaning = dead_owner()
    found._renewals.go_on = lambda held: None  # type: ignore[method-assign]
    return found


def foreign_engine(journal: Journal) -> Engine:
    """An engine of another host, of which nothing is known, and which is silent."""
    found = engine(journal)
    found._worker._meaning = f"{OWNER_PREFIX}elsewhere:7:boot:namespaces:1:nonce"
    found._renewals.go_on = lambda held: None  # type: ignore[method-assign]
    return found


async def left_by(left: Engine, *, tool: str = "read") -> None:
    """Have it claim a call, and never come back."""
    await open_turn(left, "t1", call("a", tool), call("b"))
    await claimed(left, "a", tool)


def test_a_dead_process_leaves_doubt_at_once() -> None:
    """Its lease need not be over: whoever meets the claim looks at the process."""

    async def play() -> None:
        journal = MemoryJournal()
        await left_by(dead_engine(journal))
        guard = engine(journal)
        with pytest.raises(InDoubt) as refused:
            await claimed(guard, "a")
        assert asyncio.get_running_loop().time() < 1
        assert refused.value.attempt == 1
        assert starts(await facts_of(journal)) == 1
        await guard.resolve(A, Resolution.RETRY)
        assert (await claimed(guard, "a")).attempt == 2
        await conforms(journal)

    run(play())


def test_what_a_dead_process_ran_may_be_resolved_and_refuses_the_next_answer() -> None:
    async def play() -> None:
        journal = MemoryJournal()
        await left_by(dead_engine(journal))
        guard = engine(journal)
        with pytest.raises(InDoubt):
            await open_turn(guard, "t2", call("a"), after="t1")
        journal = MemoryJournal()
        await left_by(dead_engine(journal))
        guard = engine(journal)
        await guard.resolve(A, Resolution.RESULT, result=3)
        assert (await replayed(guard, "a")).value == 3

    run(play())


def test_the_control_of_a_living_process_nothing_is_taken() -> None:
    async def play() -> None:
        journal = MemoryJournal()
        await left_by(engine(journal))
        with pytest.raises(StillRunning):
            await claimed(engine(journal), "a")

    run(play())


def test_of_another_host_the_lease_alone_tells() -> None:
    async def play() -> None:
        journal = MemoryJournal()
        await left_by(foreign_engine(journal))
        guard = engine(journal)
        with pytest.raises(StillRunning) as refused:
            await claimed(guard, "a")
        assert refused.value.worker == "elsewhere:7"
        await asyncio.sleep(31)
        with pytest.raises(InDoubt) as doubt:
            await claimed(guard, "a")
        assert doubt.value.worker == "elsewhere:7"
        assert doubt.value.since is not None

    run(play())


def test_who_waits_for_a_silent_one_is_told_of_the_doubt_when_its_lease_is_over() -> None:
    async def play() -> None:
        journal = MemoryJournal()
        await left_by(foreign_engine(journal))
        with pytest.raises(InDoubt):
            await claimed(engine(journal, wait=100.0), "a")
        assert 30 < asyncio.get_running_loop().time() < 32

    run(play())


class Jumping(Clock):
    """A clock that was set, or of a machine that slept."""

    def __init__(self) -> None:
        self.ahead = 0.0
        self._clock = LoopClock()

    def now(self) -> float:
        return self._clock.now() + self.ahead


def test_a_lease_that_time_has_overtaken_is_in_doubt_and_a_late_true_report_settles_it() -> None:
    async def play() -> None:
        journal, clock = MemoryJournal(), Jumping()
        guard = engine(journal, clock=clock, policies={"read": Policy(safe_to_repeat=True)})
        await open_turn(guard, "t1", call("a"), call("b"))
        held = await claimed(guard, "a")
        clock.ahead = 3_600.0
        with pytest.raises(InDoubt):
            await claimed(guard, "a")  # not run again beside itself, though that would be safe
        await asyncio.sleep(60)
        await guard.succeeded(held, 1)
        assert (await replayed(guard, "a")).value == 1
        assert starts(await facts_of(journal)) == 1
        await conforms(journal)

    run(play())


async def doubt_under(policy: Policy, **told: Any) -> Engine:
    journal = MemoryJournal()
    await left_by(dead_engine(journal))
    return engine(journal, policies={"read": policy}, **told)


def test_to_ask_is_what_nothing_declared_means() -> None:
    async def play() -> None:
        for policy in (Policy(), Policy(in_doubt=Rule.RETRY_IF_SAFE), Policy(in_doubt=Rule.ASK)):
            with pytest.raises(InDoubt):
                await claimed(await doubt_under(policy), "a")

    run(play())


def test_what_is_safe_to_repeat_is_run_again_with_the_same_key() -> None:
    async def play() -> None:
        guard = await doubt_under(Policy(safe_to_repeat=True))
        held = await claimed(guard, "a")
        assert (held.attempt, held.idempotency_key) == (2, "call/r/1/t1/a")
        facts = [fact.type async for fact in guard._journal.facts("r")]
        assert FactType.RETRY_AUTHORISED in facts

    run(play())


def test_what_is_declared_to_have_failed_has() -> None:
    async def play() -> None:
        guard = await doubt_under(Policy(in_doubt=Rule.FAIL))
        outcome = await replayed(guard, "a")
        assert outcome.status is Status.FAILED
        assert "nobody knows" in (outcome.error or "")

    run(play())


@pytest.mark.parametrize(
    ("answer", "becomes"),
    [
        (Happened({"n": 1}), {"n": 1}),
        (Failed("no such account"), "no such account"),
        (NeverHappened(), None),
        (StillUnknown("the bank is closed"), InDoubt),
        (ValueError("a broken probe"), InDoubt),
    ],
)
@pytest.mark.parametrize("is_async", [False, True])
def test_a_probe_says_what_became_of_it(answer: object, becomes: object, is_async: bool) -> None:
    seen: list[str] = []

    def probe(context: ToolContext) -> Any:
        seen.append(context.idempotency_key)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def later(context: ToolContext) -> Any:
        return probe(context)

    async def play() -> None:
        guard = await doubt_under(Policy(probe=later if is_async else probe))
        if becomes is InDoubt:
            with pytest.raises(InDoubt):
                await claimed(guard, "a")
        elif becomes is None:
            assert (await claimed(guard, "a")).attempt == 2
        else:
            outcome = await replayed(guard, "a")
            assert becomes in (outcome.value, outcome.error)
        assert seen[0] == "call/r/1/t1/a"

    run(play())


def test_the_policy_of_one_claim_stands_over_that_of_its_tool() -> None:
    async def play() -> None:
        guard = await doubt_under(Policy(in_doubt=Rule.FAIL))
        own = Policy(safe_to_repeat=True, lease=7.0)
        held = await guard.claim(A, "read", {}, policy=own)
        assert held.attempt == 2
        assert held.policy is own  # type: ignore[union-attr]
        assert held.lease == 7.0  # type: ignore[union-attr]

    run(play())


def test_the_next_answer_asks_the_policy_but_runs_nothing_again() -> None:
    async def play() -> None:
        guard = await doubt_under(Policy(in_doubt=Rule.FAIL))
        await open_turn(guard, "t2", call("a"), after="t1")
        guard = await doubt_under(Policy(safe_to_repeat=True))
        with pytest.raises(InDoubt):
            await open_turn(guard, "t2", call("a"), after="t1")

    run(play())

"""What a host must not repeat: after its own timeout, after a crash, for a second asker."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import pytest
from agents import ModelBehaviorError, ToolTimeoutError

from turnlock.guards import Forked, InDoubt, Resolution, StillRunning
from turnlock.guards.guard import Guard

from .stage import Stage, kept, pays, says, told


class Slow:
    """A payment that arrives, and whose answer does not: the first time only."""

    def __init__(self) -> None:
        self.paid: list[int] = []
        self.paying = asyncio.Event()

    async def __call__(self, amount: int) -> str:
        self.paid.append(amount)
        self.paying.set()
        if len(self.paid) == 1:
            await asyncio.Event().wait()
        return f"paid {amount}"


async def given_up(stage: Stage, slow: Slow, state: str) -> None:
    """Go on under a timeout of the host's that ends while it pays."""

    async def limited() -> None:
        async with asyncio.timeout(None) as limit:
            paying = asyncio.create_task(slow.paying.wait())
            paying.add_done_callback(lambda _: limit.reschedule(0))
            await stage.go_on(state)

    with pytest.raises(TimeoutError):
        await limited()


def test_g_3_bare_a_host_that_timed_out_pays_again() -> None:
    async def story() -> list[int]:
        slow = Slow()
        bare = Stage(None, pays(5), says(), pay=slow.__call__)
        state = await bare.approved()
        await given_up(bare, slow, state)
        await bare.go_on(state)
        return slow.paid

    assert asyncio.run(story()) == [5, 5]


def test_g_3_a_host_that_timed_out_is_in_doubt(guard: Guard) -> None:
    async def story() -> list[int]:
        slow = Slow()
        stage = Stage(guard, pays(5), says(), pay=slow.__call__)
        state = await stage.approved()
        await given_up(stage, slow, state)
        with pytest.raises(InDoubt) as doubt:
            await stage.go_on(state)
        assert stage.model.remaining_steps == 1, "the model is told nothing"
        await guard.aresolve(doubt.value.at, Resolution.RESULT, result="paid 5, says the bank")
        assert told(await stage.go_on(state)) == ["paid 5, says the bank"]
        return slow.paid

    assert asyncio.run(story()) == [5]


def test_g_3_a_timeout_of_the_tool_ends_the_run_and_leaves_it_in_doubt(guard: Guard) -> None:
    async def story() -> list[int]:
        slow = Slow()
        stage = Stage(guard, pays(5), says(), pay=slow.__call__, timeout=0.05)
        state = await stage.approved()
        while not slow.paid:  # on a busy machine it may be over before the tool has begun
            with pytest.raises(ToolTimeoutError):
                await stage.go_on(state)
        stage.tool.timeout_seconds = None
        with pytest.raises(InDoubt) as doubt:
            await stage.go_on(state)
        await guard.aresolve(doubt.value.at, Resolution.RETRY)
        await stage.go_on(state)
        return slow.paid

    assert asyncio.run(story()) == [5, 5]


@pytest.mark.parametrize("state", ["as text", "in memory"])
def test_g_2_what_another_host_of_the_loop_runs_is_refused_while_it_runs(
    db: Path, state: str
) -> None:
    """It may never end, so a refusal does not wait for it as it does for the calls beside it."""

    async def story() -> list[int]:
        slow = Slow()
        async with Guard.open(db, wait=0.05) as guard, asyncio.timeout(60):
            stage = Stage(guard, pays(5, 6), says(), pay=slow.__call__)
            result = await stage.ask()
            one, other = result.to_state(), result.to_state()
            for it in (one, other):
                for item in result.interruptions:
                    await stage.approve(it, item)
            hosts = [kept(one), kept(other)] if state == "as text" else [one, other]
            first = asyncio.create_task(stage.go_on(hosts[0]))
            await slow.paying.wait()
            with pytest.raises(StillRunning):
                await stage.go_on(hosts[1])
            assert not first.done()
            first.cancel()
            await asyncio.wait([first])
        return sorted(slow.paid)

    assert asyncio.run(story()) == [5, 6]


def test_g_10_the_sdk_runs_the_same_call_once_and_refuses_one_id_for_two(guard: Guard) -> None:
    """The SDK does so by itself, with and without a guard."""

    async def story() -> None:
        for it in (None, guard):
            same = Stage(it, [*pays(5), *pays(5)], says(), gated=False)
            await same.ask(context={"turnlock_run": "same"})
            assert same.paid == [5]
            other = Stage(it, [*pays(5), *pays(6)], says(), gated=False)
            with pytest.raises(ModelBehaviorError, match="reused a tool call ID"):
                await other.ask(context={"turnlock_run": "other"})
            assert other.paid == []

    asyncio.run(story())


async def crashed(stage: Stage) -> None:
    """Ask, and crash once it has paid: the model does not answer any more."""
    with pytest.raises(ConnectionError):
        await stage.ask()
    assert stage.paid == [5]


def test_g_15_bare_the_model_asked_again_after_a_crash_pays_again() -> None:
    async def story() -> list[int]:
        bare = Stage(None, pays(5), ConnectionError(), pays(5, ids="d"), says(), gated=False)
        await crashed(bare)
        await bare.ask()
        return bare.paid

    assert asyncio.run(story()) == [5, 5]


def test_g_15_the_model_asked_again_after_a_crash_is_a_fork(guard: Guard) -> None:
    """Its second answer has new ids: its place tells."""

    async def story() -> list[int]:
        stage = Stage(guard, pays(5), ConnectionError(), pays(5, ids="d"), says(), gated=False)
        await crashed(stage)
        with pytest.raises(Forked) as refused:
            await stage.ask()
        assert refused.value.came == refused.value.at.turn
        return stage.paid

    assert asyncio.run(story()) == [5]


def test_g_15_a_state_resumed_twice_goes_on_in_one_way(guard: Guard) -> None:
    async def story() -> list[int]:
        stage = Stage(guard, pays(5), pays(6, ids="d"), says(), pays(6, ids="e"))
        state = await stage.approved()
        second = (await stage.go_on(state)).to_state()
        await stage.approve(second)
        await stage.go_on(second)
        with pytest.raises(Forked):
            await stage.go_on(state)
        return stage.paid

    assert asyncio.run(story()) == [5, 6]


def test_g_15_a_late_text_executes_nothing_and_closes_nothing(guard: Guard) -> None:
    """The first continuation asked on; the second only said something."""

    async def story() -> list[int]:
        stage = Stage(guard, pays(5), pays(6, ids="d"), says("all done"), says())
        state = await stage.approved()
        asked = (await stage.go_on(state)).to_state()
        assert (await stage.go_on(state)).final_output == "all done"
        await stage.approve(asked)
        await stage.go_on(asked)
        return stage.paid

    assert asyncio.run(story()) == [5, 6]


def test_g_16_bare_a_second_continuation_asks_the_model_again() -> None:
    async def story() -> int:
        bare = Stage(None, pays(5), says(), says())
        state = await bare.approved()
        await bare.go_on(state)
        await bare.go_on(state)
        return len(bare.model.calls) - 1

    assert asyncio.run(story()) == 2


def test_g_16_with_one_continuation_only_one_host_asks_the_model(guard: Guard) -> None:
    async def story() -> int:
        stage = Stage(guard, pays(5), says(), says(), one_continuation=True)
        state = await stage.approved()
        await stage.go_on(state)
        with pytest.raises(Forked):
            await stage.go_on(state)
        assert stage.paid == [5]
        return len(stage.model.calls) - 1

    assert asyncio.run(story()) == 1


def test_g_16_a_state_in_memory_whose_model_failed_is_asked_on_by_who_has_it(guard: Guard) -> None:
    """Nobody has an answer: the same state goes on without anybody's word."""

    async def story() -> list[int]:
        stage = Stage(guard, pays(5), ConnectionError(), says(), one_continuation=True)
        state = (await stage.ask()).to_state()
        await stage.approve(state)
        hooks = stage.hooks
        with pytest.raises(ConnectionError):
            await stage.go_on(state, hooks=hooks)
        assert (await stage.go_on(state, hooks=hooks)).final_output == "done"
        return stage.paid

    assert asyncio.run(story()) == [5]


def test_g_16_a_continuation_whose_model_failed_is_resolved_by_somebody(guard: Guard) -> None:
    async def story() -> list[int]:
        stage = Stage(guard, pays(5), ConnectionError(), says(), one_continuation=True)
        state = await stage.approved()
        with pytest.raises(ConnectionError):
            await stage.go_on(state)
        gc.collect()  # the claim was dropped with the run
        with pytest.raises(InDoubt) as doubt:
            await stage.go_on(state)
        await guard.aresolve(doubt.value.at, Resolution.RETRY)
        assert (await stage.go_on(state)).final_output == "done"
        return stage.paid

    assert asyncio.run(story()) == [5]

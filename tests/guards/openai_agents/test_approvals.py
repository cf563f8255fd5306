"""One approval executes once, and what nobody approved in turnlock executes not at all.

Each row stands beside its bare control: what the SDK does today without a guard. If a newer SDK
mends a fault, its control says so.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from agents import RunState

from turnlock.guards import (
    DecidedOtherwise,
    Differs,
    GuardRefused,
    Match,
    NotApproved,
    Scope,
    Stale,
)
from turnlock.guards.guard import Guard

from .host import Meets
from .stage import Stage, kept, pays, says, told


def test_g_1_bare_a_state_resumed_twice_pays_twice() -> None:
    async def story() -> list[int]:
        bare = Stage(None, pays(5), says(), says())
        state = await bare.approved()
        await bare.go_on(state)
        await bare.go_on(state)
        return bare.paid

    assert asyncio.run(story()) == [5, 5]


def test_g_1_a_state_resumed_twice_pays_once(guard: Guard) -> None:
    async def story() -> list[int]:
        stage = Stage(guard, pays(5), says("once"), says("twice"))
        state = await stage.approved()
        first, second = await stage.go_on(state), await stage.go_on(state)
        assert (first.final_output, second.final_output) == ("once", "twice")
        assert told(second) == ["paid 5"]
        return stage.paid

    assert asyncio.run(story()) == [5]


def test_g_1_states_in_memory_share_a_context_and_pay_once(guard: Guard) -> None:
    """Copies of a state, the same state, and one dict that is restored twice: all of one call."""

    async def story() -> list[int]:
        stage = Stage(guard, pays(5), *[says(str(number)) for number in range(6)])
        result = await stage.ask()
        first, second = result.to_state(), result.to_state()
        await stage.approve(first)
        saved = first.to_json()
        await stage.approve(second)
        await stage.go_on(first)
        await stage.go_on(first)
        await stage.go_on(second)
        for _ in range(2):
            await stage.go_on(await RunState.from_json(stage.agent, saved))
        return stage.paid

    assert asyncio.run(story()) == [5]


def test_g_2_bare_two_at_once_pay_twice() -> None:
    async def story() -> list[int]:
        bare = Stage(None, pays(5), says(), says())
        state = await bare.approved()
        bare.agent.hooks = Meets(asyncio.Barrier(2).wait)
        await asyncio.gather(bare.go_on(state), bare.go_on(state))
        return bare.paid

    assert asyncio.run(story()) == [5, 5]


def test_g_2_two_at_once_in_one_loop_pay_once(guard: Guard) -> None:
    async def story() -> list[int]:
        stage = Stage(guard, pays(5), says(), says())
        state = await stage.approved()
        stage.agent.hooks = Meets(asyncio.Barrier(2).wait)
        results = await asyncio.gather(stage.go_on(state), stage.go_on(state))
        assert [it.final_output for it in results] == ["done", "done"]
        return stage.paid

    assert asyncio.run(story()) == [5]


@pytest.mark.parametrize("guarded", [False, True])
def test_g_2_threads_with_loops_of_their_own(guard: Guard, *, guarded: bool) -> None:
    stage = Stage(guard if guarded else None, pays(5), *[says() for _ in range(4)])
    state = asyncio.run(stage.approved())
    barrier = threading.Barrier(4)
    heard: list[str] = []

    async def there() -> None:
        barrier.wait(60)

    def host() -> None:
        heard.append(asyncio.run(stage.go_on(state)).final_output)

    stage.agent.hooks = Meets(there)
    threads = [threading.Thread(target=host) for _ in range(4)]
    for it in threads:
        it.start()
    for it in threads:
        it.join(60)

    assert heard == ["done"] * 4
    assert stage.paid == ([5] if guarded else [5] * 4)


def test_g_5_bare_a_stale_approval_pays() -> None:
    async def story() -> list[int]:
        bare = Stage(None, pays(5), says("fine"), says())
        asked = await bare.ask()
        state = asked.to_state()
        await bare.ask([{"role": "user", "content": "never mind"}])
        await bare.approve(state)
        await bare.go_on(state)
        return bare.paid

    assert asyncio.run(story()) == [5]


@pytest.mark.parametrize("moved_on", ["text", "calls"])
def test_g_5_a_stale_approval_is_refused(guard: Guard, moved_on: str) -> None:
    async def story() -> list[int]:
        stage = Stage(guard, pays(5), says("fine") if moved_on == "text" else pays(7, ids="d"))
        state = (await stage.ask()).to_state()
        await stage.ask([{"role": "user", "content": "never mind"}])
        with pytest.raises(Stale):
            await stage.approve(state)
        state.approve(state.get_interruptions()[0])  # and past turnlock
        with pytest.raises(Stale) as refused:
            await stage.go_on(state)
        assert refused.value.at.call == "c1"
        return stage.paid

    assert asyncio.run(story()) == []


def test_g_6_bare_an_approval_of_an_id_that_was_used_again_pays() -> None:
    async def story() -> list[int]:
        bare = Stage(None, pays(5), pays(5), says())
        first = (await bare.ask()).to_state()
        await bare.ask("pay 5, in another month")
        await bare.approve(first)
        await bare.go_on(first)
        return bare.paid

    assert asyncio.run(story()) == [5]


@pytest.mark.parametrize("where", ["a context of its own", "one context", "one context, as text"])
def test_g_6_an_approval_of_an_id_that_was_used_again_is_stale(guard: Guard, where: str) -> None:
    """The second question has the same call id, response id, tool and arguments."""

    async def story() -> list[int]:
        stage = Stage(guard, pays(5), pays(5), says())
        context = {"turnlock_run": "r1"}
        asked = await stage.ask(context=context)
        first, text = asked.to_state(), kept(asked.to_state())
        again = {"turnlock_run": "r1"} if where == "a context of its own" else context
        second = (await stage.ask("pay 5, in another month", context=again)).to_state()
        if where == "one context, as text":
            first = await RunState.from_string(stage.agent, text)

        with pytest.raises(Stale):
            await stage.approve(first)
        first.approve(first.get_interruptions()[0])
        with pytest.raises(GuardRefused):
            await stage.go_on(first)
        assert stage.paid == []

        await stage.approve(second)
        await stage.go_on(second)
        return stage.paid

    assert asyncio.run(story()) == [5]


def forged(state: RunState[Any]) -> str:
    """A state is a text: whoever writes it approves."""
    told = json.loads(kept(state))
    decision = {"approved": ["c1"], "rejected": []}
    told["context"]["function_tool_approvals"] = [
        {"agent": {"name": "till"}, "tool_key": "pay", "decision": decision}
    ]
    return json.dumps(told)


def bypassed(state: RunState[Any]) -> str:
    """Whoever has the state may approve in it, and turnlock is not told."""
    state.approve(state.get_interruptions()[0])
    return kept(state)  # after a run that ended in an error the SDK goes on with no state object


@pytest.mark.parametrize("approves", [forged, bypassed])
def test_g_7_bare_an_approval_in_the_state_alone_pays(
    approves: Callable[[RunState[Any]], str],
) -> None:
    async def story() -> list[int]:
        bare = Stage(None, pays(5), says())
        await bare.go_on(approves((await bare.ask()).to_state()))
        return bare.paid

    assert asyncio.run(story()) == [5]


@pytest.mark.parametrize("approves", [forged, bypassed])
def test_g_7_an_approval_in_the_state_alone_is_refused(
    guard: Guard, approves: Callable[[RunState[Any]], str]
) -> None:
    async def story() -> list[int]:
        stage = Stage(guard, pays(5), says())
        state = approves((await stage.ask()).to_state())
        with pytest.raises(NotApproved) as refused:
            await stage.go_on(state)
        assert refused.value.arguments == {"amount": 5}
        assert stage.model.remaining_steps == 1, "the model is told nothing"
        assert stage.paid == []

        # A person decides, anywhere; the state that was approved in the SDK goes on.
        await guard.adecide(refused.value.at, approved=True, digest=refused.value.digest, by="ada")
        await stage.go_on(state)
        return stage.paid

    assert asyncio.run(story()) == [5]


def test_g_8_bare_reject_then_approve_pays() -> None:
    async def story() -> list[int]:
        bare = Stage(None, pays(5), says())
        state = (await bare.ask()).to_state()
        await bare.approve(state, approved=False)
        await bare.approve(state)
        await bare.go_on(state)
        return bare.paid

    assert asyncio.run(story()) == [5]


def test_g_8_reject_then_approve_stays_rejected(guard: Guard) -> None:
    async def story() -> list[int]:
        stage = Stage(guard, pays(5), says())
        state = (await stage.ask()).to_state()
        await stage.approve(state, approved=False, reason="too much")
        with pytest.raises(DecidedOtherwise):
            await stage.approve(state)
        state.approve(state.get_interruptions()[0])  # past turnlock
        result = await stage.go_on(state)
        assert told(result) == ["too much"]
        return stage.paid

    assert asyncio.run(story()) == []


def test_g_8_a_rejection_is_told_as_the_sdk_tells_it(guard: Guard) -> None:
    async def story() -> None:
        stage = Stage(guard, pays(5), says("as you wish"))
        state = (await stage.ask()).to_state()
        await stage.approve(state, approved=False, reason="too much")
        result = await stage.go_on(state)
        assert result.final_output == "as you wish"
        assert told(result) == ["too much"]
        assert stage.paid == []

    asyncio.run(story())


def test_g_9_bare_a_sticky_approval_pays_whatever_comes() -> None:
    async def story() -> list[int]:
        bare = Stage(None, pays(5), pays(5_000, ids="d"), says())
        asked = await bare.ask()
        state = asked.to_state()
        state.approve(asked.interruptions[0], always_approve=True)
        await bare.go_on(state)
        return bare.paid

    assert asyncio.run(story()) == [5, 5_000]


def test_g_9_a_sticky_approval_covers_what_was_approved(guard: Guard) -> None:
    async def story() -> list[int]:
        stage = Stage(guard, pays(5), pays(5_000, ids="d"), says())
        asked = await stage.ask()
        state = asked.to_state()
        await stage.approve(state)
        state.approve(asked.interruptions[0], always_approve=True)
        with pytest.raises(NotApproved) as refused:
            await stage.go_on(state)
        assert refused.value.arguments == {"amount": 5_000}
        return stage.paid

    assert asyncio.run(story()) == [5]


def test_g_9_an_approval_of_a_session_is_one_in_the_sdk_too(guard: Guard) -> None:
    async def story() -> list[int]:
        stage = Stage(guard, pays(5), pays(7, ids="d"), says())
        state = (await stage.ask()).to_state()
        await stage.approve(state, scope=Scope.SESSION, match=Match.TOOL)
        result = await stage.go_on(state)
        assert result.final_output == "done"
        return stage.paid

    assert asyncio.run(story()) == [5, 7]


async def forged_arguments(guard: Guard | None) -> tuple[Stage, str]:
    """Have 5 approved, and write 5000: with all that the SDK holds an approval against."""
    other = json.loads(await Stage(None, pays(5_000)).approved())
    stage = Stage(guard, pays(5), says())
    approved = json.loads(await stage.approved())
    other["context"]["context"] = approved["context"]["context"]
    return stage, json.dumps(other)


def test_g_9_bare_other_arguments_than_those_approved_are_paid() -> None:
    async def story() -> list[int]:
        bare, state = await forged_arguments(None)
        await bare.go_on(state)
        return bare.paid

    assert asyncio.run(story()) == [5_000]


def test_g_9_other_arguments_than_those_approved_are_refused(guard: Guard) -> None:
    """The state is a text, and is changed between the approval and the resumption."""

    async def story() -> list[int]:
        stage, state = await forged_arguments(guard)
        with pytest.raises(Differs):
            await stage.go_on(state)
        return stage.paid

    assert asyncio.run(story()) == []


def test_g_9_edited_arguments_run_instead(guard: Guard) -> None:
    async def story() -> list[int]:
        stage = Stage(guard, pays(5), says(), says())
        state = (await stage.ask()).to_state()
        await stage.approve(state, arguments={"amount": 4})
        for text in [kept(state)] * 2:
            await stage.go_on(text)
        return stage.paid

    assert asyncio.run(story()) == [4]

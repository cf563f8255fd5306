"""What works with a guard as it does without one: streams, parallel calls, handoffs, sessions, and
agents as tools, each nested run with an id of its own."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agents import Agent, Runner, RunResult, RunState, SQLiteSession
from agents.extensions.handoff_filters import remove_all_tools
from agents.handoffs import handoff
from agents.testing import ScriptedModel, function_call

from turnlock.guards import NotApproved, Stale
from turnlock.guards.guard import Guard
from turnlock.guards.openai_agents import GuardHooks, approve, guarded_tool

from .stage import Stage, kept, pays, says, told


def test_a_stream_pays_once(guard: Guard) -> None:
    async def story() -> list[int]:
        stage = Stage(guard, pays(5), says(), says())
        asking = Runner.run_streamed(
            stage.agent, "pay 5", hooks=stage.hooks, context={"turnlock_run": "r1"}
        )
        async for _ in asking.stream_events():
            pass
        state = asking.to_state()
        await stage.approve(state)
        for text in [kept(state)] * 2:
            restored = await RunState.from_string(stage.agent, text)
            going_on = Runner.run_streamed(stage.agent, restored, hooks=stage.hooks)
            assert [it async for it in going_on.stream_events()]
            assert going_on.final_output == "done"
        return stage.paid

    assert asyncio.run(story()) == [5]


def test_a_stream_ends_with_what_is_refused(guard: Guard) -> None:
    async def story() -> list[int]:
        stage = Stage(guard, pays(5), says())
        state = (await stage.ask()).to_state()
        state.approve(state.get_interruptions()[0])
        going_on = Runner.run_streamed(stage.agent, state, hooks=stage.hooks)
        with pytest.raises(NotApproved):
            [it async for it in going_on.stream_events()]
        return stage.paid

    assert asyncio.run(story()) == []


def test_parallel_calls_run_at_once_and_each_once(guard: Guard) -> None:
    async def story() -> list[int]:
        everybody = asyncio.Barrier(3)

        async def pay(amount: int) -> int:
            paid.append(amount)
            await everybody.wait()
            return amount

        paid: list[int] = []
        stage = Stage(guard, pays(1, 2, 3), says(), says(), pay=pay)
        state = (await stage.ask()).to_state()
        for it in state.get_interruptions():
            await stage.approve(state, it)
        text = kept(state)
        for _ in range(2):
            assert told(await stage.go_on(text)) == [1, 2, 3]
        return sorted(paid)

    assert asyncio.run(story()) == [1, 2, 3]


def test_a_refusal_cancels_no_call_beside_it(guard: Guard) -> None:
    """The SDK cancels the others when one raises, which would leave them in doubt."""

    async def story() -> list[int]:
        begun = asyncio.Event()

        async def pay(amount: int) -> str:
            begun.set()
            for _ in range(20):
                await asyncio.sleep(0)
            paid.append(amount)
            return "paid"

        paid: list[int] = []
        stage = Stage(guard, pays(1, 2), says(), pay=pay)
        asked = await stage.ask()
        state = asked.to_state()
        await stage.approve(state, asked.interruptions[1])
        state.approve(asked.interruptions[0])  # past turnlock
        text = kept(state)
        with pytest.raises(NotApproved) as refused:
            await stage.go_on(text)
        assert paid == [2]
        await guard.adecide(refused.value.at, approved=True, digest=refused.value.digest)
        await stage.go_on(text)
        return paid

    assert asyncio.run(story()) == [2, 1]


@pytest.mark.parametrize("filtered", [True, False])
def test_a_handoff_goes_on_in_the_same_run(guard: Guard, *, filtered: bool) -> None:
    async def free(amount: int) -> str:
        return f"paid {amount}"

    async def story() -> list[int]:
        stage = Stage(guard, pays(5, ids="b"), says(), says())
        hand_over = [function_call("transfer_to_till", {}, call_id="h1")]
        first: Agent[Any] = Agent(
            name="first",
            model=ScriptedModel([pays(1), hand_over]),
            tools=[stage.wrapped(free, name_override="pay")],
            handoffs=[handoff(stage.agent, input_filter=remove_all_tools if filtered else None)],
        )
        context = {"turnlock_run": "r1"}
        result = await Runner.run(first, "pay 5", hooks=stage.hooks, context=context)
        state = result.to_state()
        await stage.approve(state)
        for text in [kept(state)] * 2:
            restored = await RunState.from_string(first, text)
            assert (await Runner.run(first, restored, hooks=stage.hooks)).final_output == "done"
        return stage.paid

    assert asyncio.run(story()) == [5]


def test_a_conversation_in_a_session_goes_on_with_one_run(guard: Guard) -> None:
    async def story() -> list[int]:
        stage = Stage(guard, pays(5), says(), pays(6), says("and that"), gated=False)
        session = SQLiteSession("s")
        for text in ("pay 5", "pay 6"):
            await stage.ask(text, session=session)
        session.close()
        return stage.paid

    assert asyncio.run(story()) == [5, 6]


class Office:
    """A clerk who has a till as a tool: `clerk` is what the one answers, `answers` the other."""

    def __init__(
        self,
        guard: Guard,
        clerk: list[Any],
        *answers: Any,
        hooks: bool = True,
        wrapped: bool = True,
        **options: Any,
    ) -> None:
        self.hooks = GuardHooks(guard)
        self.stage = Stage(guard, *answers, **options)
        tool = self.stage.agent.as_tool("till", "pays", hooks=self.hooks if hooks else None)
        self.clerk: Agent[Any] = Agent(
            name="clerk",
            model=ScriptedModel(clerk),
            tools=[guarded_tool(guard, tool) if wrapped else tool],
        )

    async def ask(self) -> RunResult:
        context = {"turnlock_run": "r1"}
        return await Runner.run(self.clerk, "pay 5", hooks=self.hooks, context=context)

    async def go_on(self, text: str) -> RunResult:
        state = await RunState.from_string(self.clerk, text)
        return await Runner.run(self.clerk, state, hooks=self.hooks)


def till(*ids: str) -> Any:
    return [function_call("till", {"input": f"pay {it}"}, call_id=it) for it in ids]


def test_an_agent_as_a_tool_has_a_run_of_its_own(guard: Guard) -> None:
    async def story() -> list[int]:
        clerk = [till("t1"), says(), says()]
        office = Office(guard, clerk, pays(5), says("paid"), says("paid"))
        state = (await office.ask()).to_state()
        waiting = [it.at for run in runs(state) for it in await guard.awaiting(run)]
        assert [(it.run.split("/")[0], it.call) for it in waiting] == [("r1", "c1")]
        assert waiting[0].run != "r1"
        await approve(guard, state, state.get_interruptions()[0], by="ada")
        for text in [kept(state)] * 2:
            assert (await office.go_on(text)).final_output == "done"
        return office.stage.paid

    assert asyncio.run(story()) == [5]


def runs(state: RunState[Any]) -> list[str]:
    return list(state.to_json()["context"]["context"]["turnlock_turns"])


def test_agents_as_tools_side_by_side_do_not_close_each_others_turns(guard: Guard) -> None:
    """They give their calls the same ids."""

    async def story() -> list[int]:
        office = Office(
            guard, [till("t1", "t2"), says()], pays(5), pays(6), says(), says(), gated=False
        )
        assert (await office.ask()).final_output == "done"
        return sorted(office.stage.paid)

    assert asyncio.run(story()) == [5, 6]


@pytest.mark.parametrize("amounts", [(5, 6), (5, 5)])
def test_agents_as_tools_that_ask_with_the_same_ids(guard: Guard, amounts: tuple[int, int]) -> None:
    """What was shown tells them apart; where that is the same, too, nobody can say which it is."""

    async def story() -> list[int]:
        answers = [pays(it) for it in amounts]
        office = Office(guard, [till("t1", "t2"), says()], *answers, says(), says())
        state = (await office.ask()).to_state()
        if amounts == (5, 5):
            with pytest.raises(Stale, match="2 calls 'c1' of this state are guarded"):
                await approve(guard, state, state.get_interruptions()[0])
            return office.stage.paid
        for it in state.get_interruptions():
            await approve(guard, state, it)
        assert (await office.go_on(kept(state))).final_output == "done"
        return sorted(office.stage.paid)

    assert asyncio.run(story()) == ([5, 6] if amounts == (5, 6) else [])


def test_what_is_refused_in_an_agent_as_a_tool_ends_the_outer_run(guard: Guard) -> None:
    async def story() -> None:
        office = Office(guard, [till("t1"), says()], pays(5), says())
        state = (await office.ask()).to_state()
        state.approve(state.get_interruptions()[0])
        with pytest.raises(NotApproved):
            await office.go_on(kept(state))
        assert office.stage.paid == []

    asyncio.run(story())


def test_an_agent_as_a_tool_without_hooks_is_refused(guard: Guard) -> None:
    async def story() -> None:
        office = Office(guard, [till("t1"), says()], pays(5), says(), hooks=False, gated=False)
        with pytest.raises(Stale, match=r"as_tool\(…, hooks=GuardHooks\(guard\)\)"):
            await office.ask()
        assert office.stage.paid == []

    asyncio.run(story())


def test_an_agent_as_a_tool_that_is_not_wrapped_pays_nothing(guard: Guard) -> None:
    """Its refusal cannot end the outer run: the SDK makes a text of it, and logs the error."""

    async def story() -> None:
        office = Office(guard, [till("t1"), says()], pays(5), wrapped=False, gated=False)
        result = await office.ask()
        assert told(result) == ["An error occurred while running the tool. Please try again."]
        assert office.stage.paid == []

    asyncio.run(story())

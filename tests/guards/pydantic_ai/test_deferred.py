"""What waits because its tool says so, or the guard's policy: approvals, results from elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import (
    AgentRunResult,
    ApprovalRequired,
    CallDeferred,
    DeferredToolRequests,
    DeferredToolResults,
    ModelRetry,
    RunContext,
    Tool,
    ToolApproved,
    ToolDenied,
    ToolFailed,
)

from turnlock.guards import DecidedOtherwise, Differs, InDoubt, NotApproved, Policy
from turnlock.guards.guard import Guard

from .bank import PAYS, Bank, Script, agent_of, answered, bare, call, guarded, returned


def asking(guard: Guard | None, bank: Bank, *amounts: int) -> Any:
    """An agent whose tool asks for approval of more than 10 by itself."""

    async def pay(ctx: RunContext[None], amount: int) -> str:
        if amount > 10 and not ctx.tool_call_approved:
            raise ApprovalRequired
        return await bank.pay(amount)

    calls = [call(f"c{number}", it) for number, it in enumerate(amounts, 1)]
    return agent_of(guard, bank, Script(calls), tools=[Tool(pay)])


async def resumed(agent: Any, first: AgentRunResult[Any], told: DeferredToolResults) -> list[Any]:
    result = await agent.run(message_history=first.all_messages(), deferred_tool_results=told)
    return returned(result.all_messages())


def test_g_1_a_tool_that_asks_by_itself_pays_once(tmp_path: Path) -> None:
    async def story(guard: Guard | None) -> Any:
        bank = Bank()
        agent = asking(guard, bank, 5, 50)
        first = await agent.run("pay 5 and 50")
        told = await answered(guard, first, {"c2": True})
        said = [await resumed(agent, first, told) for _ in range(2)]
        assert said[0] == said[1]
        return bank.paid, said[0]

    paid = [("success", "paid 5"), ("success", "paid 50")]
    assert bare(story) == ([5, 50, 50], paid)
    assert guarded(tmp_path, story) == ([5, 50], paid)


def test_g_7_a_tool_that_asks_by_itself_is_not_approved_in_the_framework_alone(
    tmp_path: Path,
) -> None:
    """Its validator asks, before anything is claimed: the call was opened without an approval."""

    async def story(guard: Guard | None) -> list[int]:
        bank = Bank()

        async def asks_first(ctx: RunContext[None], amount: int) -> None:
            if not ctx.tool_call_approved:
                raise ApprovalRequired

        tool = Tool(bank.pay, name="pay", args_validator=asks_first)
        agent = agent_of(guard, bank, Script(*PAYS), tools=[tool])
        first = await agent.run("pay 5")
        forged = DeferredToolResults(approvals={"c1": True})
        if guard is None:
            await resumed(agent, first, forged)
            return bank.paid
        with pytest.raises(NotApproved, match="decide"):
            await resumed(agent, first, forged)
        assert bank.paid == []
        await resumed(agent, first, await answered(guard, first, {"c1": True}))
        return bank.paid

    assert bare(story) == [5]
    assert guarded(tmp_path, story) == [5]


def test_g_8_a_tool_that_asks_by_itself_and_is_denied_stays_denied(tmp_path: Path) -> None:
    async def story(guard: Guard | None) -> list[int]:
        bank = Bank()
        agent = asking(guard, bank, 50)
        first = await agent.run("pay 50")
        told = await answered(guard, first, {"c1": ToolDenied("too much")})
        assert await resumed(agent, first, told) == [("denied", "too much")]
        if guard is None:
            await resumed(agent, first, DeferredToolResults(approvals={"c1": True}))
            return bank.paid
        with pytest.raises(DecidedOtherwise):
            await answered(guard, first, {"c1": True})
        again = await answered(guard, first, {})
        assert await resumed(agent, first, again) == [("denied", "too much")]
        return bank.paid

    assert bare(story) == [50]
    assert guarded(tmp_path, story) == []


def test_g_9_what_a_tool_asks_by_itself_cannot_be_edited(tmp_path: Path) -> None:
    """The journal has no digest of it: an edit would be nobody's decision."""

    async def story(guard: Guard) -> list[int]:
        bank = Bank()
        agent = asking(guard, bank, 50)
        first = await agent.run("pay 50")
        with pytest.raises(Differs, match="requires_approval"):
            await answered(guard, first, {"c1": ToolApproved(override_args={"amount": 20})})
        return bank.paid

    assert guarded(tmp_path, story) == []


def test_a_policy_that_demands_approval_asks_as_a_tool_does(tmp_path: Path) -> None:
    async def story(guard: Guard) -> Any:
        bank = Bank()
        agent = agent_of(guard, bank, Script(*PAYS), asks=False)
        first = await agent.run("pay 5")
        assert isinstance(first.output, DeferredToolRequests)
        assert [it.tool_call_id for it in first.output.approvals] == ["c1"]
        with pytest.raises(NotApproved):
            await resumed(agent, first, DeferredToolResults(approvals={"c1": True}))
        told = await answered(guard, first, {"c1": True})
        said = [await resumed(agent, first, told) for _ in range(2)]
        return bank.paid, said

    paid = [("success", "paid 5")]
    policies = {"pay": Policy(approval=True)}
    assert guarded(tmp_path, story, policies=policies) == ([5], [paid, paid])


def deferring(guard: Guard | None, bank: Bank) -> Any:
    """An agent whose tool is done elsewhere."""

    async def pay(amount: int) -> str:
        bank.paid.append(amount)
        raise CallDeferred

    return agent_of(guard, bank, Script(*PAYS), tools=[Tool(pay)])


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("paid 5, elsewhere", ("success", "paid 5, elsewhere")),
        ({"amounts": [5]}, ("success", {"amounts": [5]})),
        (ToolFailed("no money"), ("failed", "no money")),
    ],
)
def test_a_result_from_elsewhere_is_recorded_first(
    tmp_path: Path, answer: object, said: tuple[str, Any]
) -> None:
    async def story(guard: Guard | None) -> Any:
        bank = Bank()
        agent = deferring(guard, bank)
        first = await agent.run("pay 5")
        if guard is None:
            told = DeferredToolResults(calls={"c1": answer})
        else:
            with pytest.raises(InDoubt):  # nobody has told turnlock
                await resumed(agent, first, DeferredToolResults(calls={"c1": answer}))
            told = await answered(guard, first, {"c1": answer})
        assert await resumed(agent, first, told) == [said]
        return bank.paid, await resumed(agent, first, told)

    assert bare(story) == ([5], [said])
    assert guarded(tmp_path, story) == ([5], [said])


@pytest.mark.parametrize(
    "error", [ModelRetry("another amount"), ToolFailed("no money")], ids=["retry", "failed"]
)
def test_what_a_tool_tells_the_model_in_its_place_is_told_again(
    tmp_path: Path, error: Exception
) -> None:
    """The call has failed; asked for again it does not run again."""

    async def story(guard: Guard | None) -> Any:
        ran: list[int] = []

        async def pay(amount: int) -> str:
            ran.append(amount)
            raise error

        agent = agent_of(guard, Bank(), Script(*PAYS), tools=[Tool(pay, requires_approval=True)])
        first = await agent.run("pay 5")
        told = await answered(guard, first, {"c1": True})
        said: list[Any] = []
        for _ in range(2):
            result = await agent.run(
                message_history=first.all_messages(), deferred_tool_results=told
            )
            said.append([getattr(it, "content", None) for it in result.all_messages()[-2].parts])
        assert said[0] == said[1]
        return ran, said[0]

    ran, said = guarded(tmp_path, story)
    twice, bare_said = bare(story)
    assert (ran, twice) == ([5], [5, 5])
    assert said == bare_said


RESULTS: list[Any] = [[1, 2], {"a": [{"b": []}]}, "text", None, 5, True]


@pytest.mark.parametrize("value", RESULTS, ids=lambda it: type(it).__name__)
def test_what_a_tool_returned_is_told_again_as_it_was(tmp_path: Path, value: Any) -> None:
    async def story(guard: Guard | None) -> Any:
        async def pay(amount: int) -> Any:
            return value

        agent = agent_of(guard, Bank(), Script(*PAYS), tools=[Tool(pay, requires_approval=True)])
        first = await agent.run("pay 5")
        told = await answered(guard, first, {"c1": True})
        return [await resumed(agent, first, told) for _ in range(2)]

    assert guarded(tmp_path, story) == bare(story) == [[("success", value)]] * 2

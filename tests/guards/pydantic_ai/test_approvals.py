"""Approvals of deferred tools: what each fault is bare, and with a guard (guards.md section 1)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import AgentRunResult, DeferredToolResults, ToolApproved, ToolDenied
from pydantic_ai.exceptions import UnexpectedModelBehavior, UserError
from pydantic_ai.messages import ModelMessage, ModelRequest, UserPromptPart, repair_messages

from turnlock.guards import DecidedOtherwise, Differs, Forked, GuardRefused, NotApproved, Stale
from turnlock.guards.guard import Guard

from .bank import PAYS, Bank, Script, agent_of, answered, bare, call, guarded, kept, returned, text
from .host import Meets


def test_g_1_one_approval_resumed_twice_in_sequence(tmp_path: Path) -> None:
    async def story(guard: Guard | None) -> tuple[list[int], list[Any]]:
        bank = Bank()
        agent = agent_of(guard, bank, Script(*PAYS))
        first = await agent.run("pay 5")
        told = await answered(guard, first, {"c1": True})
        results = [
            await agent.run(message_history=kept(first.all_messages()), deferred_tool_results=told)
            for _ in range(2)
        ]
        return bank.paid, [returned(it.all_messages()) for it in results]

    paid, told = bare(story)
    assert paid == [5, 5]

    paid, guarded_told = guarded(tmp_path, story)
    assert paid == [5]
    assert guarded_told == told


def test_g_2_one_approval_resumed_by_two_threads_at_once(tmp_path: Path) -> None:
    async def asked(guard: Guard | None, bank: Bank) -> tuple[list[ModelMessage], Any]:
        first = await agent_of(guard, bank, Script(*PAYS)).run("pay 5")
        return kept(first.all_messages()), await answered(guard, first, {"c1": True})

    def resume(guard: Guard | None, bank: Bank, history: list[ModelMessage], told: Any) -> Any:
        agent = agent_of(guard, bank, Script(*PAYS), capabilities=[Meets(there)])
        resumed = agent.run(message_history=history, deferred_tool_results=told)
        return asyncio.run(_output(resumed))

    barrier = threading.Barrier(2)

    async def there() -> None:
        barrier.wait(60)

    def twice(guards: list[Any]) -> list[int]:
        bank = Bank()
        history, told = asyncio.run(asked(guards[0], bank))
        with ThreadPoolExecutor(2) as pool:
            both = [pool.submit(resume, guard, bank, history, told) for guard in guards]
            assert [it.result(60) for it in both] == ["done", "done"]
        return bank.paid

    assert twice([None, None]) == [5, 5]

    with Guard.open(tmp_path / "agent.db") as one, Guard.open(tmp_path / "agent.db") as other:
        assert twice([one, other]) == [5]


def test_g_5_the_sdk_refuses_a_stale_approval_of_a_history_that_went_on(tmp_path: Path) -> None:
    """The user moved on in the same history: the SDK refuses by itself, bare and guarded."""

    async def story(guard: Guard | None) -> list[int]:
        bank = Bank()
        agent = agent_of(guard, bank, Script(*PAYS))
        first = await agent.run("pay 5")
        told = await answered(guard, first, {"c1": True})
        with pytest.raises(UserError, match="unprocessed tool calls"):
            await agent.run("never mind", message_history=first.all_messages())
        moved = await agent.run("never mind", message_history=repair_messages(first.all_messages()))
        with pytest.raises(UserError, match="unprocessed tool calls"):
            await agent.run(message_history=moved.all_messages(), deferred_tool_results=told)
        return bank.paid

    assert bare(story) == []
    assert guarded(tmp_path, story) == []


def test_g_5_an_approval_of_the_history_from_before_the_user_moved_on(tmp_path: Path) -> None:
    """Where the host has kept the old history with the question, the SDK does not refuse."""

    async def story(guard: Guard | None) -> list[int]:
        bank = Bank()
        agent = agent_of(guard, bank, Script(*PAYS))
        first = await agent.run("pay 5")
        told = DeferredToolResults(approvals={"c1": True})
        await agent.run("never mind", message_history=repair_messages(first.all_messages()))
        if guard is not None:
            with pytest.raises(Stale):
                await answered(guard, first, {"c1": True})
            with pytest.raises(Stale):
                await agent.run(message_history=first.all_messages(), deferred_tool_results=told)
        else:
            await agent.run(message_history=first.all_messages(), deferred_tool_results=told)
        return bank.paid

    assert bare(story) == [5]
    assert guarded(tmp_path, story) == []


def test_g_6_an_approval_of_an_id_that_a_later_turn_used_again(tmp_path: Path) -> None:
    async def story(guard: Guard | None) -> list[int]:
        bank = Bank()
        agent = agent_of(guard, bank, Script([call(amount=5)], [text()], [call(amount=500)]))
        first = await agent.run("pay 5")
        told = await answered(guard, first, {"c1": True})
        paid = await agent.run(message_history=first.all_messages(), deferred_tool_results=told)
        again = await agent.run("pay 500", message_history=paid.all_messages())
        resumed = agent.run(message_history=again.all_messages(), deferred_tool_results=told)
        if guard is None:
            await resumed
        else:
            with pytest.raises(NotApproved) as refused:
                await resumed
            assert refused.value.arguments == {"amount": 500}
        return bank.paid

    assert bare(story) == [5, 500]
    assert guarded(tmp_path, story) == [5]


def test_g_6_the_same_call_with_the_same_id_again_is_another_call(tmp_path: Path) -> None:
    """A later answer that looks just like an earlier one has no decision, and no outcome, of it."""

    async def story(guard: Guard | None) -> list[int]:
        bank = Bank()
        agent = agent_of(guard, bank, Script([call()], [text()], [call()]))
        first = await agent.run("pay 5")
        told = await answered(guard, first, {"c1": True})
        paid = await agent.run(message_history=first.all_messages(), deferred_tool_results=told)
        again = await agent.run("pay 5 more", message_history=kept(paid.all_messages()))
        told = await answered(guard, again, {"c1": True})
        await agent.run(message_history=again.all_messages(), deferred_tool_results=told)
        return bank.paid

    assert guarded(tmp_path, story) == bare(story) == [5, 5]


def test_g_7_approved_in_the_framework_alone(tmp_path: Path) -> None:
    async def story(guard: Guard | None) -> list[int]:
        bank = Bank()
        agent = agent_of(guard, bank, Script(*PAYS))
        first = await agent.run("pay 5")
        forged = DeferredToolResults(approvals={"c1": ToolApproved()})
        resumed = agent.run(message_history=first.all_messages(), deferred_tool_results=forged)
        if guard is None:
            await resumed
        else:
            with pytest.raises(NotApproved) as refused:
                await resumed
            assert [it.at for it in guard.waiting(first.conversation_id)] == [refused.value.at]
        return bank.paid

    assert bare(story) == [5]
    assert guarded(tmp_path, story) == []


def test_g_8_reject_then_approve(tmp_path: Path) -> None:
    async def story(guard: Guard | None) -> list[int]:
        bank = Bank()
        agent = agent_of(guard, bank, Script(*PAYS))
        first = await agent.run("pay 5")
        told = await answered(guard, first, {"c1": ToolDenied("too much")})
        denied = await agent.run(message_history=first.all_messages(), deferred_tool_results=told)
        assert returned(denied.all_messages()) == [("denied", "too much")]
        if guard is not None:
            with pytest.raises(DecidedOtherwise):
                await answered(guard, first, {"c1": True})
        forged = DeferredToolResults(approvals={"c1": True})
        again = await agent.run(message_history=first.all_messages(), deferred_tool_results=forged)
        if guard is not None:
            assert returned(again.all_messages()) == [("denied", "too much")]
        return bank.paid

    assert bare(story) == [5]
    assert guarded(tmp_path, story) == []


def test_g_8_approve_then_reject_leaves_what_was_decided_first(tmp_path: Path) -> None:
    async def story(guard: Guard) -> list[int]:
        bank = Bank()
        agent = agent_of(guard, bank, Script(*PAYS))
        first = await agent.run("pay 5")
        await answered(guard, first, {"c1": True})
        with pytest.raises(DecidedOtherwise):
            await answered(guard, first, {"c1": False})
        told = await answered(guard, first, {"c1": True})
        await agent.run(message_history=first.all_messages(), deferred_tool_results=told)
        return bank.paid

    assert guarded(tmp_path, story) == [5]


@pytest.mark.parametrize("then", [5, "5"])
def test_g_9_other_arguments_than_approved(tmp_path: Path, then: Any) -> None:
    """An override that was never decided; the raw arguments count, not what validation makes."""

    async def story(guard: Guard | None) -> list[int]:
        bank = Bank()
        agent = agent_of(guard, bank, Script([call(amount=2)]))
        first = await agent.run("pay 2")
        await answered(guard, first, {"c1": True})
        other = DeferredToolResults(approvals={"c1": ToolApproved(override_args={"amount": then})})
        resumed = agent.run(message_history=first.all_messages(), deferred_tool_results=other)
        if guard is None:
            await resumed
        else:
            with pytest.raises(Differs):
                await resumed
        return bank.paid

    assert bare(story) == [5]
    assert guarded(tmp_path, story) == []


def test_g_9_a_sticky_answer_is_given_to_what_nobody_saw(tmp_path: Path) -> None:
    """A host that keeps its approvals: the next conversation with the same id has them, too."""

    async def story(guard: Guard | None) -> list[int]:
        bank = Bank()
        one = agent_of(guard, bank, Script([call(amount=5)]))
        other = agent_of(guard, bank, Script([call(amount=500)]))
        told = await answered(guard, await one.run("pay 5"), {"c1": True})
        unseen = await other.run("pay 500")
        resumed = other.run(message_history=unseen.all_messages(), deferred_tool_results=told)
        if guard is None:
            await resumed
        else:
            with pytest.raises(NotApproved):
                await resumed
        return bank.paid

    assert bare(story) == [500]
    assert guarded(tmp_path, story) == []


def test_arguments_that_an_approval_edits_reach_the_tool(tmp_path: Path) -> None:
    async def story(guard: Guard) -> list[int]:
        bank = Bank()
        agent = agent_of(guard, bank, Script([call(amount=500)]))
        first = await agent.run("pay 500")
        edited = ToolApproved(override_args={"amount": "7"})
        told = await answered(guard, first, {"c1": edited})
        for _ in range(2):
            await agent.run(message_history=first.all_messages(), deferred_tool_results=told)
        return bank.paid

    assert guarded(tmp_path, story) == [7]


def test_arguments_that_somebody_edits_elsewhere_reach_the_tool(tmp_path: Path) -> None:
    """A person in the console decides; the framework is told nothing but that it may go on."""

    async def story(guard: Guard) -> list[int]:
        bank = Bank()
        agent = agent_of(guard, bank, Script([call(amount=500)]))
        first = await agent.run("pay 500")
        assert (await answered(guard, first, {})).approvals == {}
        (waits,) = guard.waiting(first.conversation_id)
        guard.decide(waits.at, approved=True, digest=waits.digest, arguments={"amount": "7"})
        told = await answered(guard, first, {})
        await agent.run(message_history=first.all_messages(), deferred_tool_results=told)
        return bank.paid

    assert guarded(tmp_path, story) == [7]


def test_a_denial_elsewhere_is_told_the_model(tmp_path: Path) -> None:
    async def story(guard: Guard) -> list[Any]:
        agent = agent_of(guard, Bank(), Script(*PAYS))
        first = await agent.run("pay 5")
        (waits,) = guard.waiting(first.conversation_id)
        guard.decide(waits.at, approved=False, digest=waits.digest, reason="not today")
        told = await answered(guard, first, {})
        denied = await agent.run(message_history=first.all_messages(), deferred_tool_results=told)
        return returned(denied.all_messages())

    assert guarded(tmp_path, story) == [("denied", "not today")]


@pytest.mark.parametrize("amount", [5, 6])
def test_g_10_the_sdk_refuses_one_id_twice_in_an_answer(tmp_path: Path, amount: int) -> None:
    """With the same and with other arguments; guarded it is refused before the SDK sees it."""

    async def story(guard: Guard | None) -> list[int]:
        bank = Bank()
        script = Script([call(amount=5), call(amount=amount)])
        for asks in (True, False):
            with pytest.raises(UnexpectedModelBehavior if guard is None else Differs):
                await agent_of(guard, bank, script, asks=asks).run("pay twice")
        await agent_of(guard, bank, Script()).run("hello")
        return bank.paid

    assert bare(story) == []
    assert guarded(tmp_path, story) == []


def test_g_11_a_denial_and_a_result_for_one_call(tmp_path: Path) -> None:
    """Bare the model is told success of what was denied, and never ran."""

    async def story(guard: Guard | None) -> tuple[int, list[Any]]:
        bank, script = Bank(), Script(*PAYS)
        agent = agent_of(guard, bank, script)
        first = await agent.run("pay 5")
        told = await answered(guard, first, {"c1": False})
        told.calls["c1"] = "paid 5"
        resumed = agent.run(message_history=first.all_messages(), deferred_tool_results=told)
        said: list[Any] = []
        if guard is None:
            said = returned((await resumed).all_messages())
        else:
            with pytest.raises(Differs):
                await resumed
        assert bank.paid == []
        return script.asked - 1, said

    assert bare(story) == (1, [("success", "paid 5")])
    assert guarded(tmp_path, story) == (0, [])


def test_g_11_a_result_of_a_call_that_still_waits(tmp_path: Path) -> None:
    async def story(guard: Guard | None) -> int:
        script = Script(*PAYS)
        agent = agent_of(guard, Bank(), script)
        first = await agent.run("pay 5")
        forged = DeferredToolResults(calls={"c1": "paid 5"})
        resumed = agent.run(message_history=first.all_messages(), deferred_tool_results=forged)
        if guard is None:
            await resumed
        else:
            with pytest.raises(Differs):
                await resumed
        return script.asked - 1

    assert bare(story) == 1
    assert guarded(tmp_path, story) == 0


def test_a_decision_about_arguments_that_nobody_showed(tmp_path: Path) -> None:
    """What is decided is what the requests show, not what the journal has."""

    async def story(guard: Guard) -> None:
        agent = agent_of(guard, Bank(), Script(*PAYS))
        first = await agent.run("pay 5")
        shown = first.output
        assert not isinstance(shown, str)
        shown.approvals[0] = call(amount=1)
        with pytest.raises(Differs):
            await answered(guard, first, {"c1": True})

    guarded(tmp_path, story)


def test_a_decision_about_messages_without_a_conversation(tmp_path: Path) -> None:
    async def story(guard: Guard) -> None:
        first = await agent_of(guard, Bank(), Script(*PAYS)).run("pay 5")
        with pytest.raises(Stale, match="all_messages"):
            await answered(guard, first, {"c1": True}, [])
        asked = ModelRequest(parts=[UserPromptPart("pay 5")], conversation_id="r1")
        with pytest.raises(Stale, match="all_messages"):
            await answered(guard, first, {"c1": True}, [asked])

    guarded(tmp_path, story)


def test_g_15_the_model_asked_again_after_a_crash(tmp_path: Path) -> None:
    """It answers with new ids: nothing but what it answers tells that this is a second answer."""

    async def story(guard: Guard | None) -> list[int]:
        bank = Bank()
        lost = Script([text("hello")], [call("new-1")])
        before = await agent_of(guard, bank, lost, asks=False).run("hello", conversation_id="r1")
        history = kept(before.all_messages())
        await agent_of(guard, bank, lost, asks=False).run("pay 5", message_history=history)
        again = Script([text("hello")], [call("new-2")])
        asked = agent_of(guard, bank, again, asks=False).run("pay 5", message_history=history)
        if guard is None:
            await asked
        else:
            with pytest.raises(Forked):
                await asked
        return bank.paid

    assert bare(story) == [5, 5]
    assert guarded(tmp_path, story) == [5]


def test_g_15_the_first_answer_of_a_conversation_asked_for_again(tmp_path: Path) -> None:
    async def story(guard: Guard | None) -> list[int]:
        bank = Bank()
        for new in ("new-1", "new-2"):
            agent = agent_of(guard, bank, Script([call(new)]), asks=False)
            asked = agent.run("pay 5", conversation_id="r1")
            if guard is None or new == "new-1":
                await asked
            else:
                with pytest.raises(Forked):
                    await asked
        return bank.paid

    assert bare(story) == [5, 5]
    assert guarded(tmp_path, story) == [5]


def test_g_16_a_second_continuation_asks_the_model_again(tmp_path: Path) -> None:
    """The tool runs once, the model is asked twice; the page says so."""

    async def story(guard: Guard | None) -> tuple[int, int]:
        bank, script = Bank(), Script(*PAYS)
        agent = agent_of(guard, bank, script)
        first = await agent.run("pay 5")
        told = await answered(guard, first, {"c1": True})
        for _ in range(2):
            await agent.run(message_history=first.all_messages(), deferred_tool_results=told)
        return len(bank.paid), script.asked - 1

    assert bare(story) == (2, 2)
    assert guarded(tmp_path, story) == (1, 2)
    page = Path(__file__).parents[3] / "docs" / "guards-pydantic-ai.md"
    assert "Exactly one continuation is not given" in page.read_text(encoding="utf-8")


def test_every_refusal_ends_the_run(tmp_path: Path) -> None:
    """The model is told of none: it would try again, with another id."""

    async def story(guard: Guard) -> int:
        bank, script = Bank(), Script([call("c1"), call("c2")])
        agent = agent_of(guard, bank, script)
        first = await agent.run("pay twice")
        told = await answered(guard, first, {"c1": True})
        told.approvals["c2"] = True
        with pytest.raises(GuardRefused):
            await agent.run(message_history=first.all_messages(), deferred_tool_results=told)
        return script.asked

    assert guarded(tmp_path, story) == 1


async def _output(resumed: Awaitable[AgentRunResult[Any]]) -> Any:
    return (await resumed).output

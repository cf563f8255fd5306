"""Approvals: each becomes at most one execution, and only of what was approved (G-1 … G-9).

Each test runs bare first: there the framework does what the table says, or it has mended the fault.
"""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from agent_framework import AgentSession, Content, ToolApprovalMiddleware
from agent_framework._harness._tool_approval import create_always_approve_tool_response

from turnlock.guards import DecidedOtherwise, Differs, Guard, NotApproved, Stale
from turnlock.guards.agent_framework import answer

from .speaking import PAY, Bank, Speaker, agent_of, decided, kept, loaded


def test_g_1_resumed_twice_in_sequence(either: Guard | None) -> None:
    """Two resumes from one stored session, as a retried job or a second click does."""
    bank, speaker = Bank(), Speaker(PAY)

    async def play() -> None:
        agent, session = agent_of(either, speaker, bank.tool()), AgentSession(session_id="s1")
        told = await decided(either, session, await agent.run("pay 5", session=session))
        stored = kept(session)
        for _ in range(2):
            done = await agent.run(told, session=loaded(stored))
            assert done.text == "done"
            assert speaker.told() == ["paid 5"]

    asyncio.run(play())
    assert bank.paid == ([5] if either else [5, 5])


def test_g_2_resumed_from_two_tasks(either: Guard | None) -> None:
    """The second waits for the first, and tells the same."""
    both = asyncio.Event()

    class Slow(Bank):
        async def before(self, amount: int) -> None:
            both.set()
            await asyncio.sleep(0)

    bank, speaker = Slow(), Speaker(PAY)

    async def play() -> None:
        agent, session = agent_of(either, speaker, bank.tool()), AgentSession(session_id="s1")
        told = await decided(either, session, await agent.run("pay 5", session=session))
        stored = kept(session)
        runs = [agent.run(told, session=loaded(stored)) for _ in range(2)]
        assert [it.text for it in await asyncio.gather(*runs)] == ["done", "done"]

    asyncio.run(play())
    assert bank.paid == ([5] if either else [5, 5])


@pytest.mark.parametrize("guarded", [False, True])
def test_g_2_resumed_from_two_threads(db: Path, guarded: bool) -> None:
    """Two guards on one file, each in a thread with a loop of its own."""
    bank = Bank()

    async def ask() -> tuple[str, list[Content]]:
        guard = Guard.open(db) if guarded else None
        agent, session = agent_of(guard, Speaker(PAY), bank.tool()), AgentSession(session_id="s1")
        told = await decided(guard, session, await agent.run("pay 5", session=session))
        if guard:
            await guard.aclose()
        return kept(session), told

    stored, told = asyncio.run(ask())
    line, said = threading.Barrier(2), list[str]()

    async def resume() -> None:
        guard = Guard.open(db) if guarded else None
        agent = agent_of(guard, Speaker(), bank.tool())
        line.wait(timeout=60)
        said.append((await agent.run(told, session=loaded(stored))).text)
        if guard:
            await guard.aclose()

    threads = [threading.Thread(target=lambda: asyncio.run(resume())) for _ in range(2)]
    for it in threads:
        it.start()
    for it in threads:
        it.join(timeout=60)
    assert said == ["done", "done"]
    assert bank.paid == ([5] if guarded else [5, 5])


def test_g_5_the_user_moved_on(either: Guard | None) -> None:
    """The framework keeps the request of an earlier answer; its turn is closed."""
    bank = Bank()

    async def play() -> None:
        agent, session = agent_of(either, Speaker(PAY, "hi"), bank.tool()), AgentSession()
        asked = await agent.run("pay 5", session=session)
        await agent.run("never mind", session=session)
        if either is None:
            await agent.run(await decided(either, session, asked), session=session)
            return
        with pytest.raises(Stale):
            await decided(either, session, asked)
        with pytest.raises(Stale):  # nor does the framework's own approval pass
            await agent.run(await decided(None, session, asked), session=session)

    asyncio.run(play())
    assert bank.paid == ([] if either else [5])


def test_g_6_the_id_is_used_again(either: Guard | None) -> None:
    """A provider that numbers its contents afresh: the approval of 5 pays 500."""
    bank, more = Bank(), [("c1", "pay", {"amount": 500})]

    async def play() -> None:
        speaker = Speaker(PAY, "no", more, own_ids=True)
        agent, session = agent_of(either, speaker, bank.tool()), AgentSession()
        asked = await agent.run("pay 5", session=session)
        await agent.run(await decided(either, session, asked, approved=False), session=session)
        await agent.run("pay 500", session=session)
        if either is None:
            await agent.run(await decided(either, session, asked), session=session)
            return
        with pytest.raises(Stale):
            await decided(either, session, asked)
        with pytest.raises(NotApproved):
            await agent.run(await decided(None, session, asked), session=session)

    asyncio.run(play())
    assert bank.paid == ([] if either else [500])


def test_g_7_approved_in_the_framework_alone(either: Guard | None) -> None:
    """What never reached turnlock executes nothing, and says what to do."""
    bank = Bank()

    async def play() -> None:
        agent, session = agent_of(either, Speaker(PAY), bank.tool()), AgentSession(session_id="s1")
        asked = await agent.run("pay 5", session=session)
        stored, told = kept(session), await decided(None, session, asked)
        if either is None:
            await agent.run(told, session=session)
            return
        with pytest.raises(NotApproved) as caught:
            await agent.run(told, session=session)
        assert caught.value.arguments == {"amount": 5}
        (waiting,) = either.waiting("s1")
        assert caught.value.at == waiting.at
        assert not bank.paid
        session = loaded(stored)  # the same request, answered as it should be
        told = await decided(either, session, asked)
        assert (await agent.run(told, session=session)).text == "done"

    asyncio.run(play())
    assert bank.paid == [5]


def test_g_8_reject_then_approve(either: Guard | None) -> None:
    """The first decision stands, in whatever copy of the session the second is made."""
    bank, speaker = Bank(), Speaker(PAY)

    async def play() -> None:
        agent, session = agent_of(either, speaker, bank.tool()), AgentSession(session_id="s1")
        asked = await agent.run("pay 5", session=session)
        stored = kept(session)
        no = await decided(either, session, asked, approved=False)
        await agent.run(no, session=session)
        assert speaker.told() == ["Error: Tool call invocation was rejected by user."]
        session = loaded(stored)
        if either:
            with pytest.raises(DecidedOtherwise):
                await decided(either, session, asked)
        await agent.run(await decided(None, session, asked), session=session)
        assert speaker.told()[-1].startswith("Error" if either else "paid 5")

    asyncio.run(play())
    assert bank.paid == ([] if either else [5])


def test_g_9_a_standing_approval(either: Guard | None) -> None:
    """ "Always" in the framework is a rule of the framework: turnlock wants its own decision."""
    bank, more = Bank(), [("c2", "pay", {"amount": 500})]

    async def play() -> None:
        standing: Any = [ToolApprovalMiddleware()]
        agent = agent_of(either, Speaker(PAY, more), bank.tool(), middleware=standing)
        session = AgentSession(session_id="s1")
        (request,) = (await agent.run("pay 5", session=session)).user_input_requests
        if either is None:
            always = create_always_approve_tool_response(request)
            await agent.run(always, session=session)
            return
        await answer(either, session, request, True, by="ada")
        with pytest.raises(NotApproved) as caught:
            await agent.run(create_always_approve_tool_response(request), session=session)
        assert caught.value.arguments == {"amount": 500}

    asyncio.run(play())
    assert bank.paid == ([5] if either else [5, 500])


def test_g_9_other_arguments_than_approved(either: Guard | None) -> None:
    """The framework runs what its stored request says; whoever edits that pays another sum."""
    bank = Bank()

    async def play() -> None:
        agent, session = agent_of(either, Speaker(PAY), bank.tool()), AgentSession(session_id="s1")
        asked = await agent.run("pay 5", session=session)
        told = await decided(either, session, asked)
        session = loaded(kept(session).replace('"amount": 5', '"amount": 500'))
        if either is None:
            await agent.run(told, session=session)
            return
        with pytest.raises(Differs):
            await agent.run(told, session=session)

    asyncio.run(play())
    assert bank.paid == ([] if either else [500])


def test_g_9_a_request_shown_with_other_arguments(guard: Guard) -> None:
    """A decision is about what was shown: its digest is that of the request."""
    bank = Bank()

    async def play() -> None:
        agent, session = agent_of(guard, Speaker(PAY), bank.tool()), AgentSession(session_id="s1")
        (request,) = (await agent.run("pay 5", session=session)).user_input_requests
        shown = Content.from_dict(
            json.loads(json.dumps(request.to_dict()).replace('"amount": 5', '"amount": 1'))
        )
        with pytest.raises(Differs):
            await answer(guard, session, shown, True)

    asyncio.run(play())
    assert not bank.paid

"""What is not in place is refused, and says what to add; what changed on the way is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from agent_framework import (
    SKIP_PARSING,
    AgentSession,
    FunctionInvocationContext,
    FunctionMiddleware,
    MiddlewareFailure,
    tool,
)

from turnlock.guards import At, Differs, Forked, Guard, NotRecorded, Stale
from turnlock.guards.agent_framework import ClaimMiddleware, TurnMiddleware, answer
from turnlock.models.errors import InvalidValue

from .speaking import PAY, Bank, Speaker, agent_of, decided, kept, loaded, run

Next = Callable[[], Awaitable[None]]


def test_no_session(guard: Guard) -> None:
    """Without one, nothing says which conversation it is."""
    bank = Bank()
    with pytest.raises(Stale, match=r"session=AgentSession\(session_id=…\)"):
        run(agent_of(guard, Speaker(PAY), bank.tool(asks=False)), "pay 5")
    assert not bank.paid


def test_turn_middleware_left_out(guard: Guard) -> None:
    """A tool whose turn was never opened does not run."""
    bank = Bank()
    agent = agent_of(None, Speaker(PAY), bank.tool(asks=False), middleware=[ClaimMiddleware(guard)])
    with pytest.raises(Stale, match=r"add TurnMiddleware\(guard\)") as caught:
        run(agent, "pay 5", AgentSession())
    assert isinstance(caught.value, MiddlewareFailure)
    assert not bank.paid


def test_claim_middleware_left_out(guard: Guard) -> None:
    """Tools would run without a claim: nobody is asked."""
    speaker = Speaker(PAY)
    agent = agent_of(None, speaker, Bank().tool(), middleware=[TurnMiddleware(guard)])
    with pytest.raises(Stale, match=r"add ClaimMiddleware\(guard\)"):
        run(agent, "pay 5", AgentSession())
    assert not speaker.heard


def test_asked_before_the_guard_was_on(guard: Guard) -> None:
    """Neither `answer` nor the framework's own approval passes."""
    bank = Bank()

    async def play() -> None:
        session = AgentSession()
        asked = await agent_of(None, Speaker(PAY), bank.tool()).run("pay 5", session=session)
        with pytest.raises(Stale, match="TurnMiddleware"):
            await answer(guard, session, asked.user_input_requests[0], True)
        with pytest.raises(Stale, match="TurnMiddleware"):
            await agent_of(guard, Speaker(), bank.tool()).run(
                await decided(None, session, asked), session=session
            )

    asyncio.run(play())
    assert not bank.paid


def test_switched_on_in_mid_conversation(guard: Guard) -> None:
    """What was said before is no turn; from here on each is one."""
    bank = Bank()

    async def play() -> None:
        session = AgentSession()
        await agent_of(None, Speaker("hi"), bank.tool()).run("hello", session=session)
        agent = agent_of(guard, Speaker(PAY), bank.tool(asks=False))
        assert (await agent.run("pay 5", session=session)).text == "done"

    asyncio.run(play())
    assert bank.paid == [5]


class Doubling(FunctionMiddleware):
    """Changes the arguments on their way."""

    async def process(self, context: FunctionInvocationContext, call_next: Next) -> None:
        """Double the amount."""
        context.arguments = {"amount": 2 * dict(context.arguments)["amount"]}
        await call_next()


def test_arguments_changed_on_their_way(guard: Guard) -> None:
    """Edits go through a decision (`decide(arguments=…)`), never behind its back."""
    bank = Bank()
    agent = agent_of(guard, Speaker(PAY), bank.tool(asks=False), middleware=[Doubling()])
    with pytest.raises(Differs):
        run(agent, "pay 5", AgentSession())
    assert not bank.paid


@pytest.mark.parametrize("inside", [True, False])
def test_middleware_of_one_run_stands_inside_of_the_agents(guard: Guard, inside: bool) -> None:
    """Where it edits what nobody has to approve, the claim is given with it, behind it."""
    bank, turns, claims = Bank(), TurnMiddleware(guard), ClaimMiddleware(guard)
    own = [turns, claims] if inside else [turns]
    agent = agent_of(None, Speaker(PAY), bank.tool(asks=False), middleware=own)

    async def play() -> None:
        more: list[Any] = [Doubling()] if inside else [Doubling(), claims]
        if inside:
            await agent.run("pay 5", session=AgentSession(), middleware=more)
            return
        with pytest.raises(Differs):
            await agent.run("pay 5", session=AgentSession(), middleware=more)

    asyncio.run(play())
    assert bank.paid == ([10] if inside else []), "docs/guards-agent-framework.md says so"


def test_what_was_approved_is_not_edited_by_middleware_of_one_run(guard: Guard) -> None:
    """There the framework itself refuses: nothing runs, and that is what is recorded."""
    bank = Bank()

    async def play() -> None:
        agent, session = agent_of(guard, Speaker(PAY), bank.tool()), AgentSession(session_id="s1")
        told = await decided(guard, session, await agent.run("pay 5", session=session))
        turn = session.state["turnlock"]["turn"]
        again = await agent.run(told, session=session, middleware=[Doubling()])
        assert len(again.user_input_requests) == 1
        outcome = guard.look(At("s1", turn, "c1")).outcome
        assert outcome is not None
        assert "ChangedAfterApproval" in (outcome.error or "")

    asyncio.run(play())
    assert not bank.paid


def test_a_gate_that_is_one_text_is_refused(guard: Guard) -> None:
    """Its letters would be the names of tools, and nothing would be guarded."""
    with pytest.raises(InvalidValue, match=r"give a set: \{'pay'\}"):
        TurnMiddleware(guard, gate="pay")


def test_validated_arguments_are_the_model_s(guard: Guard) -> None:
    """The framework makes 5 of "5": nobody changed it."""
    bank = Bank()
    speaker = Speaker([("c1", "pay", {"amount": "5"})])
    run(agent_of(guard, speaker, bank.tool(asks=False)), "pay", AgentSession())
    assert bank.paid == [5]


def test_arguments_that_do_not_fit(guard: Guard) -> None:
    """The framework tells the model; nothing ran, and the guard has it as a failure."""
    bank, speaker = Bank(), Speaker([("c1", "pay", {"amount": "five"})])
    run(agent_of(guard, speaker, bank.tool(asks=False)), "pay", AgentSession())
    assert speaker.told() == ["Error: Argument parsing failed."]
    assert not bank.paid


def test_a_result_that_is_no_json(guard: Guard) -> None:
    """It ran, and cannot be recorded: the run ends, and it is never run again."""
    ran = list[int]()

    @tool(result_parser=SKIP_PARSING)
    def work() -> Any:
        """Return what no journal holds."""
        ran.append(1)
        return object()

    async def play() -> None:
        speaker = Speaker([("c1", "work", {})])
        with pytest.raises(NotRecorded) as caught:
            await agent_of(guard, speaker, work).run("work", session=AgentSession())
        assert isinstance(caught.value, MiddlewareFailure)
        assert not speaker.told()

    asyncio.run(play())
    assert ran == [1]


def test_a_session_stored_too_early_goes_on(guard: Guard) -> None:
    """The journal knows of an answer that the session does not: who accepts that says so."""
    bank = Bank()

    async def play() -> None:
        stored = kept(AgentSession(session_id="s1"))
        await agent_of(guard, Speaker(PAY), bank.tool(asks=False)).run(
            "pay 5", session=loaded(stored)
        )
        session = loaded(stored)
        agent = agent_of(guard, Speaker(PAY, PAY), bank.tool(asks=False))
        with pytest.raises(Forked) as caught:
            await agent.run("did you pay?", session=session)
        session.state["turnlock"] = {"turn": caught.value.came}
        await agent.run("pay again", session=session)

    asyncio.run(play())
    assert bank.paid == [5, 5]


def test_two_conversations_share_a_journal(db: Path) -> None:
    """Each session is a run: the same ids do not meet."""
    bank = Bank()

    async def play() -> None:
        async with Guard.open(db) as guard:
            for name in ("one", "two"):
                agent = agent_of(guard, Speaker(PAY), bank.tool(asks=False))
                await agent.run("pay 5", session=AgentSession(session_id=name))

    asyncio.run(play())
    assert bank.paid == [5, 5]

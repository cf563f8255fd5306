"""The framework's loop works as without a guard: streams, parallel calls, agents in tools."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from agent_framework import (
    AgentResponse,
    AgentSession,
    ChatContext,
    ChatMiddleware,
    ChatResponse,
    Content,
    FunctionInvocationContext,
    FunctionMiddleware,
    Message,
    MiddlewareFailure,
    MiddlewareTermination,
    tool,
)

from turnlock.guards import At, Guard, InDoubt, NotApproved, Outcome, Policy, Resolution, Status
from turnlock.guards.agent_framework import ClaimMiddleware, TurnMiddleware, answer

from .speaking import PAY, Asked, Bank, Speaker, agent_of, decided, kept, loaded

THREE: Sequence[Asked] = [(f"c{it}", "pay", {"amount": it}) for it in (1, 2, 3)]


async def all_of(
    agent: Any, given: Any, session: AgentSession, *, stream: bool
) -> AgentResponse[Any]:
    """Run an agent, as a stream or at once."""
    if not stream:
        whole: AgentResponse[Any] = await agent.run(given, session=session)
        return whole
    said = agent.run(given, stream=True, session=session)
    assert [it async for it in said]
    final: AgentResponse[Any] = await said.get_final_response()
    return final


@pytest.mark.parametrize("stream", [False, True])
def test_a_conversation_is_the_same(either: Guard | None, stream: bool) -> None:
    """Calls that ask and calls that do not, a tool that fails, a denial: as without a guard."""
    bank = Bank()

    @tool
    def look_up(name: str) -> dict[str, Any]:
        """Look somebody up."""
        if name == "nobody":
            message = "no such person"
            raise LookupError(message)
        return {"name": name, "iban": "DE00"}

    answers: list[str | Sequence[Asked]] = [
        [("a", "look_up", {"name": "ada"}), ("b", "look_up", {"name": "nobody"})],
        [("c", "pay", {"amount": 5}), ("d", "look_up", {"name": "bob"})],
        [("e", "pay", {"amount": 6})],
        "paid one",
        "bye",
    ]
    speaker = Speaker(*answers)

    async def play() -> list[str]:
        agent = agent_of(either, speaker, bank.tool(), look_up)
        session = AgentSession(session_id="s1")
        asked = await all_of(agent, "pay 5", session, stream=stream)
        session = loaded(kept(session))
        told = await decided(either, session, asked)
        asked = await all_of(agent, told, session, stream=stream)
        told = await decided(either, session, asked, approved=False)
        done = [
            await all_of(agent, told, session, stream=stream),
            await all_of(agent, "bye", session, stream=stream),
        ]
        return [it.text for it in done]

    assert asyncio.run(play()) == ["paid one", "bye"]
    assert bank.paid == [5]
    assert [len(it) for it in speaker.heard] == [1, 3, 5, 7, 9]
    assert speaker.told() == [
        '{"name": "ada", "iban": "DE00"}',
        "Error: Function failed.",
        "paid 5",
        '{"name": "bob", "iban": "DE00"}',
        "Error: Tool call invocation was rejected by user.",
    ]


@pytest.mark.parametrize("stream", [False, True])
def test_parallel_calls_are_parallel(guard: Guard, stream: bool) -> None:
    """Three calls of an answer meet in the tool."""
    met = asyncio.Barrier(3)

    class Meeting(Bank):
        async def before(self, amount: int) -> None:
            await asyncio.wait_for(met.wait(), 60)

    bank, speaker = Meeting(), Speaker(THREE)

    async def play() -> None:
        agent = agent_of(guard, speaker, bank.tool(asks=False))
        await all_of(agent, "pay", AgentSession(), stream=stream)

    asyncio.run(play())
    assert speaker.told() == ["paid 1", "paid 2", "paid 3"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_refusal_comes_out_of_a_stream(guard: Guard, stream: bool) -> None:
    """It is raised where the stream is read."""
    bank = Bank()

    async def play() -> None:
        agent, session = agent_of(guard, Speaker(PAY), bank.tool()), AgentSession()
        asked = await all_of(agent, "pay", session, stream=stream)
        with pytest.raises(NotApproved):
            await all_of(agent, await decided(None, session, asked), session, stream=stream)

    asyncio.run(play())
    assert not bank.paid


def test_mixed_decisions(guard: Guard) -> None:
    """One is approved, one denied, one decided later: each is told in its place."""
    bank, speaker = Bank(), Speaker(THREE)

    async def play() -> None:
        agent, session = agent_of(guard, speaker, bank.tool()), AgentSession()
        one, two, three = (await agent.run("pay", session=session)).user_input_requests
        told = [await answer(guard, session, one, True), await answer(guard, session, two, False)]
        left = await agent.run(told, session=session)
        assert [it.id for it in left.user_input_requests] == [three.id]
        assert not bank.paid
        session = loaded(kept(session))
        await agent.run(await answer(guard, session, three, True), session=session)

    asyncio.run(play())
    assert bank.paid == [1, 3]
    assert speaker.told() == [
        "paid 1",
        "Error: Tool call invocation was rejected by user.",
        "paid 3",
    ]


def test_a_refusal_does_not_cancel_its_siblings(guard: Guard) -> None:
    """The framework cancels the others of a batch when one ends the run: they would be in doubt."""
    began, goes_on = asyncio.Event(), asyncio.Event()

    class Slow(Bank):
        async def before(self, amount: int) -> None:
            began.set()
            await asyncio.wait_for(goes_on.wait(), 60)

    bank, speaker = Slow(), Speaker(THREE)

    async def play() -> None:
        agent, session = agent_of(guard, speaker, bank.tool()), AgentSession(session_id="s1")
        asked = await agent.run("pay", session=session)
        one, two, three = asked.user_input_requests
        told = [
            await answer(guard, session, one, True),
            two.to_function_approval_response(approved=True),
            three.to_function_approval_response(approved=True),
        ]
        run = asyncio.ensure_future(agent.run(told, session=session))
        await asyncio.wait_for(began.wait(), 60)
        goes_on.set()
        with pytest.raises(NotApproved):
            await run
        assert bank.paid == [1]
        told = await decided(guard, session, asked)
        assert (await agent.run(told, session=session)).text == "done"

    asyncio.run(play())
    assert bank.paid == [1, 2, 3]
    assert speaker.told() == ["paid 1", "paid 2", "paid 3"]


@pytest.mark.parametrize("shared", [False, True])
def test_an_agent_as_a_tool_has_a_run_of_its_own(guard: Guard, shared: bool) -> None:
    """With its caller's session, too: else its first answer would close its caller's turn."""
    bank, asked = Bank(), [("x", "helper", {"task": "pay"}), ("y", "helper", {"task": "pay"})]

    async def play() -> None:
        helper = agent_of(
            guard, Speaker(PAY, "did it", PAY, "did it"), bank.tool(asks=False), name="helper"
        )
        speaker = Speaker(asked)
        agent = agent_of(guard, speaker, helper.as_tool(propagate_session=shared))
        session = AgentSession(session_id="s1")
        assert (await agent.run("pay twice", session=session)).text == "done"
        assert speaker.told() == ["did it", "did it"]
        assert (await agent.run("thanks", session=loaded(kept(session)))).text == "done"

    asyncio.run(play())
    assert bank.paid == [5, 5]


def test_a_doubt_within_an_agent_ends_its_caller_s_run(guard: Guard) -> None:
    """The outer model is not told that its tool has failed."""
    hung = asyncio.Event()

    class Hanging(Bank):
        async def after(self, amount: int) -> None:
            hung.set()
            await asyncio.Event().wait()

    bank, inner = Hanging(), AgentSession(session_id="inner")

    async def play() -> None:
        helper = agent_of(guard, Speaker(PAY, PAY), bank.tool(asks=False))

        @tool
        async def help_out() -> str:
            """Ask another agent, in a conversation of its own."""
            return (await helper.run("pay", session=inner)).text

        one = asyncio.ensure_future(helper.run("pay", session=inner))
        await asyncio.wait_for(hung.wait(), 60)
        one.cancel()
        with pytest.raises(asyncio.CancelledError):
            await one
        speaker = Speaker([("x", "help_out", {})])
        with pytest.raises(InDoubt) as caught:
            await agent_of(guard, speaker, help_out).run("pay", session=AgentSession())
        assert caught.value.at.run == "inner"
        assert not speaker.told()

    asyncio.run(play())
    assert bank.paid == [5]


@pytest.mark.parametrize("gated", [False, True])
def test_the_gate_has_the_framework_ask(db: Any, gated: bool) -> None:
    """By its name in the gate, or by its policy: the tool itself need not say anything."""
    bank = Bank()

    def pay(amount: int) -> str:
        """Pay an amount, as a function that is no tool of the framework's."""
        bank.paid.append(amount)
        return "paid"

    policies = {} if gated else {"pay": Policy(approval=lambda it: it["amount"] > 4)}
    with Guard.open(db, policies=policies) as guard:

        async def play() -> None:
            speaker = Speaker([("c0", "pay", {"amount": 4})], PAY)
            agent = agent_of(guard, speaker, pay, gate=["pay"] if gated else [])
            session = AgentSession(session_id="s1")
            done = await agent.run("pay", session=session)
            if gated:
                assert not bank.paid
                done = await agent.run(await decided(guard, session, done), session=session)
            (waiting,) = guard.waiting("s1")
            assert (waiting.tool, dict(waiting.arguments)) == ("pay", {"amount": 5})
            assert bank.paid == [4]
            await agent.run(await decided(guard, session, done), session=session)

        asyncio.run(play())
    assert bank.paid == [4, 5]


def test_edited_arguments_run(guard: Guard) -> None:
    """Whoever decides elsewhere may edit them: those run that were approved, and once."""
    bank, speaker = Bank(), Speaker(PAY)

    async def play() -> None:
        agent, session = agent_of(guard, speaker, bank.tool()), AgentSession(session_id="s1")
        asked = await agent.run("pay 5", session=session)
        (waiting,) = guard.waiting("s1")
        guard.decide(
            waiting.at, approved=True, digest=waiting.digest, arguments={"amount": 4}, by="bob"
        )
        told = await decided(None, session, asked)
        stored = kept(session)
        for _ in range(2):
            await agent.run(told, session=loaded(stored))
            assert speaker.told() == ["paid 4"]

    asyncio.run(play())
    assert bank.paid == [4]


def test_decided_elsewhere(guard: Guard) -> None:
    """The process that asked waits for a person at a console, and goes on."""
    bank, speaker = Bank(), Speaker(PAY)

    async def play() -> None:
        agent, session = agent_of(guard, speaker, bank.tool()), AgentSession(session_id="s1")
        (request,) = (await agent.run("pay 5", session=session)).user_input_requests
        (waiting,) = guard.waiting("s1")
        guard.decide(waiting.at, approved=False, digest=waiting.digest, by="bob", reason="no")
        look = await guard.await_decided(waiting.at, within=60)
        assert look.outcome is not None
        assert look.outcome.status is Status.DENIED
        told = await answer(guard, session, request, False)
        await agent.run(told, session=session)
        assert speaker.told() == ["Error: Tool call invocation was rejected by user."]

    asyncio.run(play())
    assert not bank.paid


def replayed(guard: Guard, made: Any, *, fails: bool = False) -> list[list[Content]]:
    """Return what the model is told of a tool's result: when it runs, and when it is replayed."""
    ran = list[int]()

    @tool(approval_mode="always_require")
    def work() -> Any:
        """Work."""
        ran.append(1)
        if fails:
            raise made
        return made

    async def play() -> list[list[Content]]:
        speaker = Speaker([("c1", "work", {})])
        agent, session = agent_of(guard, speaker, work), AgentSession()
        told = await decided(guard, session, await agent.run("work", session=session))
        stored, found = kept(session), list[list[Content]]()
        for _ in range(2):
            await agent.run(told, session=loaded(stored))
            contents = [it for message in speaker.heard[-1] for it in message.contents]
            found.append([it for it in contents if it.type == "function_result"])
        return found

    found = asyncio.run(play())
    assert ran == [1]
    return found


PICTURE = Content.from_uri("data:image/png;base64,AAAA", media_type="image/png")


@pytest.mark.parametrize(
    "made",
    [
        "a text",
        None,
        {"a": [1, {"type": "text"}]},
        ["a", "b"],
        [Content.from_text("see"), PICTURE],
        PICTURE,
    ],
)
def test_a_replayed_result_is_told_as_it_was(guard: Guard, made: Any) -> None:
    """Texts, JSON, pictures."""
    first, second = replayed(guard, made)
    assert [it.to_dict() for it in first] == [it.to_dict() for it in second]


def test_a_replayed_failure_is_told_as_it_was(guard: Guard) -> None:
    """A tool that failed is not run again by itself."""
    first, second = replayed(guard, LookupError("no such person"), fails=True)
    assert [it.to_dict() for it in first] == [it.to_dict() for it in second]
    assert (first[0].result, first[0].exception) == ("Error: Function failed.", "no such person")
    assert second[0].exception == "LookupError: no such person"


def test_a_handoff_ends_the_loop(guard: Guard) -> None:
    """An orchestration's middleware, inside of the guard's, ends the loop with a result."""

    class Handoff(FunctionMiddleware):
        async def process(
            self, context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]
        ) -> None:
            context.result = {"handoff_to": "bob"}
            raise MiddlewareTermination(result=context.result)

    @tool
    def hand_over() -> str:
        """Hand over to Bob."""
        raise AssertionError

    async def play() -> None:
        speaker = Speaker([("c1", "hand_over", {})], "I am Bob")
        agent, session = agent_of(guard, speaker, hand_over), AgentSession(session_id="s1")
        done = await agent.run("hi", session=session, middleware=[Handoff()])
        assert done.messages[-1].contents[0].result == '{"handoff_to": "bob"}'
        assert len(speaker.heard) == 1
        look = guard.look(At("s1", session.state["turnlock"]["turn"], "c1"))
        assert look.outcome == Outcome(
            status=Status.SUCCEEDED, value={"handoff_to": "bob"}, replayed=True, attempt=1
        )
        assert (await agent.run("hi", session=session)).text == "I am Bob"

    asyncio.run(play())


def test_the_answer_of_a_cache_is_a_turn(guard: Guard) -> None:
    """A chat middleware below that ends the chain with an answer has answered."""
    bank = Bank()

    class Cache(ChatMiddleware):
        async def process(
            self, context: ChatContext, call_next: Callable[[], Awaitable[None]]
        ) -> None:
            if len(context.messages) == 1:
                call = Content.from_function_call("c1", "pay", arguments={"amount": 5})
                context.result = ChatResponse(messages=[Message("assistant", [call])])
                raise MiddlewareTermination
            await call_next()

    async def play() -> None:
        guarding = [TurnMiddleware(guard), Cache(), ClaimMiddleware(guard)]
        agent = agent_of(None, Speaker(), bank.tool(asks=False), middleware=guarding)
        assert (await agent.run("pay", session=AgentSession())).text == "done"

    asyncio.run(play())
    assert bank.paid == [5]


def test_resolved_with_any_json(guard: Guard) -> None:
    """What a person says of a doubt need not be a text."""
    hung = asyncio.Event()

    class Hanging(Bank):
        async def after(self, amount: int) -> None:
            hung.set()
            await asyncio.Event().wait()

    bank, speaker = Hanging(), Speaker(PAY)

    async def play() -> None:
        agent, session = agent_of(guard, speaker, bank.tool()), AgentSession()
        told = await decided(guard, session, await agent.run("pay", session=session))
        run = asyncio.ensure_future(agent.run(told, session=session))
        await asyncio.wait_for(hung.wait(), 60)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        with pytest.raises(InDoubt) as caught:
            await agent.run(told, session=session)
        assert isinstance(caught.value, MiddlewareFailure)
        guard.resolve(caught.value.at, Resolution.RESULT, result={"id": 7})
        await agent.run(told, session=session)

    asyncio.run(play())
    assert speaker.told() == ['{"id": 7}']

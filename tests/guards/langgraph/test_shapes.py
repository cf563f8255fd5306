"""What goes on as without a guard: parallel calls, streams, handoffs, sub-agents, graphs by hand.

And what is refused there, with what to do about it.
"""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain.agents.middleware import AgentMiddleware, ToolRetryMiddleware
from langchain_core.messages import RemoveMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphBubbleUp
from langgraph.types import Command

from turnlock.guards import (
    At,
    Forked,
    InDoubt,
    NotRecorded,
    Policy,
    Resolution,
    Stale,
)
from turnlock.guards.guard import Guard
from turnlock.guards.langgraph import GuardMiddleware
from turnlock.lifecycle.phases import Phase
from turnlock.models.errors import InvalidValue

from .kit import (
    THREAD,
    WAYS,
    Bank,
    agent,
    answers,
    ask,
    asks,
    go,
    graph,
    no,
    pays,
    question,
    says,
    yes,
)

BOUND = 60.0
"""Seconds that a wait may last at most, on however loaded a machine."""


@pytest.mark.parametrize("way", WAYS)
def test_parallel_calls_wait_and_run_side_by_side(guard: Guard, way: str) -> None:
    """Each is asked about by itself, and answered by the id of its interrupt."""
    together = threading.Barrier(2)
    bank = Bank(lambda _: together.wait(BOUND))
    model = says(asks(*[("pay", {"amount": 5 + i}, f"c{i}") for i in range(3)]))
    it = agent(model, [bank.pay], guard=guard, gate={"pay"})
    waits = go(it, ask(), way=way)["__interrupt__"]
    assert sorted(at.value["call"] for at in waits) == ["c0", "c1", "c2"]

    decided = {at.id: (no if at.value["call"] == "c1" else yes)(at.value).resume for at in waits}
    told = go(it, Command(resume=decided), way=way)

    assert sorted(bank.paid) == [5, 7]
    assert answers(told)[::2] == ["paid 5", "paid 7"]
    assert "rejected" in answers(told)[1]


def test_tokens_stream_as_without_a_guard(guard: Guard) -> None:
    bank = Bank()
    plain, guarded = (
        [
            (kind, getattr(told[0], "content", None) if kind == "messages" else list(told))
            for kind, told in agent(
                says(pays(), "paid it all"), [bank.pay], guard=given, records_model=True
            ).stream(ask(), THREAD, stream_mode=["messages", "updates"])
        ]
        for given in (None, guard)
    )

    assert bank.paid == [5, 5]
    assert plain == [it for it in guarded if it[1] != ["GuardMiddleware.after_model"]]


def test_a_tool_that_is_told_its_state_and_its_id_is_told_so_under_a_guard(guard: Guard) -> None:
    """Injected arguments are no arguments of the call: they are neither compared nor kept."""

    @tool
    def whoami(name: str, call: Annotated[str, InjectedToolCallId]) -> str:
        """Say who."""
        return f"{name} {call}"

    it = agent(says(asks(("whoami", {"name": "ada"}, "c1"))), [whoami], guard=guard)

    assert answers(go(it, ask())) == ["ada c1"]


# graphs that are made by hand


@pytest.mark.parametrize("way", WAYS)
def test_a_graph_by_hand_asks_and_pays_once(guard: Guard, way: str) -> None:
    bank = Bank()
    it = graph(says(pays()), [bank.pay], guard=guard, gate={"pay"})
    shown = question(go(it, ask(), way=way))
    waiting = it.get_state(THREAD).config
    for _ in range(2):
        told = go(it, yes(shown), waiting, way)
        assert answers(told) == ["paid 5"]

    assert bank.paid == [5]


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_a_turn_that_nobody_opened_is_refused_with_what_to_add(guard: Guard, way: str) -> None:
    bank = Bank()
    it = graph(says(pays()), [bank.pay], guard=guard, opens=False)

    with pytest.raises(Stale, match="after_model") as refused:
        go(it, ask(), way=way)

    assert bank.paid == []
    assert refused.value.at == At("t1", it.get_state(THREAD).values["messages"][-1].id, "c1")


def test_refusals_end_the_run_and_no_model_is_told_of_them(guard: Guard) -> None:
    """Even where a ToolNode tells the model what goes wrong, and a policy tries again."""
    bank = Bank()
    model = says(pays())
    it = graph(model, [bank.pay], guard=guard, opens=False, handle_tool_errors=True)

    with pytest.raises(Stale) as refused:
        go(it, ask())

    assert isinstance(refused.value, GraphBubbleUp)
    assert type(refused.value).__name__ == "Stale"
    assert (bank.paid, model.asked) == ([], 1)


def test_a_refusal_cancels_no_sibling(guard: Guard) -> None:
    """asyncio would cancel the others where one raises; they end, and are recorded."""

    async def story() -> list[str]:
        refused = asyncio.Event()

        @tool
        async def slow() -> str:
            """Wait until the sibling has been refused."""
            await refused.wait()
            return "slow"

        class Late(AgentMiddleware[Any, Any]):
            async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
                try:
                    return await handler(request)
                except InDoubt:
                    asyncio.get_running_loop().call_later(0, refused.set)
                    raise

        paid: list[int] = []

        @tool
        async def pay(amount: int) -> str:
            """Pay, and lose the line."""
            paid.append(amount)
            raise TimeoutGiven

        it = agent(says(asks(("pay", {"amount": 5}, "c1"), ("slow", {}, "c2"))), [pay, slow],
                   guard=guard, outer=[Late()])  # fmt: skip
        refused.set()
        with pytest.raises(TimeoutGiven):
            await it.ainvoke(ask(), THREAD)
        with pytest.raises(InDoubt) as doubt:
            await it.ainvoke(None, THREAD)
        guard.resolve(doubt.value.at, Resolution.RESULT, result="paid")
        assert paid == [5]
        return answers(await it.ainvoke(None, THREAD))

    assert asyncio.run(story()) == ["paid", "slow"]


class TimeoutGiven(GraphBubbleUp):
    """Control flow of somebody's: neither a result nor a failure."""


def test_retries_are_told_the_recorded_failure(guard: Guard) -> None:
    """They repeat the same call; whoever wants another try decides so anew."""
    tried: list[int] = []

    @tool
    def pay(amount: int) -> str:
        """Fail."""
        tried.append(amount)
        raise ConnectionError("down")

    outer = ToolRetryMiddleware(max_retries=3, initial_delay=0.0, jitter=False)
    it = agent(says(pays()), [pay], guard=guard, outer=[outer])

    assert answers(go(it, ask())) == ["ConnectionError: down"]
    assert tried == [5]


def test_arguments_that_a_tool_does_not_take_are_told_the_model(guard: Guard) -> None:
    """The framework words it, and the record is a failure with these words."""
    bank = Bank()
    it = graph(says(asks(("pay", {"amount": "five"}, "c1"))), [bank.pay], guard=guard)
    first = go(it, ask())
    before = next(at.config for at in it.get_state_history(THREAD) if at.next == ("tools",))

    again = go(it, None, before)

    assert "valid integer" in answers(first)[0]
    assert answers(again) == answers(first)
    turn = first["messages"][1].id
    assert guard.look(At("t1", turn, "c1")).phase is Phase.FAILED


# what a tool returns


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_contents_and_artifacts_are_told_again(guard: Guard, way: str) -> None:
    """JSON, that is; an artifact that is none is told once."""

    @tool(response_format="content_and_artifact")
    def look(thing: str) -> Any:
        """Look at it."""
        return [{"type": "text", "text": thing}], {"a": [1]} if thing == "json" else b"raw"

    calls = asks(("look", {"thing": "json"}, "c1"), ("look", {"thing": "bytes"}, "c2"))
    it = agent(says(calls), [look], guard=guard)
    go(it, ask(), way=way)
    before = next(at.config for at in it.get_state_history(THREAD) if at.next[:1] == ("tools",))

    messages = [m for m in go(it, None, before, way)["messages"] if isinstance(m, ToolMessage)]

    assert [m.content for m in messages] == [
        [{"type": "text", "text": "json"}],
        [{"type": "text", "text": "bytes"}],
    ]
    assert [m.artifact for m in messages] == [{"a": [1]}, None]


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_commands_go_through_and_are_recorded_as_opaque(guard: Guard, way: str) -> None:
    """A handoff, say: it moves the graph once; a replay is refused, with the way to go on."""
    handed: list[str] = []

    @tool
    def hand_over(to: str, call: Annotated[str, InjectedToolCallId]) -> Any:
        """Hand over."""
        handed.append(to)
        return Command(update={"messages": [ToolMessage(f"to {to}", tool_call_id=call)]})

    it = agent(says(asks(("hand_over", {"to": "bob"}, "c1"))), [hand_over], guard=guard)
    first = go(it, ask(), way=way)
    before = next(at.config for at in it.get_state_history(THREAD) if at.next == ("tools",))

    with pytest.raises(NotRecorded, match="update_state"):
        go(it, None, before, way)

    assert handed == ["bob"]
    assert answers(first) == ["to bob"]


def test_what_a_person_says_it_came_to_may_be_any_json(guard: Guard) -> None:
    def loses(_: int) -> None:
        raise TimeoutGiven

    bank = Bank(loses)
    it = agent(says(pays()), [bank.pay], guard=guard)
    with pytest.raises(TimeoutGiven):
        go(it, ask())
    with pytest.raises(InDoubt) as doubt:
        go(it, None)

    guard.resolve(doubt.value.at, Resolution.RESULT, result={"receipt": [7]})

    assert answers(go(it, None)) == ['{"receipt": [7]}']


# places


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_a_sub_agent_has_a_run_of_its_own(db: Path, way: str) -> None:
    """Its question comes out, its answer goes in; the tool that it is in is declared repeatable."""
    bank = Bank()
    with Guard.open(db, policies={"delegate": Policy(safe_to_repeat=True)}) as guard:
        model = says(pays(), "paid it")
        inner = agent(model, [bank.pay], guard=guard, gate={"pay"}, nested=True)

        @tool
        def delegate(task: str) -> str:
            """Let another do it."""
            return str(inner.invoke(ask(task))["messages"][-1].text)

        it = agent(says(asks(("delegate", {"task": "pay 5"}, "c1"))), [delegate], guard=guard)
        shown = question(go(it, ask(), way=way))
        assert shown["run"].startswith("t1/tools:")
        waiting = it.get_state(THREAD).config
        for _ in range(2):
            assert answers(go(it, yes(shown), waiting, way)) == ["paid it"]

    assert bank.paid == [5]


def test_a_doubt_inside_a_sub_agent_is_no_failure_of_its_tool(guard: Guard) -> None:
    """It comes out as it is; nothing is recorded that the outer agent's model would be told."""

    def loses(_: int) -> None:
        raise TimeoutGiven

    bank = Bank(loses)
    inner = agent(says(pays()), [bank.pay], guard=guard, nested=True)

    @tool
    def delegate() -> str:
        """Let another do it."""
        return str(inner.invoke(ask())["messages"][-1].text)

    it = agent(says(asks(("delegate", {}, "c1"))), [delegate], guard=guard)
    with pytest.raises(TimeoutGiven):
        go(it, ask())

    with pytest.raises(InDoubt) as doubt:
        go(it, None)

    assert doubt.value.at.call == "c1"
    assert bank.paid == [5]


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_no_thread_is_a_clear_error(guard: Guard, way: str) -> None:
    bank = Bank()
    it = agent(says(pays()), [bank.pay], guard=guard, nested=True)

    with pytest.raises(InvalidValue, match="thread_id") as refused:
        go(it, ask(), {"configurable": {"other": 1}}, way)

    assert "configurable" in refused.value.fix
    assert bank.paid == []


def test_a_gate_that_is_one_text_is_refused() -> None:
    with pytest.raises(InvalidValue, match="gate"):
        GuardMiddleware(None, gate="pay")  # type: ignore[arg-type]


def test_history_that_was_trimmed_is_no_fork(guard: Guard) -> None:
    """What was opened last stands in the state, not in the messages."""
    bank = Bank()

    class Trims(AgentMiddleware[Any, Any]):
        def before_model(self, state: Any, runtime: object) -> Any:
            if isinstance(state["messages"][-1], ToolMessage):
                return None
            return {"messages": [RemoveMessage(it.id) for it in state["messages"][:-1]]}

    it = agent(
        says(pays(5), "paid", pays(6, "c2"), "paid"), [bank.pay], guard=guard, outer=[Trims()]
    )
    go(it, ask())
    told = go(it, ask("pay 6"))

    assert bank.paid == [5, 6]
    assert len(told["messages"]) == 4
    assert "turnlock_turn" not in told
    with pytest.raises(Forked):
        go(it, ask(), [at.config for at in it.get_state_history(THREAD)][-1])


def test_a_guard_may_come_in_the_middle_of_a_conversation(guard: Guard) -> None:
    bank, saver = Bank(), InMemorySaver()
    model = says(pays(5), "paid", pays(6, "c2"), "paid")
    go(agent(model, [bank.pay], saver=saver), ask())

    told = go(agent(model, [bank.pay], guard=guard, saver=saver), ask())

    assert bank.paid == [5, 6]
    assert answers(told) == ["paid 5", "paid 6"]

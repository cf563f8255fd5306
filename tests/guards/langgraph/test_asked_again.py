"""A model that is asked again: the same id twice in an answer, new ids after a crash, two hosts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType]
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver

from turnlock.guards import Differs, Forked
from turnlock.guards.guard import Guard
from turnlock.guards.langgraph import GuardMiddleware

from .kit import APPROVE, THREAD, Bank, agent, answers, ask, asks, go, pays, question, says, yes

GATE = {"pay"}


@dataclass
class Receipt:
    """What was paid."""

    amount: int


# G-10


@pytest.mark.parametrize("other", [5, 500])
def test_g_10_bare_one_id_twice_in_an_answer_pays_twice(other: int) -> None:
    bank = Bank()
    twice = asks(("pay", {"amount": 5}, "c1"), ("pay", {"amount": other}, "c1"))

    go(agent(says(twice), [bank.pay]), ask())

    assert sorted(bank.paid) == [5, other]


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_g_10_guarded_one_id_twice_with_one_call_pays_once(guard: Guard, way: str) -> None:
    bank = Bank()
    twice = asks(("pay", {"amount": 5}, "c1"), ("pay", {"amount": 5}, "c1"))

    told = go(agent(says(twice), [bank.pay], guard=guard), ask(), way=way)

    assert bank.paid == [5]
    assert answers(told) == ["paid 5", "paid 5"]


def test_g_10_guarded_one_id_twice_with_two_calls_pays_nothing(guard: Guard) -> None:
    bank = Bank()
    twice = asks(("pay", {"amount": 5}, "c1"), ("pay", {"amount": 500}, "c1"))

    with pytest.raises(Differs):
        go(agent(says(twice), [bank.pay], guard=guard), ask())

    assert bank.paid == []


# G-15: the framework's store loses what came after a checkpoint (durability "exit", a kill -9, a
# restored backup); test_killed.py shows it with a real kill.


def lost() -> InMemorySaver:
    """Return the store after the crash: nothing of the conversation had reached it."""
    return InMemorySaver()


def test_g_15_bare_the_model_asked_again_pays_again_under_a_new_id() -> None:
    bank = Bank()
    model = says(pays(5, "c1"), "paid", pays(5, "c2"), "paid")
    go(agent(model, [bank.pay]), ask())

    go(agent(model, [bank.pay], saver=lost()), ask())

    assert bank.paid == [5, 5]


def test_g_15_guarded_the_model_asked_again_is_a_fork(guard: Guard) -> None:
    bank = Bank()
    model = says(pays(5, "c1"), "paid", pays(5, "c2"), "paid")
    first = go(agent(model, [bank.pay], guard=guard), ask())

    with pytest.raises(Forked) as refused:
        go(agent(model, [bank.pay], guard=guard, saver=lost()), ask())

    assert bank.paid == [5]
    assert refused.value.came == first["messages"][1].id


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_g_15_guarded_with_records_the_first_answer_is_told_again(guard: Guard, way: str) -> None:
    bank = Bank()
    model = says(pays(5, "c1"), "paid", pays(5, "c2"), "paid")
    first = go(agent(model, [bank.pay], guard=guard, records_model=True), ask(), way=way)

    again = go(
        agent(model, [bank.pay], guard=guard, records_model=True, saver=lost()), ask(), way=way
    )

    assert bank.paid == [5]
    assert model.asked == 2
    assert [m.text for m in again["messages"]] == [m.text for m in first["messages"]]
    assert [m.id for m in again["messages"] if isinstance(m, AIMessage)] == [
        m.id for m in first["messages"] if isinstance(m, AIMessage)
    ]


def test_a_fork_that_is_meant_has_a_run_of_its_own(guard: Guard) -> None:
    """Time travel: `configurable.turnlock_run` names the run, at each invocation of the fork."""
    bank = Bank()
    model = says(pays(5, "c1"), "paid", pays(6, "c2"), pays(6, "c3"), "paid")
    it = agent(model, [bank.pay], guard=guard)
    go(it, ask())
    start = list(it.get_state_history(THREAD))[-2].config
    with pytest.raises(Forked):
        go(it, None, start)

    start["configurable"]["turnlock_run"] = "t1-again"
    told = go(it, None, start)

    assert bank.paid == [5, 6]
    assert answers(told) == ["paid 6"]


# G-16


@pytest.mark.parametrize("records", [False, True])
def test_g_16_a_second_continuation_asks_the_model_twice_unless_it_is_recorded(
    guard: Guard, records: bool
) -> None:
    """Bare and without `records_model` two, with it one; both are told the same."""
    bank, bare = Bank(), says(pays())
    it = agent(bare, [bank.pay], gate=GATE)
    go(it, ask())
    waiting = it.get_state(THREAD).config
    go(it, APPROVE, waiting)
    go(it, APPROVE, waiting)
    assert bare.asked == 3  # one question, two continuations

    model = says(pays())
    it = agent(model, [bank.pay], guard=guard, gate=GATE, records_model=records)
    shown = question(go(it, ask()))
    waiting = it.get_state(THREAD).config
    first = go(it, yes(shown), waiting)
    again = go(it, yes(shown), waiting)

    assert model.asked == (2 if records else 3)
    assert (first["messages"][-1].id == again["messages"][-1].id) is records


def test_a_model_that_failed_is_asked_again(guard: Guard) -> None:
    """Nothing of a failed answer is recorded: nobody has to resolve a model."""
    bank, model = Bank(), says()
    fails = [ConnectionError("the line is dead")]

    def each() -> Iterator[AIMessage | str]:
        while fails:
            raise fails.pop()
        yield pays()
        yield "paid"

    model.messages = each()
    it = agent(model, [bank.pay], guard=guard, records_model=True)
    with pytest.raises(ConnectionError):
        go(it, ask())
    model.messages = each()

    assert answers(go(it, None)) == ["paid 5"]


def test_an_answer_with_a_structured_part_is_told_again(guard: Guard) -> None:
    """Its schema reads the record: the second asker is given an object of the same class."""
    model = says(asks(("Receipt", {"amount": 5}, "s1")))
    told: list[dict[str, Any]] = []
    for _ in range(2):
        it = create_agent(
            model,
            tools=[],
            response_format=ToolStrategy(Receipt),
            checkpointer=InMemorySaver(),
            middleware=[GuardMiddleware(guard, records_model=True)],
        )
        told.append(go(it, ask()))

    assert model.asked == 1
    assert [it["structured_response"] for it in told] == [Receipt(5), Receipt(5)]

"""Approvals that are resumed: twice, at once, stale, under a used id, forged, changed, malformed.

Each fault is shown on the bare framework first, with its own HumanInTheLoopMiddleware as the gate.
If a newer langgraph mends one, the bare half fails, and says so.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.types import Command

from turnlock.guards import Differs, Forked, Stale
from turnlock.guards.guard import Guard

from .kit import (
    APPROVE,
    REJECT,
    THREAD,
    WAYS,
    Bank,
    agent,
    answers,
    ask,
    asks,
    go,
    no,
    pays,
    question,
    says,
    yes,
)

GATE = {"pay"}
BOUND = 60.0
"""Seconds that a wait may last at most, on however loaded a machine."""


def pinned(it: Any) -> Any:
    """Return the checkpoint that waits now, as a user interface keeps it with its question."""
    return it.get_state(THREAD).config


# G-1


def test_g_1_bare_a_pinned_approval_resumed_twice_pays_twice() -> None:
    bank = Bank()
    it = agent(says(pays()), [bank.pay], gate=GATE)
    go(it, ask())
    waiting = pinned(it)

    go(it, APPROVE, waiting)
    go(it, APPROVE, waiting)

    assert bank.paid == [5, 5]


@pytest.mark.parametrize("way", WAYS)
def test_g_1_guarded_a_pinned_approval_resumed_twice_pays_once(guard: Guard, way: str) -> None:
    bank = Bank()
    it = agent(says(pays()), [bank.pay], guard=guard, gate=GATE, records_model=True)
    shown = question(go(it, ask(), way=way))
    waiting = pinned(it)

    first = go(it, yes(shown), waiting, way)
    again = go(it, yes(shown), waiting, way)

    assert bank.paid == [5]
    assert answers(first) == answers(again) == ["paid 5"]
    assert [m.id for m in first["messages"] if isinstance(m, AIMessage)] == [
        m.id for m in again["messages"] if isinstance(m, AIMessage)
    ]


def test_g_1_guarded_without_records_the_next_payment_of_the_fork_is_refused(guard: Guard) -> None:
    """The second resume replays the first payment; what it would ask for next came already."""
    bank = Bank()
    model = says(pays(5), pays(6, "c2"), "paid", pays(7, "c3"))
    it = agent(model, [bank.pay], guard=guard)
    second = go(it, ask())["messages"][3].id
    before = [it.config for it in it.get_state_history(THREAD) if it.next == ("tools",)][-1]

    with pytest.raises(Forked) as refused:
        go(it, None, before)

    assert bank.paid == [5, 6]
    assert refused.value.came == second


# G-2


def both(does: Callable[[], object]) -> list[BaseException]:
    """Do a thing in two threads; return what they raised."""
    raised: list[BaseException] = []

    def one() -> None:
        try:
            does()
        except BaseException as error:  # noqa: BLE001 - it is what is looked at
            raised.append(error)

    threads = [threading.Thread(target=one) for _ in range(2)]
    for it in threads:
        it.start()
    for it in threads:
        it.join(BOUND)
        assert not it.is_alive()
    return raised


def test_g_2_bare_two_threads_pay_twice() -> None:
    inside = threading.Barrier(2)
    bank = Bank(lambda _: inside.wait(BOUND))
    it = agent(says(pays()), [bank.pay], gate=GATE)
    go(it, ask())

    assert both(lambda: go(it, APPROVE)) == []

    assert bank.paid == [5, 5]


@pytest.mark.parametrize("two_guards", [False, True])
@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_g_2_guarded_two_threads_pay_once(
    guard: Guard, db: Path, two_guards: bool, way: str
) -> None:
    bank, model = Bank(), says(pays())
    with Guard.open(db) as other:
        it = agent(model, [bank.pay], guard=guard, gate=GATE, records_model=True)
        saver = it.checkpointer
        its = [it, agent(model, [bank.pay], guard=other if two_guards else guard, gate=GATE,
                         records_model=True, saver=saver)]  # fmt: skip
        shown = question(go(it, ask()))
        waiting = pinned(it)
        told: list[dict[str, Any]] = []

        raised = both(lambda: told.append(go(its.pop(), yes(shown), waiting, way)))

    assert raised == []
    assert bank.paid == [5]
    assert [answers(it) for it in told] == [["paid 5"], ["paid 5"]]


# G-5


def test_g_5_bare_an_approval_pays_after_the_user_moved_on() -> None:
    bank = Bank()
    it = agent(says(pays(), "never mind, then"), [bank.pay], gate=GATE)
    go(it, ask())
    waiting = pinned(it)
    go(it, ask("never mind"))

    go(it, APPROVE, waiting)

    assert bank.paid == [5]


def test_g_5_guarded_an_approval_after_the_user_moved_on_is_stale(guard: Guard) -> None:
    bank = Bank()
    it = agent(says(pays(), "never mind, then"), [bank.pay], guard=guard, gate=GATE)
    shown = question(go(it, ask()))
    waiting = pinned(it)
    go(it, ask("never mind"))

    with pytest.raises(Stale):
        go(it, yes(shown), waiting)

    assert bank.paid == []
    assert answers(go(it, ask("thanks"))) == []


# G-6


def test_g_6_bare_an_approval_pays_for_a_later_call_of_the_same_id() -> None:
    bank = Bank()
    it = agent(says(pays(5), "as you like", pays(500)), [bank.pay], gate=GATE)
    go(it, ask())
    go(it, ask("never mind"))
    go(it, ask("pay 500"))

    go(it, APPROVE)  # of the first question

    assert bank.paid == [500]


def test_g_6_guarded_an_approval_of_a_used_id_pays_nothing(guard: Guard) -> None:
    bank = Bank()
    it = agent(says(pays(5), "as you like", pays(500)), [bank.pay], guard=guard, gate=GATE)
    old = question(go(it, ask()))
    go(it, ask("never mind"))
    new = question(go(it, ask("pay 500")))
    assert old["call"] == new["call"]

    again = question(go(it, yes(old)))

    assert bank.paid == []
    assert "digest" in again["problem"]
    assert answers(go(it, yes(again))) == ["paid 500"]
    assert bank.paid == [500]


def test_g_6_guarded_an_approval_that_echoes_its_turn_pays_for_no_other(guard: Guard) -> None:
    """Where even the arguments are the same: whoever echoes the whole question is bound to it."""
    bank = Bank()
    it = agent(says(pays(5), "as you like", pays(5)), [bank.pay], guard=guard, gate=GATE)
    old = question(go(it, ask()))
    go(it, ask("never mind"))
    go(it, ask("pay 5"))

    again = question(go(it, Command(resume={**old, "approved": True})))

    assert bank.paid == []
    assert "turn" in again["problem"]


# G-7


def test_g_7_bare_whoever_resumes_approves() -> None:
    bank = Bank()
    it = agent(says(pays()), [bank.pay], gate=GATE)
    go(it, ask())

    go(it, APPROVE)

    assert bank.paid == [5]


@pytest.mark.parametrize(
    "forged",
    [
        {"decisions": [{"type": "approve"}]},
        {"approved": True},
        {"approved": True, "digest": "0" * 64},
        True,
    ],
)
def test_g_7_guarded_an_approval_that_saw_no_question_pays_nothing(
    guard: Guard, forged: object
) -> None:
    """The gate is the guard's own: the framework's word is none."""
    bank = Bank()
    it = agent(says(pays()), [bank.pay], guard=guard, gate=GATE)
    go(it, ask())

    again = question(go(it, Command(resume=forged)))

    assert bank.paid == []
    assert again["problem"]
    assert len(guard.waiting("t1")) == 1


def test_g_7_guarded_what_the_framework_approved_still_asks(guard: Guard) -> None:
    """With HumanInTheLoopMiddleware before it, both gates must be passed."""
    from langchain.agents.middleware import HumanInTheLoopMiddleware  # noqa: PLC0415

    bank = Bank()
    theirs = HumanInTheLoopMiddleware(interrupt_on={"pay": True})
    it = agent(says(pays()), [bank.pay], guard=guard, gate=GATE, outer=[theirs])
    go(it, ask())

    shown = question(go(it, APPROVE))
    assert bank.paid == []
    go(it, yes(shown))

    assert bank.paid == [5]


# G-8


def test_g_8_bare_reject_and_then_approve_pays() -> None:
    bank = Bank()
    it = agent(says(pays()), [bank.pay], gate=GATE)
    go(it, ask())
    waiting = pinned(it)
    go(it, REJECT, waiting)

    go(it, None, waiting)  # asks again: nothing remembers that it was rejected
    go(it, APPROVE)

    assert bank.paid == [5]


def test_g_8_guarded_what_was_rejected_stays_rejected(guard: Guard) -> None:
    bank = Bank()
    it = agent(says(pays()), [bank.pay], guard=guard, gate=GATE, records_model=True)
    shown = question(go(it, ask()))
    waiting = pinned(it)
    rejected = go(it, no(shown), waiting)

    again = go(it, None, waiting)
    approved = go(it, yes(shown), waiting)

    assert bank.paid == []
    assert "__interrupt__" not in again
    assert answers(rejected) == answers(again) == answers(approved)
    assert answers(approved) == ["User rejected the tool call for `pay` with reason: too much"]


# G-9


def forge(it: Any, amount: int, as_node: str) -> None:
    """Change what a waiting call asks for, behind the back of whoever approves it."""
    asked = it.get_state(THREAD).values["messages"][-1]
    forged = AIMessage("", id=asked.id, tool_calls=pays(amount).tool_calls)
    it.update_state(THREAD, {"messages": [forged]}, as_node=as_node)


def test_g_9_bare_an_approval_pays_what_was_changed_under_it() -> None:
    bank = Bank()
    it = agent(says(pays(5)), [bank.pay], gate=GATE)
    go(it, ask())
    forge(it, 500, "model")

    go(it, APPROVE)

    assert bank.paid == [500]


@pytest.mark.parametrize("as_node", ["model", "GuardMiddleware.after_model"])
def test_g_9_guarded_an_approval_pays_nothing_that_was_changed_under_it(
    guard: Guard, as_node: str
) -> None:
    bank = Bank()
    it = agent(says(pays(5)), [bank.pay], guard=guard, gate=GATE)
    shown = question(go(it, ask()))
    forge(it, 500, as_node)

    with pytest.raises(Differs):
        go(it, yes(shown))

    assert bank.paid == []


def test_g_9_guarded_an_edit_goes_through_the_decision(guard: Guard) -> None:
    """What runs is what the decision says, and the tool is told so."""
    bank = Bank()
    it = agent(says(pays(5)), [bank.pay], guard=guard, gate=GATE)
    shown = question(go(it, ask()))

    told = go(it, yes(shown, arguments={"amount": 3}))

    assert bank.paid == [3]
    assert answers(told) == ["paid 3"]


# G-14

MALFORMED: list[object] = [
    "yes",
    ["approved"],
    {"approved": "yes"},
    {"approved": True, "digest": 7},
    {"approved": True, "aproved_by": "ada"},
]


def test_g_14_bare_a_malformed_answer_wedges_the_thread() -> None:
    bank = Bank()
    it = agent(says(pays()), [bank.pay], gate=GATE)
    go(it, ask())
    with pytest.raises(TypeError):
        go(it, Command(resume="yes"))

    with pytest.raises(TypeError):  # the stored answer is given again, whatever comes now
        go(it, APPROVE)

    assert bank.paid == []


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_g_14_guarded_malformed_answers_are_asked_again(guard: Guard, way: str) -> None:
    bank = Bank()
    it = agent(says(pays()), [bank.pay], guard=guard, gate=GATE)
    shown = question(go(it, ask(), way=way))
    for malformed in MALFORMED:
        again = question(go(it, Command(resume=malformed), way=way))
        assert again.pop("problem")
        assert again == shown

    told = go(it, yes(shown), way=way)

    assert bank.paid == [5]
    assert answers(told) == ["paid 5"]


@pytest.mark.parametrize(
    ("word", "value"),
    [("scope", "for ever"), ("match", 7), ("by", 7), ("reason", []), ("arguments", "all")],
)
def test_g_14_guarded_a_word_of_the_wrong_kind_is_asked_again(
    guard: Guard, word: str, value: object
) -> None:
    bank = Bank()
    it = agent(says(pays()), [bank.pay], guard=guard, gate=GATE)
    shown = question(go(it, ask()))

    again = question(go(it, yes(shown, **{word: value})))

    assert bank.paid == []
    assert "problem" in again
    assert len(guard.waiting("t1")) == 1


def test_g_14_guarded_equal_calls_need_the_name_of_the_one_that_is_meant(guard: Guard) -> None:
    """Their digests are the same, and one approval must not be enough for both."""
    bank = Bank()
    twice = asks(("pay", {"amount": 5}, "c1"), ("pay", {"amount": 5}, "c2"))
    it = agent(says(twice), [bank.pay], guard=guard, gate=GATE)
    shown = go(it, ask())["__interrupt__"]
    assert len(shown) == 2

    again = go(it, Command(resume={at.id: yes(at.value).resume for at in shown}))

    assert bank.paid == []
    assert ["call" in at.value["problem"] for at in again["__interrupt__"]] == [True, True]
    told = {
        at.id: {**at.value, "approved": at.value["call"] == "c2"} for at in again["__interrupt__"]
    }
    assert answers(go(it, Command(resume=told)))[1] == "paid 5"
    assert bank.paid == [5]


def test_a_decision_that_came_another_way_needs_no_answer_here(guard: Guard) -> None:
    """`turnlock approve`, say: resuming with anything goes on."""
    bank = Bank()
    it = agent(says(pays()), [bank.pay], guard=guard, gate=GATE)
    go(it, ask())
    (waits,) = guard.waiting("t1")
    guard.decide(waits.at, approved=True, digest=waits.digest, by="ada")

    told = go(it, Command(resume="go on"))

    assert answers(told) == ["paid 5"]

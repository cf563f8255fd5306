"""Edited arguments that the tool does not take are refused before the approval is used up."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from turnlock import Call, Decide, Delivery, Run
from turnlock.models.values import Json
from turnlock.runtime import declared
from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.settings import Settings
from turnlock.runtime.submitting import submit
from turnlock.runtime.tools.errors import BadArguments
from turnlock.runtime.tools.tool import Tool, tool
from turnlock.runtime.tools.toolbox import Toolbox

from .test_runtime import World
from .virtual import settled

RUN = Run(run_id="r")
PAY = Call(invocation_id="pay", tool_name="pay", arguments={"amount": 5}, requires_approval=True)
DEAR: Any = {"amount": "much"}


@dataclass
class Price:
    """What hints build."""

    amount: int

    def __post_init__(self) -> None:
        if self.amount > 100:
            raise SystemExit("too much")


def paying(paid: list[Any]) -> tuple[Tool, Tool]:
    """The tool by hints, and one whose hints build something of its author's."""

    @tool(name="pay", approval=True)
    async def pay(amount: int) -> str:
        paid.append(amount)
        return "paid"

    async def price(price: Any) -> str:
        paid.append(price)
        return "paid"

    price.__annotations__["price"] = Price
    return pay, tool(name="price", approval=True)(price)


def decision(arguments: Any, call: str = "pay") -> Decide:
    return Decide(turn_id="t1", invocation_id=call, approved=True, arguments=arguments)


async def opened(journal: Journal, runtime: Runtime) -> None:
    """Bring the run to where two calls wait."""
    price = Call(
        invocation_id="price", tool_name="price", arguments={"price": 3}, requires_approval=True
    )
    await runtime.open_run(RUN)
    await runtime.open_turn("r", [PAY, price], turn_id="t1")
    assert (await journal.entry("r")).waiting == 2


def process(journal: Journal, paid: list[Any]) -> Runtime:
    world = World(journal=journal)

    async def on_continue(_: object) -> None: ...

    return Runtime(
        journal=world.journal,
        tools=Toolbox(paying(paid)),
        on_continue=on_continue,
        settings=Settings(poll=0.02),
    )


def test_an_owner_refuses_them_and_the_call_waits_still() -> None:
    """With the place and what would be right; another decision can be made."""

    async def play() -> None:
        journal, paid = MemoryJournal(), list[Any]()
        async with process(journal, paid) as runtime:
            await opened(journal, runtime)
            with pytest.raises(BadArguments) as told:
                await runtime.approve("r", turn_id="t1", invocation_id="pay", arguments=DEAR)
            assert str(told.value) == "arguments.amount: 'much' is str; give int"
            assert [it.invocation_id for it in runtime.pending("r")] == ["pay", "price"]

            for arguments, place in (({}, "arguments.amount"), ({"a": 1}, "arguments.a")):
                with pytest.raises(BadArguments) as told:
                    await runtime.deliver("r", decision(arguments))
                assert told.value.place == place
            assert (await runtime.deliver("r", decision({"amount": 7}))).reason is None
            await settled()
            assert paid == [7]

    asyncio.run(play())


def test_what_hints_build_is_built_in_a_thread() -> None:
    """Code of the author's own may even exit."""

    async def play() -> None:
        journal = MemoryJournal()
        async with process(journal, []) as runtime:
            await opened(journal, runtime)
            dear: Any = {"price": {"amount": 101}}
            with pytest.raises(BadArguments, match="SystemExit: too much"):
                await runtime.deliver("r", decision(dear, "price"))
            assert len(runtime.pending("r")) == 2

    asyncio.run(play())


def test_a_post_is_answered_with_what_is_wrong_and_others_are_judged() -> None:
    """Whoever posted is told in the same words; the post is not judged again and again."""

    async def play() -> None:
        journal, paid = MemoryJournal(), list[Any]()
        async with process(journal, paid) as runtime:
            await opened(journal, runtime)
            with pytest.raises(BadArguments, match=r"arguments.amount: 'much' is str; give int"):
                await submit(journal, "r", decision(DEAR), within=5)
            assert len(runtime.pending("r")) == 2
            assert await journal.posts(("r",)) == ()
            done = await submit(journal, "r", decision({"amount": 8}), within=5)
            assert (done.receipt["accepted"], done.by_owner) == (True, True)
            await settled()
            assert paid == [8]

    asyncio.run(play())


def test_where_nobody_owns_the_run_they_are_checked_by_the_tools_that_are_given() -> None:
    async def play() -> None:
        journal = MemoryJournal()
        async with process(journal, []) as runtime:
            await opened(journal, runtime)
        tools = Toolbox(paying([]))
        with pytest.raises(BadArguments):
            await submit(journal, "r", decision(DEAR), within=1, tools=tools)
        good: Delivery = decision({"amount": 9})
        assert (await submit(journal, "r", good, within=1, tools=tools)).receipt["accepted"]

    asyncio.run(play())


def test_the_arguments_of_a_tool_with_preprocessors_are_not_known_before_they_run() -> None:
    """What was given may become what fits: nothing is refused here."""
    seen: list[Any] = []

    def cents(arguments: Any, _: object) -> Any:
        return {"amount": int(arguments["euro"]) * 100}

    async def play() -> None:
        journal = MemoryJournal()
        (pay, _) = paying(seen)
        pay = Tool(name="pay", call=pay.call, policy=pay.policy, preprocessors=(cents,))

        async def on_continue(_: object) -> None: ...

        async with Runtime(journal=journal, tools=Toolbox([pay]), on_continue=on_continue) as it:
            await it.open_run(RUN)
            await it.open_turn("r", [PAY], turn_id="t1")
            euro: dict[str, Json] = {"euro": "3"}
            await it.approve("r", turn_id="t1", invocation_id="pay", arguments=euro)
            while not seen:  # noqa: ASYNC110 - a thread is real
                await asyncio.sleep(0.01)
        assert seen == [300]

    asyncio.run(play())


def test_without_the_check_the_approval_is_used_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: the call fails, and nobody can decide about it again."""

    def unchecked(*_: object) -> None: ...

    monkeypatch.setattr(declared, "misfit", unchecked)

    async def play() -> None:
        journal = MemoryJournal()
        async with process(journal, []) as runtime:
            await opened(journal, runtime)
            await runtime.approve("r", turn_id="t1", invocation_id="pay", arguments=DEAR)
            assert [it.invocation_id for it in runtime.pending("r")] == ["price"]

    asyncio.run(play())

"""What a checker knows of a user's code: mypy and pyright hold this file, strictly."""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path
from typing import Any, assert_type

import attrs

from turnlock.guards import At, Call, CallContext, Claimed, Guard, Outcome
from turnlock.models.values import Json


@attrs.frozen
class Receipt:
    """A value of the user's own."""

    amount: int


def plain(_: CallContext) -> int:
    return 1


async def later(_: CallContext) -> str:
    return "one"


def receipt(_: CallContext) -> Receipt:
    return Receipt(5)


async def receipt_later(_: CallContext) -> Receipt:
    return Receipt(5)


async def in_a_thread(context: CallContext) -> int:
    return await asyncio.to_thread(plain, context)


def write(it: Receipt) -> dict[str, int]:
    return {"amount": it.amount}


def read(it: Any) -> Receipt:
    return Receipt(**it)


def test_the_type_of_an_outcome_is_that_of_the_function(tmp_path: Path) -> None:
    names = ("a", "b", "c", "d", "e", "f", "g", "h")
    at = {name: At("r", "t", name) for name in names}

    async def twins(guard: Guard) -> None:
        assert_type(await guard.acall(at["c"], "pay", {}, plain), Outcome[int])
        assert_type(await guard.acall(at["d"], "pay", {}, later), Outcome[str])
        kept = await guard.acall(at["e"], "pay", {}, receipt_later, encode=write, decode=read)
        assert_type(kept, Outcome[Receipt])
        assert_type(await guard.acall(at["f"], "pay", {}, in_a_thread), Outcome[int])
        assert_type(await guard.aonce(at["a"], "pay", {}, later), Outcome[str])
        assert_type(await guard.aclaim(at["g"], "pay", {}), Outcome[Json] | Claimed)

    with Guard.open(tmp_path / "agent.db") as guard:
        assert_type(guard, Guard)
        calls = [
            Call(invocation_id=name, tool_name="pay", arguments={}, requires_approval=False)
            for name in names
        ]
        guard.open_turn("r", "t", calls)
        assert_type(guard.call(at["a"], "pay", {}, plain), Outcome[int])
        kept = guard.call(at["b"], "pay", {}, receipt, encode=write, decode=read)
        assert_type(kept, Outcome[Receipt])
        assert_type(kept.value, Receipt | None)
        assert_type(guard.once(at["b"], "pay", {}, plain), Outcome[int])
        assert_type(guard.claim(at["h"], "pay", {}), Outcome[Json] | Claimed)
        asyncio.run(twins(guard))


def test_each_method_has_its_twin() -> None:
    """Under the same name with an a before it, and with the same parameters."""

    plain_ones = (
        *("open_turn", "call", "claim", "decide", "resolve", "look", "once"),
        *("continuation", "close"),
    )
    pairs = {name: f"a{name}" for name in plain_ones}
    pairs |= {"waiting": "awaiting", "wait_decided": "await_decided"}
    public = {name for name in vars(Guard) if not name.startswith("_")} - {"open"}
    assert public == {*pairs, *pairs.values()}
    for one, twin in pairs.items():
        here, there = (inspect.signature(getattr(Guard, name)) for name in (one, twin))
        assert list(here.parameters) == list(there.parameters), one
        assert inspect.iscoroutinefunction(getattr(Guard, twin))
    told = {name for name in vars(Claimed) if not name.startswith("_")}
    for name in ("succeeded", "failed", "lost", "never_began"):
        assert {name, f"a{name}"} <= told

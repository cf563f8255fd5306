"""Requests of a process that wait for us: named exactly, answered at most once, dead with it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlock.adapters.codex import router as of_router
from turnlock.adapters.codex.heard import Reply
from turnlock.adapters.codex.messages import Asked, RequestId
from turnlock.adapters.codex.process import Exited, ProcessName
from turnlock.adapters.codex.router import Router
from turnlock.adapters.codex.transport import PipeBroken

ACCEPT = {"decision": "accept"}


class Wire:
    """What is written, and whether it can be."""

    name = ProcessName(host="h", pid=7, started="b:n:1")
    stderr_tail = ""

    def __init__(self) -> None:
        self.written: list[Mapping[str, Any]] = []
        self.broken = False
        self.killed = False

    async def read(self) -> None:
        return None

    async def write(self, message: Mapping[str, Any]) -> None:
        await asyncio.sleep(0)
        if self.broken:
            raise PipeBroken("it is dead")
        self.written.append(message)

    async def end(self, *, grace: float) -> Exited:
        return Exited(status=0)

    def kill(self) -> None:
        self.killed = True


def asked(request: RequestId) -> Asked:
    return Asked(request, "item/commandExecution/requestApproval", {})


def reply(request: RequestId) -> Reply:
    return Reply(request=request, result=ACCEPT)


def test_s_34_requests_are_told_apart_as_json_has_them() -> None:
    """`0` and `"0"` are two; what was never asked is not answered."""

    async def story() -> None:
        wire = Wire()
        router = Router(wire)
        assert router.opened(asked(0))
        assert not await router.answer(reply("0"))
        assert router.opened(asked("0"))
        assert [it.id for it in router.waiting] == [0, "0"]
        assert await router.answer(reply("0"))
        assert await router.answer(reply(0))
        assert wire.written == [{"id": "0", "result": ACCEPT}, {"id": 0, "result": ACCEPT}]
        assert [type(it["id"]) for it in wire.written] == [str, int]

    asyncio.run(story())


def test_s_36_each_is_answered_once_whoever_asks_and_how_often() -> None:
    """Also by two at once, told of again, and after it was resolved elsewhere."""

    async def story() -> None:
        wire = Wire()
        router = Router(wire)
        router.opened(asked(1))
        assert not router.opened(asked(1))
        told = await asyncio.gather(*(router.answer(reply(1)) for _ in range(5)))
        assert sorted(told) == [False] * 4 + [True]
        assert not router.opened(asked(1))
        assert not await router.answer(reply(1))

        router.opened(asked(2))
        assert router.resolved(2)
        assert not router.resolved(2)
        assert not router.opened(asked(2))
        assert not await router.answer(reply(2))
        assert len(wire.written) == 1

    asyncio.run(story())


def test_what_nobody_knows_is_refused_by_its_error() -> None:
    """A request of a later version waits for an answer as any other."""

    async def story() -> None:
        wire = Wire()
        router = Router(wire)
        router.opened(asked(3))
        wrong = {"code": -32601, "message": "no"}
        assert await router.answer(Reply(request=3, error=wrong))
        assert wire.written == [{"id": 3, "error": wrong}]

    asyncio.run(story())


def test_s_41_requests_die_with_their_process() -> None:
    """Nothing is written to a dead one; a new process begins its ids anew, in its own router."""

    async def story() -> None:
        wire, other = Wire(), Wire()
        router = Router(wire)
        router.opened(asked(0))
        router.opened(asked(1))
        wire.broken = True
        assert not await router.answer(reply(0))
        assert wire.killed
        assert router.waiting == ()
        wire.broken = False
        assert not await router.answer(reply(1))
        assert not router.opened(asked(2))
        assert wire.written == []

        again = Router(other)
        assert not await again.answer(reply(0))
        assert again.opened(asked(0))
        assert await again.answer(reply(0))

        again.opened(asked(5))
        again.close()
        assert not await again.answer(reply(5))
        assert len(other.written) == 1

    asyncio.run(story())


def test_what_waits_and_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that asks without end fills no memory."""
    monkeypatch.setattr(of_router, "OPEN", 3)
    monkeypatch.setattr(of_router, "REMEMBERED", 5)

    async def story() -> None:
        router = Router(Wire())
        assert [router.opened(asked(number)) for number in range(4)] == [True] * 3 + [False]
        assert not await router.answer(reply(3))
        for number in range(100):
            router.resolved(number)
        assert len(vars(router)["_over"]) == 5

    asyncio.run(story())


IDS: st.SearchStrategy[RequestId] = st.one_of(st.integers(0, 2), st.sampled_from(["0", "1", "2"]))
STEPS = st.lists(st.tuples(st.sampled_from(["opened", "resolved", "answer"]), IDS), max_size=20)


@given(STEPS)
def test_s_36_in_any_order_no_request_is_answered_twice_or_unasked(
    steps: list[tuple[str, RequestId]],
) -> None:
    """Whatever is told, doubled or lost: an answer follows its request, once."""

    async def story() -> None:
        wire = Wire()
        router = Router(wire)
        waits: dict[str, bool] = {}
        for what, request in steps:
            key = repr(request)
            if what == "opened":
                router.opened(asked(request))
                waits.setdefault(key, True)
            elif what == "resolved":
                router.resolved(request)
                waits[key] = False
            else:
                assert await router.answer(reply(request)) == waits.get(key, False)
                if key in waits:
                    waits[key] = False
        told = [repr(it["id"]) for it in wire.written]
        assert len(told) == len(set(told))

    asyncio.run(story())

"""Objects that do something whatever they are asked: none of it on the loop, wherever they come up.

`test_hostile` names the ways that are known; this asks for those that nobody has thought of.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final

import pytest

from turnlock.runtime.tools import calling
from turnlock.runtime.tools.calling import ToolContext
from turnlock.runtime.tools.errors import Rejected
from turnlock.runtime.tools.performing import perform, prepare, probe
from turnlock.runtime.tools.policy import InDoubt
from turnlock.runtime.tools.results import Happened
from turnlock.runtime.tools.tool import Tool, tool

from .scene import context, play

LEFT_ALONE: Final = {
    *("__new__", "__init__", "__del__", "__init_subclass__", "__subclasshook__", "__class__"),
    *("__setattr__", "__delattr__", "__traceback__", "__cause__", "__context__", "__notes__"),
    *("__suppress_context__", "__with_traceback__"),
}
"""What makes it, what Python itself keeps in an exception, and what no reader asks."""
BASES: Final[tuple[type, ...]] = (
    *(object, dict, list, tuple, str, int, float),
    *(Exception, KeyError, OSError, BaseException, asyncio.CancelledError),
)


class Spy:
    """Counts where it is asked, and exits."""

    def __init__(self) -> None:
        self.on_loop: list[str] = []
        self.asked = 0

    def method(self, name: str) -> Callable[..., Any]:
        def does(*_: Any, **__: Any) -> Any:
            self.asked += 1
            if threading.current_thread() is threading.main_thread():
                self.on_loop.append(name)
            raise SystemExit(name)

        return does


def hostile(base: type, spy: Spy, *, reads: bool) -> Any:
    """Something that is a `base`, and exits whatever it is asked; `reads`: its attributes, too."""
    names = {
        name
        for it in (object, dict, list, str, int, float, base)
        for name in dir(it)
        if name.startswith("__") and callable(getattr(it, name))
    }
    names |= {"items", "keys", "values", "model_dump", "isoformat", "__await__", "__getattr__"}
    if not reads:
        names -= {"__getattribute__", "__getattr__"}
    methods: dict[str, Any] = {name: spy.method(name) for name in names - LEFT_ALONE}
    made: Any = type("Hostile", (base,), {**methods, "__class__": property(spy.method("class"))})
    return made.__new__(made)


def brought_forth(it: Any) -> list[Tool]:
    """Tools that bring it forth: returned, raised, or out of a processor; in a thread or not."""

    def gives(*_: Any, **__: Any) -> Any:
        if isinstance_of_error(it):
            raise it
        return it

    async def gives_on_loop(*_: Any, **__: Any) -> Any:
        await asyncio.sleep(0)
        return gives()

    async def nothing() -> None: ...

    def sync() -> Any:
        return gives()

    async def on_loop() -> Any:
        return await gives_on_loop()

    return [
        Tool(name="f", call=sync),
        Tool(name="f", call=on_loop),
        Tool(name="f", call=nothing, processors=(gives,)),
        Tool(name="f", call=nothing, processors=(gives_on_loop,)),
    ]


def isinstance_of_error(it: object) -> bool:
    """Whether it can be raised; nothing of it is asked."""
    return issubclass(type(it), BaseException)


@pytest.mark.parametrize("reads", [True, False])
@pytest.mark.parametrize("base", BASES)
def test_nothing_of_it_runs_on_the_loop(base: type, *, reads: bool) -> None:
    """As a result, an error, an answer of a probe, arguments of a preprocessor."""
    spy = Spy()
    for number in range(4):
        it = brought_forth(hostile(base, spy, reads=reads))[number]
        play(partial(_played, it))
    for wrapped in (False, True):
        answer = hostile(base, spy, reads=reads)
        play(partial(_probed, Happened(answer) if wrapped else answer))
    play(partial(_prepared, hostile(base, spy, reads=reads)))

    assert spy.on_loop == []
    assert spy.asked


async def _played(it: Tool, pool: ThreadPoolExecutor) -> Any:
    return await perform(it, context(), {}, threads=pool)


async def _probed(answer: Any, pool: ThreadPoolExecutor) -> Any:
    async def asked(_: ToolContext) -> Any:
        if isinstance_of_error(answer):
            raise answer
        return answer

    def act() -> None: ...

    return await probe(tool(in_doubt=InDoubt.PROBE, probe=asked)(act), context(), threads=pool)


async def _prepared(arguments: Any, pool: ThreadPoolExecutor) -> Any:
    async def preprocess(*_: Any) -> Any:
        return arguments

    def act() -> None: ...

    it = Tool(name="f", call=act, preprocessors=(preprocess,))
    with pytest.raises(Rejected):
        await prepare(it, context(), {}, threads=pool)


@pytest.mark.parametrize("base", [dict, list, object])
def test_read_on_the_loop_it_would(base: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: what an async tool returned counts as plain data."""

    def small(_: object) -> bool:
        return True

    monkeypatch.setattr(calling, "is_small", small)
    spy = Spy()
    play(partial(_played, brought_forth(hostile(base, spy, reads=False))[1]))
    assert spy.on_loop

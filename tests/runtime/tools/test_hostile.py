"""Results, errors and answers whose own code exits, raises or hangs: never on the loop."""

from __future__ import annotations

import asyncio
import datetime as dt
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

import pytest

from turnlock.runtime.tools import calling
from turnlock.runtime.tools.calling import ToolContext, as_it_is
from turnlock.runtime.tools.errors import Rejected, bounded, kind_of, said
from turnlock.runtime.tools.performing import perform, prepare, probe
from turnlock.runtime.tools.policy import InDoubt
from turnlock.runtime.tools.results import (
    BAD_RESULT,
    Failed,
    Happened,
    StillUnknown,
    Succeeded,
    Unknown,
    is_small,
    outcome_of,
)
from turnlock.runtime.tools.tool import Tool, tool

from .scene import SHORT, Gate, context, play

Does = Callable[[], Any]


def exits() -> NoReturn:
    raise SystemExit(3)


def interrupts() -> NoReturn:
    raise KeyboardInterrupt


def recurses() -> Any:
    return recurses()


def runs_out_of_memory() -> NoReturn:
    raise MemoryError


class Base(BaseException):
    """Is no Exception, and says nothing without a fight."""

    def __str__(self) -> NoReturn:
        raise SystemExit(4)


def raises_its_own() -> NoReturn:
    raise Base


DEEDS: list[Does] = [exits, interrupts, recurses, runs_out_of_memory, raises_its_own]


def dumps(does: Does) -> object:
    """Like a model of pydantic's."""

    class Model:
        def model_dump(self, *, mode: str) -> Any:
            return does()

    return Model()


def maps(does: Does) -> object:
    """A mapping of somebody's own."""

    class Items(Mapping[str, Any]):
        def __getitem__(self, key: str) -> Any:
            return does()

        def __iter__(self) -> Iterator[str]:
            return does()  # type: ignore[no-any-return]

        def __len__(self) -> int:
            return does()  # type: ignore[no-any-return]

    return Items()


def has_a_length(does: Does) -> object:
    """A text that lies about itself."""

    class Text(str):
        __slots__ = ()

        def __len__(self) -> int:
            return does()  # type: ignore[no-any-return]

    return Text("x")


def has_a_property(does: Does) -> object:
    """A dataclass with a field that is computed."""

    class Lazy:
        def __get__(self, *_: object) -> Any:
            return does()

        def __set__(self, *_: object) -> None: ...

    @dataclass
    class Row:
        value: Any = 0

    Row.value = Lazy()
    return Row()


def has_a_class(does: Does) -> object:
    """It asks what it is."""

    made: object = type("Odd", (), {"__class__": property(lambda _: does())})()
    return made


def has_a_date(does: Does) -> object:
    class Date(dt.date):
        def isoformat(self) -> Any:
            return does()

    return Date(2026, 1, 1)


def cannot_be_shown(does: Does) -> object:
    """It is no JSON, and its repr is asked for to say so."""

    class Shy:
        def __repr__(self) -> Any:
            return does()

    return Shy()


def has_a_metaclass(does: Does) -> object:
    def asked(*_: object) -> Any:
        return does()

    own = {"__hash__": asked, "__eq__": asked, "__name__": property(asked)}
    meta: Any = type("Meta", (type,), own)
    return meta("Odd", (), {})()


OBJECTS: list[Callable[[Does], object]] = [
    dumps,
    maps,
    has_a_length,
    has_a_property,
    has_a_class,
    has_a_date,
    cannot_be_shown,
    has_a_metaclass,
]


class Spy:
    """Runs a deed, and remembers where."""

    def __init__(self, does: Does) -> None:
        self._does = does
        self.on_loop = False
        self.asked = 0

    def __call__(self) -> Any:
        self.asked += 1
        self.on_loop |= threading.current_thread() is threading.main_thread()
        return self._does()


def forms(work: Callable[[], Any]) -> list[Tool]:
    """Ways in which a tool can bring something forth."""

    def sync() -> Any:
        return work()

    async def on_loop() -> Any:
        return work()

    def nothing() -> None: ...

    def process(_: object, __: ToolContext) -> Any:
        return work()

    async def process_on_loop(_: object, __: ToolContext) -> Any:
        return work()

    return [
        Tool(name="f", call=sync),
        Tool(name="f", call=on_loop),
        Tool(name="f", call=nothing, processors=(process,)),
        Tool(name="f", call=on_loop, processors=(lambda value, _: value,)),
        Tool(name="f", call=nothing, processors=(process_on_loop,)),
    ]


async def _performed(it: Tool, pool: ThreadPoolExecutor) -> Any:
    return await perform(it, context(), {}, threads=pool)


async def _probed(it: Tool, pool: ThreadPoolExecutor) -> Any:
    return await probe(it, context(), threads=pool)


async def _prepared(it: Tool, pool: ThreadPoolExecutor) -> Any:
    return await prepare(it, context(), {}, threads=pool)


@pytest.mark.parametrize("does", DEEDS)
@pytest.mark.parametrize("made", OBJECTS)
def test_whatever_a_result_does_while_it_is_read_the_host_goes_on(
    made: Callable[[Does], object], does: Does
) -> None:
    """From a thread, from the loop, through processors: a failure that says that the tool ran."""
    for number in range(5):
        spy = Spy(does)
        result = made(spy)
        it = forms(partial(as_it_is, result))[number]
        got = play(partial(_performed, it))
        assert isinstance(got, Failed | Succeeded), (number, got)
        if isinstance(got, Failed):
            assert (got.kind, got.error[:12]) == (BAD_RESULT, "the tool ran"), (number, got)
        assert not spy.on_loop, number


def test_each_of_these_objects_is_asked() -> None:
    """The control of the test above: but for these two, all are read, in the thread."""
    asked: dict[str, int] = {}
    for made in OBJECTS:
        spy = Spy(exits)
        outcome_of(made(spy))
        asked[made.__name__] = spy.asked
    assert all(asked.values()), asked


def test_without_the_threads_the_loop_is_exited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: what an async tool returned is read on the loop, as it was before."""
    monkeypatch.setattr(calling, "is_small", bool)
    spy = Spy(exits)
    result = dumps(spy)
    play(lambda pool: perform(forms(lambda: result)[1], context(), {}, threads=pool))
    assert spy.on_loop


def test_without_the_threads_the_loop_is_exited_by_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Negative control: what an async tool raised is asked for its words on the loop."""
    monkeypatch.setattr(calling, "is_plain_error", bool)
    spy = Spy(exits)

    class Hostile(Exception):
        def __bool__(self) -> bool:
            return True

        def __str__(self) -> Any:
            return spy()

    async def f() -> NoReturn:
        raise Hostile

    play(lambda pool: perform(tool(f), context(), {}, threads=pool))
    assert spy.on_loop


@pytest.mark.parametrize("number", range(5))
def test_a_result_that_is_slow_to_read_holds_up_nobody_and_counts_as_its_tool(number: int) -> None:
    """The loop turns on, the timeout of the tool ends it, and in the end it is told truly."""
    gate = Gate()

    def slow() -> dict[str, int]:
        gate.pass_through()
        return {"rows": 1}

    bare = forms(lambda: dumps(slow))[number]
    it = Tool(
        name="f",
        call=bare.call,
        processors=bare.processors,
        policy=tool(timeout=SHORT)(bare.call).policy,
    )

    async def scene(pool: ThreadPoolExecutor) -> None:
        began = time.monotonic()
        got = await perform(it, context(), {}, threads=pool, grace=SHORT)
        assert time.monotonic() - began < 2.0
        assert isinstance(got, Unknown)
        gate.open.set()
        assert got.later is not None
        assert await got.later == Succeeded({"rows": 1})

    play(scene)


@pytest.mark.parametrize("does", [*DEEDS, lambda: 7, type("S", (str,), {"strip": exits})])
@pytest.mark.parametrize("number", range(5))
def test_whatever_an_error_does_while_it_is_told_the_host_goes_on(number: int, does: Does) -> None:
    """In the tool, on the loop, in a processor: the failure is told without its words."""
    spy = Spy(does)

    class Hostile(Exception):
        def __str__(self) -> Any:
            return spy()

    def work() -> NoReturn:
        raise Hostile

    got = play(lambda pool: perform(forms(work)[number], context(), {}, threads=pool))
    assert isinstance(got, Failed)
    assert got.kind == "Hostile"
    assert "Hostile" in got.error
    assert spy.asked
    assert not spy.on_loop


def test_an_error_inside_an_ordinary_one_is_told_in_a_thread_too() -> None:
    spy = Spy(exits)

    class Hostile:
        def __str__(self) -> Any:
            return spy()

    async def f() -> None:
        raise ValueError(Hostile())

    got = play(lambda pool: perform(tool(f), context(), {}, threads=pool))
    assert got == Failed("the tool failed: ValueError: (its text cannot be shown)", "ValueError")
    assert not spy.on_loop


@pytest.mark.parametrize("does", DEEDS)
@pytest.mark.parametrize("made", OBJECTS)
def test_whatever_a_probe_answers_the_host_goes_on(
    made: Callable[[Does], object], does: Does
) -> None:
    """As the answer, and inside it."""
    wraps: list[Any] = [as_it_is, Happened, Failed, StillUnknown]
    for wrap in wraps:
        for is_async in (True, False):
            spy = Spy(does)
            answer = wrap(made(spy))

            async def on_loop(_: ToolContext, answer: Any = answer) -> Any:
                return answer

            def sync(_: ToolContext, answer: Any = answer) -> Any:
                return answer

            def act() -> None: ...

            it = tool(in_doubt=InDoubt.PROBE, probe=on_loop if is_async else sync)(act)
            got = play(partial(_probed, it))
            assert isinstance(got, Failed | StillUnknown | Happened)
            assert not spy.on_loop


@pytest.mark.parametrize("does", DEEDS)
@pytest.mark.parametrize("made", OBJECTS)
def test_whatever_a_preprocessor_returns_the_call_is_rejected(
    made: Callable[[Does], object], does: Does
) -> None:
    for is_async in (True, False):
        spy = Spy(does)
        given = made(spy)

        async def on_loop(*_: object, given: Any = given) -> Any:
            return given

        def sync(*_: object, given: Any = given) -> Any:
            return given

        def act() -> None: ...

        it = Tool(name="f", call=act, preprocessors=(on_loop if is_async else sync,))
        with pytest.raises(Rejected, match="the preprocessor"):
            play(partial(_prepared, it))
        assert not spy.on_loop


@pytest.mark.parametrize("does", DEEDS)
def test_whatever_the_class_of_an_argument_does_the_call_is_rejected(does: Does) -> None:
    """What hints name is built in a thread: its code is the author's."""
    spy = Spy(does)

    @dataclass
    class Price:
        amount: int

        def __post_init__(self) -> None:
            spy()

    def pay(price: Any) -> None: ...

    pay.__annotations__["price"] = Price
    it = tool(pay)
    assert not it.is_plain
    arguments: Any = {"price": {"amount": 3}}
    with pytest.raises(Rejected, match="bad arguments"):
        play(lambda pool: prepare(it, context(), arguments, threads=pool))
    assert spy.asked
    assert not spy.on_loop


def test_a_text_of_a_class_of_its_own_goes_no_further_than_the_tool() -> None:
    """What is logged is plain text by the time it is on the loop."""

    class Text(str):
        __slots__ = ()

        def __len__(self) -> NoReturn:
            raise SystemExit

        def encode(self, encoding: str = "", errors: str = "") -> NoReturn:
            raise SystemExit

    got: list[str] = []

    @tool
    def f(ctx: ToolContext) -> None:
        ctx.log(Text("said"))

    play(lambda pool: perform(f, context(on_log=got.append), {}, threads=pool))
    assert got == ["said"]
    assert type(got[0]) is str
    assert type(bounded(Text("x"))) is str


def test_what_is_small_and_plain_is_read_at_once() -> None:
    """No thread for what nearly every tool returns; a thread for all that could take time."""
    plain: Any = {"a": [1, 2.5, None, True, "x" * 5_000], "b": ((),)}
    loop: list[Any] = []
    loop.append(loop)
    bomb: Any = [0]
    for _ in range(60):
        bomb = [bomb, bomb]
    assert all(is_small(it) for it in (plain, None, 3, "x", Happened(plain), StillUnknown()))
    assert not any(
        is_small(it)
        for it in (loop, bomb, "x" * 1_000_000, [0] * 10_000, {1, 2}, Happened(loop), dumps(exits))
    )


def test_errors_are_said_by_their_class_whatever_that_says_of_itself() -> None:
    meta: Any = type("Meta", (type,), {"__name__": property(lambda _: exits())})
    hostile: Any = meta("Hostile", (Exception,), {})

    assert (kind_of(hostile()), said(hostile("x"))) == ("Hostile", "Hostile: x")
    group = ExceptionGroup("g", [ValueError("a"), hostile("b")])
    assert said(group) == "ValueError: a; Hostile: b"


def test_results_are_read_on_the_loop_without_a_thread_where_that_is_safe() -> None:
    """An async tool with a plain result takes no thread at all."""

    @tool
    async def f() -> Any:
        await asyncio.sleep(0)
        return {"a": 1}

    class NoThreads(ThreadPoolExecutor):
        def submit(self, *_: Any, **__: Any) -> NoReturn:
            raise AssertionError("a thread was asked for")

    with NoThreads(1) as none:
        got = asyncio.run(perform(f, context(), {}, threads=none))
    assert got == Succeeded({"a": 1})

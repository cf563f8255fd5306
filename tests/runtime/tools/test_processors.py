"""Preprocessors, result processors and probes (seed 004): in order, and failing with their text."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from turnlock.models.values import freeze
from turnlock.runtime.tools.calling import ToolContext
from turnlock.runtime.tools.errors import Rejected
from turnlock.runtime.tools.performing import perform, prepare, probe
from turnlock.runtime.tools.policy import InDoubt
from turnlock.runtime.tools.results import (
    BAD_RESULT,
    TIMED_OUT,
    Failed,
    Happened,
    NeverHappened,
    StillUnknown,
    Succeeded,
    Unknown,
)
from turnlock.runtime.tools.tool import Tool, tool

from .scene import AMPLE, SHORT, Gate, context, play


def add(name: str, value: Any) -> Any:
    """Return a preprocessor that adds an argument."""

    def preprocessor(arguments: Mapping[str, Any], ctx: ToolContext) -> Mapping[str, Any]:
        assert ctx.run_id == "r"
        return {**arguments, name: value}

    return preprocessor


async def double(arguments: Mapping[str, Any], _: ToolContext) -> Mapping[str, Any]:
    """Double n, on the loop."""
    await asyncio.sleep(0)
    return {**arguments, "n": arguments["n"] * 2}


def prepared(it: Tool, arguments: Any, **bounds: Any) -> dict[str, Any]:
    """Prepare a call."""
    frozen = freeze(arguments, place="arguments")
    return play(lambda pool: prepare(it, context(), frozen, threads=pool, **bounds))


def test_preprocessors_change_the_arguments_in_order_before_they_are_checked() -> None:
    @tool(preprocessors=(add("n", 3), double))
    def f(n: int, note: str = "") -> None: ...

    assert prepared(f, {"note": "x"}) == {"n": 6, "note": "x"}
    with pytest.raises(Rejected, match="bad arguments: note: 1 is int; give str"):
        prepared(f, {"note": 1})


def test_without_preprocessors_arguments_are_checked() -> None:
    @tool
    def f(n: int) -> None: ...

    assert prepared(f, {"n": 1}) == {"n": 1}
    with pytest.raises(Rejected, match="bad arguments: n: is missing; give it"):
        prepared(f, {})


def fails(arguments: Any, _: ToolContext) -> Any:
    """Fail."""
    raise LookupError("no such file")


def nothing(arguments: Any, _: ToolContext) -> Any:
    """Return nothing."""


def no_json(arguments: Any, _: ToolContext) -> Any:
    """Return what is no JSON."""
    return {"n": {1}}


def changes(arguments: Any, _: ToolContext) -> Any:
    """Try to change what was approved."""
    arguments["n"] = 2


@pytest.mark.parametrize(
    ("preprocessor", "told"),
    [
        (fails, "the preprocessor fails failed: LookupError: no such file"),
        (nothing, "the preprocessor nothing returned None; it must return arguments"),
        (no_json, "the preprocessor no_json returned bad arguments: arguments.n: {1} is a set"),
        (changes, "the preprocessor changes failed: TypeError: a JSON value inside a record"),
    ],
)
def test_a_preprocessor_that_fails_rejects_the_call(preprocessor: Any, told: str) -> None:
    """With its text, before anything has happened; those behind it are not asked."""

    def never(arguments: Any, _: ToolContext) -> Any:
        raise AssertionError("it ran")

    @tool(preprocessors=(preprocessor, never))
    def f(n: int) -> None: ...

    with pytest.raises(Rejected) as error:
        prepared(f, {"n": 1})
    assert str(error.value).startswith(told)


def test_preprocessors_have_a_bound() -> None:
    """One that can be stopped is stopped; one that cannot is let go, and the call rejected."""

    async def slow(arguments: Any, _: ToolContext) -> Any:
        await asyncio.Event().wait()

    gate = Gate()

    def stuck(arguments: Any, _: ToolContext) -> Any:
        gate.pass_through()
        return arguments

    @tool(preprocessors=(slow,))
    def f() -> None: ...

    with pytest.raises(Rejected, match=r"the preprocessor slow timed out after 0\.02 s; it was"):
        prepared(f, {}, within=SHORT)

    @tool(preprocessors=(stuck,))
    def g() -> None: ...

    async def scene(pool: ThreadPoolExecutor) -> None:
        abandoned: set[asyncio.Task[Any]] = set()
        with pytest.raises(Rejected, match=r"a preprocessor timed out .* did not stop within 0"):
            await prepare(
                g, context(), {}, threads=pool, within=SHORT, grace=0, abandoned=abandoned
            )
        (left,) = abandoned
        gate.open.set()
        await left
        assert not abandoned

    play(scene)


def test_a_context_cancelled_before_asks_no_preprocessor() -> None:
    @tool(preprocessors=(fails,))
    def f() -> None: ...

    async def scene(pool: ThreadPoolExecutor) -> None:
        it = context()
        it.cancel("interrupted")
        with pytest.raises(Rejected, match="was cancelled: interrupted; it had not begun"):
            await prepare(f, it, {}, threads=pool)

    play(scene)


def performed(it: Tool) -> Any:
    """Perform a call without arguments."""
    return play(lambda pool: perform(it, context(), {}, threads=pool, grace=AMPLE))


class Page:
    """What only a processor can make JSON of."""

    text = "hello"


def test_processors_get_what_the_tool_returned_and_give_the_result() -> None:
    """In order, sync or async; only what comes out last must be JSON."""

    async def loud(value: str, ctx: ToolContext) -> str:
        await asyncio.sleep(0)
        return f"{value.upper()} {ctx.invocation_id}"

    @tool(processors=(lambda page, _: page.text, loud))
    def f() -> Any:
        return Page()

    assert performed(f) == Succeeded("HELLO a")


def test_a_processor_that_fails_is_a_failed_result_that_says_that_the_tool_succeeded() -> None:
    """Else a model would do again what was done."""

    def broken(value: Any, _: ToolContext) -> Any:
        raise ValueError("cannot read it")

    @tool(processors=(broken,))
    def f() -> int:
        return 1

    assert performed(f) == Failed(
        "the tool succeeded, but its result processor broken failed: ValueError: cannot read it",
        "ValueError",
    )

    @tool(processors=(lambda value, _: {value},))
    def g() -> int:
        return 1

    got = performed(g)
    assert isinstance(got, Failed)
    assert got.kind == BAD_RESULT


def test_errors_pass_processors_by() -> None:
    @tool(processors=(fails,))
    def f() -> None:
        raise OSError("gone")

    assert performed(f) == Failed("the tool failed: OSError: gone", "OSError")


def test_the_timeout_covers_processors() -> None:
    async def slow(value: Any, _: ToolContext) -> Any:
        await asyncio.Event().wait()

    @tool(timeout=SHORT, processors=(slow,))
    async def f() -> int:  # of a thread nobody knows whether it is through by then
        return 1

    assert performed(f) == Failed(
        "the tool succeeded, but its result processor slow timed out after 0.02 s; it was stopped "
        "half-way, and what it had done may stay done",
        TIMED_OUT,
    )


def test_a_late_result_is_processed_too() -> None:
    gate = Gate()

    @tool(timeout=SHORT, processors=(lambda value, _: value + 1,))
    def f() -> int:
        gate.pass_through()
        return 1

    async def scene(pool: ThreadPoolExecutor) -> None:
        got = await perform(f, context(), {}, threads=pool, grace=0)
        assert isinstance(got, Unknown)
        gate.open.set()
        assert got.later is not None
        assert await got.later == Succeeded(2)

    play(scene)


def probed(answer: Callable[[Any], Any], **bounds: Any) -> Any:
    """Ask a probe that does this."""

    @tool(in_doubt=InDoubt.PROBE, probe=answer)
    def f() -> None: ...

    return play(lambda pool: probe(f, context(), threads=pool, **bounds))


async def _answers(ctx: ToolContext) -> Any:
    await asyncio.sleep(0)
    return Happened({"key": ctx.idempotency_key})


async def _hangs(_: ToolContext) -> Any:
    await asyncio.Event().wait()


def test_a_probe_answers() -> None:
    assert probed(_answers) == Happened({"key": "call/r/1/T/a"})
    assert probed(lambda _: Failed("declined")) == Failed("declined")
    assert probed(lambda _: NeverHappened()) == NeverHappened()
    assert probed(lambda _: StillUnknown("no log")) == StillUnknown("no log")


UNSURE: list[tuple[Callable[[Any], Any], str]] = [
    (lambda _: 1 / 0, "the probe failed: ZeroDivisionError: division by zero"),
    (lambda _: True, "the probe returned True, not Happened"),
    (lambda _: NeverHappened, "the probe returned <class"),
    (_hangs, "the probe timed out after 0.02 s"),
]


@pytest.mark.parametrize(("does", "why"), UNSURE)
def test_a_probe_that_does_not_say_leaves_the_doubt(does: Any, why: str) -> None:
    """Nothing is guessed: somebody is asked, and told why."""
    got = probed(does, within=SHORT)
    assert isinstance(got, StillUnknown)
    assert got.why.startswith(why)


def test_a_probe_that_hangs_in_a_thread_is_let_go() -> None:
    gate = Gate()

    def stuck(_: ToolContext) -> StillUnknown:
        gate.pass_through()
        return StillUnknown()

    @tool(in_doubt=InDoubt.PROBE, probe=stuck)
    def f() -> None: ...

    async def scene(pool: ThreadPoolExecutor) -> None:
        abandoned: set[asyncio.Task[Any]] = set()
        got = await probe(f, context(), threads=pool, within=SHORT, grace=0, abandoned=abandoned)
        assert isinstance(got, StillUnknown)
        assert "did not stop within 0 s" in got.why
        (left,) = abandoned
        gate.open.set()
        await left

    play(scene)


def test_what_happened_with_a_result_that_cannot_be_kept_has_failed_with_that_text() -> None:
    got = probed(lambda _: Happened({1, 2}))
    assert isinstance(got, Failed)
    assert got.error.startswith("it happened, but its result cannot be kept: result: {1, 2} is")


def test_a_tool_without_a_probe_leaves_the_doubt() -> None:
    @tool
    def f() -> None: ...

    got = play(lambda pool: probe(f, context(), threads=pool))
    assert got == StillUnknown("the tool f has no probe")

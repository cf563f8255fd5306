"""Performing: each way in which a tool can end is told truly, and none of them hurts the host."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn

import pytest

from turnlock.runtime.tools.calling import ToolContext
from turnlock.runtime.tools.errors import ERROR_TEXT
from turnlock.runtime.tools.performing import perform
from turnlock.runtime.tools.results import (
    BAD_RESULT,
    CANCELLED,
    NOT_STARTED,
    TIMED_OUT,
    Failed,
    Outcome,
    Succeeded,
    Unknown,
)
from turnlock.runtime.tools.tool import Tool, tool

from .scene import AMPLE, SHORT, Gate, context, play

VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("VARIABLE", default="unset")


def outcome_of(it: Tool, /, **arguments: Any) -> Outcome:
    """Perform a tool from the beginning to the end, however busy the machine is."""
    return play(lambda pool: perform(it, context(), arguments, threads=pool, grace=AMPLE))


@pytest.mark.parametrize("result", [None, 0, "", False, [], {"a": [1, None]}])
def test_what_a_tool_returns_is_its_result(result: Any) -> None:
    """Falsy results are results (K-36), from a thread and from the loop."""

    @tool
    def sync() -> Any:
        return result

    @tool
    async def on_loop() -> Any:
        await asyncio.sleep(0)
        return result

    assert outcome_of(sync) == outcome_of(on_loop) == Succeeded(result)


def test_arguments_and_context_arrive() -> None:
    @tool
    def f(a: int, ctx: ToolContext, b: str = "b") -> Any:
        return [a, b, ctx.invocation_id]

    assert outcome_of(f, a=1) == Succeeded([1, "b", "a"])


def test_no_name_of_an_argument_is_in_the_way_of_our_own() -> None:
    def g(self: int, function: int, args: int, call: int, work: int) -> int:
        return self + function + args + call + work

    assert outcome_of(tool(g), self=1, function=2, args=3, call=4, work=5) == Succeeded(15)


def test_sync_tools_run_in_threads_and_async_ones_on_the_loop() -> None:
    """Both see the context variables of the caller, and cannot change them."""

    def here() -> Any:
        seen = VARIABLE.get()
        VARIABLE.set("changed")
        return [seen, threading.current_thread() is threading.main_thread()]

    async def on_loop() -> Any:
        return here()

    async def scene(pool: ThreadPoolExecutor) -> None:
        VARIABLE.set("caller's")
        one = await perform(tool(here), context(), {}, threads=pool)
        other = await perform(tool(on_loop), context(), {}, threads=pool)
        assert one == Succeeded(["caller's", False])
        assert other == Succeeded(["caller's", True])
        assert VARIABLE.get() == "caller's"

    play(scene)


class Wordless(Exception):
    """Has no text."""


class Unspeakable(Exception):
    """Raises where its text is asked for."""

    def __str__(self) -> NoReturn:
        raise RuntimeError("no")


class Base(BaseException):
    """Is no Exception."""


ERRORS: list[tuple[BaseException, str, str]] = [
    (ValueError("bad"), "the tool failed: ValueError: bad", "ValueError"),
    (Wordless(), "the tool failed: Wordless", "Wordless"),
    (Wordless("  \n"), "the tool failed: Wordless", "Wordless"),
    (Unspeakable(), "the tool failed: Unspeakable: (its text cannot be shown)", "Unspeakable"),
    (ValueError("\ud800"), "the tool failed: ValueError: \ufffd", "ValueError"),
    (StopIteration(3), "the tool failed: StopIteration: 3", "StopIteration"),
    (SystemExit(3), "the tool failed: SystemExit: 3", "SystemExit"),
    (KeyboardInterrupt(), "the tool failed: KeyboardInterrupt", "KeyboardInterrupt"),
    (Base("b"), "the tool failed: Base: b", "Base"),
    (
        ExceptionGroup("g", [ValueError("a"), ExceptionGroup("h", [KeyError("b")])]),
        "the tool failed: ValueError: a; KeyError: 'b'",
        "ExceptionGroup",
    ),
]


@pytest.mark.parametrize(("error", "told", "kind"), ERRORS)
def test_what_a_tool_raises_is_its_error(error: BaseException, told: str, kind: str) -> None:
    """Type and text, never empty, and nothing of it goes up into the host (K-36)."""

    @tool
    def sync() -> None:
        raise error

    @tool
    async def on_loop() -> None:
        await asyncio.sleep(0)
        raise error

    got = outcome_of(sync)
    assert isinstance(got, Failed)
    assert (got.error, got.kind) == (told, kind)
    if not isinstance(error, StopIteration):  # Python itself makes a RuntimeError of it in async
        assert outcome_of(on_loop) == got


def test_an_error_is_bounded() -> None:
    @tool
    def f() -> None:
        raise ValueError("x" * 1_000_000)

    got = outcome_of(f)
    assert isinstance(got, Failed)
    assert len(got.error) < ERROR_TEXT + 50


def test_a_cancellation_that_a_tool_made_itself_is_its_error() -> None:
    """It is neither ours nor the caller's: the caller goes on."""

    @tool
    async def f() -> None:
        raise asyncio.CancelledError

    @tool
    def sync() -> None:
        raise asyncio.CancelledError

    for it in (f, sync):
        got = outcome_of(it)
        assert isinstance(got, Failed)
        assert "CancelledError" in got.error
        assert got.kind == "CancelledError"


def test_a_result_that_is_no_json_is_a_failure_that_says_that_the_tool_ran() -> None:
    @tool
    def f() -> Any:
        return {"a": [1, b"x"]}

    got = outcome_of(f)
    assert isinstance(got, Failed)
    assert got.kind == BAD_RESULT
    assert got.error.startswith(
        "the tool ran, but its result cannot be kept: result.a[1]: b'x' is a bytes"
    )


def test_a_result_has_a_bound_that_can_be_set() -> None:
    @tool
    def f() -> str:
        return "x" * 20

    async def scene(pool: ThreadPoolExecutor) -> None:
        assert await perform(f, context(), {}, threads=pool, limit=22) == Succeeded("x" * 20)
        got = await perform(f, context(), {}, threads=pool, limit=21)
        assert isinstance(got, Failed)
        assert "21 bytes of JSON" in got.error

    play(scene)


def test_a_result_whose_attributes_raise_is_a_failure() -> None:
    class Odd:
        def model_dump(self, *, mode: str) -> NoReturn:
            raise OSError("gone")

    @tool
    def f() -> Any:
        return Odd()

    got = outcome_of(f)
    assert isinstance(got, Failed)
    assert "cannot be kept: OSError: gone" in got.error


def test_a_sync_function_that_returns_a_coroutine_is_told_to_be_async() -> None:
    async def work() -> int:
        return 1

    def wrapper() -> Any:
        return work()

    got = outcome_of(tool(wrapper))
    assert isinstance(got, Failed)
    assert "declare it async def" in got.error


def test_a_coroutine_that_is_too_slow_is_stopped_and_has_failed() -> None:
    """Its end is a true report; that it may have done something is said."""

    @tool(timeout=SHORT)
    async def f(ctx: ToolContext) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            assert ctx.cancelled

    assert outcome_of(f) == Failed(
        "the tool timed out after 0.02 s; it was stopped half-way, and what it had done may stay "
        "done",
        TIMED_OUT,
    )


def test_what_a_tool_says_while_it_is_stopped_counts() -> None:
    """One that has its result in hand gives it; one that fails on the way out says so."""

    @tool(timeout=SHORT)
    async def returns() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "done after all"
        return "never"

    @tool(timeout=SHORT)
    async def raises() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise OSError("could not undo")

    assert outcome_of(returns) == Succeeded("done after all")
    assert outcome_of(raises) == Failed(
        "the tool timed out after 0.02 s; then OSError: could not undo", TIMED_OUT
    )


def test_a_coroutine_that_swallows_its_cancellation_does_not_hang_the_caller() -> None:
    """It is unknown after the grace, known to be under way, and reported when it ends."""
    abandoned: set[asyncio.Task[Any]] = set()

    async def scene(pool: ThreadPoolExecutor) -> None:
        release = asyncio.Event()

        @tool(timeout=SHORT)
        async def f() -> str:
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    continue
            return "at last"

        got = await perform(f, context(), {}, threads=pool, grace=SHORT, abandoned=abandoned)
        assert isinstance(got, Unknown)
        assert got.why == (
            "the tool timed out after 0.02 s, and did not stop within 0.02 s; it may still do its "
            "work"
        )
        assert len(abandoned) == 1
        release.set()
        assert got.later is not None
        assert await got.later == await got.later == Succeeded("at last")
        assert not abandoned

    play(scene)


def test_a_thread_that_is_too_slow_is_unknown_until_it_ends() -> None:
    """A thread cannot be stopped; a late true report settles it (K-35)."""
    gate = Gate()

    @tool(timeout=SHORT)
    def f() -> str:
        gate.pass_through()
        return "late"

    async def scene(pool: ThreadPoolExecutor) -> None:
        got = await perform(f, context(), {}, threads=pool, grace=SHORT)
        assert isinstance(got, Unknown)
        waiting = asyncio.ensure_future(_wait_for(got))
        await asyncio.sleep(0)
        waiting.cancel()  # whoever waits may give up: the execution does not notice
        with pytest.raises(asyncio.CancelledError):
            await waiting
        gate.open.set()
        assert got.later is not None
        assert await got.later == Succeeded("late")

    play(scene)


async def _wait_for(unknown: Unknown) -> Any:
    assert unknown.later is not None
    return await unknown.later


def test_a_thread_that_looks_at_its_context_can_be_stopped() -> None:
    @tool(timeout=SHORT)
    def f(ctx: ToolContext) -> None:
        while True:
            ctx.raise_if_cancelled()

    assert play(lambda pool: perform(f, context(), {}, threads=pool)) == Failed(
        "the tool timed out after 0.02 s", TIMED_OUT
    )


def test_a_call_that_no_thread_was_free_for_has_not_begun() -> None:
    """And so it is known to have done nothing."""
    gate = Gate()

    @tool
    def blocks() -> None:
        gate.pass_through()

    @tool(timeout=SHORT)
    def f() -> None:
        raise AssertionError("it ran")

    async def scene(_: ThreadPoolExecutor) -> None:
        with ThreadPoolExecutor(1) as one:
            first = asyncio.ensure_future(perform(blocks, context(), {}, threads=one))
            await gate.wait_until_reached()
            got = await perform(f, context(), {}, threads=one, grace=SHORT)
            gate.open.set()
            await first
        assert got == Failed("the tool timed out after 0.02 s; it had not begun", NOT_STARTED)

    play(scene)


def test_threads_that_are_shut_down_are_an_error_of_the_tool() -> None:
    @tool
    def f() -> None: ...

    async def scene(_: ThreadPoolExecutor) -> None:
        pool = ThreadPoolExecutor(1)
        pool.shutdown()
        got = await perform(f, context(), {}, threads=pool)
        assert isinstance(got, Failed)
        assert "after shutdown" in got.error

    play(scene)


def test_a_loop_that_closed_before_the_thread_ended_is_not_disturbed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    gate = Gate()

    @tool(timeout=SHORT)
    def f() -> None:
        gate.pass_through()

    with ThreadPoolExecutor(1) as pool:
        got = asyncio.run(perform(f, context(), {}, threads=pool, grace=0))
        gate.open.set()
    assert isinstance(got, Unknown)
    assert not caplog.records


def test_dropped_log_lines_are_told_when_the_tool_has_ended() -> None:
    got: list[str] = []

    @tool
    def f(ctx: ToolContext) -> None:
        for number in range(103):
            ctx.log(f"{number}")

    play(lambda pool: perform(f, context(on_log=got.append), {}, threads=pool))
    assert got[-1].startswith("(3 more texts dropped")


def test_a_cancelled_context_stops_a_tool_with_an_outcome() -> None:
    """K-53: a cancel is asked for, and what the tool comes to is reported all the same."""

    @tool
    async def f() -> None:
        await asyncio.Event().wait()

    async def scene(pool: ThreadPoolExecutor) -> None:
        it = context()
        task = asyncio.ensure_future(perform(f, it, {}, threads=pool))
        await asyncio.sleep(0)
        await asyncio.to_thread(it.cancel, "the turn was interrupted")  # from any thread
        assert await task == Failed(
            "the tool was cancelled: the turn was interrupted; it was stopped half-way, and what "
            "it had done may stay done",
            CANCELLED,
        )

    play(scene)


def test_a_context_cancelled_before_starts_nothing() -> None:
    @tool
    def f() -> None:
        raise AssertionError("it ran")

    async def scene(pool: ThreadPoolExecutor) -> None:
        it = context()
        it.cancel("too late")
        got = await perform(f, it, {}, threads=pool)
        assert got == Failed("the tool was cancelled: too late; it had not begun", NOT_STARTED)

    play(scene)


def test_a_cancelled_context_leaves_a_thread_that_does_not_look() -> None:
    """Without a timeout, too, the caller goes on after the grace."""
    gate = Gate()

    @tool
    def f() -> int:
        gate.pass_through()
        return 7

    async def scene(pool: ThreadPoolExecutor) -> None:
        it = context()
        task = asyncio.ensure_future(perform(f, it, {}, threads=pool, grace=SHORT))
        await gate.wait_until_reached()
        it.cancel("enough")
        got = await task
        assert isinstance(got, Unknown)
        assert got.why.startswith("the tool was cancelled: enough, and did not stop within 0.02 s")
        gate.open.set()
        assert got.later is not None
        assert await got.later == Succeeded(7)

    play(scene)

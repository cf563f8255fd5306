"""The context: bounded logging from any thread, and being asked to stop."""

from __future__ import annotations

import asyncio
import threading

import pytest

from turnlock.runtime.tools.calling import LOG_LINES, LOG_PERIOD, LOG_TEXT, ToolContext
from turnlock.runtime.tools.errors import ToolCancelled

from .scene import context


def test_it_says_which_execution_it_is() -> None:
    it = context(deadline=9.0, worker="w")
    assert (it.idempotency_key, it.run_id, it.turn_id, it.invocation_id, it.attempt) == (
        *("call/r/1/T/a", "r", "T", "a"),
        1,
    )
    assert (it.tool_name, it.deadline, it.worker) == ("f", 9.0, "w")


def test_a_text_is_cut_and_made_such_that_a_journal_can_hold_it() -> None:
    got: list[str] = []
    it = context(on_log=got.append)
    it.log("half\ud800")
    it.log("x" * 100_000)
    assert got[0].startswith("half")
    assert got[0].encode()
    assert len(got[1]) == LOG_TEXT
    assert got[1].endswith("…")


def test_too_many_texts_are_dropped_and_counted() -> None:
    """A tool that logs in a loop floods nobody; how much is missing is said."""
    got: list[str] = []
    now = [0.0]
    it = context(on_log=got.append, clock=lambda: now[0])
    for number in range(LOG_LINES + 7):
        it.log(f"{number}")
    assert got == [f"{number}" for number in range(LOG_LINES)]
    now[0] += LOG_PERIOD
    it.log("later")
    assert got[LOG_LINES:] == ["(7 more texts dropped: 100 in 1 s is the bound)", "later"]
    for _ in range(LOG_LINES):
        it.log("flood")
    it.end_log()
    it.end_log()
    assert got[-1] == "(1 more texts dropped: 100 in 1 s is the bound)"
    assert len(got) == 2 * LOG_LINES + 2


def test_without_anybody_who_listens_logging_is_harmless() -> None:
    context().log("nobody")


def test_texts_of_a_thread_arrive_in_the_thread_of_the_loop_in_order() -> None:
    got: list[tuple[str, int]] = []

    async def scene() -> None:
        def hear(text: str) -> None:
            got.append((text, threading.get_ident()))

        it = context(
            on_log=hear,
            loop=asyncio.get_running_loop(),
        )

        def speak() -> None:
            for number in range(5):
                it.log(f"{number}")

        await asyncio.to_thread(speak)
        it.log("last")

    asyncio.run(scene())
    assert got == [(text, threading.get_ident()) for text in ("0", "1", "2", "3", "4", "last")]


def test_a_text_after_the_loop_has_closed_is_lost_without_harm() -> None:
    async def scene() -> ToolContext:
        return context(on_log=pytest.fail, loop=asyncio.get_running_loop())

    it = asyncio.run(scene())
    thread = threading.Thread(target=it.log, args=("too late",))
    thread.start()
    thread.join()


def test_being_asked_to_stop_is_seen_and_can_be_raised() -> None:
    """The first reason stays, and the listener is told once."""
    it = context()
    told: list[str | None] = []
    it.when_cancelled(lambda: told.append(it.why_cancelled))
    it.raise_if_cancelled()
    assert not it.cancelled
    it.cancel("interrupted")
    it.cancel("again")
    assert it.cancelled
    assert told == ["interrupted"]
    with pytest.raises(ToolCancelled, match="interrupted"):
        it.raise_if_cancelled()

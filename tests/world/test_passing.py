"""What goes by: joined and bounded while it waits, and whoever listens harms nobody (W-8, W-9)."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlock.agent.messages import Stop, Tokens
from turnlock.agent.speaking import CallBegan, CallText, Text, Thought
from turnlock.agent.transients import (
    ItemChunk,
    Shown,
    SpeechChunk,
    SpeechEnded,
    SpeechFailed,
    SpeechStarted,
)
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.world import passing
from turnlock.world.passing import Listener, Passed, Passing, ToolLogged

from ..runtime.virtual import run, settled

CHAT = "demo/plan"
E1, E2 = "demo/plan/alice/said/1", "demo/plan/bob/said/1"


def chunk(text: str, entry_id: str = E1, kind: Callable[[str], Shown] = Text) -> SpeechChunk:
    return SpeechChunk(entry_id=entry_id, said=kind(text))


def start(attempt: int = 1, entry_id: str = E1) -> SpeechStarted:
    return SpeechStarted(entry_id=entry_id, agent="alice", attempt=attempt)


def ended(entry_id: str = E1) -> SpeechEnded:
    return SpeechEnded(entry_id=entry_id, stop=Stop.DONE, tokens=Tokens())


def listened(*told: Passing) -> list[Passed]:
    listener = Listener(CHAT)
    for it in told:
        listener.add(it)
    return listener.take()


def text_of(passed: Iterable[Passed]) -> str:
    found = ""
    for it in passed:
        if isinstance(it.what, SpeechChunk):
            assert isinstance(it.what.said, Text | Thought)
            found += it.what.said.text
    return found


def test_w_9_what_waits_of_an_answer_is_joined_in_its_order() -> None:
    """W-9, S-75: pieces of one text are one; thoughts, calls and other answers stay apart."""
    told = listened(
        start(),
        chunk("a", kind=Thought),
        chunk("b", kind=Thought),
        chunk("c"),
        chunk("x", E2),
        chunk("d"),
        SpeechChunk(entry_id=E1, said=CallBegan(0, "pay")),
        chunk("{", kind=lambda text: CallText(0, text)),
        chunk("}", kind=lambda text: CallText(0, text)),
        chunk("{}", kind=lambda text: CallText(1, text)),
        ended(),
    )

    assert [it.what for it in told] == [
        start(),
        chunk("ab", kind=Thought),
        chunk("cd"),
        SpeechChunk(entry_id=E1, said=CallBegan(0, "pay")),
        chunk("{}", kind=lambda text: CallText(0, text)),
        chunk("{}", kind=lambda text: CallText(1, text)),
        ended(),
        chunk("x", E2),
    ]


def test_w_9_asked_again_voids_what_waits_of_the_former_try() -> None:
    assert listened(start(), chunk("a"), start(2), chunk("b")) == [
        Passed(start(2)),
        Passed(chunk("b")),
    ]
    failed = SpeechFailed(entry_id=E1, message="gone")
    assert listened(start(), chunk("a"), failed) == [Passed(failed)]


PIECES = st.lists(st.text(max_size=300) | st.integers(1, 40_000).map("é".__mul__), max_size=400)


@given(PIECES)
def test_w_9_what_waits_is_bounded_and_what_gave_way_is_counted(pieces: list[str]) -> None:
    """W-9, S-75: the newest stay; with what gave way it is all that was said."""
    told = listened(start(), *map(chunk, pieces))
    whole, heard = "".join(pieces), text_of(told)
    dropped = sum(it.dropped for it in told)

    size = len(heard.encode("utf-8", "surrogatepass"))
    assert whole.endswith(heard)
    assert dropped + size == len(whole.encode("utf-8", "surrogatepass"))
    assert size <= passing.WAITING
    assert told[0] == Passed(start())


def test_w_9_tiny_pieces_cost_a_listener_that_hangs_little() -> None:
    """W-9: pieces of one letter are put together, so that they are no hundred times their text."""
    listener = Listener(CHAT)
    for _ in range(100_000):
        listener.add(chunk("x"))

    assert len(listener.take()) <= 100_000 / passing.PIECE + 1


def test_w_9_so_many_answers_and_logs_wait_and_no_more() -> None:
    """W-9: the oldest answer gives way to another; logs of a call are lines, and stay apart."""
    told = listened(*(chunk("x", f"{number}") for number in range(passing.ITEMS + 3)))
    names = [it.what.entry_id for it in told if isinstance(it.what, SpeechChunk)]
    assert names == [f"{number}" for number in range(3, passing.ITEMS + 3)]

    lines = [ToolLogged(entry_id="result/r/t/i", text=text) for text in ("a", "", "b")]
    assert [it.what for it in listened(*lines)] == lines
    items = [ItemChunk(item="i", of="output", text=text) for text in "ab"]
    assert [it.what for it in listened(*items)] == [ItemChunk(item="i", of="output", text="ab")]


def test_w_43_what_a_tool_logs_goes_by_the_id_of_its_result() -> None:
    logged = ToolLogged(entry_id="result/r/t/i", text="half")
    assert (logged.kind, logged.as_json()) == ("log", {"entry_id": "result/r/t/i", "text": "half"})


def test_w_8_a_listener_that_hangs_or_is_dropped_harms_nobody() -> None:
    """W-8: each has what is its own; dropped without a word, it is forgotten."""

    async def play() -> None:
        journal = MemoryJournal()
        hangs, quick = (passing.listen(journal, CHAT, "demo") for _ in range(2))
        other = passing.listen(journal, "demo/other", "demo")
        passing.pass_on(journal, CHAT, chunk("a"))
        assert text_of(quick.take()) == "a"
        passing.pass_on(journal, CHAT, chunk("b"))
        assert (text_of(quick.take()), text_of(hangs.take()), other.take()) == ("b", "ab", [])
        passing.pass_on(journal, "demo", chunk("of no chat"))
        assert quick.take() == hangs.take() == other.take() == []

        del hangs
        gc.collect()
        passing.unlisten(journal, quick)
        passing.unlisten(journal, quick)
        passing.pass_on(journal, CHAT, chunk("c"))
        assert quick.take() == []

    run(play())


def test_w_8_who_heeds_and_raises_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """W-8: the others are told; who does not heed any more is not."""

    async def play() -> None:
        journal, told = MemoryJournal(), list[str]()

        def fail(log: str) -> None:
            raise RuntimeError(log)

        endings = [passing.heed(journal, it) for it in (fail, told.append)]
        listener = passing.listen(journal, CHAT, "demo")
        listener.stale = False
        passing.wake(journal, CHAT)
        assert (told, listener.stale) == ([CHAT], True)
        for end in endings:
            end()
            end()
        passing.wake(journal, CHAT)
        assert told == [CHAT]

    run(play())
    assert "has raised" in caplog.text


def test_a_listener_waits_until_there_is_something() -> None:
    async def play() -> None:
        journal = MemoryJournal()
        listener = passing.listen(journal, CHAT, "demo")
        await listener.wait()  # it has read nothing yet
        acts: list[Callable[[], None]] = [
            lambda: passing.pass_on(journal, CHAT, chunk("a")),
            lambda: passing.wake(journal, CHAT),
            lambda: passing.wake(journal, "demo"),
        ]
        for act in acts:
            listener.stale = False
            listener.take()
            waiting = asyncio.ensure_future(listener.wait())
            await settled()
            assert not waiting.done()
            act()
            await waiting

    run(play())

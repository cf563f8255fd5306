"""Edges of a chat's stream: bad cursors, what goes by, others, and failures (W-71, W-8)."""

from __future__ import annotations

import asyncio
import gc
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlock.agent.messages import Stop, Tokens
from turnlock.agent.speaking import Text
from turnlock.agent.transients import SpeechChunk, SpeechEnded, SpeechStarted
from turnlock.runtime.errors import CorruptLog, CursorAhead, JournalError
from turnlock.runtime.journal.contract import PAGE, Entry, LogEntry
from turnlock.runtime.journal.ledger import BadCursor, Cursor
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.journal.sqlite import SqliteJournal
from turnlock.world import UnknownChat, UnknownWorld, World, passing, watching
from turnlock.world.entries import Unknown
from turnlock.world.events import (
    ChatEvent,
    EntryEvent,
    LiveEvent,
    Places,
    ProjectionEvent,
    TransientEvent,
)
from turnlock.world.names import MemberName, result_id
from turnlock.world.passing import ToolLogged
from turnlock.world.streams import RETRIES, Events

from ..runtime.faulty_journal import WrappedJournal
from ..runtime.virtual import run, settled
from .scenes import SPEC, Scene, name_of

SAID = "demo/plan/alice/said/2"


def chunk(text: str) -> SpeechChunk:
    return SpeechChunk(entry_id=SAID, said=Text(text))


async def until_live(events: Events) -> list[ChatEvent]:
    """What is told of the past."""
    told: list[ChatEvent] = []
    async for event in events:
        if isinstance(event, LiveEvent):
            return told
        told.append(event)
    raise AssertionError(told)


LABELS = st.sampled_from(["alice", "alice#2", "bob", "a-b_c"])
AT = st.builds(Cursor, st.integers(0, 10**17), st.integers(0, 3)).filter(lambda it: it > Cursor())


@given(st.integers(0, 10**17), st.dictionaries(LABELS, AT))
def test_w_71_a_cursor_names_a_place_in_each_source(number: int, runs: dict[str, Cursor]) -> None:
    """It is read as it was written, whatever it names; nothing at all is the beginning."""
    members = {
        MemberName(world="w", chat="c", agent=label.partition("#")[0], nth=2 if "#" in label else 1)
        for label in runs
    }
    of = {it.run_id.rpartition("/")[2]: it for it in members}
    places = Places(number, {of[label]: at for label, at in runs.items()})
    assert Places.read(f"{places}", world="w", chat="c") == places
    assert (f"{places}" == "") == (not number and not runs)


BAD = (
    "x", "-1", "+1", "01", " 1", "1 ", "1;", ";alice:1", "1;alice", "1;alice:", "1;alice:0",
    "1;alice:01", "1;alice:1.0", "1;bob:1;alice:1", "1;alice:1;alice:2", "1;Alice:1", "1;a/b:1",
    "1;alice#1:1", "1;alice#01:2", "1;human:1", "1.1", "1;1", "1;alice:1\n", "１", "1;alice:-1",  # noqa: RUF001 - a wide digit
    "\ud800", "\0", "1;" + "a" * 300_000,
)  # fmt: skip


@pytest.mark.parametrize("text", BAD)
def test_s_71_what_no_event_had_is_refused_at_once(text: str) -> None:
    """W-71: at the very call, before anything is read."""
    chat = World(MemoryJournal(), "demo").chat("plan")
    with pytest.raises(BadCursor):
        chat.events(text)


@given(st.text(alphabet="0123456789;:.#alice", max_size=20))
def test_s_71_a_text_is_a_cursor_or_refused(text: str) -> None:
    try:
        places = Places.read(text, world="w", chat="c")
    except BadCursor:
        return
    assert f"{places}" == ("" if set(text) == {"0"} else text)


@pytest.mark.parametrize(
    "after",
    ["3", "9" * 40, "2;alice:9", f"1;alice:{9**40}", "2;zoe:1", "0;alice:4.1", "2;alice#2:1"],
)
def test_s_71_a_cursor_ahead_is_refused_with_the_end(after: str) -> None:
    async def play() -> None:
        scene = await Scene.begin("alice")
        for _ in range(2):
            await scene.say()
        await scene.ask("alice")  # two facts
        with pytest.raises(CursorAhead) as ahead:
            await scene.chat.events(after).open()
        assert ahead.value.code == "cursor_ahead"
        assert Places.read(ahead.value.head, world="demo", chat="plan").number == 2
        async with scene.chat.events("2") as events:
            assert events.head == await scene.chat.cursor() == "2;alice:2"
            assert events.cursor == "2"

    run(play())


def test_w_71_who_is_not_there_has_no_events() -> None:
    async def play() -> None:
        scene = await Scene.begin()
        with pytest.raises(UnknownChat):
            await anext(scene.world.chat("other").events())
        with pytest.raises(UnknownWorld):
            await anext(World(scene.journal, "other").chat("plan").events())

    run(play())


def test_w_71_what_goes_by_comes_before_the_entry_that_keeps_it() -> None:
    """As it comes, joined while nobody reads; never after what it was the beginning of."""

    async def play() -> None:
        scene = await Scene.begin("alice")
        events = scene.chat.events()
        assert await until_live(events) == []
        for said in (
            SpeechStarted(entry_id=SAID, agent="alice", attempt=1),
            chunk("He"),
            chunk("llo"),
            SpeechEnded(entry_id=SAID, stop=Stop.DONE, tokens=Tokens()),
        ):
            passing.pass_on(scene.journal, scene.chat.log, said)
        await scene.journal.append_entry(
            scene.chat.log, SAID, {"kind": "notice", "text": "x"}, at=1
        )
        told = [await anext(events) for _ in range(4)]
        assert [json.loads(json.dumps(it.as_json())).get("kind") for it in told] == [
            "start",
            "chunk",
            "end",
            None,
        ]
        assert told[1].as_json() == {
            "type": "transient",
            "kind": "chunk",
            "entry_id": SAID,
            "text": "Hello",
        }
        assert isinstance(told[3], EntryEvent)
        await events.aclose()
        passing.pass_on(scene.journal, scene.chat.log, chunk("late"))
        with pytest.raises(StopAsyncIteration):
            await anext(events)

    run(play())


def test_w_71_who_catches_up_hears_of_what_is_spoken_once_it_is_live() -> None:
    """What was kept meanwhile is not told again as if it came just now."""

    async def play() -> None:
        scene = await Scene.begin("alice")
        await scene.say()
        events = await scene.chat.events().open()
        log, other = scene.chat.log, "demo/plan/alice/said/4"
        turn_id = await scene.ask("alice", gated=False)
        for _ in range(2):
            await scene.go_on("alice", 0)  # it begins, and ends
        result = result_id("demo/plan/alice", turn_id, "i0")
        passing.pass_on(scene.journal, log, ToolLogged(entry_id=result, text="half"))
        passing.pass_on(scene.journal, log, chunk("Hello"))
        passing.pass_on(scene.journal, log, SpeechChunk(entry_id=other, said=Text("more")))
        await scene.journal.append_entry(log, SAID, {"kind": "notice", "text": "x"}, at=1)
        await scene.journal.append_entry(log, "z", {"kind": "notice", "text": "x"}, at=1)
        assert [name_of(it) for it in await until_live(events)] == [
            ("", "entry 1"),
            ("", "entry 2"),
            ("", "entry 3"),
            ("demo/plan/alice", f"3 {result}"),
        ]
        event = await anext(events)
        assert isinstance(event, TransientEvent)
        assert event.as_json()["text"] == "more"

    run(play())


def test_w_43_the_log_of_a_tool_goes_by_until_its_result_stands() -> None:
    async def play() -> None:
        scene = await Scene.begin("alice")
        events = scene.chat.events()
        await until_live(events)
        turn_id = await scene.ask("alice", gated=False)
        name = result_id("demo/plan/alice", turn_id, "i0")
        passing.pass_on(scene.journal, scene.chat.log, ToolLogged(entry_id=name, text="half"))
        assert (await anext(events)).as_json() == {
            "type": "transient",
            "kind": "log",
            "entry_id": name,
            "text": "half",
        }
        await scene.go_on("alice", 0)
        await scene.go_on("alice", 0)
        event = await anext(events)
        assert isinstance(event, ProjectionEvent)
        assert (event.projection.id, event.as_json()["role"]) == (name, "tool")

    run(play())


def test_w_71_what_other_processes_do_is_seen(tmp_path: Path) -> None:
    """Entries, facts, members that come: each by a connection of its own."""

    async def play() -> None:
        path = tmp_path / "w.db"
        async with (
            await SqliteJournal.open(path) as journal,
            await SqliteJournal.open(path) as elsewhere,
        ):
            scene = await Scene.begin("alice", journal=elsewhere)
            events = World(journal, "demo").chat("plan").events()
            await until_live(events)
            await scene.say()
            assert name_of(await anext(events)) == ("", "entry 1")
            await scene.ask("alice")
            assert name_of(await anext(events))[0] == "demo/plan/alice"
            await scene.world.put_agent("bob", SPEC)
            await scene.ask("bob")
            assert name_of(await anext(events))[0] == "demo/plan/bob"
            await scene.chat.clear("bob")
            await scene.ask("bob")
            event = await anext(events)
            assert isinstance(event, ProjectionEvent)
            assert event.cursor == "1;alice:2;bob:2;bob#2:2"
            await events.aclose()

    asyncio.run(play())


def test_w_71_others_are_seen_while_somebody_speaks_all_the_time() -> None:
    async def play() -> None:
        scene = await Scene.begin("alice")
        events = scene.chat.events()
        await until_live(events)
        turn_id = ""
        for number in range(40):
            await asyncio.sleep(0.05)
            if number == 5:
                turn_id = await scene.ask("alice")  # nobody here is told of it
            passing.pass_on(scene.journal, scene.chat.log, chunk("x"))
            event = await anext(events)
            if isinstance(event, ProjectionEvent):
                assert event.projection.call.turn_id == turn_id
                return
        raise AssertionError(turn_id)

    run(play())


def test_w_8_who_hangs_raises_or_leaves_harms_nobody() -> None:
    """W-8, W-9: nothing is read for one who does not ask; the others are told all."""

    async def play() -> None:
        scene = await Scene.begin("alice")
        hangs, leaves, reads = (scene.chat.events() for _ in range(3))
        for events in (hangs, leaves, reads):
            await until_live(events)
        waiting = asyncio.ensure_future(anext(leaves))
        await settled()
        waiting.cancel()
        await scene.say()

        async def fail() -> None:
            async for event in leaves:
                raise RuntimeError(name_of(event)[1])

        with pytest.raises(RuntimeError, match="entry 1"):
            await fail()
        for _ in range(300):
            await scene.say()
        told = [await anext(reads) for _ in range(301)]
        assert [name_of(it)[1] for it in told] == [f"entry {it}" for it in range(1, 302)]
        assert hangs.logs_read[scene.chat.log] == 0
        assert [name_of(await anext(hangs))[1] for _ in range(301)][-1] == "entry 301"

    run(play())


def test_w_8_an_entry_that_is_not_as_it_must_be_ends_no_stream() -> None:
    """Any process may append: what it gets wrong is shown as it is."""

    async def play() -> None:
        scene = await Scene.begin("alice")
        bodies: list[Any] = [{"kind": "message", "role": "king"}, [1], None, {"kind": "poem"}]
        for number, body in enumerate(bodies):
            await scene.journal.append_entry(scene.chat.log, f"{number}", body, at=1)
        told = await until_live(scene.chat.events())
        assert [it.entry.body for it in told if isinstance(it, EntryEvent)] == bodies
        assert all(isinstance(it.says, Unknown) for it in told if isinstance(it, EntryEvent))

    run(play())


def test_w_71_a_reading_that_was_cancelled_loses_nothing() -> None:
    async def play() -> None:
        scene = await Scene.begin("alice")
        for _ in range(3):
            await scene.say()
        await scene.ask("alice", {"n": 1}, {"n": 2})
        events = scene.chat.events()
        told: list[ChatEvent] = []
        while len(told) < 5:
            reading = asyncio.ensure_future(anext(events))
            for _ in range(len(told) % 3):
                await asyncio.sleep(0)
            if not reading.done():
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)
            told.append(await anext(events) if reading.cancelled() else reading.result())
        assert len({name_of(it) for it in told}) == 5

    run(play())


class Failing(WrappedJournal):
    """Fails to read the chat's log, as often as it is told to."""

    def __init__(self) -> None:
        super().__init__(MemoryJournal())
        self.failures: list[Exception] = []

    async def entries(self, log: str, *, after: int = 0, limit: int = PAGE) -> tuple[Entry, ...]:
        if self.failures and log == "demo/plan":
            raise self.failures.pop()
        return await super().entries(log, after=after, limit=limit)


def test_w_71_a_journal_that_fails_for_a_while_is_read_again() -> None:
    """Then the stream ends with its error, and its cursor is where it was; what lasts ends it."""

    async def play() -> None:
        journal = Failing()
        scene = await Scene.begin("alice", journal=journal)
        await scene.say()
        events = await scene.chat.events().open()
        journal.failures = [JournalError("disk")] * len(RETRIES)
        assert name_of(await anext(events)) == ("", "entry 1")
        assert isinstance(await anext(events), LiveEvent)
        await scene.say()
        journal.failures = [JournalError("disk")] * (len(RETRIES) + 1)
        with pytest.raises(JournalError, match="disk"):
            await anext(events)
        assert events.cursor == "1"
        assert name_of(await anext(events)) == ("", "entry 2")
        await scene.say()
        journal.failures = [CorruptLog(log="demo/plan", number=3, cause="damaged", fix="mend it")]
        with pytest.raises(CorruptLog):
            await anext(events)

    run(play())


def test_w_9_a_stream_that_waits_costs_one_look_for_all() -> None:
    """A hundred who follow ten chats: two questions to the journal, four times a second."""

    async def play() -> None:
        journal = Counting()
        scene = await Scene.begin("alice", journal=journal)
        chats = [await scene.world.open_chat(f"c{number}") for number in range(10)]
        following = [chat.events() for chat in chats for _ in range(10)]
        for events in following:
            await until_live(events)
        waiting = [asyncio.ensure_future(anext(events)) for events in following]
        await settled()
        await asyncio.sleep(1)
        journal.asked.clear()
        await asyncio.sleep(10)
        assert 0 < sum(journal.asked.values()) <= 2 * 10 / watching.POLL + 2
        for reading in waiting:
            reading.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        for events in following:
            await events.aclose()
        journal.asked.clear()
        await asyncio.sleep(10)
        assert sum(journal.asked.values()) == 0
        events = scene.chat.events()
        await until_live(events)
        await asyncio.sleep(1)
        journal.asked.clear()
        del events  # without a word
        gc.collect()
        await asyncio.sleep(10)
        assert sum(journal.asked.values()) <= 2

    run(play())


class Counting(WrappedJournal):
    """Counts what it is asked while nothing happens."""

    def __init__(self) -> None:
        super().__init__(MemoryJournal())
        self.asked: Counter[str] = Counter()

    async def logs(self, prefix: str = "") -> tuple[LogEntry, ...]:
        self.asked["logs"] += 1
        return await super().logs(prefix)

    async def ends(self, run_ids: Sequence[str]) -> Mapping[str, Cursor]:
        self.asked["ends"] += 1
        return await super().ends(run_ids)

    async def entries(self, log: str, *, after: int = 0, limit: int = PAGE) -> tuple[Entry, ...]:
        self.asked["entries"] += 1
        return await super().entries(log, after=after, limit=limit)

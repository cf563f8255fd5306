"""What others do while a stream looks, or fails to: it is seen all the same (W-71)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

import pytest

from turnlock.runtime.errors import JournalError
from turnlock.runtime.journal.contract import LogEntry
from turnlock.runtime.journal.ledger import Cursor
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.world import Events, LiveEvent, World

from ..runtime.faulty_journal import WrappedJournal
from ..runtime.virtual import run
from .scenes import SPEC, Scene, name_of


class Looked(WrappedJournal):
    """Fails to list logs while it is told to, and has something happen before it says the ends."""

    def __init__(self) -> None:
        super().__init__(MemoryJournal())
        self.fails = False
        self.before: dict[int, Callable[[], Awaitable[None]]] = {}
        """By how many more questions for the ends come first."""

    async def logs(self, prefix: str = "") -> tuple[LogEntry, ...]:
        if self.fails:
            raise JournalError("disk")
        return await super().logs(prefix)

    async def ends(self, run_ids: Sequence[str]) -> Mapping[str, Cursor]:
        act = self.before.pop(0, None)
        self.before = {count - 1: it for count, it in self.before.items()}
        if act is not None:
            await act()
        return await super().ends(run_ids)


async def live(events: Events) -> None:
    """Read the past."""
    while not isinstance(await anext(events), LiveEvent):
        pass


async def bob_comes(scene: Scene) -> None:
    """Another process puts an agent, who asks for something."""
    other = Scene(scene.journal, World(_inner(scene), "demo"), scene.chat)
    await other.world.put_agent("bob", SPEC)
    other.journal = _inner(scene)
    await other.ask("bob")


def _inner(scene: Scene) -> WrappedJournal:
    assert isinstance(scene.journal, WrappedJournal)
    return WrappedJournal(scene.journal.inner)


def test_w_71_a_look_that_failed_is_made_again() -> None:
    """Though it was told once only that there is more to see."""

    async def play() -> None:
        journal = Looked()
        scene = await Scene.begin("alice", journal=journal)
        events = scene.chat.events()
        await live(events)
        await bob_comes(scene)
        await asyncio.sleep(1)  # the look for all who follow has seen it
        journal.fails = True
        with pytest.raises(JournalError, match="disk"):
            await anext(events)
        journal.fails = False
        async with asyncio.timeout(60):
            assert name_of(await anext(events))[0] == "demo/plan/bob"

    run(play())


def test_w_71_what_happens_while_one_begins_to_follow_is_seen() -> None:
    """The others were woken by it: whoever has just come is woken, too."""

    async def play() -> None:
        journal = Looked()
        scene = await Scene.begin("alice", journal=journal)
        first, second = scene.chat.events(), scene.chat.events()
        await live(first)

        async def act() -> None:
            await bob_comes(scene)
            await asyncio.sleep(1)

        await asyncio.sleep(0.1)
        journal.before = {1: act}
        async with asyncio.timeout(60):
            for events in (second, first):
                told = [await anext(events)]
                while isinstance(told[-1], LiveEvent):
                    told.append(await anext(events))
                assert name_of(told[-1])[0] == "demo/plan/bob"

    run(play())


def test_a_look_for_nobody_that_fails_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    """Whoever followed has gone, and closed the journal while it was looked into."""

    async def play(goes: bool) -> None:
        journal = Looked()
        scene = await Scene.begin("alice", journal=journal)
        await scene.ask("alice")
        events = scene.chat.events()
        await live(events)

        async def act() -> None:
            if goes:
                await events.aclose()
            raise JournalError("it was closed")

        journal.before = {0: act}
        await asyncio.sleep(1)
        assert journal.before == {}

    for goes in (False, True):
        caplog.clear()
        run(play(goes))
        assert ("it was closed" in caplog.text) is not goes

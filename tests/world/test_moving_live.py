"""Moving while something happens: exports of worlds that run, imports that are broken off."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from turnlock.agent.conversation import Conversation
from turnlock.models.facts import Fact
from turnlock.models.run import Run
from turnlock.models.values import Json
from turnlock.runtime.errors import JournalError
from turnlock.runtime.journal.contract import Appended, Busy, Entered
from turnlock.runtime.journal.ledger import Note
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.world import Host, World, exporting, worlds
from turnlock.world.moving import ExportError, export_world, import_world
from turnlock.world.names import member_run

from ..depth import DEEP
from ..runtime.faulty_journal import WrappedJournal
from ..runtime.virtual import LoopClock, run
from .moved import exported, kept_by, scene_that_pays
from .playing import BRIEF, Played, calls, play, says
from .test_moving import Shop

T = TypeVar("T")


class Dying(WrappedJournal):
    """A journal whose process dies at one of its writes: before it is kept, or after."""

    def __init__(self, inner: MemoryJournal, *, at: int, after: bool) -> None:
        super().__init__(inner)
        self._left = at
        self._after = after
        self.died = False

    async def declare(self, run: Run) -> None:
        await self._write(self.inner.declare(run))

    async def append(
        self,
        run_id: str,
        *,
        fence: int | None,
        after: int,
        facts: Sequence[Fact],
        busy: Busy,
        **more: Any,
    ) -> Appended:
        appending = self.inner.append(
            run_id, fence=fence, after=after, facts=facts, busy=busy, **more
        )
        return await self._write(appending)

    async def note(self, run_id: str, *, fence: int | None, notes: Sequence[Note]) -> Appended:
        return await self._write(self.inner.note(run_id, fence=fence, notes=notes))

    async def append_entry(self, log: str, entry_id: str, body: Json, *, at: float) -> Entered:
        return await self._write(self.inner.append_entry(log, entry_id, body, at=at))

    async def _write(self, writing: Awaitable[T]) -> T:
        self._left -= 1
        if self._left or self._after:
            kept = await writing
            if self._left:
                return kept
        else:
            asyncio.ensure_future(writing).cancel()
        self.died = True
        raise JournalError("the process died")


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("into", [None, "other"])
def test_w_72_an_import_that_was_broken_off_is_no_world_until_it_is_finished(
    into: str | None, after: bool, tmp_path: Path
) -> None:
    """Killed at each of its writes: nobody sees a world, and the same import again finishes it."""

    async def it() -> None:
        path = await exported(await scene_that_pays(), tmp_path)
        whole = MemoryJournal()
        await import_world(whole, path, world=into, clock=LoopClock())
        want, at = await kept_by(whole), 0
        while True:
            at += 1
            inner = MemoryJournal()
            dying = Dying(inner, at=at, after=after)
            try:
                await import_world(dying, path, world=into, clock=LoopClock())
            except JournalError:
                assert dying.died
            if not dying.died:
                break
            if await World(inner, into or "demo").exists():
                assert await kept_by(inner) == want, "it is there only once it is whole"
                continue
            assert await worlds(inner) == ()
            await import_world(inner, path, world=into, clock=LoopClock())
            assert await kept_by(inner) == want
        assert at == 10, "a name, a run, its notes and facts, two logs; and then it lives"

    run(it())


def test_w_72_a_name_is_for_one_import(tmp_path: Path) -> None:
    """Whoever has begun has it, until that is finished; another file cannot mix with it."""

    async def it() -> None:
        first = await exported(await scene_that_pays(), tmp_path)
        second = tmp_path / "second"
        second.mkdir()
        other = await exported(await scene_that_pays(approved=False), second)
        inner = MemoryJournal()
        with pytest.raises(JournalError):
            await import_world(Dying(inner, at=6, after=True), first, clock=LoopClock())
        before = await kept_by(inner)
        with pytest.raises(ExportError, match="of another file into this name was begun"):
            await import_world(inner, other, clock=LoopClock())
        assert await kept_by(inner) == before
        await import_world(inner, other, world="second", clock=LoopClock())
        await import_world(inner, first, clock=LoopClock())
        assert [it.name for it in await worlds(inner)] == ["demo", "second"]

    run(it())


def test_w_72_what_has_come_between_is_not_written_over(tmp_path: Path) -> None:
    """Somebody says something in a chat that is on its way in: that import goes no further."""

    async def it() -> None:
        path = await exported(await scene_that_pays(), tmp_path)
        inner = MemoryJournal()
        with pytest.raises(JournalError):
            await import_world(Dying(inner, at=4, after=True), path, clock=LoopClock())
        await inner.append_entry("demo/plan", "x", {"kind": "notice", "text": "x"}, at=1.0)
        with pytest.raises(ExportError, match="has something else already"):
            await import_world(inner, path, clock=LoopClock())
        assert not await World(inner, "demo").exists()

    run(it())


async def talking(shop: Shop) -> Played:
    """Two agents who talk to each other, and one of them looks something up at each turn."""
    alice = says(calls("look", to="bob"), "@bob and you?", calls("look", to="bob"), "@bob yes")
    bob = says("@alice fine", "@alice well", "so")
    return await play({"alice": (alice, {"tools": ("look",)}), "bob": bob})


async def checked(journal: MemoryJournal) -> int:
    """Assert that whatever is referred to is there, and each run like a crash might leave it."""
    said = 0
    for agent in ("alice", "bob"):
        run_id = member_run("demo", "plan", agent)
        try:
            notes = [it.note for it in await journal.notes(run_id)]
        except KeyError:
            continue
        conversation = Conversation(run_id)
        conversation.load(notes)
        async for fact in journal.facts(run_id):
            conversation.take(fact)
        said += len(conversation.said)
        ids = {it.entry_id for it in await journal.entries("demo/plan")}
        published = [it for it in ids if it.startswith(f"{run_id}/said/")]
        assert all(int(it.rpartition("/")[2]) <= len(conversation.said) for it in published)
        assert max(map(exporting.heard_in, notes), default=0) <= len(ids)
        assert conversation.epoch == len(conversation.turns)
    return said


def test_w_72_exported_at_any_moment_while_it_runs_it_goes_on_elsewhere(tmp_path: Path) -> None:
    """Everything that is referred to is there; the copy ends its talk, without a tool."""
    lengths = set[int]()

    async def it(moment: int) -> None:
        shop = Shop()
        played = await talking(shop)
        path = tmp_path / f"{moment}.world"
        async with played.host(toolboxes=shop.tools) as host:
            await played.chat.say("human", "@alice hello", message_id="m1")
            for _ in range(moment):
                await asyncio.sleep(0)
            await export_world(played.journal, "demo", path)
            await host.idle("plan")
        there = MemoryJournal()
        await import_world(there, path, clock=LoopClock())
        lengths.add(await checked(there))
        again = await talking(Shop())
        shop.paid.clear()
        async with Host(
            there, "demo", models=again.models, toolboxes=shop.tools, settings=BRIEF,
            clock=LoopClock(),
        ) as host:  # fmt: skip
            await host.idle("plan")
        assert shop.paid == []
        await checked(there)

    few, more = (9, 37) if DEEP else (31, 97)
    for moment in (*range(0, 200, few), *range(200, 700, more)):
        run(it(moment))
    assert len(lengths) > 5, "the moments were not all the same"


def _nothing(_: Note) -> int:
    return 0


def test_w_72_a_run_ends_before_what_the_file_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is said while the runs are read is in no log of the file: nobody there has heard it.

    The control reads each run to its end, and is found out.
    """

    async def it(path: Path) -> None:
        played = await play({"alice": says("Yes."), "bob": says("@alice so", "so")})
        async with played.host() as host:
            await played.chat.say("human", "@alice hello", message_id="m1")
            await host.idle("plan")

            class Late(WrappedJournal):
                """More is said, and answered, once the ends of the logs were looked up."""

                async def logs(self, prefix: str = "") -> Any:
                    found = await self.inner.logs(prefix)
                    await played.chat.say("human", "@alice and now?", message_id="m2")
                    await host.idle("plan")
                    return found

            await export_world(Late(played.journal), "demo", path)
        there = MemoryJournal()
        await import_world(there, path, clock=LoopClock())
        assert len(await there.entries("demo/plan")) == 2
        notes = await there.notes("demo/plan/alice")
        assert [it.note.id for it in notes] == ["said/1", "said/2"]

    run(it(tmp_path / "demo.world"))
    monkeypatch.setattr(exporting, "heard_in", _nothing)
    with pytest.raises(ExportError, match="has heard more"):
        run(it(tmp_path / "control.world"))

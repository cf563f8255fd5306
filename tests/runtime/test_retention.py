"""Runs that are over leave a journal, into an archive or for good; what is open never does."""

from __future__ import annotations

import asyncio
import hashlib
import os
import resource
import stat
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from turnlock import Claim, Delivery, Fact, OpenTurn, Report, Run
from turnlock.models.deliveries import Acknowledge, Tick
from turnlock.runtime import retention
from turnlock.runtime.archive import ArchiveError, read_archive
from turnlock.runtime.errors import RunForgotten
from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.journal.ledger import Noted
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.journal.sqlite import SqliteJournal
from turnlock.runtime.owners import new_owner
from turnlock.runtime.retention import Retired, archive_runs, forget_runs
from turnlock.runtime.submitting import SharedRun, submit
from turnlock.verification.traces.log import check

from .faulty_journal import WrappedJournal
from .kept_notes import message, thread_note
from .test_runtime import World, calls
from .virtual import START, settled

NAMES = ("r1", "r2", "r3")


class Hand:
    """A clock that is set by hand: the files are written in threads, so time is not virtual."""

    def __init__(self) -> None:
        self.at = START

    def now(self) -> float:
        return self.at


CLOCK = Hand()


def over(turn_id: str) -> list[Delivery]:
    """What brings a turn to its end."""
    return [
        Claim(turn_id=turn_id, invocation_id="a", attempt=1, worker="me"),
        Report(turn_id=turn_id, invocation_id="a", attempt=1, result="é"),
        Acknowledge(turn_id=turn_id),
    ]


async def played(journal: Journal, run_id: str, *, ends: bool = True) -> list[Fact]:
    """A run of one turn, which is over unless it is to stay open; it has a note."""
    await journal.declare(Run(run_id=run_id, agent_name="Ada"))
    shared = await SharedRun.open(journal, run_id, policies={}, clock=CLOCK)
    await journal.note(run_id, fence=None, notes=[thread_note("said/1", prompt=[run_id])])
    await shared.submit(OpenTurn(turn_id="t", calls=tuple(calls("a"))))
    if ends:
        await shared.submit(*over("t"))
    return [fact async for fact in journal.facts(run_id)]


async def filled() -> Journal:
    journal = MemoryJournal()
    for name in NAMES:
        await played(journal, name)
    return journal


async def archived(journal: Journal, path: Path, *names: str) -> Retired:
    return await archive_runs(journal, names, path=path, clock=CLOCK)


async def names_of(journal: Journal) -> list[str]:
    return [entry.run.run_id async for entry in journal.run_entries()]


def test_what_was_archived_is_in_the_file_and_nowhere_else(tmp_path: Path) -> None:
    """All facts and notes of each run, in a log that conforms; the others stay as they were."""
    file = tmp_path / "old.jsonl"

    async def play() -> None:
        journal = await filled()
        kept = {name: [fact async for fact in journal.facts(name)] for name in NAMES}
        retired = await archived(journal, file, "r3", "r1")

        assert (retired.removed, retired.left) == (("r3", "r1"), ())
        assert retired.facts == len(kept["r1"]) + len(kept["r3"])
        assert await names_of(journal) == ["r2"]
        assert [fact async for fact in journal.facts("r2")] == kept["r2"]
        with pytest.raises(RunForgotten):
            await journal.read("r1")
        assert (await journal.entry("r1")).owner is None

    asyncio.run(play())
    outcome = check(file.read_bytes().splitlines(keepends=True))
    assert outcome.broken is None
    assert [it.run_id for it in outcome.runs] == ["r3", "r1"]
    assert file.read_text().count('{"note":') == 2
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    sums = tmp_path / "old.jsonl.sha256"
    assert sums.read_text() == f"{digest}  old.jsonl\n"
    assert sorted(tmp_path.iterdir()) == [file, sums]


async def _owned(journal: Journal) -> None:
    await journal.own("r1", owner=new_owner(), now=CLOCK.now(), lease=30.0)


async def _posted(journal: Journal) -> None:
    await journal.post("r1", Tick())


async def _opened(journal: Journal) -> None:
    shared = await SharedRun.open(journal, "r1", policies={}, clock=CLOCK)
    await shared.submit(OpenTurn(turn_id="t2", calls=tuple(calls("a"))))


async def _said_otherwise(journal: Journal) -> None:
    """A turn is open, and the row says that nothing is."""
    kernel = (await SharedRun.open(journal, "r1", policies={})).kernel
    facts = kernel.receive(OpenTurn(turn_id="t2", calls=tuple(calls("a"))), 9e9).facts
    after = facts[0].sequence - 1
    await journal.append("r1", fence=None, after=after, facts=facts, busy=False)


OPEN: list[tuple[Callable[[Journal], Awaitable[None]], str]] = [
    (_owned, "owns it"),
    (_posted, "1 posts wait"),
    (_opened, "under way"),
    (_said_otherwise, "under way"),
]


@pytest.mark.parametrize(("happens", "why"), OPEN)
def test_what_is_open_stays_and_is_named(
    tmp_path: Path, happens: Callable[[Journal], Awaitable[None]], why: str
) -> None:
    """By both, whole, with nobody's hand on it; what else was asked for goes."""

    async def play() -> None:
        journal = await filled()
        await happens(journal)
        facts = [fact async for fact in journal.facts("r1")]
        owner = (await journal.entry("r1")).owner
        written = await archived(journal, tmp_path / "old.jsonl", "r1", "r2")
        dropped = await forget_runs(journal, ["r1", "r3"], clock=CLOCK)

        assert (written.removed, dropped.removed) == (("r2",), ("r3",))
        for retired in (written, dropped):
            (left,) = retired.left
            assert left.run_id == "r1"
            assert why in left.why
        assert [fact async for fact in journal.facts("r1")] == facts
        assert (await journal.entry("r1")).owner == owner
        assert [*read_archive(tmp_path / "old.jsonl").sections] == ["r2"]

    asyncio.run(play())


def test_a_run_that_a_runtime_has_open_stays(tmp_path: Path) -> None:
    """Idle as it is; once it is closed there, it goes."""

    async def play() -> None:
        world = World()
        async with world.process(world.tool("a")) as runtime:
            await runtime.open_run(Run(run_id="r"))
            await runtime.open_turn("r", calls("a"), turn_id="t")
            await settled()
            (left,) = (await archived(world.journal, tmp_path / "a", "r")).left
            assert "owns it" in left.why
            await runtime.close_run("r")
            assert (await archived(world.journal, tmp_path / "a", "r")).removed == ("r",)
            with pytest.raises(RunForgotten, match="run_forgotten"):
                await runtime.open_run(Run(run_id="r"))
            with pytest.raises(RunForgotten):
                await runtime.view("r")
            subscription = runtime.subscribe("r")
            with pytest.raises(RunForgotten):
                await anext(subscription)
            await subscription.aclose()

    asyncio.run(play())


class Interfering(WrappedJournal):
    """Somebody else writes to a run when it is about to be removed."""

    async def forget(
        self, run_id: str, *, fence: int, after: int, at: float, gone: str | None = None
    ) -> None:
        await self.inner.release(run_id, fence=fence)
        await _opened(self.inner)
        await super().forget(run_id, fence=fence, after=after, at=at, gone=gone)


def test_a_run_that_changed_meanwhile_stays(tmp_path: Path) -> None:
    """What is in the archive then is a copy; what happened since is in the journal alone."""

    async def play() -> None:
        journal = Interfering(await filled())
        retired = await archived(journal, tmp_path / "old.jsonl", "r1")

        assert retired.removed == ()
        assert "under way" in retired.left[0].why
        entry = await journal.entry("r1")
        assert (entry.forgotten, entry.busy, entry.owner) == (None, True, None)

    asyncio.run(play())


def test_nobody_adds_anything_between_the_copy_and_the_removal(tmp_path: Path) -> None:
    """The run is owned meanwhile: a note or a fact from outside would be lost."""

    class Late(WrappedJournal):
        async def forget(
            self, run_id: str, *, fence: int, after: int, at: float, gone: str | None = None
        ) -> None:
            said = await self.inner.note(run_id, fence=None, notes=[thread_note("late")])
            assert said == "fenced"
            await super().forget(run_id, fence=fence, after=after, at=at, gone=gone)

    async def play() -> None:
        retired = await archived(Late(await filled()), tmp_path / "old.jsonl", "r1")
        assert retired.removed == ("r1",)

    asyncio.run(play())


class Crash(BaseException):
    """The process ends."""


@pytest.mark.parametrize("crashes", range(4))
def test_a_crash_at_any_step_loses_nothing_and_the_command_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crashes: int
) -> None:
    """Before the file, behind it, between two removals, behind all: then all is in the file."""
    file = tmp_path / "old.jsonl"
    monkeypatch.setattr(retention, "new_owner", lambda: "whose process nobody sees")

    class Crashing(WrappedJournal):
        removals = 0

        async def forget(
            self, run_id: str, *, fence: int, after: int, at: float, gone: str | None = None
        ) -> None:
            self.removals += 1
            if self.removals == crashes:
                raise Crash
            await super().forget(run_id, fence=fence, after=after, at=at, gone=gone)

        async def notes(self, run_id: str, **more: Any) -> tuple[Noted, ...]:
            if crashes == 0 and run_id == "r2":
                raise Crash
            return await self.inner.notes(run_id, **more)

        async def release(self, run_id: str, *, fence: int) -> None:
            """Nobody lets anything go who is dead."""

    async def play() -> None:
        journal = await filled()
        facts = {name: [fact async for fact in journal.facts(name)] for name in NAMES}
        if crashes < 3:
            with pytest.raises(Crash):
                await archived(Crashing(journal), file, "r1", "r2")
        else:
            await archived(Crashing(journal), file, "r1", "r2")
        assert file.exists() is (crashes > 0)

        CLOCK.at += 61.0  # until the lease of who crashed is over
        again = await archived(journal, file, "r1", "r2")

        assert (set(again.removed) | set(again.before), again.left) == ({"r1", "r2"}, ())
        sections = read_archive(file).sections
        assert {name: it.facts for name, it in sections.items()} == {
            name: len(facts[name]) for name in ("r1", "r2")
        }
        assert await names_of(journal) == ["r3"]

    asyncio.run(play())


def test_a_file_that_is_there_is_never_written_over(tmp_path: Path) -> None:
    """Neither another archive nor anything else; a run that it does not hold stays."""
    file = tmp_path / "old.jsonl"

    async def play() -> None:
        journal = await filled()
        await archived(journal, file, "r1")
        before = file.read_bytes()
        retired = await archived(journal, file, "r1", "r2")
        assert (retired.removed, retired.before) == ((), ("r1",))
        assert "does not hold run 'r2'" in retired.left[0].why
        other = await archived(journal, tmp_path / "other.jsonl", "r1")
        assert "run_forgotten" in other.left[0].why
        assert file.read_bytes() == before

        text = tmp_path / "text"
        text.write_text("hello\n")
        with pytest.raises(ArchiveError, match="line 1"):
            await archived(journal, text, "r2")
        assert await names_of(journal) == ["r2", "r3"]
        assert (await journal.entry("r2")).owner is None

    asyncio.run(play())


def _no_line(lines: list[bytes]) -> list[bytes]:
    return [*lines[:3], *lines[4:]]


def _cut(lines: list[bytes]) -> list[bytes]:
    return [*lines[:-1], lines[-1][:-9]]


def _flipped(lines: list[bytes]) -> list[bytes]:
    return [*lines[:2], lines[2].replace(b"TURN", b"TVRN"), *lines[3:]]


def _headless(lines: list[bytes]) -> list[bytes]:
    return lines[1:]


def _anothers(lines: list[bytes]) -> list[bytes]:
    return [lines[0], lines[1].replace(b'"r1"', b'"r9"', 1), *lines[2:]]


@pytest.mark.parametrize("damage", [_no_line, _cut, _flipped, _headless, _anothers])
def test_an_archive_that_is_not_whole_is_told_from_one_that_is(
    tmp_path: Path, damage: Callable[[list[bytes]], list[bytes]]
) -> None:
    """With the line; nothing is removed for it."""
    file = tmp_path / "old.jsonl"

    async def play() -> None:
        journal = await filled()
        await archived(journal, file, "r1")
        lines = file.read_bytes().splitlines(keepends=True)
        file.write_bytes(b"".join(damage(lines)))
        with pytest.raises(ArchiveError, match=r"line \d+"):
            await archived(journal, file, "r2")
        assert "r2" in await names_of(journal)

    asyncio.run(play())


def test_what_is_read_back_otherwise_removes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that keeps other bytes: the file gets no name, and the runs stay."""

    def lying(handle: int) -> None:
        os.fsync(handle)
        (draft,) = tmp_path.glob("*.new")
        draft.write_bytes(draft.read_bytes().replace("é".encode(), b"e!"))

    monkeypatch.setattr("turnlock.runtime.archive.fsync", lying)

    async def play() -> None:
        journal = await filled()
        with pytest.raises(ArchiveError, match="not what was written"):
            await archived(journal, tmp_path / "old.jsonl", "r1")
        assert await names_of(journal) == [*NAMES]

    asyncio.run(play())
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_removes_nothing_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """Whenever it is full: while a run is written, and when the last of it is."""
    big = "x" * 100_000

    async def play() -> None:
        journal = await filled()
        await journal.note("r2", fence=None, notes=[message("said/2", "user", text=big)])
        for names in (["r1"], ["r2"], ["r1", "r2"]):
            with pytest.raises(ArchiveError, match="nothing was removed"):
                await archive_runs(journal, names, path=tmp_path / "old.jsonl", clock=CLOCK)
            assert await names_of(journal) == [*NAMES]
            assert (await journal.entry(names[0])).owner is None

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        asyncio.run(play())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == []


def test_by_age(tmp_path: Path) -> None:
    """Without names all that are old enough, what is open of them named; with, those of them."""

    async def play() -> None:
        journal = await filled()
        await played(journal, "open", ends=False)
        await journal.declare(Run(run_id="empty"))
        CLOCK.at += 100.0
        await played(journal, "new")

        named = await forget_runs(journal, ["r1", "new"], older_than=50.0, clock=CLOCK)
        assert named.removed == ("r1",)
        assert [(it.run_id, "not that old" in it.why) for it in named.left] == [("new", True)]
        path = tmp_path / "old.jsonl"
        every = await archive_runs(journal, path=path, older_than=50.0, clock=CLOCK)
        assert every.removed == ("r2", "r3")
        assert [it.run_id for it in every.left] == ["open"]
        assert await names_of(journal) == ["open", "empty", "new"]
        none = await archive_runs(journal, path=tmp_path / "no", older_than=50.0, clock=CLOCK)
        assert (none.removed, none.digest) == ((), None)
        assert not (tmp_path / "no").exists()

    asyncio.run(play())


def test_a_removed_run_is_refused_by_all_that_writes() -> None:
    async def play() -> None:
        journal = await filled()
        shared = await SharedRun.open(journal, "r1", policies={}, clock=CLOCK)
        assert (await forget_runs(journal, ["r1"], clock=CLOCK)).removed == ("r1",)

        for refused in (
            lambda: shared.submit(OpenTurn(turn_id="t9", calls=tuple(calls("a")))),
            lambda: SharedRun.open(journal, "r1", policies={}),
            lambda: submit(journal, "r1", Tick(), within=1.0),
        ):
            with pytest.raises(RunForgotten, match="run_forgotten"):
                await refused()

    asyncio.run(play())


def test_a_sqlite_journal_archives_its_runs(tmp_path: Path) -> None:
    """On a real file, and its neighbours are whole."""

    async def play() -> Sequence[Fact]:
        async with await SqliteJournal.open(tmp_path / "a.db") as journal:
            kept = [await played(journal, name) for name in NAMES]
            retired = await archive_runs(journal, ["r1", "r2"], path=tmp_path / "old.jsonl")
            assert retired.removed == ("r1", "r2")
            assert [fact async for fact in journal.facts("r3")] == kept[2]
            await journal.check()
            assert (await journal.entry("r1")).forgotten is not None
            return kept[2]

    facts = asyncio.run(play())
    assert facts[0].at < START * 2
    outcome = check((tmp_path / "old.jsonl").read_bytes().splitlines(keepends=True))
    assert (outcome.broken, len(outcome.runs)) == (None, 2)


class ForgetsAnything(WrappedJournal):
    """Negative control: whatever a run does, it is removed."""

    async def forget(
        self, run_id: str, *, fence: int, after: int, at: float, gone: str | None = None
    ) -> None:
        entry = await self.inner.entry(run_id)
        await self.inner.forget(
            run_id, fence=entry.fence, after=entry.sequence, at=at, gone=entry.owner
        )


def test_without_the_look_at_fence_and_sequence_a_late_fact_is_lost(tmp_path: Path) -> None:
    """The negative control of `test_a_run_that_changed_meanwhile_stays`."""

    class Unnoticed(WrappedJournal):
        async def forget(
            self, run_id: str, *, fence: int, after: int, at: float, gone: str | None = None
        ) -> None:
            await self.inner.release(run_id, fence=fence)
            shared = await SharedRun.open(self.inner, run_id, policies={}, clock=CLOCK)
            await shared.submit(OpenTurn(turn_id="t2", calls=tuple(calls("a"))), *over("t2"))
            before = (await self.inner.entry(run_id)).sequence
            assert before > after
            await super().forget(run_id, fence=fence, after=after, at=at, gone=gone)

    async def play() -> None:
        honest = await archived(Unnoticed(await filled()), tmp_path / "a", "r1")
        assert honest.removed == ()
        blind = Unnoticed(ForgetsAnything(await filled()))
        retired = await archived(blind, tmp_path / "b", "r1")
        assert retired.removed == ("r1",)
        assert (await blind.entry("r1")).sequence > read_archive(tmp_path / "b").sections[
            "r1"
        ].facts

    asyncio.run(play())

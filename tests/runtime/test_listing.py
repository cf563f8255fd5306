"""Lists of runs: each entry says what the fold of its facts says, and no fact is read for it."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from turnlock import Claim, Decide, Fact, Lose, OpenTurn, Report, Run
from turnlock.models.record import changed
from turnlock.runtime.journal.contract import PAGE, Journal, RunEntry
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.journal.sqlite import SqliteJournal
from turnlock.runtime.listing import list_runs
from turnlock.runtime.submitting import SharedRun
from turnlock.views.run_view import RunView
from turnlock.views.status import Status

from .faulty_journal import WrappedJournal
from .test_runtime import RUN, World, calls
from .virtual import run, settled

WRITTEN = Path(__file__).parents[1] / "data" / "journals" / "0.1" / "journal.db"


class Counted(WrappedJournal):
    """Counts the facts that are read."""

    facts_read = 0

    async def read(self, run_id: str, *, after: int = 0, limit: int = PAGE) -> tuple[Fact, ...]:
        page = await self.inner.read(run_id, after=after, limit=limit)
        self.facts_read += len(page)
        return page


async def agrees(journal: Journal, run_id: str = "r") -> RunEntry:
    """The entry of a run, which says what the view of all its facts says."""
    (entry,) = [it for it in await list_runs(journal) if it.run.run_id == run_id]
    facts = [fact async for fact in journal.facts(run_id)]
    view = RunView.of(entry.run, facts)
    assert (entry.status, entry.busy) == (view.status, view.busy)
    assert (entry.waiting, entry.doubts) == (len(view.waiting), len(view.in_doubt))
    assert (entry.began, entry.changed) == (facts[0].at, facts[-1].at)
    return entry


def test_what_a_runtime_keeps_tells_how_its_runs_stand() -> None:
    """At each moment of a turn: a call that waits, one that runs, and what is over."""

    async def play() -> None:
        world = World()
        gate = asyncio.Event()

        async def hold() -> None:
            await gate.wait()

        pay = world.tool("pay", hold, approval=True)
        async with world.process(pay, world.tool("look")) as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", calls("pay", "look"), turn_id="t1")
            await settled()
            entry = await agrees(world.journal)
            assert (entry.status, entry.waiting) == (Status.AWAITING_APPROVAL, 1)
            await runtime.approve("r", turn_id="t1", invocation_id="pay")
            await settled()
            assert (await agrees(world.journal)).status is Status.EXECUTING
            gate.set()
            await settled()
            assert (await agrees(world.journal)).status is Status.IDLE
            await runtime.open_turn("r", calls("pay"), turn_id="t2")
            await runtime.interrupt("r", turn_id="t2")
            assert (await agrees(world.journal)).status is Status.INTERRUPTED

    run(play())


def test_what_the_writers_of_a_shared_run_keep_tells_it_too() -> None:
    """Whoever of them was quicker, and after a conflict."""

    async def play() -> None:
        journal = MemoryJournal()
        await journal.declare(RUN)
        one, other = [await SharedRun.open(journal, "r", policies={}) for _ in range(2)]
        await one.submit(OpenTurn(turn_id="t", calls=tuple(calls("a", "b"))))
        await other.submit(Claim(turn_id="t", invocation_id="a", attempt=1, worker="me"))
        await agrees(journal)
        await one.submit(
            Lose(turn_id="t", invocation_id="a"),
            Report(turn_id="t", invocation_id="b", attempt=1, result=1),
        )
        assert (await agrees(journal)).doubts == 1

    run(play())


def test_nothing_is_folded_for_a_list() -> None:
    """However many runs there are; only those whose last append said nothing."""

    async def play() -> None:
        journal = Counted(MemoryJournal())
        for number in range(50):
            await journal.declare(Run(run_id=f"r{number}"))
            shared = await SharedRun.open(journal, f"r{number}", policies={})
            await shared.submit(OpenTurn(turn_id="t", calls=tuple(calls("a"))))
        journal.facts_read = 0

        entries = await list_runs(journal)
        assert {entry.status for entry in entries} == {Status.EXECUTING}
        assert journal.facts_read == 0

        kernel = (await SharedRun.open(journal, "r7", policies={})).kernel
        claim = Claim(turn_id="t", invocation_id="a", attempt=1, worker="me")
        facts = kernel.receive(claim, 9e9).facts
        await journal.append("r7", fence=None, after=1, facts=facts, busy=True)
        journal.facts_read = 0
        assert (await journal.entry("r7")).status is None
        (entry,) = await list_runs(journal, after="r6", limit=1)

        assert (entry.status, entry.changed) == (Status.EXECUTING, 9e9)
        assert 0 < journal.facts_read <= 2 * entry.sequence + 2

    run(play())


def test_the_runs_of_a_journal_of_version_0_1_are_folded(tmp_path: Path) -> None:
    """Its rows say nothing: the list says what its facts say; and once it is written, its row."""
    path = Path(shutil.copy(WRITTEN, tmp_path / "journal.db"))

    async def play() -> None:
        async with await SqliteJournal.open(path, create=False) as journal:
            story, empty = await journal.runs()
            assert (story.status, empty.status) == (None, Status.IDLE)
            story, empty = await list_runs(journal)
            facts = [fact async for fact in journal.facts("story")]
            view = RunView.of(story.run, facts)
            assert (story.status, story.waiting) == (view.status, len(view.waiting))
            assert (story.doubts, story.began) == (len(view.in_doubt), facts[0].at)
            assert (story.changed, empty.changed) == (facts[-1].at, None)

            shared = await SharedRun.open(journal, "story", policies={})
            waits = Decide(turn_id="t4", invocation_id="waits", approved=True)
            await shared.submit(waits)
            assert (await journal.entry("story")).status is not None
            await agrees(journal, "story")

    asyncio.run(play())


def test_what_cannot_be_read_hides_no_other_run() -> None:
    """A run whose facts no run can have written is listed without a status."""

    async def play() -> None:
        journal = MemoryJournal()
        for name in ("bad", "good"):
            await journal.declare(Run(run_id=name))
        kernel = (await SharedRun.open(journal, "bad", policies={})).kernel
        opened = OpenTurn(turn_id="t", calls=tuple(calls("a")))
        kernel.receive(opened, 1.0)
        claimed = kernel.receive(Claim(turn_id="t", invocation_id="a", attempt=1), 2.0).facts
        facts = [changed(fact, sequence=1, commit=1) for fact in claimed]
        await journal.append("bad", fence=None, after=0, facts=facts, busy=True)

        bad, good = await list_runs(journal)

        assert (bad.status, bad.busy, good.status) == (None, True, Status.IDLE)

    run(play())


def test_why_a_call_could_not_begin_is_told_until_the_next_turn() -> None:
    """By the last that could not; a list has it from the append that brought the refusal."""

    async def play() -> None:
        world = World()
        async with world.process(world.tool("look")) as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", calls("missing", "look"), turn_id="t1")
            await settled()
            entry = await agrees(world.journal)
            assert entry.trouble is not None
            assert entry.trouble.startswith("missing: ")
            await runtime.open_turn("r", calls("look"), turn_id="t2")
            await settled()
            assert (await agrees(world.journal)).trouble is None

    run(play())

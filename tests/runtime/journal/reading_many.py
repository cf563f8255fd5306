"""The contract of journals, part of reading many: what a recovery reads of each, at once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from turnlock import Run
from turnlock.engine.snapshot import Snapshot
from turnlock.models.fact import Fact
from turnlock.runtime.journal.contract import Journal, RunRead
from turnlock.runtime.journal.reading import FACTS
from turnlock.runtime.writer import fold_run

from .stage import NOW, JournalStage, facts, kept, owned, told_run

NAMES = ("snapped at its end", "snapped before", "facts alone", "empty", "removed", "many facts")


async def left(journal: Journal) -> None:
    """A run of each kind, and one that nobody has a name for."""
    for name, snapped in zip(NAMES[:2], (4, 2), strict=True):
        run = Run(run_id=name)
        fence = await owned(journal, run)
        await kept(journal, facts(4, run_id=name), fence)
        await journal.keep_snapshot(_snapshot(snapped, run), fence=fence)
    for name, count in ((NAMES[2], 3), (NAMES[5], 2 * FACTS)):
        await kept(journal, facts(count, run_id=name), await owned(journal, Run(run_id=name)))
    for name in NAMES[3:5]:
        await owned(journal, Run(run_id=name))
    entry = await journal.entry(NAMES[4])
    await journal.release(NAMES[4], fence=entry.fence)
    await journal.forget(NAMES[4], fence=entry.fence, after=0, at=NOW)


async def one_by_one(journal: Journal, run_id: str, read: RunRead) -> tuple[object, list[Fact]]:
    """What the questions about one run tell: as much of its facts as was read."""
    snapshot = await journal.snapshot(run_id)
    after = 0 if snapshot is None else max(0, snapshot.sequence - 1)
    told = [fact async for fact in journal.facts(run_id, after=after)]
    return (await journal.entry(run_id), snapshot), told[: len(read.facts)]


class ReadingMany(JournalStage):
    """What an owner reads of the runs that it has taken."""

    def test_d_13_what_a_recovery_reads_of_many_is_what_each_is_read_as(
        self, tmp_path: Path
    ) -> None:
        """Its entry, its snapshot, and its facts from the snapshot's last one to the end."""

        async def story(journal: Journal) -> None:
            await left(journal)

            found = await journal.read_runs([*NAMES, "never declared"])

            assert sorted(found) == sorted({*NAMES} - {"removed"})
            for run_id, read in found.items():
                alone = await one_by_one(journal, run_id, read)
                assert ((read.entry, read.snapshot), list(read.facts)) == alone
            assert _sequences(found["snapped at its end"].facts) == [4]
            assert _sequences(found["snapped before"].facts) == [2, 3, 4]
            assert _sequences(found["snapped before"].behind) == [3, 4]
            assert _sequences(found["facts alone"].facts) == [1, 2, 3]
            assert _sequences(found["many facts"].facts)[:FACTS] == list(range(1, FACTS + 1))
            assert await journal.read_runs(()) == {}

        self.play(tmp_path, story)

    def test_d_13_a_run_is_folded_from_what_was_read(self, tmp_path: Path) -> None:
        """As from what is read of it alone; more of it is read where that was not all."""

        async def story(journal: Journal) -> None:
            told, kernel = told_run()
            run = kernel.run
            fence = await owned(journal, run)
            start = 0
            for fact in told:
                if fact.sequence == fact.commit:
                    await kept(journal, told[start : fact.sequence], fence)
                    start = fact.sequence

            read = (await journal.read_runs([run.run_id]))[run.run_id]

            assert read.last == told[-1]
            for known in (read, _cut(read)):
                folded = await fold_run(run, journal, read=known)
                assert folded.snapshot() == kernel.snapshot()

        self.play(tmp_path, story)


def _cut(read: RunRead) -> RunRead:
    cut = RunRead(entry=read.entry, snapshot=read.snapshot, facts=read.facts[:3])
    assert cut.last is None
    return cut


def _snapshot(sequence: int, run: Run) -> Snapshot:
    return Snapshot(run=run, sequence=sequence, epoch=0, grants_issued=0, at=0.0)


def _sequences(told: Sequence[Fact]) -> list[int]:
    return [fact.sequence for fact in told]

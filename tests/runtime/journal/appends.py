"""The contract of journals, second part: facts are kept whole, in order, and by the owner alone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from turnlock import Kernel, Run
from turnlock.models.errors import InvalidValue
from turnlock.models.fact import Fact
from turnlock.models.facts import ToolExecutionSucceeded
from turnlock.models.record import changed
from turnlock.runtime.journal.contract import Appended, Journal

from .stage import (
    LEASE,
    NOW,
    OTHER,
    RUN,
    JournalStage,
    everything,
    facts,
    kept,
    owned,
    told_run,
)

HALF = "inside the commit"
NOT_NEXT = "sequence"

NO_COMMITS: list[tuple[Sequence[Fact], int, str]] = [
    ([], 0, "empty"),
    (facts(4, commit=4)[:3], 0, HALF),
    (facts(4, commit=4)[2:], 0, NOT_NEXT),
    (facts(3), 1, NOT_NEXT),
    (facts(3)[::-1], 0, NOT_NEXT),
    ([*facts(1), *facts(1, after=2)], 0, NOT_NEXT),
    ([*facts(1), *facts(1)], 0, NOT_NEXT),
    (facts(2, run_id="run-2"), 0, "run_id"),
    ([changed(facts(1)[0], commit=2)], 0, HALF),
    ([changed(facts(1)[0], commit=2), changed(facts(2)[1], commit=3)], 0, "does not fit"),
    ([facts(1)[0], changed(facts(2)[1], commit=1)], 0, "does not fit"),
]
"""Facts, the sequence before them, and what the message says about them."""


class Appends(JournalStage):
    """Keeping facts, and reading them again."""

    def test_every_fact_of_an_append_is_read_again_in_order(self, tmp_path: Path) -> None:
        """OK means all of them, equal and of the same class, whatever the size of the commits."""

        async def story(journal: Journal) -> None:
            epoch = await owned(journal)
            told = [*facts(1), *facts(10, after=1, commit=3), *facts(100, after=11, commit=100)]
            await kept(journal, told[:1], epoch)
            await kept(journal, told[1:11], epoch)
            await kept(journal, told[11:], epoch)

            assert await everything(journal) == told
            assert await journal.read(RUN.run_id, after=5) == tuple(told[5:])
            assert await journal.read(RUN.run_id, after=len(told)) == ()
            assert await journal.read(RUN.run_id, after=len(told) + 1) == ()

        self.play(tmp_path, story)

    def test_pages_lose_nothing(self, tmp_path: Path) -> None:
        """A page may end and begin anywhere, inside appends and commits too."""

        async def story(journal: Journal) -> None:
            epoch = await owned(journal)
            told = facts(30, commit=7)
            await kept(journal, told[:14], epoch)
            await kept(journal, told[14:21], epoch)
            await kept(journal, told[21:], epoch)

            for limit in range(1, 32):
                found: list[Fact] = []
                while page := await journal.read(RUN.run_id, after=len(found), limit=limit):
                    assert len(page) <= limit
                    found += page
                assert found == told, limit

        self.play(tmp_path, story)

    def test_a_page_needs_a_beginning_and_a_size(self, tmp_path: Path) -> None:
        """What asks for nothing, or for what was before the first fact, is a mistake."""

        async def story(journal: Journal) -> None:
            await journal.declare(RUN)
            with pytest.raises(InvalidValue, match="limit"):
                await journal.read(RUN.run_id, limit=0)
            with pytest.raises(InvalidValue, match="after"):
                await journal.read(RUN.run_id, after=-1)

        self.play(tmp_path, story)

    def test_an_older_epoch_is_fenced(self, tmp_path: Path) -> None:
        """After another took the run, its former owner writes nothing, fitting or not."""

        async def story(journal: Journal) -> None:
            old = await owned(journal, owner="ada")
            await kept(journal, facts(1), old)
            new = await journal.own(RUN.run_id, owner="bob", now=NOW + LEASE, lease=LEASE)

            for after in (1, 0, 7):
                told = facts(1, after=after)
                answer = await journal.append(
                    RUN.run_id, epoch=old, after=after, facts=told, busy=False
                )
                assert answer is Appended.FENCED

            assert await everything(journal) == facts(1)
            assert (await journal.entry(RUN.run_id)).busy is True
            await kept(journal, facts(1, after=1), new)

        self.play(tmp_path, story)

    @pytest.mark.parametrize("epoch", [0, 1, 2, -1])
    def test_nobody_writes_who_does_not_own(self, tmp_path: Path, epoch: int) -> None:
        """Neither before the first owner, nor after a release, nor under an epoch to come."""

        async def story(journal: Journal) -> None:
            await journal.declare(RUN)
            for _ in ("never owned", "released"):
                answer = await journal.append(
                    RUN.run_id, epoch=epoch, after=0, facts=facts(1), busy=True
                )
                assert answer is Appended.FENCED
                taken = await journal.own(RUN.run_id, owner="ada", now=NOW, lease=LEASE)
                await journal.release(RUN.run_id, epoch=taken)

            assert await everything(journal) == []

        self.play(tmp_path, story)

    def test_a_lease_that_is_over_fences_nobody_by_itself(self, tmp_path: Path) -> None:
        """A journal has no clock: only the next owner fences the last one."""

        async def story(journal: Journal) -> None:
            await journal.declare(RUN)
            epoch = await journal.own(RUN.run_id, owner="ada", now=0.0, lease=0.0)

            await kept(journal, facts(1), epoch)

        self.play(tmp_path, story)

    @pytest.mark.parametrize("after", [0, 2, 4, 2**70])
    def test_facts_that_do_not_follow_conflict(self, tmp_path: Path, after: int) -> None:
        """Whoever thinks that the journal ends elsewhere has missed something: nothing is kept."""

        async def story(journal: Journal) -> None:
            epoch = await owned(journal)
            await kept(journal, facts(3), epoch, busy=False)

            told = facts(2, after=after)
            answer = await journal.append(
                RUN.run_id, epoch=epoch, after=after, facts=told, busy=True
            )

            assert answer is Appended.CONFLICT
            assert await everything(journal) == facts(3)
            assert (await journal.entry(RUN.run_id)).busy is False

        self.play(tmp_path, story)

    @pytest.mark.parametrize(("told", "after", "cause"), NO_COMMITS)
    def test_what_is_no_whole_commit_is_a_mistake(
        self, tmp_path: Path, told: Sequence[Fact], after: int, cause: str
    ) -> None:
        """Half a commit would be dropped by the next recovery, so it is not kept at all (K-9)."""

        async def story(journal: Journal) -> None:
            epoch = await owned(journal)
            with pytest.raises(InvalidValue, match=cause):
                await journal.append(RUN.run_id, epoch=epoch, after=after, facts=told, busy=True)

            assert await everything(journal) == []

        self.play(tmp_path, story)

    def test_runs_do_not_see_each_other(self, tmp_path: Path) -> None:
        """Each run has its own facts, sequence, and owner."""

        async def story(journal: Journal) -> None:
            first, second = await owned(journal), await owned(journal, OTHER, owner="bob")
            await kept(journal, facts(2), first)
            await kept(journal, facts(3, run_id=OTHER.run_id), second)

            assert await everything(journal) == facts(2)
            assert await everything(journal, OTHER.run_id) == facts(3, run_id=OTHER.run_id)

        self.play(tmp_path, story)

    def test_a_real_run_is_recovered_from_it(self, tmp_path: Path) -> None:
        """The kernel that is folded from the journal has the state of the one that wrote it."""

        async def story(journal: Journal) -> None:
            epoch = await owned(journal)
            told, kernel = told_run()
            start = 0
            for fact in told:
                if fact.sequence == fact.commit:
                    await kept(journal, told[start : fact.sequence], epoch)
                    start = fact.sequence

            recovered = Kernel.recover(RUN, await everything(journal))

            assert recovered.snapshot() == kernel.snapshot()
            assert kernel.sequence == len(told) == 9

        self.play(tmp_path, story)

    @pytest.mark.parametrize("run_id", ["é\U0001f600", "a\0b", "a/b%2F", " ", "'; --", "x" * 5_000])
    def test_any_text_may_be_an_id(self, tmp_path: Path, run_id: str) -> None:
        """Ids are texts that mean nothing to a journal."""

        async def story(journal: Journal) -> None:
            for name in (run_id, run_id + "\0", run_id + "x"):
                run = Run(run_id=name, agent_name=name)
                await kept(journal, facts(2, run_id=name), await owned(journal, run, owner=name))

            assert await everything(journal, run_id) == facts(2, run_id=run_id)
            entry = await journal.entry(run_id)
            assert (entry.run.agent_name, entry.owner) == (run_id, run_id)

        self.play(tmp_path, story)

    def test_facts_may_be_large(self, tmp_path: Path) -> None:
        """Ten megabytes in one fact, and sixty in one append, come out as they went in."""

        async def story(journal: Journal) -> None:
            epoch = await owned(journal)
            told = [_large(number) for number in range(1, 7)]
            await kept(journal, told[:1], epoch)
            await kept(journal, told[1:], epoch)

            assert await everything(journal) == told

        self.play(tmp_path, story)

    def test_many_write_at_once(self, tmp_path: Path) -> None:
        """Tasks of many runs do not disturb each other, conflicts among them included."""

        async def story(journal: Journal) -> None:
            runs = [Run(run_id=f"run-{number}") for number in range(20)]

            async def write(run: Run) -> None:
                epoch = await owned(journal, run)
                for after in range(0, 30, 3):
                    told = facts(3, after=after, commit=3, run_id=run.run_id)
                    await kept(journal, told, epoch)
                    again = await journal.append(
                        run.run_id, epoch=epoch, after=after, facts=told, busy=True
                    )
                    assert again is Appended.CONFLICT

            await asyncio.gather(*map(write, runs))

            for run in runs:
                told = facts(30, commit=3, run_id=run.run_id)
                assert await everything(journal, run.run_id) == told

        self.play(tmp_path, story)

    def test_of_many_who_append_the_same_one_succeeds(self, tmp_path: Path) -> None:
        """The check of `after` and the keeping are one step."""

        async def story(journal: Journal) -> None:
            epoch = await owned(journal)

            async def write() -> Appended:
                return await journal.append(
                    RUN.run_id, epoch=epoch, after=0, facts=facts(2), busy=True
                )

            answers = await asyncio.gather(*(write() for _ in range(50)))

            assert sorted(answers) == [*[Appended.CONFLICT] * 49, Appended.OK]
            assert await everything(journal) == facts(2)

        self.play(tmp_path, story)

    @pytest.mark.parametrize("steps", range(6))
    def test_a_cancelled_append_is_settled(self, tmp_path: Path, steps: int) -> None:
        """When `CancelledError` comes out, what can be read is what stays."""

        async def story(journal: Journal) -> None:
            epoch = await owned(journal)
            task = asyncio.create_task(
                journal.append(RUN.run_id, epoch=epoch, after=0, facts=facts(2), busy=True)
            )
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            found = await everything(journal)

            assert found == facts(2) or (task.cancelled() and not found)
            await kept(journal, facts(1, after=len(found)), epoch)
            assert await everything(journal) == facts(len(found) + 1)

        self.play(tmp_path, story)


def _large(sequence: int) -> Fact:
    return ToolExecutionSucceeded(
        run_id=RUN.run_id,
        sequence=sequence,
        commit=sequence,
        at=0.0,
        turn_id="turn-1",
        invocation_id="call-1",
        tool_name="read",
        result={"text": "é" * 5_000_000, "number": sequence},
    )

"""The contract of journals, second part: facts are kept whole, in order, and by the owner alone."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from turnlock import Kernel
from turnlock.models.errors import InvalidValue
from turnlock.models.fact import Fact, Foldable
from turnlock.models.record import changed
from turnlock.runtime.journal.contract import Appended, Journal

from .stage import (
    LEASE,
    NOW,
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
            fence = await owned(journal)
            told = [*facts(1), *facts(10, after=1, commit=3), *facts(100, after=11, commit=100)]
            await kept(journal, told[:1], fence)
            await kept(journal, told[1:11], fence)
            await kept(journal, told[11:], fence)

            assert await everything(journal) == told
            assert await journal.read(RUN.run_id, after=5) == tuple(told[5:])
            assert await journal.read(RUN.run_id, after=len(told)) == ()
            assert await journal.read(RUN.run_id, after=len(told) + 1) == ()

        self.play(tmp_path, story)

    def test_pages_lose_nothing(self, tmp_path: Path) -> None:
        """A page may end and begin anywhere, inside appends and commits too."""

        async def story(journal: Journal) -> None:
            fence = await owned(journal)
            told = facts(30, commit=7)
            await kept(journal, told[:14], fence)
            await kept(journal, told[14:21], fence)
            await kept(journal, told[21:], fence)

            for limit in range(1, 32):
                found: list[Fact] = []
                while page := await journal.read(RUN.run_id, after=len(found), limit=limit):
                    assert len(page) <= limit
                    found += page
                assert found == told, limit

        self.play(tmp_path, story)

    def test_what_is_read_to_fold_is_folded_to_the_same(self, tmp_path: Path) -> None:
        """Fact by fact in its place, and to the same run, wherever a page begins and ends."""

        async def story(journal: Journal) -> None:
            told, kernel = told_run()
            fence = await owned(journal)
            await kept(journal, told, fence)

            for limit in (1, 3, len(told)):
                found: list[Foldable] = []
                while page := await journal.read_to_fold(RUN.run_id, after=len(found), limit=limit):
                    assert len(page) <= limit
                    found += page
                assert [(it.sequence, it.type) for it in found] == [
                    (it.sequence, it.type) for it in told
                ]
                assert Kernel.recover(RUN, found).snapshot() == kernel.snapshot()
            with pytest.raises(InvalidValue, match="limit"):
                await journal.read_to_fold(RUN.run_id, limit=0)

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

    def test_an_older_fence_is_fenced(self, tmp_path: Path) -> None:
        """After another took the run, its former owner writes nothing, fitting or not."""

        async def story(journal: Journal) -> None:
            old = await owned(journal, owner="ada")
            await kept(journal, facts(1), old)
            new = await journal.own(RUN.run_id, owner="bob", now=NOW + LEASE, lease=LEASE)

            for after in (1, 0, 7):
                told = facts(1, after=after)
                answer = await journal.append(
                    RUN.run_id, fence=old, after=after, facts=told, busy=False
                )
                assert answer is Appended.FENCED

            assert await everything(journal) == facts(1)
            assert (await journal.entry(RUN.run_id)).busy is True
            await kept(journal, facts(1, after=1), new)

        self.play(tmp_path, story)

    @pytest.mark.parametrize("fence", [0, 1, 2, -1])
    def test_nobody_writes_who_does_not_own(self, tmp_path: Path, fence: int) -> None:
        """Neither before the first owner, nor after a release, nor under a fence to come."""

        async def story(journal: Journal) -> None:
            await journal.declare(RUN)
            for _ in ("never owned", "released"):
                answer = await journal.append(
                    RUN.run_id, fence=fence, after=0, facts=facts(1), busy=True
                )
                assert answer is Appended.FENCED
                taken = await journal.own(RUN.run_id, owner="ada", now=NOW, lease=LEASE)
                await journal.release(RUN.run_id, fence=taken)

            assert await everything(journal) == []

        self.play(tmp_path, story)

    def test_a_run_that_nobody_owns_is_written_by_anybody(self, tmp_path: Path) -> None:
        """By whoever owns nothing: before its first owner, and after one has let go."""

        async def story(journal: Journal) -> None:
            await journal.declare(RUN)
            await kept(journal, facts(2), None)
            await journal.release(RUN.run_id, fence=await owned(journal))
            await kept(journal, facts(1, after=2), None, busy=False)

            for after in (0, 2, 7):  # an optimistic writer that has missed something
                told = facts(1, after=after)
                answer = await journal.append(
                    RUN.run_id, fence=None, after=after, facts=told, busy=True
                )
                assert answer is Appended.CONFLICT

            assert await everything(journal) == facts(3)
            entry = await journal.entry(RUN.run_id)
            assert (entry.owner, entry.fence, entry.busy) == (None, 1, False)

        self.play(tmp_path, story)

    def test_a_run_that_somebody_owns_is_not_shared(self, tmp_path: Path) -> None:
        """Not even once the lease is over, and whatever the writer knows: FENCED goes first."""

        async def story(journal: Journal) -> None:
            await journal.declare(RUN)
            fence = await journal.own(RUN.run_id, owner="ada", now=0.0, lease=0.0)
            await kept(journal, facts(1), fence)

            for after in (1, 0):
                told = facts(1, after=after)
                answer = await journal.append(
                    RUN.run_id, fence=None, after=after, facts=told, busy=False
                )
                assert answer is Appended.FENCED

            assert await everything(journal) == facts(1)
            assert (await journal.entry(RUN.run_id)).busy is True

        self.play(tmp_path, story)

    @pytest.mark.parametrize("writers", [2, 20])
    def test_of_many_who_share_a_run_one_at_a_time_is_kept(
        self, tmp_path: Path, writers: int
    ) -> None:
        """Each appends what follows the same fact; one is kept, the others have missed it."""

        async def story(journal: Journal) -> None:
            await journal.declare(RUN)
            for after in range(3):
                told = facts(1, after=after)
                answers = await asyncio.gather(
                    *(
                        journal.append(RUN.run_id, fence=None, after=after, facts=told, busy=True)
                        for _ in range(writers)
                    )
                )
                assert Counter(answers) == {Appended.OK: 1, Appended.CONFLICT: writers - 1}
            assert await everything(journal) == facts(3)

        self.play(tmp_path, story)

    def test_a_lease_that_is_over_fences_nobody_by_itself(self, tmp_path: Path) -> None:
        """A journal has no clock: only the next owner fences the last one."""

        async def story(journal: Journal) -> None:
            await journal.declare(RUN)
            fence = await journal.own(RUN.run_id, owner="ada", now=0.0, lease=0.0)

            await kept(journal, facts(1), fence)

        self.play(tmp_path, story)

    @pytest.mark.parametrize("after", [0, 2, 4, 2**70])
    def test_facts_that_do_not_follow_conflict(self, tmp_path: Path, after: int) -> None:
        """Whoever thinks that the journal ends elsewhere has missed something: nothing is kept."""

        async def story(journal: Journal) -> None:
            fence = await owned(journal)
            await kept(journal, facts(3), fence, busy=False)

            told = facts(2, after=after)
            answer = await journal.append(
                RUN.run_id, fence=fence, after=after, facts=told, busy=True
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
            fence = await owned(journal)
            with pytest.raises(InvalidValue, match=cause):
                await journal.append(RUN.run_id, fence=fence, after=after, facts=told, busy=True)

            assert await everything(journal) == []

        self.play(tmp_path, story)

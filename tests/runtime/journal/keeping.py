"""The contract of journals, fourth part: snapshots, posts, and the end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from turnlock import Decide, Interrupt, Kernel, Run
from turnlock.engine.snapshot import Snapshot
from turnlock.models.deliveries import Tick
from turnlock.models.record import changed
from turnlock.runtime.errors import Closed, Overloaded, RunDiffers
from turnlock.runtime.journal.contract import POSTS, POSTS_WAITING, Appended, Journal

from .ownership import ASKED
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
    said,
    told_run,
)

DECISION = Decide(
    run_id=RUN.run_id,
    turn_id="turn-1",
    invocation_id="é\0",
    approved=True,
    arguments={"amount": 2**80, "note": "\x00", "deep": [[{"a": None}]]},
)


class Keeping(JournalStage):
    """What is kept beside the facts."""

    def test_a_snapshot_spares_the_facts_before_it(self, tmp_path: Path) -> None:
        """The kernel recovered from it and from the facts after it is the one of all facts."""

        async def story(journal: Journal) -> None:
            fence = await owned(journal)
            told, kernel = told_run()
            await kept(journal, told, fence)
            assert await journal.snapshot(RUN.run_id) is None
            taken: list[Snapshot] = []
            for count in (3, 8):
                whole = max(fact.commit for fact in told[:count])
                taken.append(Kernel.recover(RUN, told[:whole]).snapshot())
                assert await journal.keep_snapshot(taken[-1], fence=fence) is Appended.OK

            found = await journal.snapshot(RUN.run_id)

            assert found == taken[-1]
            rest = await journal.read(RUN.run_id, after=taken[-1].sequence)
            recovered = Kernel.recover(RUN, rest, snapshot=found)
            assert recovered.snapshot() == kernel.snapshot()

        self.play(tmp_path, story)

    def test_a_snapshot_must_not_go_back_or_ahead(self, tmp_path: Path) -> None:
        """One of facts that the journal does not hold would hide what happens next."""

        async def story(journal: Journal) -> None:
            fence = await owned(journal)
            await kept(journal, facts(4), fence)
            answers = [
                await journal.keep_snapshot(_snapshot(sequence), fence=fence)
                for sequence in (5, 3, 2, 3, 4, 3)
            ]

            conflict, ok = Appended.CONFLICT, Appended.OK
            assert answers == [conflict, ok, conflict, ok, ok, conflict]
            assert (await journal.entry(RUN.run_id)).snapped == 4
            assert await journal.snapshot(RUN.run_id) == _snapshot(4)

        self.play(tmp_path, story)

    def test_only_the_owner_keeps_snapshots(self, tmp_path: Path) -> None:
        """A stopped process that wakes up replaces none, fitting or not."""

        async def story(journal: Journal) -> None:
            old = await owned(journal, owner="ada")
            await kept(journal, facts(2), old)
            new = await journal.own(RUN.run_id, owner="bob", now=NOW + LEASE, lease=LEASE)
            for sequence in (1, 7):
                answer = await journal.keep_snapshot(_snapshot(sequence), fence=old)
                assert answer is Appended.FENCED
            await journal.release(RUN.run_id, fence=new)
            assert await journal.keep_snapshot(_snapshot(1), fence=new) is Appended.FENCED

            assert await journal.snapshot(RUN.run_id) is None

        self.play(tmp_path, story)

    def test_a_run_that_nobody_owns_has_snapshots_too(self, tmp_path: Path) -> None:
        """Whoever owns nothing keeps one while nobody does, and none once somebody has it."""

        async def story(journal: Journal) -> None:
            await journal.declare(RUN)
            await kept(journal, facts(2), None)
            assert await journal.keep_snapshot(_snapshot(3), fence=None) is Appended.CONFLICT
            assert await journal.keep_snapshot(_snapshot(1), fence=None) is Appended.OK
            await owned(journal)
            assert await journal.keep_snapshot(_snapshot(2), fence=None) is Appended.FENCED

            assert await journal.snapshot(RUN.run_id) == _snapshot(1)

        self.play(tmp_path, story)

    def test_a_snapshot_is_of_the_run_as_declared(self, tmp_path: Path) -> None:
        """With other limits it would not be the fold of these facts."""

        async def story(journal: Journal) -> None:
            fence = await owned(journal)
            await kept(journal, facts(1), fence)
            with pytest.raises(RunDiffers):
                await journal.keep_snapshot(
                    changed(_snapshot(1), run=changed(RUN, agent_id="b")), fence=fence
                )

            assert await journal.snapshot(RUN.run_id) is None

        self.play(tmp_path, story)

    def test_posts_wait_in_order_until_they_are_answered(self, tmp_path: Path) -> None:
        """Each with its delivery as it was given; only those for the runs asked for."""

        async def story(journal: Journal) -> None:
            await journal.declare(RUN)
            await journal.declare(OTHER)
            deliveries = [DECISION, Interrupt(turn_id="turn-1"), Tick()]
            numbers = [await journal.post(RUN.run_id, delivery) for delivery in deliveries]
            other = await journal.post(OTHER.run_id, Tick())

            waiting = await journal.posts([RUN.run_id, "nobody", RUN.run_id])
            assert [post.number for post in waiting] == numbers == sorted({*numbers})
            assert [post.delivery for post in waiting] == deliveries
            assert {post.run_id for post in waiting} == {RUN.run_id}
            assert await journal.posts([RUN.run_id], after=numbers[0]) == waiting[1:]
            assert await journal.posts([]) == ()

            await journal.answer(RUN.run_id, numbers[1], {"accepted": False, "reason": "late"})
            assert await journal.posts([RUN.run_id]) == (waiting[0], waiting[2])
            everybodys = await journal.posts([OTHER.run_id, RUN.run_id])
            assert [post.number for post in everybodys] == [numbers[0], numbers[2], other]
            assert other > numbers[-1]

        self.play(tmp_path, story)

    def test_the_first_answer_stays(self, tmp_path: Path) -> None:
        """Whoever posted finds it, and nothing before; a post that never was is no error."""

        async def story(journal: Journal) -> None:
            await journal.declare(RUN)
            number = await journal.post(RUN.run_id, DECISION)
            before = await journal.answered(RUN.run_id, number)
            receipt = {"accepted": True, "facts": [{"type": "é", "n": 1}], "none": None}
            await journal.answer(RUN.run_id, number, receipt)
            await journal.answer(RUN.run_id, number, {"accepted": False})
            await journal.answer(RUN.run_id, number + 1, {"accepted": False})

            assert before is None
            assert await journal.answered(RUN.run_id, number) == receipt
            assert await journal.answered(RUN.run_id, number + 1) is None
            assert await journal.post(RUN.run_id, DECISION) == number + 1
            assert await journal.answered(RUN.run_id, number + 1) is None

        self.play(tmp_path, story)

    def test_d_82_a_number_means_something_only_with_its_run(self, tmp_path: Path) -> None:
        """Of two runs one number is not the same post: an answer to the other's answers none."""

        async def story(journal: Journal) -> None:
            await journal.declare(RUN)
            await journal.declare(OTHER)
            number = await journal.post(RUN.run_id, DECISION)
            for stranger in (OTHER.run_id, "nobody", "\ud800"):
                await journal.answer(stranger, number, {"accepted": False})
                assert await journal.answered(stranger, number) is None
                assert not await journal.posted(stranger, number)
            assert [post.number for post in await journal.posts([RUN.run_id])] == [number]

            await journal.answer(RUN.run_id, number, {"accepted": True})
            assert await journal.answered(RUN.run_id, number) == {"accepted": True}
            assert await journal.answered(OTHER.run_id, number) is None

        self.play(tmp_path, story)

    def test_d_10_who_waits_is_told_at_the_latest_after_the_time(self, tmp_path: Path) -> None:
        """Whether or not anything happens; and looking then finds what there is (D-51)."""

        async def story(journal: Journal) -> None:
            await journal.declare(RUN)
            async with asyncio.timeout(60):
                await journal.heard(0.01)
                number = await journal.post(RUN.run_id, DECISION)
                while not await journal.posts([RUN.run_id]):
                    await journal.heard(0.01)
                await journal.answer(RUN.run_id, number, {"accepted": True})
                while await journal.answered(RUN.run_id, number) is None:
                    await journal.heard(0.01, answer=number)

        self.play(tmp_path, story)

    def test_posts_are_bounded(self, tmp_path: Path) -> None:
        """Too many are refused to whoever posts, and come to the owner in bounded portions."""

        async def story(journal: Journal) -> None:
            await journal.declare(RUN)
            await journal.declare(OTHER)
            numbers = await asyncio.gather(
                *(journal.post(RUN.run_id, Tick()) for _ in range(POSTS_WAITING))
            )
            with pytest.raises(Overloaded, match=f"{RUN.run_id}.*POSTS_WAITING"):
                await journal.post(RUN.run_id, Tick())
            await journal.post(OTHER.run_id, Tick())

            found: list[int] = []
            while page := await journal.posts([RUN.run_id], after=found[-1] if found else 0):
                assert len(page) <= POSTS
                found += [post.number for post in page]
            assert found == sorted(numbers)

            await journal.answer(RUN.run_id, numbers[0], {})
            await journal.post(RUN.run_id, Tick())

        self.play(tmp_path, story)

    @pytest.mark.parametrize(
        "asked", [*ASKED, "declare", "runs", "renew", "posts", "answered", "free"]
    )
    def test_a_closed_journal_says_so(self, tmp_path: Path, asked: str) -> None:
        """Closing twice is harmless; everything else raises."""
        more: dict[str, Callable[[Journal, str], Awaitable[Any]]] = {
            "declare": lambda journal, _: journal.declare(RUN),
            "runs": lambda journal, _: journal.runs(),
            "renew": lambda journal, _: journal.renew(owner="ada", now=NOW, lease=LEASE),
            "posts": lambda journal, _: journal.posts([RUN.run_id]),
            "answered": lambda journal, _: journal.answered(RUN.run_id, 1),
            "free": lambda journal, _: journal.free(now=NOW),
        }

        async def story(journal: Journal) -> None:
            await owned(journal)
            await journal.close()
            await journal.close()
            with pytest.raises(Closed):
                await {**ASKED, **more}[asked](journal, RUN.run_id)

        self.play(tmp_path, story)

    def test_closing_finishes_what_was_begun(self, tmp_path: Path) -> None:
        """An append that was under way has its answer, and tells the truth."""

        async def story(journal: Journal) -> None:
            fence = await owned(journal)
            begun = asyncio.create_task(
                journal.append(RUN.run_id, fence=fence, after=0, facts=facts(2), busy=True)
            )
            await asyncio.sleep(0)
            await asyncio.gather(journal.close(), journal.close())

            assert await begun is Appended.OK

        self.play(tmp_path, story)


class Outliving(JournalStage):
    """What a durable journal promises besides."""

    durable = True

    def test_what_was_kept_outlives_the_journal(self, tmp_path: Path) -> None:
        """Opened again, a durable journal holds all of it."""

        async def write(journal: Journal) -> None:
            fence = await owned(journal)
            await kept(journal, facts(7, commit=3), fence)
            await journal.keep_snapshot(_snapshot(3), fence=fence)
            await journal.note(RUN.run_id, fence=fence, notes=[said("hello")])
            await journal.put_worker("w/1", "host:7")
            number = await journal.post(RUN.run_id, DECISION)
            await journal.answer(RUN.run_id, number, {"accepted": True})
            await journal.post(RUN.run_id, Tick())

        async def read(journal: Journal) -> None:
            (entry,) = await journal.runs(busy=True)
            assert (entry.run, entry.sequence, entry.fence, entry.owner) == (RUN, 7, 1, "ada")
            assert entry.owned_until == NOW + LEASE
            assert await everything(journal) == facts(7, commit=3)
            assert await journal.snapshot(RUN.run_id) == _snapshot(3)
            assert [it.note for it in await journal.notes(RUN.run_id)] == [said("hello")]
            assert await journal.worker("w/1") == "host:7"
            assert [post.delivery for post in await journal.posts([RUN.run_id])] == [Tick()]
            assert await journal.answered(RUN.run_id, 1) == {"accepted": True}
            await kept(journal, facts(1, after=7), entry.fence)

        self.play(tmp_path, write)
        self.play(tmp_path, read)


def _snapshot(sequence: int, run: Run = RUN) -> Snapshot:
    return Snapshot(run=run, sequence=sequence, epoch=0, grants_issued=0, at=0.0)

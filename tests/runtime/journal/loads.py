"""The contract of journals, third part: many runs, many writers, any ids, and much at once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from turnlock import Kernel, Run
from turnlock.models.fact import Fact
from turnlock.models.facts import ToolExecutionSucceeded
from turnlock.runtime.journal.contract import Appended, Journal

from .stage import (
    OTHER,
    RUN,
    JournalStage,
    everything,
    facts,
    kept,
    owned,
    told_run,
)


class Loads(JournalStage):
    """Keeping facts of all kinds at the same time."""

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
            fence = await owned(journal)
            told, kernel = told_run()
            start = 0
            for fact in told:
                if fact.sequence == fact.commit:
                    await kept(journal, told[start : fact.sequence], fence)
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
            fence = await owned(journal)
            told = [_large(number) for number in range(1, 7)]
            await kept(journal, told[:1], fence)
            await kept(journal, told[1:], fence)

            assert await everything(journal) == told

        self.play(tmp_path, story)

    def test_many_write_at_once(self, tmp_path: Path) -> None:
        """Tasks of many runs do not disturb each other, conflicts among them included."""

        async def story(journal: Journal) -> None:
            runs = [Run(run_id=f"run-{number}") for number in range(20)]

            async def write(run: Run) -> None:
                fence = await owned(journal, run)
                for after in range(0, 30, 3):
                    told = facts(3, after=after, commit=3, run_id=run.run_id)
                    await kept(journal, told, fence)
                    again = await journal.append(
                        run.run_id, fence=fence, after=after, facts=told, busy=True
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
            fence = await owned(journal)

            async def write() -> Appended:
                return await journal.append(
                    RUN.run_id, fence=fence, after=0, facts=facts(2), busy=True
                )

            answers = await asyncio.gather(*(write() for _ in range(50)))

            assert sorted(answers) == [*[Appended.CONFLICT] * 49, Appended.OK]
            assert await everything(journal) == facts(2)

        self.play(tmp_path, story)

    @pytest.mark.parametrize("steps", range(6))
    def test_a_cancelled_append_is_settled(self, tmp_path: Path, steps: int) -> None:
        """When `CancelledError` comes out, what can be read is what stays."""

        async def story(journal: Journal) -> None:
            fence = await owned(journal)
            task = asyncio.create_task(
                journal.append(RUN.run_id, fence=fence, after=0, facts=facts(2), busy=True)
            )
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            found = await everything(journal)

            assert found == facts(2) or (task.cancelled() and not found)
            await kept(journal, facts(1, after=len(found)), fence)
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

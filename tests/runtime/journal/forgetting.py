"""The contract of journals, part of what is removed: wholly, never what is open, and for good."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from turnlock.models.deliveries import Tick
from turnlock.models.errors import UnknownRun
from turnlock.models.record import changed
from turnlock.runtime.errors import RunForgotten, RunOpen
from turnlock.runtime.journal.contract import Appended, Journal, Summary
from turnlock.views.status import Status

from .ownership import ASKED
from .stage import LEASE, NOW, OTHER, RUN, JournalStage, everything, facts, kept, owned, said

HARMLESS = {"entry", "release"}
"""What may be asked of a run that was removed."""

OPEN = Summary(busy=True, status=Status.EXECUTING, waiting=0, doubts=0)


async def ended(journal: Journal) -> None:
    """A run of three facts that has nothing under way and no owner, and one beside it."""
    fence = await owned(journal)
    over = Summary(busy=False, status=Status.IDLE, waiting=0, doubts=0, trouble="pay: late")
    answer = await journal.append(RUN.run_id, fence=fence, after=0, facts=facts(3), busy=over)
    assert answer is Appended.OK
    await journal.note(RUN.run_id, fence=fence, notes=[said("hello")])
    await journal.release(RUN.run_id, fence=fence)
    await journal.declare(OTHER)
    await kept(journal, facts(2, run_id=OTHER.run_id), None, busy=False)


async def forgotten(journal: Journal) -> None:
    """The same run, removed."""
    await ended(journal)
    await journal.forget(RUN.run_id, fence=1, after=3, at=NOW)


async def _owned(journal: Journal) -> None:
    await journal.own(RUN.run_id, owner="bob", now=NOW, lease=LEASE)


async def _busy(journal: Journal) -> None:
    await kept(journal, facts(1, after=3), None, busy=True)


async def _summed_up(journal: Journal) -> None:
    told = facts(1, after=3)
    assert await journal.append(RUN.run_id, fence=None, after=3, facts=told, busy=OPEN) is (
        Appended.OK
    )


async def _posted(journal: Journal) -> None:
    await journal.post(RUN.run_id, Tick())


async def _gone_on(journal: Journal) -> None:
    await kept(journal, facts(1, after=3), None, busy=False)


async def _owned_meanwhile(journal: Journal) -> None:
    fence = await journal.own(RUN.run_id, owner="bob", now=NOW, lease=LEASE)
    await journal.release(RUN.run_id, fence=fence)


IN_THE_WAY: list[tuple[Callable[[Journal], Awaitable[None]], str]] = [
    (_owned, "bob owns it"),
    (_busy, "under way"),
    (_summed_up, "under way"),
    (_posted, "1 posts wait"),
    (_gone_on, "changed meanwhile"),
    (_owned_meanwhile, "changed meanwhile"),
]


class Forgetting(JournalStage):
    """Removing runs."""

    @pytest.mark.parametrize("asked", sorted({*ASKED} - HARMLESS))
    def test_a_removed_run_is_refused_for_good(self, tmp_path: Path, asked: str) -> None:
        """Whatever is asked about it: its idempotency keys and cursors would come again."""

        async def story(journal: Journal) -> None:
            await forgotten(journal)
            with pytest.raises(RunForgotten, match=r"run_forgotten.*run-1"):
                await ASKED[asked](journal, RUN.run_id)

        self.play(tmp_path, story)

    def test_a_removed_run_is_not_declared_again(self, tmp_path: Path) -> None:
        """Neither as it was nor otherwise."""

        async def story(journal: Journal) -> None:
            await forgotten(journal)
            for run in (RUN, changed(RUN, agent_name="Bob")):
                with pytest.raises(RunForgotten, match="run_forgotten"):
                    await journal.declare(run)
            with pytest.raises(RunForgotten):
                await everything(journal)

        self.play(tmp_path, story)

    def test_its_row_stays_and_says_so(self, tmp_path: Path) -> None:
        """It is listed where it is asked for, and its neighbours are whole."""

        async def story(journal: Journal) -> None:
            await forgotten(journal)
            entry = await journal.entry(RUN.run_id)
            assert (entry.run, entry.sequence, entry.busy, entry.owner) == (RUN, 3, False, None)
            assert (entry.forgotten, entry.began, entry.changed) == (NOW, 1.0, 3.0)
            assert entry.trouble is None  # it may quote an argument

            assert [it.run for it in await journal.runs()] == [OTHER]
            assert [it.run for it in await journal.runs(after=RUN.run_id)] == [OTHER]
            assert [it.run for it in await journal.runs(forgotten=True)] == [RUN, OTHER]
            assert await everything(journal, OTHER.run_id) == facts(2, run_id=OTHER.run_id)

            await journal.forget(RUN.run_id, fence=7, after=7, at=NOW + 1)
            assert (await journal.entry(RUN.run_id)).forgotten == NOW
            await journal.release(RUN.run_id, fence=1)
            assert await journal.posts([RUN.run_id]) == ()

        self.play(tmp_path, story)

    @pytest.mark.parametrize(("happens", "why"), IN_THE_WAY)
    def test_what_is_open_is_not_removed(
        self, tmp_path: Path, happens: Callable[[Journal], Awaitable[None]], why: str
    ) -> None:
        """Nor what has changed since the caller looked at it; nothing of it is lost."""

        async def story(journal: Journal) -> None:
            await ended(journal)
            await happens(journal)
            before = await everything(journal)
            with pytest.raises(RunOpen, match=why):
                await journal.forget(RUN.run_id, fence=1, after=3, at=NOW)

            assert await everything(journal) == before
            assert [it.note for it in await journal.notes(RUN.run_id)] == [said("hello")]
            assert (await journal.entry(RUN.run_id)).forgotten is None

        self.play(tmp_path, story)

    def test_a_dead_owner_is_put_out(self, tmp_path: Path) -> None:
        """Only the one that is named; it writes nothing afterwards."""

        async def story(journal: Journal) -> None:
            await ended(journal)
            fence = await journal.own(RUN.run_id, owner="bob", now=NOW, lease=LEASE)
            with pytest.raises(RunOpen, match="bob"):
                await journal.forget(RUN.run_id, fence=fence, after=3, at=NOW, gone="ada")
            await journal.forget(RUN.run_id, fence=fence, after=3, at=NOW, gone="bob")

            assert await journal.renew(owner="bob", now=NOW, lease=LEASE) == frozenset()
            told: Any = facts(1, after=3)
            with pytest.raises(RunForgotten):
                await journal.append(RUN.run_id, fence=fence, after=3, facts=told, busy=False)

        self.play(tmp_path, story)

    def test_a_run_that_nothing_happened_in_is_removed_too(self, tmp_path: Path) -> None:
        """And one that nobody declared is not known; giving room back is harmless any time."""

        async def story(journal: Journal) -> None:
            await journal.declare(RUN)
            await journal.forget(RUN.run_id, fence=0, after=0, at=NOW)
            assert (await journal.entry(RUN.run_id)).forgotten == NOW
            with pytest.raises(UnknownRun):
                await journal.forget("nobody", fence=0, after=0, at=NOW)
            await journal.compact()
            await journal.compact()

        self.play(tmp_path, story)

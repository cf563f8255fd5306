"""The contract of journals, part of lists: what an append said of its run, and pages of runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from turnlock import Run
from turnlock.models.errors import InvalidValue, UnknownRun
from turnlock.runtime.journal.contract import Appended, Busy, Journal, Summary
from turnlock.views.status import Status

from .stage import NOW, OTHER, RUN, JournalStage, facts, kept, owned

WAITING = Summary(
    busy=True, status=Status.AWAITING_APPROVAL, waiting=2, doubts=1, trouble="pay: no\x00 thread"
)
DONE = Summary(busy=False, status=Status.IDLE, waiting=0, doubts=0)


class Listing(JournalStage):
    """What a list of runs shows, without anybody reading a fact."""

    def test_an_entry_tells_what_the_last_append_said(self, tmp_path: Path) -> None:
        """In the transaction of the facts: a refused append has no say."""

        async def append(journal: Journal, fence: int, after: int, busy: Busy) -> Appended:
            told = facts(2, after=after, commit=2)
            return await journal.append(RUN.run_id, fence=fence, after=after, facts=told, busy=busy)

        async def story(journal: Journal) -> None:
            fence = await owned(journal)
            before = await journal.entry(RUN.run_id)
            assert (before.began, before.changed, before.status) == (None, None, Status.IDLE)
            assert (before.waiting, before.doubts) == (0, 0)

            assert await append(journal, fence, 0, WAITING) is Appended.OK
            assert await append(journal, fence, 0, DONE) is Appended.CONFLICT
            assert await append(journal, fence + 1, 2, DONE) is Appended.FENCED
            (entry,) = await journal.runs(busy=True)
            assert entry == await journal.entry(RUN.run_id)
            assert (entry.began, entry.changed) == (1.0, 2.0)
            assert (entry.status, entry.waiting, entry.doubts) == ("awaiting_approval", 2, 1)
            assert entry.trouble == WAITING.trouble

            assert await append(journal, fence, 2, DONE) is Appended.OK
            entry = await journal.entry(RUN.run_id)
            assert (entry.began, entry.changed, entry.busy) == (1.0, 4.0, False)
            assert (entry.status, entry.waiting, entry.doubts) == (Status.IDLE, 0, 0)
            assert entry.trouble is None

        self.play(tmp_path, story)

    def test_what_an_append_did_not_say_is_not_known(self, tmp_path: Path) -> None:
        """Nothing that an earlier one said is taken for it."""

        async def story(journal: Journal) -> None:
            fence = await owned(journal)
            told = facts(2)
            said = await journal.append(
                RUN.run_id, fence=fence, after=0, facts=told[:1], busy=WAITING
            )
            assert said is Appended.OK
            await kept(journal, told[1:], fence, busy=False)

            entry = await journal.entry(RUN.run_id)
            assert (entry.status, entry.waiting, entry.doubts) == (None, None, None)
            assert entry.trouble is None
            assert (entry.began, entry.changed, entry.busy) == (1.0, 2.0, False)

        self.play(tmp_path, story)

    def test_runs_are_listed_in_pages(self, tmp_path: Path) -> None:
        """D-14: pages of any size lose none and repeat none, whatever is picked."""

        async def story(journal: Journal) -> None:
            names = [f"run-{number}" for number in (3, 1, 4, 1.5, 9, 2, 6)]
            for place, name in enumerate(names):
                await journal.declare(Run(run_id=name, kind="own" if place % 2 else "other"))
                if place % 3 == 0:
                    await kept(journal, facts(1, run_id=name), None)
            picks: list[tuple[bool | None, str | None, list[str]]] = [
                (None, None, names),
                (True, None, names[::3]),
                (None, "own", names[1::2]),
                (False, "other", [names[2], names[4]]),
            ]
            for busy, kind, expected in picks:
                every = [it.run.run_id async for it in journal.run_entries(busy=busy, kind=kind)]
                assert every == expected
                for limit in range(1, len(names) + 2):
                    found: list[str] = []
                    while page := await journal.runs(
                        busy=busy, kind=kind, limit=limit, after=found[-1] if found else None
                    ):
                        assert len(page) <= limit
                        found += [entry.run.run_id for entry in page]
                    assert found == expected, limit

        self.play(tmp_path, story)

    def test_a_page_of_runs_needs_a_size_and_a_run_to_begin_behind(self, tmp_path: Path) -> None:
        """Another beginning would silently be no page, or the first."""

        async def story(journal: Journal) -> None:
            await journal.declare(RUN)
            with pytest.raises(InvalidValue, match="limit"):
                await journal.runs(limit=0)
            with pytest.raises(UnknownRun, match="nobody"):
                await journal.runs(after="nobody")

        self.play(tmp_path, story)

    def test_a_lease_changes_nothing_that_an_append_said(self, tmp_path: Path) -> None:
        """Who owns a run, and who let it go, is no news of the run itself."""

        async def story(journal: Journal) -> None:
            fence = await owned(journal)
            await owned(journal, OTHER)
            said = await journal.append(
                RUN.run_id, fence=fence, after=0, facts=facts(1), busy=WAITING
            )
            assert said is Appended.OK
            before = await journal.entry(RUN.run_id)
            await journal.renew(owner="ada", now=NOW, lease=99.0)
            await journal.release(RUN.run_id, fence=fence)

            after = await journal.entry(RUN.run_id)
            assert after.owner is None
            assert [after.changed, after.status, after.waiting, after.doubts] == [
                before.changed,
                before.status,
                before.waiting,
                before.doubts,
            ]

        self.play(tmp_path, story)

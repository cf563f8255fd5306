"""The contract of journals: runs as people are shown them (F-30), and whose a post was (F-26)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from turnlock import Decide, Run
from turnlock.models.errors import InvalidValue
from turnlock.models.fact import Fact
from turnlock.models.record import changed
from turnlock.runtime.journal.contract import Appended, Journal, Summary
from turnlock.views.status import Status
from turnlock.views.tally import Asked

from .stage import OTHER, RUN, JournalStage, facts, owned

IDLE: Final = Summary(busy=False, status=Status.IDLE, waiting=0, doubts=0)


def asks(since: float, *, name: str = "c", turn_id: str = "t1") -> Summary:
    """What an append says of a run that waits for a person since then."""
    asked = Asked(turn_id=turn_id, invocation_id=name, tool_name="pay", since=since)
    return Summary(
        busy=True,
        status=Status.AWAITING_APPROVAL,
        waiting=1,
        doubts=0,
        turn_id=turn_id,
        asked=asked,
    )


def fact_at(run_id: str, at: float, *, after: int = 0) -> list[Fact]:
    """One fact that happened then."""
    (fact,) = facts(1, after=after, run_id=run_id)
    return [changed(fact, at=at)]


async def says(
    journal: Journal, run_id: str, summary: Summary | bool, *, at: float, after: int = 0
) -> None:
    """Append a fact that happened then, and what the run is then."""
    if not after:
        await journal.declare(Run(run_id=run_id))
    told = fact_at(run_id, at, after=after)
    answer = await journal.append(run_id, fence=None, after=after, facts=told, busy=summary)
    assert answer is Appended.OK


class LatestRuns(JournalStage):
    """The list for people."""

    def test_f_30_those_that_wait_come_first(self, tmp_path: Path) -> None:
        """The longest waiting at the top, then by latest fact; pages of any size are the same."""

        async def story(journal: Journal) -> None:
            await journal.declare(Run(run_id="new"))
            await says(journal, "waits-2", asks(20.0), at=90.0)
            await says(journal, "old", IDLE, at=50.0)
            await says(journal, "waits-1", asks(10.0), at=10.0)
            await says(journal, "fresh", IDLE, at=70.0)
            await says(journal, "untold", True, at=80.0)
            await says(journal, "waits-3", asks(20.0), at=20.0)
            await journal.declare(Run(run_id="gone"))
            await journal.forget("gone", fence=0, after=0, at=1.0)

            waiting = ["waits-1", "waits-2", "waits-3"]
            rest = ["untold", "fresh", "old", "new"]
            for limit in (1, 2, 3, 50):
                assert await listed(journal, limit=limit) == waiting + rest
                assert await listed(journal, limit=limit, waiting=True) == waiting
                assert await listed(journal, limit=limit, waiting=False) == rest
            idle = await listed(journal, limit=1, status=Status.IDLE)
            assert idle == ["fresh", "old", "new"]
            assert await listed(journal, status=Status.AWAITING_APPROVAL) == waiting
            assert await listed(journal, status=Status.IN_DOUBT) == []
            page = await journal.latest(waiting=False, limit=1)
            assert (page.waiting, page.next is None) == (3, False)
            entry = (await journal.latest(limit=1)).entries[0]
            assert entry == await journal.entry("waits-1")
            assert (entry.turn_id, entry.waiting) == ("t1", 1)
            assert entry.asked == asks(10.0).asked

        self.play(tmp_path, story)

    def test_f_30_who_has_folded_a_run_tells_how_it_stands(self, tmp_path: Path) -> None:
        """Where nobody has: of the fact with which it ends, once, until something is appended."""

        async def story(journal: Journal) -> None:
            await says(journal, "old", True, at=80.0)
            before = await journal.entry("old")
            await journal.tell("old", after=2, summary=asks(7.0), changed=8.0)
            assert await journal.entry("old") == before
            for summary in (asks(5.0), IDLE):
                await journal.tell("old", after=1, summary=summary, changed=80.0)
                page = await journal.latest(waiting=True, status=Status.AWAITING_APPROVAL)
                assert (page.waiting, [it.asked for it in page.entries]) == (1, [asks(5.0).asked])
                assert page.entries[0].busy
            await says(journal, "old", True, at=90.0, after=1)
            assert (await journal.entry("old")).status is None
            await says(journal, "new", IDLE, at=1.0)
            await journal.tell("new", after=1, summary=asks(5.0), changed=1.0)
            assert (await journal.latest()).waiting == 0

        self.play(tmp_path, story)

    def test_f_30_a_place_holds_though_the_list_changes(self, tmp_path: Path) -> None:
        """The next page goes on where the last ended, whatever has moved meanwhile."""

        async def story(journal: Journal) -> None:
            for number in range(6):
                await says(journal, f"r{number}", IDLE, at=float(number))
            first = await journal.latest(limit=2)
            assert [it.run.run_id for it in first.entries] == ["r5", "r4"]
            await says(journal, "r0", IDLE, at=9.0, after=1)
            await says(journal, "r4", asks(9.0), at=9.0, after=1)

            rest = await journal.latest(before=first.next)
            assert [it.run.run_id for it in rest.entries] == ["r3", "r2", "r1"]

        self.play(tmp_path, story)

    @pytest.mark.parametrize("place", ["", "x", "é", "bnVsbA", "W10", "WzAsICIxLjAiLCAxXQ==", "1"])
    def test_another_text_is_no_place(self, tmp_path: Path, place: str) -> None:
        """A place is what a page said."""

        async def story(journal: Journal) -> None:
            with pytest.raises(InvalidValue, match=r"^before: "):
                await journal.latest(before=place)
            with pytest.raises(InvalidValue, match=r"^limit: "):
                await journal.latest(limit=0)

        self.play(tmp_path, story)

    def test_a_call_waits_since_it_was_first_asked(self, tmp_path: Path) -> None:
        """Who takes a run over does not know since when; the journal does."""

        async def story(journal: Journal) -> None:
            await says(journal, RUN.run_id, asks(10.0), at=10.0)
            since: list[float | None] = []
            for number, summary in enumerate(
                [asks(30.0), asks(20.0), asks(40.0, name="d"), asks(50.0, turn_id="t2"), IDLE], 1
            ):
                await says(journal, RUN.run_id, summary, at=50.0, after=number)
                entry = await journal.entry(RUN.run_id)
                since.append(None if entry.asked is None else entry.asked.since)

            assert since == [10.0, 10.0, 40.0, 50.0, None]
            await says(journal, RUN.run_id, asks(60.0), at=60.0, after=6)
            await says(journal, RUN.run_id, True, at=61.0, after=7)
            entry = await journal.entry(RUN.run_id)
            assert (entry.asked, entry.turn_id, entry.waiting) == (None, None, None)

        self.play(tmp_path, story)

    def test_f_26_whose_a_post_was_is_remembered(self, tmp_path: Path) -> None:
        """Answered or not; of one that never was, or was removed with its run, nothing is."""

        async def story(journal: Journal) -> None:
            await owned(journal)
            await journal.declare(OTHER)
            decide = Decide(turn_id="t", invocation_id="c", approved=True)
            one = await journal.post(RUN.run_id, decide)
            two = await journal.post(OTHER.run_id, decide)
            assert await journal.posted(RUN.run_id, one)
            assert await journal.posted(OTHER.run_id, two)
            await journal.answer(OTHER.run_id, two, {"accepted": True})
            assert await journal.posted(OTHER.run_id, two)
            await journal.forget(OTHER.run_id, fence=0, after=0, at=1.0)
            assert not await journal.posted(OTHER.run_id, two)
            assert await journal.answered(OTHER.run_id, two) is None
            assert not any([await journal.posted(RUN.run_id, it) for it in (0, two, two + 1, -1)])

        self.play(tmp_path, story)


async def listed(
    journal: Journal,
    *,
    limit: int = 50,
    status: Status | None = None,
    waiting: bool | None = None,
) -> list[str]:
    """All that is listed, in pages."""
    found: list[str] = []
    before = None
    while True:
        page = await journal.latest(status=status, waiting=waiting, before=before, limit=limit)
        assert len(page.entries) <= limit
        found += [entry.run.run_id for entry in page.entries]
        if page.next is None:
            return found
        before = page.next

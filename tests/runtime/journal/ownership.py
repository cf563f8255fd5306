"""The contract of journals, first part: runs are known, and each has one owner at a time."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from turnlock import Limits, Run
from turnlock.models.deliveries import Tick
from turnlock.models.errors import InvalidValue, UnknownRun
from turnlock.models.record import changed
from turnlock.runtime.errors import JournalOwned, RunDiffers
from turnlock.runtime.journal.contract import Appended, Journal, RunEntry

from .stage import LEASE, NOW, OTHER, RUN, JournalStage, facts, kept, owned, said

ASKED: dict[str, Callable[[Journal, str], Awaitable[Any]]] = {
    "own": lambda journal, name: journal.own(name, owner="ada", now=NOW, lease=LEASE),
    "release": lambda journal, name: journal.release(name, fence=1),
    "append": lambda journal, name: journal.append(
        name, fence=1, after=0, facts=facts(1, run_id=name), busy=True
    ),
    "read": lambda journal, name: journal.read(name),
    "entry": lambda journal, name: journal.entry(name),
    "snapshot": lambda journal, name: journal.snapshot(name),
    "note": lambda journal, name: journal.note(name, fence=1, notes=[said("hello")]),
    "notes": lambda journal, name: journal.notes(name),
    "find_note": lambda journal, name: journal.find_note(name, "said/1"),
    "ledger": lambda journal, name: journal.ledger(name),
    "prune": lambda journal, name: journal.prune(name, fence=1, now=NOW),
    "post": lambda journal, name: journal.post(name, Tick()),
}
"""What is asked about one run."""


class Ownership(JournalStage):
    """Declaring runs, and owning them."""

    def test_runs_are_listed_as_they_were_declared(self, tmp_path: Path) -> None:
        """In that order, each once, with nothing happened and nobody owning it."""

        async def story(journal: Journal) -> None:
            runs = [Run(run_id=name, limits=Limits(calls=7)) for name in "bca"]
            for run in (*runs, *runs):
                await journal.declare(run)

            assert await journal.runs() == tuple(map(untouched, runs))
            assert await journal.entry("c") == untouched(runs[1])

        self.play(tmp_path, story)

    @pytest.mark.parametrize(
        "other",
        [
            changed(RUN, agent_name=None),
            changed(RUN, agent_id="agent-2"),
            changed(RUN, limits=Limits(calls=7)),
        ],
    )
    def test_another_configuration_is_refused(self, tmp_path: Path, other: Run) -> None:
        """Recovery must be given what the run had, so a journal keeps to it and shows both."""

        async def story(journal: Journal) -> None:
            await journal.declare(RUN)
            with pytest.raises(RunDiffers) as caught:
                await journal.declare(other)

            assert repr(RUN) in str(caught.value)
            assert repr(other) in str(caught.value)
            assert (await journal.entry(RUN.run_id)).run == RUN

        self.play(tmp_path, story)

    @pytest.mark.parametrize("asked", ASKED)
    def test_an_unknown_run_is_named(self, tmp_path: Path, asked: str) -> None:
        """Whatever is asked about a run that nobody declared, nothing happens to the others."""

        async def story(journal: Journal) -> None:
            await journal.declare(RUN)
            with pytest.raises(UnknownRun, match="nobody"):
                await ASKED[asked](journal, "nobody")

            assert await journal.runs() == (untouched(RUN),)

        self.play(tmp_path, story)

    @pytest.mark.parametrize("asked", sorted({*ASKED} - {"append"}))
    def test_no_run_has_an_id_that_no_text_can_have(self, tmp_path: Path, asked: str) -> None:
        """A lone surrogate cannot be stored, so it cannot be known either."""

        async def story(journal: Journal) -> None:
            with pytest.raises(UnknownRun):
                await ASKED[asked](journal, "\ud800")

        self.play(tmp_path, story)

    def test_each_owner_has_a_higher_fence(self, tmp_path: Path) -> None:
        """Also one who comes again, or after a release: a fence is never given twice."""

        async def story(journal: Journal) -> None:
            await journal.declare(RUN)
            fences: list[int] = []
            for owner in ("ada", "ada", "bob", "ada"):
                fences.append(await journal.own(RUN.run_id, owner=owner, now=NOW, lease=LEASE))
                if owner == "bob" or len(fences) == 2:
                    await journal.release(RUN.run_id, fence=fences[-1])

            assert fences == [1, 2, 3, 4]

        self.play(tmp_path, story)

    def test_a_lease_in_force_keeps_others_out(self, tmp_path: Path) -> None:
        """The message names the owner and the end of the lease; the owner is not disturbed."""

        async def story(journal: Journal) -> None:
            fence = await owned(journal, owner="host-7:4242")
            for gone in (None, "host-8:1"):
                with pytest.raises(JournalOwned, match=r"host-7:4242 owns it until .*00:17:10"):
                    await journal.own(
                        RUN.run_id, owner="bob", now=NOW + LEASE - 0.1, lease=LEASE, gone=gone
                    )

            await kept(journal, facts(1), fence)
            entry = await journal.entry(RUN.run_id)
            assert (entry.owner, entry.owned_until) == ("host-7:4242", NOW + LEASE)

        self.play(tmp_path, story)

    def test_a_lease_that_is_over_may_be_taken(self, tmp_path: Path) -> None:
        """At its very end it is over."""

        async def story(journal: Journal) -> None:
            await owned(journal, owner="ada")

            assert await journal.own(RUN.run_id, owner="bob", now=NOW + LEASE, lease=1.0) == 2
            entry = await journal.entry(RUN.run_id)
            assert (entry.owner, entry.owned_until, entry.fence) == ("bob", NOW + LEASE + 1, 2)

        self.play(tmp_path, story)

    def test_the_lease_of_a_dead_owner_need_not_be_waited_for(self, tmp_path: Path) -> None:
        """Only of the very one who is known to be gone."""

        async def story(journal: Journal) -> None:
            await owned(journal, owner="ada")

            fence = await journal.own(RUN.run_id, owner="bob", now=NOW, lease=LEASE, gone="ada")

            assert fence == 2
            with pytest.raises(JournalOwned, match="bob"):
                await journal.own(RUN.run_id, owner="cleo", now=NOW, lease=LEASE, gone="ada")

        self.play(tmp_path, story)

    def test_one_of_many_who_want_a_run_gets_it(self, tmp_path: Path) -> None:
        """Looking and taking are one step."""

        async def story(journal: Journal) -> None:
            await journal.declare(RUN)
            answers = await asyncio.gather(
                *(
                    journal.own(RUN.run_id, owner=f"owner-{number}", now=NOW, lease=LEASE)
                    for number in range(20)
                ),
                return_exceptions=True,
            )

            assert [answer for answer in answers if isinstance(answer, int)] == [1]
            assert sum(isinstance(answer, JournalOwned) for answer in answers) == 19

        self.play(tmp_path, story)

    def test_an_owner_renews_all_its_leases(self, tmp_path: Path) -> None:
        """Those of others stay; one that is over counts again as long as nobody took the run."""

        async def story(journal: Journal) -> None:
            await owned(journal, RUN, owner="ada")
            await owned(journal, OTHER, owner="bob")
            await owned(journal, Run(run_id="run-3"), owner="ada")
            late = NOW + 10 * LEASE

            mine = await journal.renew(owner="ada", now=late, lease=LEASE)

            assert mine == {"run-1", "run-3"}
            assert await journal.renew(owner="nobody", now=late, lease=LEASE) == frozenset()
            ends = {entry.run.run_id: entry.owned_until for entry in await journal.runs()}
            assert ends == {"run-1": late + LEASE, "run-2": NOW + LEASE, "run-3": late + LEASE}

        self.play(tmp_path, story)

    def test_what_was_lost_is_not_renewed(self, tmp_path: Path) -> None:
        """By this an owner learns what others took over, or what it released."""

        async def story(journal: Journal) -> None:
            await owned(journal, RUN, owner="ada")
            released = await owned(journal, OTHER, owner="ada")
            await journal.own(RUN.run_id, owner="bob", now=NOW + LEASE, lease=LEASE)
            await journal.release(OTHER.run_id, fence=released)

            assert await journal.renew(owner="ada", now=NOW, lease=LEASE) == frozenset()

        self.play(tmp_path, story)

    def test_a_released_run_is_free(self, tmp_path: Path) -> None:
        """Only its owner can let it go; an older fence has nothing to release."""

        async def story(journal: Journal) -> None:
            first = await owned(journal, owner="ada")
            second = await journal.own(RUN.run_id, owner="ada", now=NOW, lease=LEASE)
            await journal.release(RUN.run_id, fence=first)
            with pytest.raises(JournalOwned):
                await journal.own(RUN.run_id, owner="bob", now=NOW, lease=LEASE)

            await journal.release(RUN.run_id, fence=second)
            await journal.release(RUN.run_id, fence=second)

            entry = await journal.entry(RUN.run_id)
            assert (entry.owner, entry.owned_until, entry.fence) == (None, None, second)
            assert await journal.own(RUN.run_id, owner="bob", now=NOW, lease=LEASE) == second + 1

        self.play(tmp_path, story)

    @pytest.mark.parametrize(
        ("owner", "now", "lease", "place"),
        [
            ("", NOW, LEASE, "owner"),
            ("\ud800", NOW, LEASE, "owner"),
            ("ada", math.nan, LEASE, "now"),
            ("ada", math.inf, LEASE, "now"),
            ("ada", NOW, math.inf, "lease"),
            ("ada", NOW, math.nan, "lease"),
        ],
    )
    def test_a_lease_has_an_owner_and_an_end(
        self, tmp_path: Path, owner: str, now: float, lease: float, place: str
    ) -> None:
        """Otherwise nobody could be told who has the run, or until when."""

        async def story(journal: Journal) -> None:
            await journal.declare(RUN)
            with pytest.raises(InvalidValue, match=place):
                await journal.own(RUN.run_id, owner=owner, now=now, lease=lease)
            with pytest.raises(InvalidValue, match=place):
                await journal.renew(owner=owner, now=now, lease=lease)

            assert await journal.runs() == (untouched(RUN),)

        self.play(tmp_path, story)

    def test_tokens_may_begin_behind_those_of_another_journal(self, tmp_path: Path) -> None:
        """Where a run is copied; whoever owns it meanwhile is fenced, and may take it again."""

        async def story(journal: Journal) -> None:
            await journal.declare(RUN)
            await journal.outdo(RUN.run_id, fence=1 << 33)
            fence = await owned(journal)
            assert fence == (1 << 33) + 1
            await journal.outdo(RUN.run_id, fence=7)
            await kept(journal, facts(1), fence)

            await journal.outdo(RUN.run_id, fence=fence + 5)
            batch = facts(1, after=1)
            for stale in (fence, None):
                answer = await journal.append(
                    RUN.run_id, fence=stale, after=1, facts=batch, busy=False
                )
                assert answer is Appended.FENCED
            assert await owned(journal) == fence + 6
            assert await journal.check() == ()

        self.play(tmp_path, story)

    def test_busy_runs_can_be_picked(self, tmp_path: Path) -> None:
        """Busy is what the last append said."""

        async def story(journal: Journal) -> None:
            first, second = await owned(journal, RUN), await owned(journal, OTHER)
            await kept(journal, facts(1), first, busy=True)
            await kept(journal, facts(1, run_id=OTHER.run_id), second, busy=True)
            await kept(journal, facts(1, after=1, run_id=OTHER.run_id), second, busy=False)

            picked = {
                busy: [(e.run.run_id, e.sequence, e.busy) for e in await journal.runs(busy=busy)]
                for busy in (True, False, None)
            }

            assert picked[True] == [("run-1", 1, True)]
            assert picked[False] == [("run-2", 2, False)]
            assert picked[None] == [*picked[True], *picked[False]]

        self.play(tmp_path, story)


def untouched(run: Run) -> RunEntry:
    """The entry of a run that was only declared."""
    return RunEntry(run=run, sequence=0, busy=False, fence=0, owner=None, owned_until=None)

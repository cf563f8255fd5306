"""The contract of journals, part of taking: which runs are free, and many owned at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from turnlock import Run
from turnlock.models.errors import InvalidValue, UnknownRun
from turnlock.runtime.journal.contract import Appended, Journal, RunEntry

from .stage import LEASE, NOW, RUN, JournalStage, facts, kept, owned

RUNS = tuple(Run(run_id=f"run-{number}") for number in range(1, 8))


async def busy(journal: Journal, run: Run, owner: str | None, *, until: float = NOW) -> None:
    """Have a run that is busy, and this owner's until then; or nobody's."""
    fence = await owned(journal, run, owner=owner or "somebody")
    await kept(journal, facts(1, run_id=run.run_id), fence)
    if owner is None:
        await journal.release(run.run_id, fence=fence)
    else:
        await journal.renew(owner=owner, now=until - LEASE, lease=LEASE)


async def seven(journal: Journal) -> None:
    """Free, over, in force, of one who is gone, not busy, free, and over at that moment."""
    await busy(journal, RUNS[0], None)
    await busy(journal, RUNS[1], "over", until=NOW - 1)
    await busy(journal, RUNS[2], "ada", until=NOW + 1)
    await busy(journal, RUNS[3], "dead", until=NOW + 1)
    await journal.declare(RUNS[4])
    await busy(journal, RUNS[5], None)
    await busy(journal, RUNS[6], "just", until=NOW)


FREE = ["run-1", "run-2", "run-4", "run-6", "run-7"]


def named(entries: tuple[RunEntry, ...]) -> list[str]:
    """The ids of runs."""
    return [entry.run.run_id for entry in entries]


class Taking(JournalStage):
    """What a host looks for, and how it takes that."""

    def test_d_12_what_may_be_taken_is_listed(self, tmp_path: Path) -> None:
        """Busy, and nobody's, or over, or of one who is gone; each owner is asked about once."""

        async def story(journal: Journal) -> None:
            await seven(journal)
            asked: list[str] = []

            def gone(owner: str) -> bool:
                asked.append(owner)
                return owner == "dead"

            found = await journal.free(now=NOW, gone=gone)
            assert named(found) == FREE
            assert [await journal.entry(it) for it in FREE] == list(found)
            assert len(asked) == len({*asked})
            assert named(await journal.free(now=NOW)) == [it for it in FREE if it != "run-4"]
            assert named(await journal.free(now=NOW + 1)) == [
                *FREE[:2],
                "run-3",
                *FREE[2:],
            ]

        self.play(tmp_path, story)

    def test_d_12_what_may_be_taken_is_listed_in_pages(self, tmp_path: Path) -> None:
        """A page is full as long as there are more, so that nobody stops too early."""

        async def story(journal: Journal) -> None:
            await seven(journal)
            for limit in (1, 2, 3, 5, 6):
                pages: list[list[str]] = []
                after: str | None = None
                while page := await journal.free(
                    now=NOW, gone=lambda it: it == "dead", after=after, limit=limit
                ):
                    pages.append(named(page))
                    after = page[-1].run.run_id
                assert [it for page in pages for it in page] == FREE
                assert all(len(page) == limit for page in pages[:-1])
            with pytest.raises(InvalidValue):
                await journal.free(now=NOW, limit=0)
            with pytest.raises(UnknownRun):
                await journal.free(now=NOW, after="nobody")

        self.play(tmp_path, story)

    def test_d_12_only_runs_of_the_kind_are_listed(self, tmp_path: Path) -> None:
        """Those of another runtime are in nobody's way (K-61)."""

        async def story(journal: Journal) -> None:
            for number in range(3):
                run = Run(run_id=f"run-{number}", kind="codex" if number != 1 else "own")
                await busy(journal, run, None)
            assert named(await journal.free(now=NOW, kind="own", limit=1)) == ["run-1"]
            assert named(await journal.free(now=NOW, kind="codex")) == ["run-0", "run-2"]

        self.play(tmp_path, story)

    def test_d_13_many_are_taken_at_once(self, tmp_path: Path) -> None:
        """Each with a higher token, and for the lease from now on; its former owner is fenced."""

        async def story(journal: Journal) -> None:
            await seven(journal)
            seen = await journal.free(now=NOW, gone=lambda it: it == "dead")

            taken = await journal.take(seen, owner="me", now=NOW, lease=LEASE, gone={"dead"})

            assert taken == {it.run.run_id: it.fence + 1 for it in seen}
            for run_id, fence in taken.items():
                entry = await journal.entry(run_id)
                assert (entry.owner, entry.owned_until) == ("me", NOW + LEASE)
                assert entry.fence == fence
                late = facts(1, after=1, run_id=run_id)
                for token, answer in ((fence - 1, Appended.FENCED), (fence, Appended.OK)):
                    assert answer is await journal.append(
                        run_id, fence=token, after=1, facts=late, busy=True
                    )
            assert (await journal.entry("run-3")).owner == "ada"
            assert await journal.take((), owner="me", now=NOW, lease=LEASE) == {}

        self.play(tmp_path, story)

    @pytest.mark.parametrize("meanwhile", ["renewed", "taken", "rewound", "removed", "is not dead"])
    def test_d_13_what_was_lost_meanwhile_is_left_out(self, tmp_path: Path, meanwhile: str) -> None:
        """And the others are taken all the same."""

        async def story(journal: Journal) -> None:
            await seven(journal)
            seen = [await journal.entry(it) for it in ("run-1", "run-2", "run-4", "run-6")]
            lost = {"renewed": "run-2", "is not dead": "run-4"}.get(meanwhile, "run-1")
            happens: dict[str, Callable[[], Awaitable[object]]] = {
                "renewed": lambda: journal.renew(owner="over", now=NOW, lease=LEASE),
                "taken": lambda: journal.own("run-1", owner="quick", now=NOW, lease=LEASE),
                "rewound": lambda: journal.mark_rewound("run-1", why="an older copy"),
                "removed": lambda: _removed(journal, "run-1"),
                "is not dead": lambda: asyncio.sleep(0),
            }
            await happens[meanwhile]()
            before = await journal.entry(lost)
            gone = () if meanwhile == "is not dead" else ("dead",)

            taken = await journal.take(seen, owner="me", now=NOW, lease=LEASE, gone=gone)

            assert sorted(taken) == [it.run.run_id for it in seen if it.run.run_id != lost]
            assert await journal.entry(lost) == before

        self.play(tmp_path, story)

    def test_d_13_of_many_who_take_the_same_runs_each_gets_others(self, tmp_path: Path) -> None:
        """Each run has one taker, who knows it."""

        async def story(journal: Journal) -> None:
            for run in RUNS:
                await busy(journal, run, None)
            seen = await journal.free(now=NOW)
            answers = await asyncio.gather(
                *(
                    journal.take(seen[::step], owner=name, now=NOW, lease=LEASE)
                    for name, step in (("a", 1), ("b", -1), ("c", 1), ("d", -1))
                )
            )
            assert sorted(run_id for taken in answers for run_id in taken) == named(seen)

        self.play(tmp_path, story)

    def test_d_46_all_runs_of_an_owner_are_let_go(self, tmp_path: Path) -> None:
        """Busy or not, and no other's; should it live, it is fenced."""

        async def story(journal: Journal) -> None:
            fence = await owned(journal, RUN, owner="ada")
            await owned(journal, RUNS[1], owner="bob")
            await busy(journal, RUNS[2], "ada", until=NOW + LEASE)

            assert await journal.release_all(owner="ada") == {"run-1", "run-3"}
            assert await journal.release_all(owner="ada") == frozenset()

            owners = {it.run.run_id: it.owner for it in await journal.runs()}
            assert owners == {"run-1": None, "run-2": "bob", "run-3": None}
            late = await journal.append(RUN.run_id, fence=fence, after=0, facts=facts(1), busy=True)
            assert late is Appended.FENCED

        self.play(tmp_path, story)


async def _removed(journal: Journal, run_id: str) -> None:
    """Have a run that is nobody's end, and all of it removed."""
    await kept(journal, facts(1, after=1, run_id=run_id), None, busy=False)
    fence = (await journal.entry(run_id)).fence
    await journal.forget(run_id, fence=fence, after=2, at=NOW)

"""Works on many runs in one transaction: few commits, no deadlock, nobody fails for another's."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from turnlock import OpenTurn, Run
from turnlock.models.errors import UnknownRun
from turnlock.runtime.errors import RunDiffers
from turnlock.runtime.journal.contract import Appended
from turnlock.runtime.journal.postgres.journal import PostgresJournal
from turnlock.runtime.journal.postgres.together import TOGETHER
from turnlock.runtime.journal.postgres.url import place_of

from ....postgres.servers import journal_url
from ..stage import note, owned

MANY = 3 * TOGETHER
TURN = OpenTurn(turn_id="t", calls=())

Story = Callable[[PostgresJournal], Awaitable[None]]


def play(folder: Path, story: Story) -> None:
    async def run() -> None:
        async with await PostgresJournal.open(place_of(journal_url(folder))) as journal:
            await story(journal)

    asyncio.run(run())


async def taken(journal: PostgresJournal, count: int = MANY) -> dict[str, int]:
    """So many runs that are owned, and their fences."""
    runs = [Run(run_id=f"run-{number}") for number in range(count)]
    fences = await asyncio.gather(*(owned(journal, run) for run in runs))
    return {run.run_id: fence for run, fence in zip(runs, fences, strict=True)}


async def at_once(works: Iterable[Awaitable[Any]]) -> list[Any]:
    return await asyncio.gather(*works, return_exceptions=True)


def test_d_33_runs_are_made_known_together(tmp_path: Path) -> None:
    """Those that are known already are compared, each by itself."""

    async def story(journal: PostgresJournal) -> None:
        known, other = Run(run_id="known"), Run(run_id="known", agent_name="Bob")
        await journal.declare(known)
        new = [Run(run_id=f"run-{number}") for number in range(MANY)]
        before = journal.counts.groups
        told = await at_once(journal.declare(it) for it in (*new, known, other, *new[:3]))
        assert journal.counts.groups - before <= 3
        assert [type(it) for it in told if it is not None] == [RunDiffers]
        assert told[MANY + 1] is not None
        assert [it.run async for it in journal.run_entries()] == [known, *new]

    play(tmp_path, story)


def test_d_32_two_journals_that_declare_the_same_runs_both_do(tmp_path: Path) -> None:
    """In opposite order they may lock each other out; what the server ended is done again."""

    async def story(journal: PostgresJournal) -> None:
        runs = [Run(run_id=f"run-{number}") for number in range(MANY)]
        async with await PostgresJournal.open(place_of(journal_url(tmp_path))) as other:
            told = await at_once(
                [
                    *(journal.declare(it) for it in runs),
                    *(other.declare(it) for it in reversed(runs)),
                ]
            )
        assert told == [None] * 2 * MANY
        assert len(await journal.runs()) == MANY

    play(tmp_path, story)


def test_d_33_of_two_that_differ_at_once_the_first_is_known(tmp_path: Path) -> None:
    async def story(journal: PostgresJournal) -> None:
        ada, bob = (Run(run_id="run", agent_name=name) for name in ("Ada", "Bob"))
        told = await at_once(journal.declare(it) for it in (ada, bob, ada))
        assert [type(it) for it in told] == [type(None), RunDiffers, type(None)]
        assert (await journal.entry("run")).run == ada

    play(tmp_path, story)


def test_d_33_notes_posts_and_answers_are_kept_together(tmp_path: Path) -> None:
    """Each is there, and is of its own run."""

    async def story(journal: PostgresJournal) -> None:
        fences = await taken(journal)

        async def counted(works: Iterable[Awaitable[Any]]) -> list[Any]:
            before = journal.counts.groups
            told = await at_once(works)
            assert journal.counts.groups - before <= 3 + 1
            return told

        told = await counted(
            journal.note(run_id, fence=fence, notes=[note(run_id)])
            for run_id, fence in fences.items()
        )
        assert told == [Appended.OK] * MANY
        numbers = await counted(journal.post(run_id, TURN) for run_id in fences)
        assert len(set(numbers)) == MANY
        answered = dict(zip(fences, numbers, strict=True))
        await counted(journal.answer(it, number, {"of": it}) for it, number in answered.items())
        for run_id, number in answered.items():
            assert await journal.answered(run_id, number) == {"of": run_id}
            assert len(await journal.notes(run_id)) == 1

    play(tmp_path, story)


def test_d_34_what_cannot_be_kept_is_told_to_whoever_asked_for_it(tmp_path: Path) -> None:
    """The others are kept, once."""

    async def story(journal: PostgresJournal) -> None:
        fences = await taken(journal, 5)
        await journal.declare(Run(run_id="gone"))
        await journal.forget("gone", fence=0, after=0, at=1.0)
        runs = [*fences, "gone"]
        told = await at_once(
            journal.note(it, fence=fences.get(it), notes=[note("a")]) for it in (*runs, "nobody")
        )
        assert told[:5] == [Appended.OK] * 5
        assert isinstance(told[-1], UnknownRun)
        assert all([len(await journal.notes(it)) == 1 for it in fences])

    play(tmp_path, story)


@pytest.mark.parametrize("what", ["note", "post"])
def test_d_32_two_journals_in_opposite_order_do_not_lock_each_other_out(
    tmp_path: Path, what: str
) -> None:
    """The order in which runs are locked is theirs, and not that in which they are asked for."""

    async def story(journal: PostgresJournal) -> None:
        fences = await taken(journal, TOGETHER)

        def do(it: PostgresJournal, run_id: str) -> Awaitable[Any]:
            if what == "post":
                return it.post(run_id, TURN)
            return it.note(run_id, fence=fences[run_id], notes=[note("a")])

        async with await PostgresJournal.open(place_of(journal_url(tmp_path))) as other:
            for _ in range(5):
                told = await at_once(
                    [
                        *(do(journal, it) for it in fences),
                        *(do(other, it) for it in reversed(fences)),
                    ]
                )
                assert not [it for it in told if isinstance(it, Exception)]
            assert journal.counts.retries == other.counts.retries == 0

    play(tmp_path, story)


def test_two_of_one_run_are_kept_in_the_order_in_which_they_came(tmp_path: Path) -> None:
    async def story(journal: PostgresJournal) -> None:
        (fence,) = (await taken(journal, 1)).values()
        texts = [f"{number}" for number in range(5)]
        await at_once(journal.note("run-0", fence=fence, notes=[note(it)]) for it in texts)
        kept = [it.note for it in await journal.notes("run-0")]
        assert kept == [note(it) for it in texts]

    play(tmp_path, story)

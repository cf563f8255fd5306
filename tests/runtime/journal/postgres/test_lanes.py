"""Lanes: what waits is done together, nobody's append fails for another's, none is cancelled."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import asyncpg
import attrs
import pytest

from turnlock import Run
from turnlock.models.errors import UnknownRun
from turnlock.runtime.errors import Closed, JournalError, Overloaded
from turnlock.runtime.journal.contract import Appended
from turnlock.runtime.journal.postgres import lanes
from turnlock.runtime.journal.postgres.failures import NotKnown
from turnlock.runtime.journal.postgres.journal import PostgresJournal
from turnlock.runtime.journal.postgres.known import Remembered
from turnlock.runtime.journal.postgres.owning import releasing
from turnlock.runtime.journal.postgres.url import place_of
from turnlock.runtime.journal.rows import row_of
from turnlock.runtime.journal.settling import Settling

from ....postgres.servers import journal_url
from ..stage import RUN, everything, facts, kept, note, owned

Story = Callable[[PostgresJournal], Awaitable[None]]


def play(folder: Path, story: Story, **options: str) -> None:
    async def run() -> None:
        async with await PostgresJournal.open(place_of(journal_url(folder, **options))) as journal:
            await story(journal)

    asyncio.run(run())


async def many(journal: PostgresJournal, count: int) -> dict[str, int]:
    """So many runs, all owned; their fencing tokens."""
    runs = [Run(run_id=f"run-{n}") for n in range(count)]
    fences = await asyncio.gather(*(owned(journal, run) for run in runs))
    return {run.run_id: fence for run, fence in zip(runs, fences, strict=True)}


async def append_all(journal: PostgresJournal, fences: dict[str, int], **more: Any) -> list[Any]:
    return await asyncio.gather(
        *(
            journal.append(
                run_id, fence=fence, after=0, facts=facts(1, run_id=run_id), busy=True, **more
            )
            for run_id, fence in fences.items()
        ),
        return_exceptions=True,
    )


@pytest.mark.parametrize("notes", [(), (note(id="n"),)])
def test_d_33_what_waits_is_done_together(tmp_path: Path, notes: Any) -> None:
    """A hundred runs append at once, in few transactions; another fence is fenced among them."""

    async def story(journal: PostgresJournal) -> None:
        fences = await many(journal, 100)
        fences["run-7"] -= 1
        before = journal.counts.groups
        answers = await append_all(journal, fences, notes=notes)
        assert journal.counts.groups - before <= 10
        wrong = dict(zip(fences, answers, strict=True))
        assert wrong.pop("run-7") is Appended.FENCED
        assert set(wrong.values()) == {Appended.OK}

    play(tmp_path, story)


@pytest.mark.parametrize("together", [True, False])
def test_d_33_runs_are_let_go_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, together: bool
) -> None:
    """A hundred in few statements; who has another token, or names no run, is told as if alone.

    The control lets each go by itself: as many statements as there are runs.
    """
    if not together:
        kind = attrs.evolve(lanes.ALONE, body=releasing(place_of(journal_url(tmp_path)).tables))
        monkeypatch.setattr(PostgresJournal, "_releasing", kind)

    async def story(journal: PostgresJournal) -> None:
        fences = await many(journal, 100)
        fences["run-7"] -= 1
        before = journal.counts.groups
        answers = await asyncio.gather(
            *(journal.release(run_id, fence=fence) for run_id, fence in fences.items()),
            journal.release("nobody", fence=1),
            journal.release("run-8", fence=2**70),
            return_exceptions=True,
        )
        assert (journal.counts.groups - before <= 10) is together
        assert answers[:100] == [None] * 100
        assert isinstance(answers[100], UnknownRun)
        assert answers[101] is None
        owned_still = [it.run.run_id for it in await journal.runs() if it.owner is not None]
        assert owned_still == ["run-7"]

    play(tmp_path, story)


def test_d_33_works_of_one_run_are_done_one_after_the_other(tmp_path: Path) -> None:
    """In the order in which they came, though they are asked at once."""

    async def story(journal: PostgresJournal) -> None:
        fence = await owned(journal)
        answers = await asyncio.gather(
            *(
                journal.append(RUN.run_id, fence=fence, after=n, facts=facts(1, after=n), busy=True)
                for n in range(20)
            )
        )
        assert answers == [Appended.OK] * 20
        assert await everything(journal) == facts(20)

    play(tmp_path, story, lanes="2")


def test_d_33_a_group_has_an_end() -> None:
    """By works and by bytes; what is passed over keeps its place, and its run waits behind it."""
    loop = asyncio.new_event_loop()
    one, other = lanes.Kind(lanes.ALONE.body), lanes.Kind(lanes.ALONE.body)

    def works(*told: tuple[lanes.Kind, str, int]) -> Any:
        made = (lanes.Work(kind, None, run, size, Settling(loop=loop)) for kind, run, size in told)
        return deque(made)

    waiting = works((one, "a", 1), (other, "b", 1), (one, "b", 1), (one, "a", 1), (one, "c", 1))
    assert [it.run for it in lanes.group_of(waiting)] == ["a", "c"]
    assert [(it.kind, it.run) for it in waiting] == [(other, "b"), (one, "b"), (one, "a")]
    waiting = works(*((one, str(n), 5_000_000) for n in range(4)))
    assert len(lanes.group_of(waiting)) == 2
    waiting = works(*((one, str(n), 1) for n in range(300)))
    assert len(lanes.group_of(waiting)) == lanes.GROUP
    loop.close()


def test_d_31_fenced_goes_before_stale_and_stale_before_conflict(tmp_path: Path) -> None:
    """Who is stale wrote nothing, and is judged anew: it is told what it is besides."""

    async def story(journal: PostgresJournal) -> None:
        fence = await owned(journal)
        place = place_of(journal_url(tmp_path))
        connection = await asyncpg.connect(place.dsn)
        for told in (Appended.FENCED, Appended.CONFLICT, Appended.OK):
            await connection.execute(f"UPDATE {place.tables.runs} SET settle = settle + 1")  # noqa: S608
            wrong = told is Appended.FENCED
            before = journal.counts.works
            answer = await journal.append(
                RUN.run_id,
                fence=fence - wrong,
                after=7 if told is Appended.CONFLICT else 0,
                facts=facts(1, after=7 if told is Appended.CONFLICT else 0),
                busy=True,
            )
            assert answer is told
            assert journal.counts.works - before == (1 if wrong else 2)
        await connection.close()

    play(tmp_path, story)


def test_d_37_what_is_remembered_of_runs_is_bounded() -> None:
    """Those that were used last are."""
    remembered = Remembered[int](2)
    for n, name in enumerate("abac"):
        remembered.put(name, n)
    assert [remembered.get(name) for name in "abc"] == [2, None, 3]


def test_d_34_nobodys_append_fails_for_anothers(tmp_path: Path) -> None:
    """One that the server cannot keep makes its group be done again one by one."""

    async def story(journal: PostgresJournal) -> None:
        fences = await many(journal, 5)
        bad = row_of("run-3", facts(1, run_id="run-3"))._replace(checksum=2**80)
        good = [
            journal.append(name, fence=fence, after=0, facts=facts(1, run_id=name), busy=True)
            for name, fence in fences.items()
            if name != "run-3"
        ]
        refused = journal._append(  # pyright: ignore[reportPrivateUsage]
            "run-3", bad, size=0, fence=fences["run-3"], busy=True, notes=(), opens=None
        )
        answers = await asyncio.gather(*good, refused, return_exceptions=True)
        assert answers[:-1] == [Appended.OK] * 4
        assert isinstance(answers[-1], JournalError)
        assert "nothing was written" in str(answers[-1])
        await kept(journal, facts(1, run_id="run-3"), fences["run-3"])

    play(tmp_path, story)


@pytest.mark.parametrize("turns", [1, 3, 10])
def test_d_35_who_is_cancelled_is_told_once_it_is_settled(tmp_path: Path, turns: int) -> None:
    """The work goes on: what is read next is what was kept."""

    async def begun(journal: PostgresJournal, fence: int, *, after: int) -> asyncio.Task[Appended]:
        told = facts(1, after=after)
        task = asyncio.create_task(
            journal.append(RUN.run_id, fence=fence, after=after, facts=told, busy=True)
        )
        for _ in range(turns):
            await asyncio.sleep(0)
        return task

    async def story(journal: PostgresJournal) -> None:
        fence = await owned(journal)
        kept = 0
        while not (task := await begun(journal, fence, after=kept)).cancel():
            assert await task is Appended.OK  # the server was quicker
            kept += 1
        with pytest.raises(asyncio.CancelledError):
            await task
        found = await everything(journal)
        await asyncio.sleep(0.05)
        assert await everything(journal) == found
        assert journal.counts.drops == 0

    play(tmp_path, story)


def test_works_that_wait_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond it they are refused, and the others are done."""
    monkeypatch.setattr(lanes, "WAITING", 5)

    async def story(journal: PostgresJournal) -> None:
        fences: dict[str, int] = {}
        for n in range(20):
            fences[f"run-{n}"] = await owned(journal, Run(run_id=f"run-{n}"))
        answers = await append_all(journal, fences)
        refused = [it for it in answers if isinstance(it, Overloaded)]
        assert refused
        assert [it for it in answers if it is Appended.OK]
        assert len(refused) + answers.count(Appended.OK) == 20
        assert "nothing was written" in str(refused[0])

    play(tmp_path, story)


def test_a_lane_that_ends_leaves_nobody_waiting(tmp_path: Path) -> None:
    """As where the loop ends before anybody has closed the journal."""

    async def story(journal: PostgresJournal) -> None:
        fence = await owned(journal)
        works = [
            asyncio.create_task(
                journal.append(RUN.run_id, fence=fence, after=n, facts=facts(1, after=n), busy=True)
            )
            for n in range(3)
        ]
        for _ in range(10):
            await asyncio.sleep(0)
        for task in asyncio.all_tasks():
            if task.get_name().endswith(", lane"):
                task.cancel()
        for answer in await asyncio.gather(*works, return_exceptions=True):
            assert answer is Appended.OK or isinstance(answer, NotKnown | Closed)
        with pytest.raises(Closed):
            await journal.declare(RUN)

    play(tmp_path, story)


def test_a_closed_journal_says_so(tmp_path: Path) -> None:
    async def run() -> None:
        journal = await PostgresJournal.open(place_of(journal_url(tmp_path)))
        await journal.close()
        await journal.close()
        with pytest.raises(Closed):
            await journal.declare(RUN)
        with pytest.raises(Closed):
            await journal.runs()

    asyncio.run(run())

"""Runs are removed under a process of an older version that has the file open."""

from __future__ import annotations

import asyncio
from pathlib import Path

from turnlock import Run
from turnlock.models.facts import ContinuationTaken
from turnlock.runtime import SqliteJournal, archive_runs, list_runs

from .test_side_by_side import call, holds, newer, older, until


def test_an_older_process_begins_nothing_in_a_removed_run(tmp_path: Path) -> None:
    """What it owns is left; in what was removed it finds the facts missing, and stops."""
    path = tmp_path / "a.db"

    async def play() -> None:
        async with older(path) as before:
            await before.answers()
            assert await before.told("own", "theirs") == "owned"
            assert await before.told("turn", "theirs", "t1", "work") == "taken"
            async with newer(path) as (journal, runtime):
                await runtime.open_run(Run(run_id="ours"))
                await runtime.open_turn("ours", [call("work")], turn_id="t1")
                await until(lambda: holds(journal, "ours", ContinuationTaken, "t1"))
                await runtime.close_run("ours")
                told = await list_runs(journal)
                assert {it.run.run_id: it.status for it in told} == {
                    "theirs": "idle",
                    "ours": "idle",
                }

                retired = await archive_runs(journal, ["theirs", "ours"], path=tmp_path / "old")
                assert retired.removed == ("ours",)
                assert [it.run_id for it in retired.left] == ["theirs"]
                given = before.process.stdin
                assert given is not None
                given.write(b"own ours\n")
                assert await before.process.wait() == 1

        async with await SqliteJournal.open(path) as journal:
            entry = await journal.entry("ours")
            assert (entry.forgotten is not None, entry.sequence) == (True, 5)
            assert await journal.check() == ()
            again = await archive_runs(journal, ["theirs", "ours"], path=tmp_path / "more")
            assert again.removed == ("theirs",)

    asyncio.run(play())

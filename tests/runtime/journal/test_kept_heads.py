"""The ends of runs that stay beside a journal after it is merged and closed: how they stay few."""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from turnlock.runtime.journal import sqlite_heads
from turnlock.runtime.journal.sqlite import SqliteJournal
from turnlock.runtime.journal.sqlite_schema import IDENTITY, meta

from .stage import RUN, facts, kept, owned
from .test_sqlite_heads import RUNS, beside, cut_off, killed, play


@pytest.fixture(autouse=True)
def _unmerged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is merged before it is closed."""
    monkeypatch.setattr(sqlite_heads, "MERGE_IDLE", 1e9)
    monkeypatch.setattr(sqlite_heads, "MERGE_EVERY", 1e9)


async def marked(journal: SqliteJournal) -> list[str]:
    return [entry.run.run_id for entry in await journal.runs() if entry.rewound]


def test_the_lines_are_bounded_once_all_is_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the runs that were written last stay, and go on where another has replaced them."""
    path = tmp_path / "journal.db"

    async def story(journal: SqliteJournal) -> None:
        fences = {run.run_id: await owned(journal, run) for run in RUNS}
        async with await SqliteJournal.open(path) as other:
            for round_ in range(20):
                for run in RUNS:
                    new = facts(1, after=round_, run_id=run.run_id)
                    await kept((journal, other)[round_ % 2], new, fences[run.run_id])
                for log in "abcd":  # they take no room from runs
                    await other.append_entry(log, f"{round_}", {}, at=1.0)
            monkeypatch.setattr(sqlite_heads, "KEPT_BYTES", 1_000)
            monkeypatch.setattr(sqlite_heads, "KEPT_RUNS", 2)
        said = {RUNS[1].run_id, RUNS[2].run_id, *map(sqlite_heads.log_key, "cd")}
        assert set(ends_said()) == said  # it closed, and replaced it
        monkeypatch.setattr(sqlite_heads, "KEPT_BYTES", 1e9)
        await kept(journal, facts(1, after=20), fences[RUN.run_id])
        assert ends_said()[RUN.run_id] == 21

    def ends_said() -> dict[str, int]:
        with closing(sqlite3.connect(path)) as connection:
            identity = meta(connection, IDENTITY, where=str(path))
        assert identity is not None
        heads, damaged = sqlite_heads.read_heads(path, identity)
        assert damaged == 0
        return {run_id: head.sequence for run_id, head in heads.items()}

    play(path, story)
    assert stat.S_IMODE(beside(path, "-heads").stat().st_mode) == 0o600
    assert not beside(path, "-heads.new").exists()
    assert play(path, marked) == []


def test_a_line_that_is_written_while_the_file_is_replaced_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By who has it open still, between the reading of the old file and its end."""
    path = killed(tmp_path)
    cut_off(path, frames=1)
    usual = os.replace
    late = sqlite_heads.line_of(b"another identity", "late", sqlite_heads.Noted(sequence=7))

    def replace(draft: Path, file: Path) -> None:
        with file.open("ab") as old:
            old.write(late)
        usual(draft, file)

    monkeypatch.setattr(os, "replace", replace)

    assert play(path, marked) == [RUNS[-1].run_id]
    assert beside(path, "-heads").read_bytes().endswith(late)


def test_damaged_lines_and_those_of_a_marked_run_are_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = killed(tmp_path)
    cut_off(path, frames=1)
    with beside(path, "-heads").open("ab") as heads:
        heads.write(b"\n12345678 [torn")

    for _ in range(2):
        assert play(path, marked) == [RUNS[-1].run_id]
        assert caplog.text.count("1 lines are damaged") == 1
        assert caplog.text.count("had acknowledged fact 8") == 1

"""``turnlock diagram --db``: a run of a journal, drawn from its facts; and the agent's status."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from turnlock import Call, Claim, Kernel, OpenTurn, Report, Run
from turnlock.diagrams.palette import LOOKS
from turnlock.runtime import SqliteJournal, Status

from .recordings import turnlock


@pytest.fixture
def db(tmp_path: Path) -> str:
    """A journal of two runs; in "one" a call succeeded, "two" has only begun."""
    path = tmp_path / "agent.db"

    async def keep() -> None:
        async with await SqliteJournal.open(path) as journal:
            for name, deliveries in (("one", 3), ("two", 1)):
                run = Run(run_id=name)
                kernel = Kernel(run)
                await journal.declare(run)
                fence = await journal.own(name, owner="o", now=0.0, lease=1.0)
                call = Call(
                    invocation_id="a", tool_name="ls", arguments={}, requires_approval=False
                )
                for delivery in (
                    OpenTurn(turn_id="T", calls=(call,)),
                    Claim(turn_id="T", invocation_id="a", attempt=1),
                    Report(turn_id="T", invocation_id="a", result=1),
                )[:deliveries]:
                    after = kernel.sequence
                    facts = kernel.receive(delivery, 1.0).facts
                    await journal.append(name, fence=fence, after=after, facts=facts, busy=True)

    asyncio.run(keep())
    return str(path)


def test_a_run_of_a_journal_is_drawn(db: str) -> None:
    """As its log would be: timeline, sequence, life; it cannot know how much was refused."""
    timeline = turnlock("diagram", "run", "--db", db, "--run", "one")
    sequence = turnlock("diagram", "run", "--db", db, "--run", "one", "--view", "sequence")
    life = turnlock(
        "diagram", "run", "--db", db, "--run", "one", "--turn", "T", "--invocation", "a"
    )

    assert (timeline.exit_code, sequence.exit_code, life.exit_code) == (0, 0, 0)
    assert "ls" in timeline.stdout
    assert "refused" not in timeline.stdout
    assert "settled" in sequence.stdout
    assert "SUCCEEDED" in life.stdout


def test_the_runs_of_a_journal_are_listed(db: str) -> None:
    """With how many facts each has, where none is named and there are several."""
    listed = turnlock("diagram", "run", "--db", db)

    assert listed.exit_code == 0
    assert listed.stdout.split("\n")[:3] == [
        "facts  run (show one with --run)",
        "    4  one",
        "    1  two",
    ]


def test_what_was_met_of_a_journal_is_counted(db: str) -> None:
    """Over all its runs."""
    done = turnlock("diagram", "coverage", "--db", db)

    assert done.exit_code == 0
    assert "claim [free] / TOOL_EXECUTION_STARTED · 1 ×" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        ((), "give FILE, or --db JOURNAL, and not both"),
        (
            ("FILE", "--db", "{db}"),
            "give FILE, or --db JOURNAL, and not both; --run names a run of JOURNAL",
        ),
        (("--db", "{db}", "--hostile", "1"), "--hostile means nothing for a journal"),
        (("--db", "nowhere.db"), "there is no such file"),
        (("--db", "{db}", "--run", "three"), "no run matches 'three'"),
    ],
)
def test_wrong_usage_is_told(db: str, arguments: tuple[str, ...], cause: str) -> None:
    """Status 2, the cause and what would be right."""
    done = turnlock("diagram", "run", *(part.format(db=db) for part in arguments))

    assert done.exit_code == 2
    assert cause in " ".join(done.stderr.split())


def test_an_empty_journal_has_nothing_to_draw(tmp_path: Path) -> None:
    """It says what begins a run."""
    path = tmp_path / "empty.db"

    async def make() -> None:
        async with await SqliteJournal.open(path):
            pass

    asyncio.run(make())
    done = turnlock("diagram", "run", "--db", str(path))

    assert done.exit_code == 2
    assert "holds no run yet" in done.stderr


def test_the_status_machine_is_drawn_in_colours_of_its_own() -> None:
    """Each status has a look, by the word that it is; none is left that no status has."""
    done = turnlock("diagram", "status")

    assert done.exit_code == 0
    for status in Status:
        assert f"{LOOKS[status].sign} {status}" in done.stdout

"""Commands of single runs on guarded runs: people see and decide; their own process goes on."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from turnlock import (
    Acknowledge,
    Claim,
    Delivery,
    FactType,
    Interrupt,
    Report,
    Run,
)
from turnlock.guards.values import KIND
from turnlock.runtime import SqliteJournal

from .recordings import turnlock
from .waiting import as_shown, call, deliver, doubted, facts, opened, printed, waiting

RUN = "thread-1"
GUARDED = Run(run_id=RUN, kind=KIND)
PAY = call("c1", "pay", to="Bob", amount=5)
LOOK = call("c2", "look", gated=False)
GOES_ON = "its own process goes on by itself"


@pytest.fixture
def db(tmp_path: Path) -> str:
    """A guarded run that nobody owns: one call waits, another runs in a process that lives."""
    db = str(tmp_path / "agent.db")
    write(db, opened("t1", PAY, LOOK), Claim(turn_id="t1", invocation_id="c2", attempt=1, lease=60))
    return db


def write(db: str, *deliveries: Delivery) -> None:
    """What a guard does: it visits the run, and owns nothing."""
    deliver(db, *deliveries, run=GUARDED)


def told(db: str, *command: str, status: int = 0) -> str:
    done = turnlock(*command, "--db", db)
    assert done.exit_code == status, done.output
    return " ".join(done.output.split())


@pytest.mark.parametrize(
    "command",
    [
        ("runs",),
        ("runs", "--open", "--json"),
        ("show", RUN),
        ("show", RUN, "--json"),
        ("check",),
        ("grants", RUN),
        ("diagram", "run", "--run", RUN),
        ("diagram", "run", "--run", RUN, "--format", "txt"),
        ("backup", "-o", "copy.db"),
    ],
    ids=" ".join,
)
def test_k_61_what_shows_works_on_guarded_runs_and_writes_nothing(
    db: str, command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = facts(db, RUN)
    told(db, *command)
    assert facts(db, RUN) == before


def test_k_61_show_says_kind_and_who_goes_on(db: str) -> None:
    """Kind, tool, arguments, digest, and the commands that decide; nobody is told to start it."""
    shown = told(db, "show", RUN)
    assert "kind guard" in shown
    assert f"owner nobody, as of every guarded run: {GOES_ON}" in shown
    assert "start it again" not in shown
    assert '{"amount":5,"to":"Bob"}' in shown
    assert f"digest {waiting(db, RUN)[0]['arguments_digest'][:32]}" in shown
    assert [it[0] for it in printed(db, "approve", RUN)] == ["approve"]

    (listed,) = json.loads(turnlock("runs", "--db", db, "--json").output)
    assert (listed["kind"], listed["owner"], listed["waiting"]) == (KIND, None, 1)
    assert " guard " in turnlock("runs", "--db", db).output


def test_k_61_a_person_decides_and_the_process_goes_on(db: str) -> None:
    """By the very command that show prints; nobody performs what was approved."""
    (command,) = printed(db, "approve", RUN)
    done = turnlock(*command)
    assert done.exit_code == 0, done.output
    assert done.output.strip() == f"approved c1; {GOES_ON}"
    last = facts(db, RUN)[-1]
    assert last.type == FactType.TOOL_APPROVED
    assert told(db, "show", RUN).count("TOOL_EXECUTION_STARTED c1") == 0


def test_k_61_a_denial_and_a_grant_work_as_ever(db: str) -> None:
    write(db, Report(turn_id="t1", invocation_id="c2", attempt=1, result="seen"))
    (it,) = waiting(db, RUN)
    done = told(db, "approve", RUN, "c1", *as_shown(it), "--scope", "session", "--any-arguments")
    assert done == f"approved c1; {GOES_ON}"
    assert "pay" in told(db, "grants", RUN)
    assert told(db, "revoke", RUN, "1") == f"revoked grant/{RUN}/1; {GOES_ON}"
    assert told(db, "interrupt", RUN) == f"interrupted turn t1; {GOES_ON}"

    write(db, opened("t2", PAY))
    (it,) = waiting(db, RUN)
    assert told(db, "deny", RUN, "c1", *as_shown(it)) == f"denied c1; {GOES_ON}"


def test_k_35_a_doubt_is_resolved_by_a_person(db: str) -> None:
    """As printed; a retry that was authorised runs once its own process asks."""
    write(db, Report(turn_id="t1", invocation_id="c2", attempt=1, result="seen"))
    write(db, Interrupt(turn_id="t1", grace=0.0))
    write(db, opened("t2", call("c9", "book", gated=False)), *doubted("t2", "c9"))
    shown = told(db, "show", RUN)
    assert "its tool's policy decides, or you" in shown
    (command,) = printed(db, "resolve", RUN)
    done = turnlock(*command, "--retry")
    assert done.output.strip() == f"resolved c9; {GOES_ON}", done.output
    assert "runs once its own process asks its guard about it" in told(db, "show", RUN)
    (command,) = printed(db, "resolve", RUN)
    done = turnlock(*command, "--result", '{"id": 7}')
    assert done.output.strip() == f"resolved c9; {GOES_ON}", done.output
    assert facts(db, RUN)[-2].type == FactType.TOOL_EXECUTION_SUCCEEDED


def test_k_34_a_call_whose_lease_is_over_is_in_doubt_for_whoever_decides(tmp_path: Path) -> None:
    """Nobody owns the run, so nobody has said so: it is told, and kept once a person resolves it.

    The control is a lease that runs still: then nothing is in doubt.
    """
    db, alive = str(tmp_path / "agent.db"), str(tmp_path / "alive.db")
    for place, lease in ((db, 0.001), (alive, 60.0)):
        write(
            place,
            opened("t1", LOOK),
            Claim(turn_id="t1", invocation_id="c2", attempt=1, lease=lease),
        )
    before = facts(db, RUN)
    time.sleep(0.01)
    (command,) = printed(db, "resolve", RUN)
    assert facts(db, RUN) == before
    assert printed(alive, "resolve", RUN) == []
    assert turnlock(*command, "--result", "1", "--db", alive).exit_code == 1

    done = turnlock(*command, "--result", "1")
    assert done.output.strip() == f"resolved c2; {GOES_ON}"
    assert [it.type for it in facts(db, RUN)[len(before) :]] == [
        FactType.EXECUTION_IN_DOUBT,
        FactType.TOOL_EXECUTION_SUCCEEDED,
        FactType.TURN_SETTLED,
    ]


def test_k_61_no_command_performs_or_forks_a_guarded_run(db: str) -> None:
    """They say what to do instead, and nothing is written."""
    before = facts(db, RUN)
    for command in (
        ("run", "--run", RUN, "--no-input"),
        ("run", "--run", RUN, "--runtime", "codex", "hello"),
        ("fork", RUN, "--at", "t1"),
    ):
        said = told(db, *command, status=2)
        assert f"run '{RUN}' is guarded: {GOES_ON}" in said, said
        assert "--runtime guard" not in said
    assert facts(db, RUN) == before


def test_k_61_recover_leaves_a_whole_guarded_run_alone(db: str) -> None:
    before = facts(db, RUN)
    assert "nothing of it was lost" in told(db, "recover", RUN)
    assert facts(db, RUN) == before


def test_a_guarded_run_whose_tail_was_lost_waits_for_a_person(tmp_path: Path) -> None:
    """As any run: nothing is judged until somebody decides, and then nothing ran twice."""
    db = str(tmp_path / "agent.db")
    write(db, opened("t1", LOOK))
    asyncio.run(_rewound(db))
    shown = told(db, "show", RUN)
    assert "stands still until a person decides" in shown
    assert GOES_ON not in shown
    said = told(db, "recover", RUN)
    assert "doubt c2 look" in said
    assert GOES_ON in said
    assert "once somebody opens it" not in said
    (command,) = printed(db, "resolve", RUN)
    assert turnlock(*command, "--error", "it was not").exit_code == 0


def test_what_is_over_is_archived_and_forgotten(db: str, tmp_path: Path) -> None:
    """What waits or runs is left; a turn whose results no model took keeps nothing open."""
    assert "left: run 'thread-1' is not removed" in told(db, "forget", RUN, "--yes", status=1)
    write(db, Report(turn_id="t1", invocation_id="c2", attempt=1, result="seen"))
    assert "left: run 'thread-1' is not removed" in told(db, "forget", RUN, "--yes", status=1)
    told(db, "deny", RUN, "c1", *as_shown(waiting(db, RUN)[0]))
    assert facts(db, RUN)[-1].type == FactType.TURN_SETTLED
    file = str(tmp_path / "old.jsonl")
    assert "archived: thread-1" in told(db, "archive", RUN, "-o", file)
    assert "conforms" in turnlock("check", file).output
    assert json.loads(turnlock("runs", "--db", db, "--json").output) == []


def test_what_is_over_goes_by_its_age(db: str) -> None:
    """That it is closed for it makes it no younger."""
    write(db, Report(turn_id="t1", invocation_id="c2", attempt=1, result="seen"))
    told(db, "deny", RUN, "c1", *as_shown(waiting(db, RUN)[0]))
    before = facts(db, RUN)
    assert "forgotten: 0 runs" in told(db, "forget", "--older-than", "1h", "--yes")
    assert facts(db, RUN) == before
    assert "forgotten: thread-1" in told(db, "forget", "--older-than", "0s", "--yes")


def test_a_run_of_our_own_is_left_with_its_results_untaken(tmp_path: Path) -> None:
    """The control: somebody performs it, and will hand them over."""
    db = str(tmp_path / "agent.db")
    done: tuple[Delivery, ...] = (
        Claim(turn_id="t1", invocation_id="c2", attempt=1),
        Report(turn_id="t1", invocation_id="c2", attempt=1, result="seen"),
    )
    deliver(db, opened("t1", LOOK), *done, run=Run(run_id=RUN))
    assert "left: run 'thread-1'" in told(db, "forget", RUN, "--yes", status=1)
    write(str(tmp_path / "other.db"), opened("t1", LOOK), *done, Acknowledge(turn_id="t1"))
    assert "forgotten: thread-1" in told(str(tmp_path / "other.db"), "forget", RUN, "--yes")


async def _rewound(db: str) -> None:
    async with await SqliteJournal.open(Path(db)) as journal:
        await journal.mark_rewound(RUN, why="it had acknowledged fact 9, and ends with fact 2")


async def _entry(db: str) -> Any:
    async with await SqliteJournal.open(Path(db)) as journal:
        return await journal.entry(RUN)


def test_nobody_owns_it_afterwards(db: str) -> None:
    told(db, "deny", RUN, "c1", *as_shown(waiting(db, RUN)[0]))
    assert asyncio.run(_entry(db)).owner is None

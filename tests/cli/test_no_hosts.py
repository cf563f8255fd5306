"""Commands on files of older versions, whose facts name processes, tell nobody of them (F-6)."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from turnlock import Call, Claim, Lose, OpenTurn, Run
from turnlock.models.workers import opaque
from turnlock.runtime import SharedRun, SqliteJournal
from turnlock.runtime.owners import new_owner

from .recordings import turnlock

HOST = "prod-db-7"


def gone() -> str:
    """A worker of an older version: a process of this machine that is gone."""
    make, _, *rest = new_owner().split(":")
    rest[3] = "1"  # it began at another moment than the process that has its pid now
    return ":".join((make, HOST, *rest))


@pytest.fixture
def db(tmp_path: Path) -> tuple[str, str]:
    """A journal of a call that such a process runs, one that is in doubt; and the process."""
    path, worker = str(tmp_path / "agent.db"), gone()

    async def make() -> None:
        async with await SqliteJournal.open(path) as journal:
            await journal.declare(Run(run_id="r"))
            shared = await SharedRun.open(journal, "r", policies={})
            calls = tuple(
                Call(invocation_id=name, tool_name="act", arguments={}, requires_approval=False)
                for name in ("a", "b")
            )
            claims = [
                Claim(turn_id="t1", invocation_id=it.invocation_id, attempt=1, worker=worker)
                for it in calls
            ]
            lost = Lose(turn_id="t1", invocation_id="b", attempt=1)
            await shared.submit(OpenTurn(turn_id="t1", calls=calls), *claims, lost)

    asyncio.run(make())
    return path, worker


@pytest.mark.parametrize(
    "command",
    [
        ("show", "r"),
        ("show", "r", "--json"),
        ("runs",),
        ("runs", "--json"),
        ("check",),
        ("diagram", "run"),
        ("diagram", "run", "--format", "svg"),
        ("diagram", "run", "--format", "md"),
        ("diagram", "run", "--view", "sequence"),
        ("diagram", "run", "--view", "sequence", "--format", "svg"),
        ("diagram", "run", "--view", "sequence", "--format", "md"),
        ("diagram", "run", "--invocation", "a"),
        ("diagram", "run", "--invocation", "a", "--format", "svg"),
        ("diagram", "run", "--invocation", "a", "--format", "md"),
    ],
    ids=" ".join,
)
def test_f_6_no_command_names_the_host_of_a_fact(
    db: tuple[str, str], command: tuple[str, ...]
) -> None:
    """It is told by an id, the same everywhere; that it is gone is known as before."""
    path, worker = db
    told = turnlock(*command, "--db", path)
    assert told.exit_code == 0, told.output
    assert HOST not in told.output
    assert f":{os.getpid()}" not in told.output
    if command[0] == "show":
        assert opaque(worker) in told.output
    if command == ("show", "r"):
        assert "ran it and is gone: in doubt once the run goes on" in told.output
    if command == ("show", "r", "--json"):
        assert json.loads(told.output)["lost"] == ["a"]

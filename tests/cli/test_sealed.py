"""Commands without the key tell that there is something, decide by digest, and print no secret."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest
from click.testing import Result

from turnlock import Call, Claim, Lose, OpenTurn, Report, Resolution, Resolve, Run
from turnlock.cli.databases import facts_of_db
from turnlock.models.facts import ToolApproved
from turnlock.models.sealed import is_sealed
from turnlock.runtime import SharedRun, SqliteJournal, Toolbox

from .recordings import turnlock

SECRET = "hunter2"  # noqa: S105 - a word to look for
TOOLS = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from tests.runtime.secrets import TestCipher
from turnlock.runtime import Keep, tool

cipher = TestCipher()

@tool(keep_arguments=Keep.SEALED, keep_result=Keep.SEALED, approval=True)
def pay(token: str) -> str:
    return token

@tool(keep_arguments=Keep.SEALED, keep_result=Keep.SEALED)
def look(token: str) -> str:
    return token
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """A journal with a call of each standing – done, in doubt, waiting – and the tools' file."""
    path = tmp_path / "tools.py"
    path.write_text(TOOLS)
    db = str(tmp_path / "agent.db")
    tools = Toolbox.from_file(path)

    async def make() -> None:
        async with await SqliteJournal.open(db) as journal:
            await journal.declare(Run(run_id="r"))
            shared = await SharedRun.open(journal, "r", policies=None, tools=tools)
            calls = [
                Call(
                    invocation_id=f"c{number}",
                    tool_name=name,
                    arguments={"token": SECRET},
                    requires_approval=False,
                )
                for number, name in enumerate(("look", "look", "look", "pay"))
            ]
            opened = OpenTurn(turn_id="t1", calls=tuple(calls))
            claims = [Claim(turn_id="t1", invocation_id=f"c{n}", attempt=1) for n in range(3)]
            done = Report(turn_id="t1", invocation_id="c0", attempt=1, result=SECRET)
            failed = Report(turn_id="t1", invocation_id="c1", attempt=1, error=SECRET)
            lost = Lose(turn_id="t1", invocation_id="c2", attempt=1)
            verdicts = await shared.submit(opened, *claims, done, failed, lost)
            assert all(it.reason is None for it in verdicts)

    asyncio.run(make())
    return db, str(path)


def told(*args: str) -> Result:
    result = turnlock(*args)
    assert SECRET not in result.output
    return result


@pytest.mark.parametrize(
    "command",
    [
        ("show", "r"),
        ("show", "r", "--json"),
        ("runs",),
        ("check",),
        ("diagram", "run"),
        ("diagram", "run", "--view", "sequence"),
        ("diagram", "run", "--view", "sequence", "--format", "svg"),
        ("diagram", "run", "--format", "md"),
        ("runs", "--json"),
    ],
    ids=" ".join,
)
def test_no_command_prints_what_is_sealed(files: tuple[str, str], command: tuple[str, ...]) -> None:
    """They fold and check as ever: an envelope is a value."""
    result = told(*command, "--db", files[0])
    assert result.exit_code == 0
    if command in {("show", "r"), ("diagram", "run", "--view", "sequence")}:
        assert "(sealed)" in result.output
    if command == ("check",):
        assert "conforms" in result.output


def test_a_person_without_the_key_approves_by_digest_and_edits_nothing(
    files: tuple[str, str],
) -> None:
    db, path = files
    (waiting,) = json.loads(told("show", "r", "--db", db, "--json").output)["waiting"]
    named = ("--turn", "t1", "--digest", waiting["arguments_digest"])
    edited = ("--arguments", json.dumps({"token": f"{SECRET}!"}))
    refused = turnlock("approve", "r", "c3", "--db", db, *named, *edited)
    assert (refused.exit_code, "the key is not here" in refused.output) == (1, True)
    wrong = turnlock("approve", "r", "c3", "--db", db, *named, "--arguments", "{}", "--tools", path)
    assert (wrong.exit_code, "token: is missing" in wrong.output) == (1, True)

    approved = told("approve", "r", "c3", "--db", db, *named, *edited, "--tools", path)
    assert approved.exit_code == 0
    (fact,) = [it for it in facts_of_db(db, "r")[1] if isinstance(it, ToolApproved)]
    assert is_sealed(fact.arguments)


def test_a_result_that_a_person_gives_is_sealed_with_the_tools(files: tuple[str, str]) -> None:
    db, path = files
    asked = ("resolve", "r", "c2", "--db", db, "--turn", "t1", "--attempt", "1")
    result = ("--result", json.dumps(SECRET))
    refused = turnlock(*asked, *result)
    assert (refused.exit_code, "the key is not here" in refused.output) == (1, True)
    assert told(*asked, *result, "--tools", path).exit_code == 0
    for folder, _, names in os.walk(Path(db).parent):
        for name in names:
            if name.startswith("agent.db"):
                assert SECRET.encode() not in Path(folder, name).read_bytes()


def test_whether_it_happened_can_be_said_without_the_key(files: tuple[str, str]) -> None:
    """A retry brings no value."""
    again = Resolve(turn_id="t1", invocation_id="c2", attempt=1, resolution=Resolution.RETRY)
    assert again.error is None
    done = told(
        *("resolve", "r", "c2", "--retry", "--db", files[0], "--turn", "t1", "--attempt", "1")
    )
    assert done.exit_code == 0

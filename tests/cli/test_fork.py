"""``turnlock fork``: a conversation goes on from an earlier turn, as a new run."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from turnlock import FactType
from turnlock.agent import Conversation, Message
from turnlock.cli.databases import facts_of_db
from turnlock.runtime import open_journal

from .recordings import CORPUS, turnlock
from .sessions import played, recording, types_of

DIG: tuple[str, dict[str, Any], str] = ("dig", {"deep": 1}, "gold")
DEEPER: tuple[str, dict[str, Any], str] = ("dig", {"deep": 2}, "tin")


def conversation(db: str, run_id: str) -> Conversation:
    """What was said and done in a run, as an agent that opens it finds it."""

    async def read() -> Conversation:
        async with await open_journal(db, create=False, read_only=True) as journal:
            found = Conversation(run_id)
            found.load(it.note for it in await journal.notes(run_id))
            async for fact in journal.facts(run_id):
                found.take(fact)
            return found

    return asyncio.run(read())


def told(db: str, run_id: str) -> list[Message]:
    """What a model is told when it is asked in this run."""
    return list(conversation(db, run_id).messages())


@pytest.mark.parametrize(
    "conv", ["pydantic-ai/complex_agent_run", "bfcl/multi_turn_base_39", "denied"]
)
def test_from_each_turn_it_goes_on_as_the_conversation_with_that_history(
    tmp_path: Path, conv: str
) -> None:
    """What the model is told is what it was told then; played on, all comes as it came."""
    db = str(tmp_path / "a.db")
    denied = ("dig", {"deep": 9}, "denied: not there")
    talk = recording(tmp_path, [DIG, denied], [DEEPER]) if conv == "denied" else CORPUS
    play = ("--record", f"{talk}#{conv if talk == CORPUS else 'talk'}", "--yes", "--db", db)
    assert played(*play).returncode == 0
    whole = told(db, "agent")
    turns = types_of(Path(db)).count(FactType.TURN_OPENED)
    for turn in range(1, turns + 1):
        new = f"new-{turn}"
        forked = turnlock("fork", "agent", "--at", f"t{turn}", "--as", new, "--db", db)
        assert forked.exit_code == 0, forked.output

        begun = told(db, new)
        assert begun == whole[: len(begun)]
        assert conversation(db, new).turn_id == f"t{turn}"
        assert facts_of_db(db, "agent")[0].limits == facts_of_db(db, new)[0].limits

        assert played(*play, "--run", new).returncode == 0
        assert told(db, new) == whole

    checked = turnlock("check", "--db", db)
    assert checked.exit_code == 0, checked.output
    assert types_of(Path(db), "new-1") != []


def test_no_authority_comes_along(tmp_path: Path) -> None:
    """A grant of the session is revoked in the new run alone: it asks again."""
    db = str(tmp_path / "a.db")
    talk = recording(tmp_path, [DIG], [DEEPER])
    play = ("--record", talk, "--gate", "all", "--db", db)
    assert played(*play, stdin="S\n").returncode == 0
    assert types_of(Path(db)).count(FactType.TOOL_APPROVAL_REQUESTED) == 1

    forked = turnlock("fork", "agent", "--at", "t1", "--db", db)
    assert "1 granted there and revoked here" in forked.output
    assert json.loads(turnlock("grants", "agent-t1", "--db", db, "--json").output) == []
    assert len(json.loads(turnlock("grants", "agent", "--db", db, "--json").output)) == 1

    left = played(*play, "--run", "agent-t1", "--no-input")
    assert left.returncode == 3
    assert types_of(Path(db), "agent-t1").count(FactType.TOOL_APPROVAL_REQUESTED) == 2
    assert turnlock("check", "--db", db).exit_code == 0

    again = turnlock("fork", "agent", "--at", "t1", "--db", db)
    assert again.exit_code == 0
    assert "agent-t1 was there before, whole" in again.output


def test_it_says_where_it_comes_from(tmp_path: Path) -> None:
    db = str(tmp_path / "a.db")
    assert played("--yes", "--db", db).returncode == 0
    done = turnlock("fork", "agent", "--at", "t2", "--as", "anew", "--db", db)

    assert done.stdout == (
        "anew: 11 facts and 3 messages of agent until t2\n"
        f"  turnlock run --db {db} --run anew\n"
    )  # fmt: skip
    shown = turnlock("show", "anew", "--db", db, "--no-facts")
    assert shown.output.startswith("run     anew, forked from agent at t2\n")
    as_json = json.loads(turnlock("show", "anew", "--db", db, "--json").output)
    assert as_json["forked"] == {"run": "agent", "turn": "t2", "sequence": 11}


def test_what_it_prints_names_what_the_new_run_needs(tmp_path: Path) -> None:
    """The model that answered; the tools or the recording are the person's to name."""
    db = str(tmp_path / "a.db")
    talk = recording(tmp_path, [DIG])
    assert played("--record", talk, "--yes", "--db", db).returncode == 0
    done = turnlock("fork", "agent", "--at", "t1", "--db", db)
    assert done.stdout.endswith(f"turnlock run --db {db} --run agent-t1 --record 'FILE#talk'\n")

    play = ("--record", talk, "--yes", "--db", db, "--run", "asked")
    assert played("Dig here", *play).returncode == 0
    done = turnlock("fork", "asked", "--at", "t1", "--db", db)
    assert done.stdout.endswith("--run asked-t1 --model PROVIDER:NAME --tools FILE\n")


def test_where_it_cannot_be_forked_is_told(tmp_path: Path) -> None:
    """Status 2 with cause and fix, and nothing is made."""
    db = str(tmp_path / "a.db")
    talk = recording(tmp_path, [DIG], [DEEPER])
    play = ("--record", talk, "--gate", "all", "--db", db)
    assert played(*play, stdin="a\n").returncode == 3
    for arguments, why in (
        (("nobody", "--at", "t1"), "there is no run 'nobody'"),
        (("agent", "--at", "t2"), "'t2' is open still: interrupt it or let it end"),
        (("agent", "--at", "t2"), "these are closed: t1"),
        (("agent", "--at", "t3"), "'t3' is no turn of a conversation in it; its conversation has"),
        (("agent", "--at", "t1", "--as", "agent"), "it is there already, and another one"),
        (("agent", "--at", "t1", "--as", ""), "run_id"),
    ):
        done = turnlock("fork", *arguments, "--db", db)
        assert (done.exit_code, why in " ".join(done.output.split())) == (2, True), done.output
    assert [it["run_id"] for it in json.loads(turnlock("runs", "--db", db, "--json").output)] == [
        "agent"
    ]

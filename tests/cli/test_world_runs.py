"""Commands of single runs on members' runs: they work, or say what to use instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from turnlock import Decide, Run

from .recordings import turnlock
from .test_world_decide import ALICE, DIGITS, MEMBER, PAY
from .test_world_make import told
from .test_world_run import db as hosted_db
from .test_world_run import ran, say
from .waiting import call, deliver, doubted, facts, opened

__all__ = ["hosted_db"]


@pytest.fixture
def db(tmp_path: Path) -> str:
    """A world whose member asks for a payment, and a run that is nobody's member."""
    db = str(tmp_path / "w.db")
    told("new", "demo", db=db)
    told("agent", "put", "demo", "alice", "--model", "file:m", db=db)
    told("chat", "demo", "plan", db=db)
    deliver(db, opened("t1", PAY), run=MEMBER)
    deliver(db, opened("t1", call("c", "look", gated=False)), run=Run(run_id="agent"))
    return db


@pytest.mark.parametrize(
    "command",
    [
        ("runs",),
        ("runs", "--json"),
        ("show", ALICE),
        ("show", ALICE, "--json"),
        ("check",),
        ("grants", ALICE),
        ("diagram", "run", "--run", ALICE),
        ("interrupt", ALICE),
        ("approve", ALICE, "c1", "--turn", "t1", "--digest", DIGITS),
        ("deny", ALICE, "c1", "--turn", "t1", "--digest", DIGITS),
        ("recover", ALICE),
        ("backup", "-o", "copy.db"),
    ],
    ids=" ".join,
)
def test_w_3_what_shows_and_decides_works_on_members(
    db: str, command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = turnlock(*command, "--db", db)
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("end", ["clear demo plan alice", "agent rm demo alice"])
def test_w_42_nothing_begins_in_the_run_of_who_is_no_member_any_more(db: str, end: str) -> None:
    """Section 12: its turn is to be interrupted first. To deny, and to tell, is free."""
    look = call("c2", "look", gated=False)
    deliver(
        db,
        Decide(turn_id="t1", invocation_id="c1", approved=False),
        opened("t2", look, PAY),
        *doubted("t2", "c2"),
        run=MEMBER,
    )
    told(*end.split(), db=db)
    before = facts(db, ALICE)
    waits = (ALICE, "c1", "--turn", "t2", "--digest", DIGITS, "--db", db)
    doubt = (ALICE, "c2", "--turn", "t2", "--attempt", "1", "--db", db)
    for command in (("approve", *waits, "--scope", "session"), ("resolve", *doubt, "--retry")):
        refused = turnlock(*command)
        assert refused.exit_code == 1
        assert "demo/plan/alice is no member any more" in " ".join(refused.output.split())
    assert facts(db, ALICE) == before
    assert turnlock("deny", *waits).exit_code == 0
    assert turnlock("resolve", *doubt, "--error", "gone").exit_code == 0


def test_a_run_that_was_there_before_its_world_is_decided_as_ever(tmp_path: Path) -> None:
    """It is below the world's name, and no member's."""
    db = str(tmp_path / "w.db")
    deliver(db, opened("t1", PAY), run=Run(run_id=ALICE))
    told("new", "demo", db=db)
    asked = (ALICE, "c1", "--turn", "t1", "--digest", DIGITS, "--db", db)
    assert turnlock("approve", *asked).exit_code == 0


def test_w_3_only_hosts_of_its_world_perform_a_member(db: str) -> None:
    """What speaks to it, or goes on from it, says what to use; nothing is written."""
    before = facts(db, ALICE)
    for command in (
        ("run", "--run", ALICE, "--no-input"),
        ("run", "--run", ALICE, "--runtime", "codex", "hello"),
        ("fork", ALICE, "--at", "t1"),
    ):
        done = turnlock(*command, "--db", db)
        assert done.exit_code == 2, done.output
        assert "that of a member of world demo" in " ".join(done.output.split()), done.output
        assert "turnlock world run demo" in " ".join(done.output.split())
    assert facts(db, ALICE) == before


def test_w_3_no_other_run_stands_among_members(db: str) -> None:
    """An id below a world's name is a member's, who may be put there tomorrow."""
    for command in (
        ("run", "--run", "demo/plan/bob", "--no-input"),
        ("fork", "agent", "--at", "t1", "--as", "demo/plan/bob"),
    ):
        done = turnlock(*command, "--db", db)
        assert done.exit_code == 2
        assert "would stand among the members of world demo" in " ".join(done.output.split())
    assert turnlock("show", "demo/plan/bob", "--db", db).exit_code == 2


def test_a_member_keeps_its_run_until_it_has_another(db: str, tmp_path: Path) -> None:
    """Removed, its id would be refused for ever: it is cleared first."""
    turnlock("deny", ALICE, "c1", "--turn", "t1", "--digest", DIGITS, "--db", db)
    archive = str(tmp_path / "old.jsonl")
    for command in (("forget", ALICE, "--yes"), ("archive", ALICE, "-o", archive)):
        refused = turnlock(*command, "--db", db)
        assert refused.exit_code == 2
        assert "turnlock world clear demo plan alice" in " ".join(refused.output.split())
    every = turnlock("forget", "--older-than", "0s", "--yes", "--db", db)
    assert ALICE not in every.output
    assert turnlock("show", ALICE, "--db", db).exit_code == 0


def test_what_a_member_had_before_may_be_removed(
    hosted_db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its next run goes on, and the host does not miss the old one."""
    say(hosted_db, "@alice hello")
    assert ran(hosted_db)[0] == 0
    told("clear", "demo", "plan", "alice", db=hosted_db)
    assert ran(hosted_db)[0] == 0
    removed = turnlock("forget", ALICE, "--yes", "--db", hosted_db)
    assert removed.exit_code == 0, removed.output
    say(hosted_db, "@alice again")
    status, out, err = ran(hosted_db)
    assert (status, err) == (0, "")
    assert "alice: you said" in out
    assert "idle, heard 3  demo/plan/alice#2" in told("show", "demo", db=hosted_db)
    drawn = turnlock("diagram", "world", "demo", "plan", "--db", hosted_db)
    assert drawn.exit_code == 0

"""``turnlock world approve``, ``deny`` and ``reply``: from any terminal, about what was shown."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from turnlock import Claim, Decide, FactType, Match, OpenTurn, Run, Scope
from turnlock.cli.shown import DIGEST
from turnlock.models.facts import ToolApproved, ToolDenied
from turnlock.models.values import Json
from turnlock.runtime import SqliteJournal
from turnlock.world.entries import Question, body_of
from turnlock.world.names import question_id, request_id

from .recordings import turnlock
from .sessions import on_terminal
from .test_world_make import HOSTILE, refused, told
from .waiting import call, deliver, done, facts, opened

ALICE = "demo/plan/alice"
MEMBER = Run(run_id=ALICE, agent_id="alice", agent_name="alice", kind="world")
PAY = call("c1", "pay", to="Ada", amount=5)
REQUEST = request_id(ALICE, "t1", "c1")
DIGITS = str(PAY.arguments_digest)[:DIGEST]


@pytest.fixture
def db(tmp_path: Path) -> str:
    """A world in which alice asks for a payment."""
    db = str(tmp_path / "w.db")
    told("new", "demo", db=db)
    told("agent", "put", "demo", "alice", "--model", "file:m", db=db)
    told("chat", "demo", "plan", db=db)
    deliver(db, opened("t1", PAY), run=MEMBER)
    return db


def approvals(db: str) -> list[ToolApproved]:
    return [it for it in facts(db, ALICE) if isinstance(it, ToolApproved)]


def test_w_41_a_request_is_approved_by_its_id_and_its_digest(db: str) -> None:
    """The answer is the kernel's; again it is no other decision."""
    approve = ("approve", REQUEST, "--digest", DIGITS)
    said = told(*approve, "--as", "me", "--reason", "fine", db=db)
    assert said == "approved c1; nobody performs the run now: start it again\n"
    (approved,) = approvals(db)
    assert (approved.decided_by, approved.reason, approved.scope) == ("me", "fine", "once")

    again = refused(*approve, db=db, status=1)
    assert "no call that waits for approval is the one that was shown" in " ".join(again.split())
    refused("deny", REQUEST, "--digest", DIGITS, db=db, status=1)
    assert len(approvals(db)) == 1


def test_w_41_without_a_terminal_the_digest_is_demanded(db: str) -> None:
    """Nobody can be shown anything there; and another digest is about something else."""
    for verb in ("approve", "deny"):
        assert "give --digest of what you were shown" in " ".join(
            refused(verb, REQUEST, db=db).split()
        )
        refused(verb, REQUEST, "--digest", "0" * 32, db=db, status=1)
        refused(verb, REQUEST, "--digest", "xyz", db=db)
    assert approvals(db) == []


def test_a_denial_says_why(db: str) -> None:
    assert told("deny", REQUEST, "--digest", DIGITS, "--reason", "too much", db=db).startswith(
        "denied c1"
    )
    (denied,) = [it for it in facts(db, ALICE) if isinstance(it, ToolDenied)]
    assert denied.reason == "too much"


def test_a_grant_reaches_further_and_an_edit_runs_instead(db: str) -> None:
    """As `turnlock approve` has it, whose options these are."""
    told(
        *("approve", REQUEST, "--digest", DIGITS, "--scope", "session", "--any-arguments"),
        *("--arguments", '{"to": "Ada", "amount": 4}'),
        db=db,
    )
    (approved,) = approvals(db)
    assert (approved.scope, approved.match) == (Scope.SESSION, Match.TOOL)
    assert approved.arguments == {"to": "Ada", "amount": 4}
    assert "need --scope" in refused(
        "approve", REQUEST, "--digest", DIGITS, "--any-arguments", db=db
    )


@pytest.mark.parametrize(
    "request_of",
    [
        request_id("demo/plan/bob", "t1", "c1"),
        request_id(ALICE, "t0", "c1"),
        request_id(ALICE, "t2", "c1"),
        request_id(ALICE, "t1", "c2"),
        request_id(ALICE, "t1", "pay"),
    ],
)
def test_w_42_nothing_else_is_decided(db: str, request_of: str) -> None:
    """Another run, another turn, another call, a tool in place of a call."""
    for verb in ("approve", "deny"):
        done = turnlock("world", verb, request_of, "--digest", DIGITS, "--db", db)
        assert done.exit_code in {1, 2}, done.output
    found = {it.type for it in facts(db, ALICE)}
    assert not found & {FactType.TOOL_APPROVED, FactType.TOOL_DENIED}


@pytest.mark.parametrize("text", [*HOSTILE, "request/a/b", "decision/" + REQUEST[8:], "result/x"])
def test_what_is_no_request_is_wrong_usage(db: str, text: str) -> None:
    for verb in ("approve", "deny", "reply"):
        said = ("--decline",) if verb == "reply" else ("--digest", DIGITS)
        refused(verb, *said, "--db", db, "--", text, db=None)
    refused("approve", request_id("agent", "t1", "c1"), "--digest", DIGITS, db=db)


def test_whoever_decides_is_a_person(db: str) -> None:
    """W-10: no agent approves."""
    for name in ("alice", "Alice", "system", "grant", "a b"):
        refused("approve", REQUEST, "--digest", DIGITS, "--as", name, db=db)
    assert approvals(db) == []


def test_nobody_approves_for_a_member_of_before(db: str) -> None:
    """Its memory was cleared: its turn is to be interrupted, and nothing begins before."""
    told("clear", "demo", "plan", "alice", db=db)
    assert "is no member any more" in refused(
        "approve", REQUEST, "--digest", DIGITS, db=db, status=1
    )
    told("deny", REQUEST, "--digest", DIGITS, db=db)


def test_approve_works_as_ever_on_members(db: str) -> None:
    """`turnlock approve W/C/A CALL`, with what `turnlock show` prints."""
    done = turnlock(
        *("approve", ALICE, "pay", "--turn", "t1", "--digest", DIGITS, "--db", db),
    )
    assert done.exit_code == 0, done.output
    assert len(approvals(db)) == 1


def test_at_a_terminal_all_of_it_is_shown_and_asked_about(db: str, tmp_path: Path) -> None:
    """As long as it is; yes approves it, anything else nothing."""
    deliver(
        db,
        Decide(turn_id="t1", invocation_id="c1", approved=False),
        OpenTurn(turn_id="t2", calls=(call("c1", "write", text="x\u202e" * 3_000),)),
        run=MEMBER,
    )
    request = request_id(ALICE, "t2", "c1")
    program = ("-m", "turnlock", "world", "approve")
    no = on_terminal(request, "--db", db, cwd=tmp_path, program=program)
    no.says("Approve write (c1, turn t2)? [y/N]")
    shown = no.shown.decode()
    assert shown.count("\\u202e") == 3_000
    no.type("")
    assert no.ends() == 1
    assert approvals(db) == []

    yes = on_terminal(request, "--db", db, cwd=tmp_path, program=program)
    yes.says("Approve write (c1, turn t2)? [y/N]")
    yes.type("y")
    assert yes.ends() == 0
    assert len(approvals(db)) == 1


FORM: Mapping[str, Json] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "nights": {"type": "integer", "minimum": 1}},
    "required": ["city"],
}
QUESTION = question_id(ALICE, "t1", "c2", 1, 1)


def asked(db: str, *, text: str = "Which city?", number: int = 1) -> str:
    """A tool that runs has asked something."""
    name = question_id(ALICE, "t2", "c2", 1, number)
    question = Question(
        run=ALICE, turn="t2", invocation="c2", attempt=1, server="hotel", text=text, schema=FORM
    )

    async def work() -> None:
        async with await SqliteJournal.open(Path(db)) as journal:
            await journal.append_entry("demo/plan", name, body_of(question), at=1.0)

    asyncio.run(work())
    return name


@pytest.fixture
def running(db: str) -> str:
    """The same, with a call that runs."""
    book = call("c2", "hotel__book")
    deliver(
        db,
        Decide(turn_id="t1", invocation_id="c1", approved=True),
        *done("t1", "c1"),
        opened("t2", book),
        Decide(turn_id="t2", invocation_id="c2", approved=True),
        Claim(turn_id="t2", invocation_id="c2", attempt=1),
        run=MEMBER,
    )
    return db


def test_w_67_the_first_reply_stands(running: str) -> None:
    """Whoever gave it; the same again is the same."""
    question = asked(running)
    accept = ("reply", question, "--accept", json.dumps({"city": "Rome", "nights": 2}))
    assert told(*accept, "--as", "me", db=running) == (
        'replied: accept {"city":"Rome","nights":2}\n'
    )
    assert told(*accept, "--as", "me", db=running).startswith("replied before: accept")
    other = refused("reply", question, "--decline", "--as", "ada", db=running, status=1)
    assert other.startswith("me has replied before: accept")

    second = asked(running, number=2)
    assert told("reply", second, "--decline", db=running) == "replied: decline\n"
    third = asked(running, number=3)
    assert told("reply", third, "--cancel", db=running) == "replied: cancel\n"


def test_what_no_form_takes_is_wrong_usage(running: str) -> None:
    question = asked(running)
    for wrong in (
        ("--accept", "{}"),
        ("--accept", '{"city": 1}'),
        ("--accept", '{"city": "x", "other": 1}'),
        ("--accept", "[1]"),
        ("--accept", "{"),
        ("--accept", "{}", "--decline"),
        (),
    ):
        refused("reply", question, *wrong, db=running)
    refused("reply", question_id(ALICE, "t9", "c", 1, 1), "--decline", db=running)
    assert told("reply", question, "--decline", db=running) == "replied: decline\n"


def test_a_late_reply_is_said_to_be_late(db: str) -> None:
    """Its call does not run: nobody heeds it."""
    question = asked(db)
    assert "too late" in refused("reply", question, "--decline", db=db, status=1)


def test_at_a_terminal_a_question_is_asked_field_by_field(running: str, tmp_path: Path) -> None:
    question = asked(running, text="Which\x1b[2J city?")
    program = ("-m", "turnlock", "world", "reply")
    session = on_terminal(question, "--db", running, cwd=tmp_path, program=program)
    session.says("Which\\x1b[2J city?")
    session.type("a")
    session.says("city (string")
    session.type("Rome")
    session.says("nights (integer")
    session.type("0")
    session.says("less than the minimum of 1")
    session.until(lambda: session.shown.count(b"nights (integer") > 1, "the field again")
    session.type("2")
    session.says('replied: accept {"city":"Rome","nights":2}')
    assert session.ends() == 0

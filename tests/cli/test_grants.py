"""`grants` and `revoke`; and who approved what a grant approved (K-40 … K-42)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from turnlock import Decide, FactType, Match, Run, Scope
from turnlock.cli.run_screen import line_of
from turnlock.models.facts import ToolApproved
from turnlock.views.grants import Grants, approved_by, grants_in_force
from turnlock.views.run_view import RunView

from .recordings import turnlock
from .waiting import call, deliver, done, facts, opened


def granting(
    turn_id: str, by: str | None, *, scope: Scope, match: Match, expires_in: float | None = None
) -> Decide:
    return Decide(
        turn_id=turn_id,
        invocation_id="a",
        approved=True,
        decided_by=by,
        scope=scope,
        match=match,
        expires_in=expires_in,
    )


@pytest.fixture
def db(tmp_path: Path) -> str:
    """Three grants: of a turn that is over, for the arguments, and for the tool."""
    db = str(tmp_path / "a.db")
    deliver(
        db,
        opened("t1", call("a", "ls", path="/")),
        granting("t1", "ada", scope=Scope.TURN, match=Match.EXACT),
        *done("t1", "a"),
        opened("t2", call("a", "ls", path="/")),
        granting("t2", "bob", scope=Scope.SESSION, match=Match.EXACT),
        *done("t2", "a"),
        opened("t3", call("a", "rm", path="/x")),
        granting("t3", "ada\x1b[2J", scope=Scope.SESSION, match=Match.TOOL, expires_in=1e6),
        *done("t3", "a"),
        opened("t4", call("a", "rm", path="/y"), call("b", "ls", path="/")),
    )
    return db


def test_they_are_listed_with_what_they_cover_and_who_gave_them(db: str) -> None:
    listed = turnlock("grants", "agent", "--db", db)
    lines = listed.output.splitlines()

    assert listed.exit_code == 0
    assert lines[0] == "grant 2  ls, with these arguments, in this session"
    assert lines[1] == '         {"path":"/"}'
    assert lines[2].startswith("         digest ")
    assert lines[3].startswith("         given by bob in turn t2, for call a, 20")
    assert lines[4] == f"         turnlock revoke agent 2 --db {db}"
    assert lines[5] == "grant 3  rm, whatever the arguments, in this session"
    assert lines[6].startswith(r"         given by ada\x1b[2J in turn t3, for call a, 20")
    assert lines[7].startswith("         until 20")
    first, second = json.loads(turnlock("grants", "agent", "--db", db, "--json").output)
    assert (first["grant_id"], first["given_by"], first["arguments"]) == (
        "grant/agent/2",
        "bob",
        {"path": "/"},
    )
    assert len(first["arguments_digest"]) == 64
    assert (second["number"], second["match"], second["scope"]) == (3, "tool", "session")
    shown = turnlock("show", "agent", "--db", db, "--no-facts").output
    assert f"grants  2 in force: turnlock grants agent --db {db}\n" in shown


def test_a_grant_is_named_where_it_approved(db: str) -> None:
    """Never somebody: the grant, and who stands behind it, in the timeline and while it runs."""
    found = facts(db)
    wide = turnlock("show", "agent", "--db", db).output
    assert "by grant/agent/3, given by" in wide
    assert "by grant/agent/2, given by bob" in wide
    assert "by somebody" not in wide

    grants, view, lines = Grants(), RunView.of(Run(run_id="agent")), list[str]()
    for fact in found:
        if isinstance(fact, ToolApproved) and fact.grant_id is not None:
            lines.append(line_of(fact, view, grants).plain)
            assert approved_by(fact, grants).startswith(f"{fact.grant_id}, given by ")
        grants.take(fact)
        view = view.after((fact,))
    assert lines == [
        r"+ t4   rm a approved by grant/agent/3, given by ada\x1b[2J in turn t3",
        "+ t4   ls b approved by grant/agent/2, given by bob in turn t2",
    ]
    assert [it.grant_id for it in grants.in_force] == [it.grant_id for it in view.grants]


def test_a_revoked_grant_covers_nothing_more(db: str) -> None:
    revoked = turnlock("revoke", "agent", "2", "--db", db)
    assert revoked.output == "revoked grant/agent/2; nobody performs the run now: start it again\n"
    again = turnlock("revoke", "agent", "grant/agent/2", "--db", db)
    assert again.exit_code == 1
    assert "refused: unknown_grant – no such grant is in force (grant/agent/2)" in again.output
    never = turnlock("revoke", "agent", "9", "--db", db)
    assert never.exit_code == 1
    assert [it.number for it in grants_in_force(facts(db), now=0.0)] == [3]


def test_all_of_them_are_revoked(db: str) -> None:
    assert turnlock("revoke", "agent", "--all", "--db", db).exit_code == 0
    assert [it.type for it in facts(db)].count(FactType.GRANT_REVOKED) == 2
    none = turnlock("revoke", "agent", "--all", "--db", db)
    assert (none.exit_code, none.output) == (0, "no grant is in force\n")
    listed = turnlock("grants", "agent", "--db", db).output
    assert listed == "no grant is in force: every call that needs approval is asked about\n"
    assert json.loads(turnlock("grants", "agent", "--db", db, "--json").output) == []


def test_one_whose_time_is_over_is_not_in_force(db: str) -> None:
    """Before any fact says so, too."""
    assert [it.number for it in grants_in_force(facts(db), now=1e12)] == [2]


@pytest.mark.parametrize("arguments", [(), ("2", "--all")])
def test_it_must_be_said_which(db: str, arguments: tuple[str, ...]) -> None:
    wrong = turnlock("revoke", "agent", *arguments, "--db", db)
    assert wrong.exit_code == 2
    assert "give GRANT, by its number or its id, or --all" in wrong.output


@pytest.mark.parametrize("command", ["grants", "revoke"])
def test_an_unknown_run_is_wrong_usage(db: str, command: str) -> None:
    more = ("1",) if command == "revoke" else ()
    unknown = turnlock(command, "nope", *more, "--db", db)
    assert unknown.exit_code == 2
    assert "there is no run 'nope'" in unknown.output

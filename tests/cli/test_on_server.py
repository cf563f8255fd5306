"""The commands on a server say what they say of its journal, with the same status (--url, --db)."""

from __future__ import annotations

import json
import re
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import Result

from turnlock import Decide, FactType, Run
from turnlock.models.deliveries import Match, Scope
from turnlock.models.facts import ToolApproved, ToolDenied
from turnlock.server.routing import Role

from ..server.threads import Served, served
from .recordings import turnlock
from .waiting import call, deliver, done, doubted, facts, opened, printed

PAY, RM = call("a", "pay", to="<b>x</b>\u202e"), call("b", "rm", path="/")
OTHERS = {"doubted": "c", "granted": "d", "slash/é": "e"}


def fill(db: str) -> None:
    deliver(db, opened("t1", PAY, RM))
    deliver(db, opened("t1", call("c", "send", gated=False)), *doubted("t1", "c"), run=run("doubt"))
    grant = Decide(
        turn_id="t1",
        invocation_id="d",
        approved=True,
        decided_by="ada",
        scope=Scope.SESSION,
        match=Match.TOOL,
    )
    deliver(db, opened("t1", call("d", "ls")), grant, *done("t1", "d"), run=run("granted"))
    deliver(db, opened("t1", call("e", "ls")), run=run("slash/é %2F"))


def run(run_id: str) -> Run:
    return Run(run_id=run_id)


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Served]]:
    """A journal that is only read, and its server."""
    folder = tmp_path_factory.mktemp("read")
    db = str(folder / "a.db")
    fill(db)
    with served(db, folder) as server:
        yield db, server


@pytest.fixture
def written(tmp_path: Path) -> Iterator[tuple[str, Served]]:
    """A journal of its own for a test that decides, and its server."""
    db = str(tmp_path / "a.db")
    fill(db)
    with served(db, tmp_path) as server:
        yield db, server


def on(server: Served, *arguments: str, role: Role = Role.DECIDE) -> Result:
    """Run a command on the server."""
    token = server.token_file(role)
    return turnlock(*arguments, "--url", server.url, "--token-file", token)


def alike(db: str, server: Served, *arguments: str) -> str:
    """Run it both ways; what is said of either is the same but for the place."""
    of_db, of_url = turnlock(*arguments, "--db", db), on(server, *arguments, role=Role.LOOK)
    assert of_url.exit_code == of_db.exit_code, of_url.output
    told = of_db.output.replace(f"--db {db}", "--PLACE")
    assert of_url.output.replace(f"--url {server.url}", "--PLACE") == told
    return told


@pytest.mark.parametrize("run_id", ["agent", "doubt", "granted", "slash/é %2F"])
def test_show_says_the_same_of_both(read: tuple[str, Served], run_id: str) -> None:
    """Its calls, its facts, and the commands that decide about exactly what was shown (F-2)."""
    told = alike(*read, "show", run_id)
    assert "turn opened" in told or "TURN_OPENED" in told


def test_show_says_the_same_as_json(read: tuple[str, Served]) -> None:
    db, server = read
    of_db = json.loads(turnlock("show", "agent", "--json", "--db", db).output)
    of_url = json.loads(on(server, "show", "agent", "--json").output)
    assert of_url == of_db


def test_f_30_runs_are_told_alike_and_what_waits_comes_first(read: tuple[str, Served]) -> None:
    db, server = read
    of_db, of_url = turnlock("runs", "--db", db), on(server, "runs", role=Role.LOOK)
    assert of_url.exit_code == of_db.exit_code == 0

    def lines(result: Result) -> list[str]:
        return [re.sub(r" +\d+s", " Ns", it) for it in result.output.splitlines()]

    assert sorted(lines(of_url)) == sorted(lines(of_db))
    assert lines(of_url)[1].endswith(" agent")


def test_f_30_runs_go_on_behind_the_place_that_is_said(read: tuple[str, Served]) -> None:
    _, server = read
    found: list[str] = []
    after: tuple[str, ...] = ()
    for _ in range(10):
        page = json.loads(on(server, "runs", "--limit", "1", "--json", *after).stdout)
        found += [it["run_id"] for it in page]
        told = on(server, "runs", "--limit", "1", *after).stderr
        if not told:
            break
        after = ("--after", told.strip().rpartition(" ")[2])
    assert sorted(found) == ["agent", "doubt", "granted", "slash/é %2F"]


def test_grants_say_the_same_of_both(read: tuple[str, Served]) -> None:
    assert "given by ada" in alike(*read, "grants", "granted")
    assert "no grant is in force" in alike(*read, "grants", "agent")
    assert alike(*read, "grants", "granted", "--json")


def test_an_unknown_run_is_wrong_usage_and_those_there_are_listed(read: tuple[str, Served]) -> None:
    for command in ("show", "grants", "interrupt"):
        db, server = read
        of_db, of_url = turnlock(command, "nope", "--db", db), on(server, command, "nope")
        assert of_url.exit_code == of_db.exit_code == 2
        assert sorted(of_url.output.splitlines()) == sorted(of_db.output.splitlines())


def test_f_20_what_was_printed_decides_and_the_token_says_who(written: tuple[str, Served]) -> None:
    """`show --url` prints the whole command; it decides about what was shown."""
    db, server = written
    shown = on(server, "show", "agent", "--no-facts")
    approve, deny = (
        [*it.split()[1:], "--token-file", server.token_file(Role.DECIDE)]
        for it in shown.output.splitlines()
        if it.strip().startswith(("turnlock approve agent a", "turnlock deny agent b"))
    )
    approved, denied = turnlock(*approve), turnlock(*deny, "--reason", "no")
    assert (approved.exit_code, denied.exit_code) == (0, 0)
    assert approved.output.startswith("approved a; ")
    assert denied.output.startswith("denied b; ")
    kept = facts(db)
    (yes,) = [it for it in kept if isinstance(it, ToolApproved)]
    (no,) = [it for it in kept if isinstance(it, ToolDenied)]
    assert (yes.decided_by, no.decided_by, no.reason) == ("decide", "decide", "no")


def test_f_22_what_is_stale_is_refused_alike(written: tuple[str, Served]) -> None:
    db, server = written
    (command, *_) = printed(db, "approve")
    at = command.index("--db")
    command[at : at + 2] = ["--url", server.url, "--token-file", server.token_file(Role.DECIDE)]
    assert turnlock(*command).exit_code == 0
    of_url = turnlock(*command)
    command[at : at + 4] = ["--db", db]
    of_db = turnlock(*command)
    assert (of_url.exit_code, of_url.output) == (of_db.exit_code, of_db.output)
    assert of_url.exit_code == 1
    wrong = ["--turn", "t1", "--digest", "0" * 32]
    of_db = turnlock("deny", "agent", "b", *wrong, "--db", db)
    of_url = on(server, "deny", "agent", "b", *wrong)
    assert (of_url.exit_code, of_url.output) == (of_db.exit_code, of_db.output)


def test_a_doubt_is_resolved_a_grant_revoked_and_a_turn_interrupted(
    written: tuple[str, Served],
) -> None:
    db, server = written
    named = ("--turn", "t1", "--attempt", "1")
    resolved = on(server, "resolve", "doubt", "c", *named, "--result", '{"sent": true}')
    assert (resolved.exit_code, resolved.output.split(";")[0]) == (0, "resolved c")
    again = on(server, "revoke", "granted", "7")
    assert again.exit_code == turnlock("revoke", "granted", "7", "--db", db).exit_code == 1
    assert "unknown_grant" in again.output
    assert on(server, "revoke", "granted", "1").exit_code == 0
    assert on(server, "revoke", "granted", "--all").output == "no grant is in force\n"
    stopped = on(server, "interrupt", "agent", "--reason", "enough")
    assert (stopped.exit_code, stopped.output.split(";")[0]) == (0, "interrupted turn t1")
    shown = on(server, "show", "agent").output.splitlines()
    assert any("TURN_INTERRUPTING" in line and "enough" in line for line in shown)
    assert [it.type for it in facts(db)][-1] is FactType.TURN_INTERRUPTED
    late = on(server, "interrupt", "agent", "--turn", "t1")
    of_db = turnlock("interrupt", "agent", "--turn", "t1", "--db", db)
    assert (late.exit_code, late.output) == (of_db.exit_code, of_db.output)


def test_f_11_a_token_that_does_not_reach_is_refused(read: tuple[str, Served]) -> None:
    db, server = read
    before = facts(db)
    forbidden = on(server, "interrupt", "agent", role=Role.LOOK)
    assert forbidden.exit_code == 1
    assert "this token may not do that" in forbidden.output
    assert facts(db) == before


def test_f_11_without_a_token_and_with_a_wrong_one(
    read: tuple[str, Served], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, server = read
    monkeypatch.delenv("TURNLOCK_TOKEN", raising=False)
    monkeypatch.delenv("TURNLOCK_TOKEN_FILE", raising=False)
    assert turnlock("runs", "--url", server.url).exit_code == 2
    wrong = tmp_path / "wrong"
    wrong.write_text("not-this-one")
    refused = turnlock("runs", "--url", server.url, "--token-file", str(wrong))
    assert refused.exit_code == 2
    assert "the server does not know this token" in refused.output
    assert "not-this-one" not in refused.output
    monkeypatch.setenv("TURNLOCK_URL", server.url)
    monkeypatch.setenv("TURNLOCK_TOKEN_FILE", server.token_file(Role.LOOK))
    assert turnlock("runs").exit_code == 0


def test_where_nobody_listens_is_wrong_usage_as_no_journal_is() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    for command in (["runs"], ["show", "agent"], ["interrupt", "agent"]):
        missing = turnlock(*command, "--url", f"http://127.0.0.1:{port}")
        assert missing.exit_code == turnlock(*command, "--db", "/nowhere/a.db").exit_code == 2
        assert "is turnlock serve running there" in missing.output


def test_without_the_extra_it_is_wrong_usage_as_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("turnlock.cli.runs_of_server", "turnlock.server.client"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, "httpx", None)
    missing = turnlock("runs", "--url", "http://127.0.0.1:1")

    assert missing.exit_code == 2
    assert 'asking a server needs httpx: pip install "turnlock[client]"' in missing.output


def test_a_journal_and_a_server_are_not_both_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was typed goes before a variable that was set long ago."""
    for name in ("TURNLOCK_DB", "TURNLOCK_URL"):
        monkeypatch.delenv(name, raising=False)
    db, url = str(tmp_path / "a.db"), "http://127.0.0.1:1"
    both = turnlock("runs", "--db", db, "--url", url)
    assert (both.exit_code, "not both" in both.output) == (2, True)
    assert turnlock("runs").exit_code == 2
    assert turnlock("runs", "--db", db, "--token-file", "x").exit_code == 2
    for wrong in ("agent.db", "http://u:p@h", "http://h/?token=x"):
        assert turnlock("runs", "--url", wrong).exit_code == 2
    deliver(db, opened("t1", PAY))
    monkeypatch.setenv("TURNLOCK_URL", url)
    assert turnlock("runs", "--db", db).exit_code == 0
    monkeypatch.setenv("TURNLOCK_DB", db)
    assert "not both" in turnlock("runs").output


def test_f_13_no_token_is_ever_an_option_or_printed(read: tuple[str, Served]) -> None:
    _, server = read
    for command in ("runs", "show", "approve", "tui"):
        assert not re.search(r"--token[ =](?!file)", turnlock(command, "--help").output)
    assert "secret-of" not in on(server, "show", "agent").output

"""A journal in PostgreSQL is made, granted, watched, checked and copied, on real servers."""

# ruff: noqa: S608 - statements of a test, on a server of its own

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import asyncpg
import pytest
from tests.cli.recordings import turnlock
from tests.runtime.copying.filled import LONG, STOOD, fill, held

from turnlock import Call, Decide, OpenTurn, Run
from turnlock.models.errors import TurnlockError
from turnlock.models.facts import ToolDenied
from turnlock.runtime import JournalError, Runtime, Toolbox, open_journal, tool
from turnlock.runtime.journal.postgres.gauges import QUERIES
from turnlock.runtime.journal.postgres.grants import grants_of
from turnlock.runtime.journal.postgres.tables import Tables
from turnlock.runtime.submitting import submit

from . import servers
from .cluster import Cluster, cluster, ground

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "postgres.md"


def schema_of(url: str) -> str:
    """The schema that a URL names."""
    found = re.search(r"schema=(\w+)", url)
    assert found is not None
    return found[1]


async def asked(url: str, *statements: str) -> Any:
    """Have statements done; return the last one's first value."""
    connection = await asyncpg.connect(url)
    try:
        for statement in statements[:-1]:
            await connection.execute(statement)
        return await connection.fetchval(statements[-1])
    finally:
        await connection.close()


def sql(*statements: str) -> Any:
    """Have statements done by whoever may do everything."""
    return asyncio.run(asked(servers.url(), *statements))


def filled(url: str) -> str:
    """A journal that holds some of everything."""

    async def made() -> None:
        async with await open_journal(url) as journal:
            await fill(journal)

    asyncio.run(made())
    return url


@pytest.fixture(scope="module")
def server() -> Iterator[Cluster]:
    """A server of this file's own, whose roles and settings are changed."""
    with cluster() as made:
        yield made


def test_d_56_init_makes_a_schema_and_brings_it_up_to_date(tmp_path: Path) -> None:
    """What is there is left as it is; nobody else's schema is touched."""
    url = servers.journal_url(tmp_path)
    shown = f"{url}: "
    none = turnlock("runs", "--db", url)
    assert (none.exit_code, "turnlock journal init --db URL" in none.output) == (2, True)
    assert turnlock("journal", "init", "--db", url).output == f"{shown}made\n"
    assert turnlock("runs", "--db", url).exit_code == 0
    again = turnlock("journal", "init", "--db", url)
    assert (again.exit_code, again.output) == (0, f"{shown}is as it should be\n")

    sql(f'UPDATE "{schema_of(url)}".meta SET version = 99', "SELECT 1")
    newer = turnlock("journal", "init", "--db", url)
    assert (newer.exit_code, "are of version 99" in newer.output) == (1, True)
    assert "use the newer turnlock" in newer.output


def test_the_schema_of_another_program_is_not_touched(tmp_path: Path) -> None:
    """Its tables are called as ours are, and hold something else."""
    url = servers.journal_url(tmp_path)
    schema = schema_of(url)
    sql(
        f'CREATE SCHEMA "{schema}"',
        f'CREATE TABLE "{schema}".meta (name text, version text)',
        f"INSERT INTO \"{schema}\".meta VALUES ('theirs', 'seven')",
        "SELECT 1",
    )
    for words in (("journal", "init"), ("runs",), ("journal", "check")):
        done = turnlock(*words, "--db", url)
        assert done.exit_code in {1, 2}, done.output
        assert "Traceback" not in done.output
        assert "another program" in done.output
    tables = f"SELECT count(*) FROM pg_tables WHERE schemaname = '{schema}'"
    assert sql(tables) == 1


@pytest.mark.parametrize("role", ["deciders", 'odd "one"; DROP'])
def test_d_58_a_role_with_the_grants_decides_and_does_nothing_else(
    server: Cluster, tmp_path: Path, role: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the command prints is done, by psql's way in; the host judges the decision.

    It is the host, too, that removes old answers: each time here.
    """
    monkeypatch.setattr("turnlock.runtime.journal.postgres.posts.FORGETTING", 1)
    schema = f"g{abs(hash(role)) % 10**6}"
    url = f"{server.url}?schema={schema}&unsafe=on"
    assert turnlock("journal", "init", "--db", url).exit_code == 0
    printed = turnlock("journal", "grants", role, "--db", url).output
    quoted = '"' + role.replace('"', '""') + '"'
    server.sql(f"CREATE ROLE {quoted} LOGIN", *_statements(printed), "SELECT 1")
    theirs = servers.with_options(_as(url, role), schema=schema, unsafe="on")

    asyncio.run(_decided(url, theirs))

    tables = Tables.of(schema)
    for wrong in (
        f"INSERT INTO {tables.appends} (run, first, last, facts, checksum) VALUES (1, 9, 9, '', 0)",
        f"UPDATE {tables.runs} SET epoch = 99",
        f"UPDATE {tables.runs} SET owner = NULL",
        f"UPDATE {tables.posts} SET delivery = ''",
        f"UPDATE {tables.owners} SET renewed_until = 0",
        f"UPDATE {tables.meta} SET version = 0",
        f"DELETE FROM {tables.appends}",
        f"DELETE FROM {tables.posts}",
        f"TRUNCATE {tables.runs}",
        f"CREATE TABLE {tables.quoted}.mine (x int)",
    ):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            asyncio.run(asked(_as(server.url, role), wrong))


def _statements(printed: str) -> list[str]:
    return [it for it in printed.split(";\n") if it.strip()]


def _as(url: str, role: str) -> str:
    from urllib.parse import quote  # noqa: PLC0415 - here alone

    return url.replace("postgres@", f"{quote(role, safe='')}@", 1)


async def _decided(url: str, theirs: str) -> None:
    """A host performs a run that waits for a person; one with the grants denies."""
    async with (
        await open_journal(url) as journal,
        Runtime(journal=journal) as runtime,
        await open_journal(theirs, create=False) as visiting,
    ):
        calls = [
            Call(invocation_id=name, tool_name="pay", arguments={}, requires_approval=True)
            for name in "cd"
        ]
        await runtime.open_run(Run(run_id="r"), tools=_tools(), on_continue=_nothing)
        opened = await runtime.deliver("r", OpenTurn(turn_id="t", calls=tuple(calls)))
        assert opened.accepted
        assert [it.run.run_id for it in await visiting.runs()] == ["r"]
        decide = Decide(turn_id="t", invocation_id="c", approved=False, reason="no")
        done = await submit(visiting, "r", decide, within=20.0)
        assert done.receipt["accepted"] is True
        with pytest.raises(TurnlockError):
            await visiting.declare(Run(run_id="mine"))
        facts = [it async for it in journal.facts("r")]
    assert any(isinstance(it, ToolDenied) for it in facts)
    async with await open_journal(theirs, create=False) as visiting:  # no host has it now
        again = Decide(turn_id="t", invocation_id="d", approved=False, reason="no")
        with pytest.raises(JournalError, match="permission denied"):
            await submit(visiting, "r", again, within=5.0)


def _tools() -> Toolbox:
    def pay() -> str:
        """Pay."""
        raise AssertionError("it was denied")

    return Toolbox.of(tool(pay))


async def _nothing(_: Any) -> None:
    """Take the continuation."""


def test_status_asks_the_server(tmp_path: Path) -> None:
    """Each number of section 12, and what is beyond; a standby is none here."""
    url = filled(servers.journal_url(tmp_path))
    done = turnlock("journal", "status", "--db", url)
    assert done.exit_code == 1
    told = dict(line.split(": ", 1) for line in done.output.splitlines())
    assert told["runs that nobody took for 60 s"].startswith("1  (at most 0)  BEYOND")
    assert told["runs that are rewound"] == "1  (at most 0)  BEYOND: turnlock recover"
    assert told["posts that wait"] == "2  (at most 1,000)"
    assert told["standbys that commits wait for"] == "0"
    assert told["connections, of those there may be"].endswith("(at most 0.8)")
    read = json.loads(turnlock("journal", "status", "--db", url, "--json").output)
    assert {it["name"] for it in read["numbers"] if it["value"] is None} <= {
        "rows that are damaged",
        "updates of runs that stay in their page",
        "lag of a standby",
        "longest transaction",
    }


def test_status_is_quiet_where_all_is_well(tmp_path: Path) -> None:
    """The negative control."""
    url = servers.journal_url(tmp_path)
    assert turnlock("journal", "init", "--db", url).exit_code == 0
    done = turnlock("journal", "status", "--db", url)
    assert (done.exit_code, "BEYOND" in done.output) == (0, False), done.output


def test_check_says_the_timeline_and_what_is_damaged(tmp_path: Path) -> None:
    """And that nobody waits for a standby (D-61)."""
    url = filled(servers.journal_url(tmp_path))
    schema = schema_of(url)
    done = turnlock("journal", "check", "--db", url)
    assert "timeline 1, as it was when the journal was written last" in done.output
    assert "commits wait for no standby" in done.output
    assert "no fence can know (D-61)" in done.output
    assert f"run {STOOD}: rewound" in done.output
    assert "1 things are not as they were written" in done.output

    sql(f'UPDATE "{schema}".appends SET checksum = checksum + 1 WHERE first = 5', "SELECT 1")
    done = turnlock("journal", "check", "--db", url)
    assert done.exit_code == 1
    assert f"run {LONG}".replace("\n", "\\n") in done.output
    assert "fact 5" in done.output


def test_d_61_check_says_what_a_standby_is_waited_for() -> None:
    """With one that commits wait for, a failover loses nothing; told by a primary and by it."""
    with cluster() as primary:
        standby = ground().standby(primary, name="second")
        try:
            standby.start()
            url = f"{primary.url}?unsafe=on"
            assert turnlock("journal", "init", "--db", url).exit_code == 0
            assert "wait for no standby" in turnlock("journal", "check", "--db", url).output
            numbers = turnlock("journal", "status", "--db", url).output
            assert "standbys: 1\n" in numbers
            assert "lag of a standby: " in numbers

            primary.configure(synchronous_standby_names="second")
            primary.reload()
            waits = turnlock("journal", "check", "--db", url)
            assert waits.exit_code == 0, waits.output
            assert "commits wait for a standby (second): a failover loses nothing" in waits.output

            there = f"{standby.url}?unsafe=on"
            read = turnlock("journal", "check", "--db", there)
            assert "this server is a standby: it may be behind" in read.output
            assert turnlock("journal", "status", "--db", there).exit_code == 0
            refused = turnlock("journal", "init", "--db", there)
            assert refused.exit_code == 1
        finally:
            standby.close()


def test_a_file_is_moved_there_and_back(tmp_path: Path) -> None:
    """By the command, as a person does it."""
    file, again = tmp_path / "a.db", tmp_path / "b.db"
    filled(str(file))
    url = servers.journal_url(tmp_path)
    before = asyncio.run(_held(str(file)))
    done = turnlock("journal", "copy", str(file), url)
    assert done.exit_code == 0, done.output
    assert "read back, and whole" in done.output
    assert asyncio.run(_held(url)) == before
    assert turnlock("journal", "copy", url, str(again)).exit_code == 0
    assert asyncio.run(_held(str(again))) == before
    refused = turnlock("interrupt", "run-1", "--db", url)
    assert f"moved to {again}" in refused.output


async def _held(place: str) -> dict[str, Any]:
    async with await open_journal(place, create=False, read_only=True) as journal:
        return await held(journal)


def test_the_queries_of_the_page_are_those_of_the_command(tmp_path: Path) -> None:
    """Each is on the page as it is asked, and is asked of a real server, as the grants are."""
    url = servers.journal_url(tmp_path)
    assert turnlock("journal", "init", "--db", url).exit_code == 0
    page = PAGE.read_text(encoding="utf-8")
    named = Tables.of("turnlock")
    for name, query in QUERIES.items():
        shown = query.strip().format(runs=named.runs, owners=named.owners, posts=named.posts)
        assert f"-- {name}\n{shown};\n" in page
    for statement in grants_of(named, "deciders"):
        assert f"{statement};\n" in page
    blocks = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    asked_for = [it for block in blocks for it in block.split(";\n") if "SELECT" in it]
    assert len(asked_for) >= len(QUERIES)
    for statement in asked_for:
        if "GRANT" not in statement:
            sql(statement.replace('"turnlock"', f'"{schema_of(url)}"'))


WRONG: Final = {
    "port": ("postgresql://me:hunter2@127.0.0.1:1/agents", "the server is away"),
    "no port": ("postgresql://me:hunter2@127.0.0.1:port/agents", "or its port; give postgresql://"),
    "database": ("{server}/none?unsafe=on", "make it with createdb"),
    "role": (
        "postgresql://nobody%20here:hunter2@{host}/postgres?unsafe=on",
        "correct the user, or let it in",
    ),
    "garbage": ("postgresql://me:hunter2@[::1/x?schema", "give postgresql://"),
    "option": ("{server}/postgres?lanes=many&password=hunter2", "give a number from 1 to 16"),
    "schema": ("{server}/postgres?schema=pg_mine&password=hunter2", "do not begin with pg_"),
    "control": ("postgresql://me:hunter2@127.0.0.1/\x1b[31m", "journal"),
    "parameter": ("{server}/postgres?sslmode=perhaps&password=hunter2", "must be one of: disable"),
    "unknown": ("{server}/postgres?colour=blue&password=hunter2", "correct the URL's parameters"),
}


@pytest.mark.parametrize(("wrong", "fix"), WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("words", [("runs",), ("journal", "init"), ("journal", "status")])
def test_d_55_what_is_wrong_is_said_without_the_password(
    words: tuple[str, ...], wrong: str, fix: str
) -> None:
    """Cause, place and fix in a line or two; no traceback, no control characters."""
    at = urlsplit(servers.url()).netloc
    url = wrong.format(server=f"postgresql://{at}", host=at.rpartition("@")[2])
    done = turnlock(*words, "--db", url)
    assert done.exit_code in {1, 2}, done.output
    assert "hunter2" not in done.output
    assert "Traceback" not in done.output
    assert "\x1b" not in done.output
    assert "journal" in done.output
    assert fix in " ".join(done.output.split())
    assert len(done.output) < 1_000


def test_a_wrong_password_is_said(server: Cluster) -> None:
    """The server asks for one: what was given is not told, and where it comes from is."""
    server.sql("CREATE ROLE asked LOGIN PASSWORD 'right'", "SELECT 1")
    rules = server.data / "pg_hba.conf"
    before = rules.read_text(encoding="utf-8")
    rules.write_text(f"host all asked 127.0.0.1/32 scram-sha-256\n{before}", encoding="utf-8")
    server.reload()
    where = server.url.replace("postgres@", "asked:hunter2@")
    done = turnlock("journal", "init", "--db", f"{where}?unsafe=on&schema=asked")
    assert done.exit_code == 1
    assert "does not let us in" in done.output
    assert "PGPASSWORD" in done.output
    assert "hunter2" not in done.output


READS: Final = (
    ("runs",),
    ("runs", "--json", "--forgotten"),
    ("show", "run-1"),
    ("show", LONG, "--json", "--no-facts"),
    ("check",),
    ("check", "--run", "run-1"),
    ("grants", "run-1"),
    ("diagram", "run", "--run", "run-1", "--format", "text"),
    ("world", "list"),
    ("show", "nobody"),
)


def test_d_54_commands_say_the_same_of_a_file_and_of_a_url(tmp_path: Path) -> None:
    """Both hold the same; what is read of them differs in their names alone."""
    file, url = filled(str(tmp_path / "a.db")), filled(servers.journal_url(tmp_path))
    for words in READS:
        one, other = turnlock(*words, "--db", file), turnlock(*words, "--db", url)
        assert one.exit_code == other.exit_code, (words, one.output, other.output)
        assert one.output.replace(file, "DB") == other.output.replace(url, "DB"), words


def test_d_54_commands_write_where_a_url_names(tmp_path: Path) -> None:
    """A turn is interrupted and a run removed, as in a file; backups are the server's."""
    url = servers.journal_url(tmp_path)

    async def opened() -> None:
        async with await open_journal(url) as journal, Runtime(journal=journal) as runtime:
            call = Call(invocation_id="c", tool_name="pay", arguments={}, requires_approval=True)
            for run_id in ("r", "q"):
                await runtime.open_run(Run(run_id=run_id), tools=_tools(), on_continue=_nothing)
            await runtime.deliver("r", OpenTurn(turn_id="t", calls=(call,)))

    asyncio.run(opened())
    ended = turnlock("interrupt", "r", "--turn", "t", "--db", url)
    assert ended.exit_code == 0, ended.output
    assert "interrupted" in turnlock("show", "r", "--db", url).output
    gone = turnlock("forget", "q", "--yes", "--db", url)
    assert gone.exit_code == 0, gone.output
    assert "q" not in turnlock("runs", "--db", url).output.split()
    backup = turnlock("backup", "--db", url, "-o", str(tmp_path / "b.db"))
    assert (backup.exit_code, "pg_dump --schema" in backup.output) == (1, True)
    restore = turnlock("restore", str(tmp_path / "none.db"), "--db", url)
    assert restore.exit_code in {1, 2}, restore.output

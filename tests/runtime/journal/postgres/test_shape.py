"""What a journal in PostgreSQL is made of: one package, plain tables, no more rights than it needs.

(D-1, D-4, D-21)
"""

from __future__ import annotations

import ast
import asyncio
import tomllib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from turnlock import Run
from turnlock.runtime.errors import JournalError
from turnlock.runtime.journal.postgres import links
from turnlock.runtime.journal.postgres.journal import PostgresJournal
from turnlock.runtime.journal.postgres.url import place_of

from ....postgres.servers import journal_url, with_options
from ....postgres.stories import sooner_or_later
from ..stage import LEASE, NOW, RUN, everything, facts, kept, note, owned

ROOT = Path(__file__).parents[4]
PACKAGE = Path("runtime/journal/postgres")
MAY_NAME_IT = {
    "runtime/__init__.py": "a name of the runtime's own, for those who write types",
    "cli/journal_init.py": "what only this journal has: the rights of a role",
}
"""Who may import from the package of this journal, beside the registry, which loads it by name."""


def imported(source: str) -> Iterator[str]:
    """Every module that a source imports, wherever in it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (it.name for it in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module or ''}.{it.name}" for it in node.names)


def knows_the_database(source: str) -> bool:
    """Whether a source knows of the driver, or of the package that does."""
    return ("asyncpg" in source or "postgres" in source) and any(
        {"asyncpg", "postgres"} & set(it.split(".")) for it in imported(source)
    )


def test_d_1_nobody_else_knows_of_the_database() -> None:
    """Neither the kernel nor the runtime: its package alone does, behind `Journal`."""
    tops = [it for it in ROOT.iterdir() if (it / "__init__.py").exists()]
    mine = [it.relative_to(ROOT) for top in tops for it in top.rglob("*.py")]
    product = [it for it in mine if it.parts[0] not in {"tests", "benchmarks", "examples"}]
    knows = {
        str(it) for it in product
        if not it.is_relative_to(PACKAGE)
        and knows_the_database((ROOT / it).read_text(encoding="utf-8"))
    }  # fmt: skip
    assert len(product) > 100
    assert knows == set(MAY_NAME_IT)


@pytest.mark.parametrize(
    ("source", "knows"),
    [
        ("import asyncpg", True),
        ("def f():\n    from asyncpg.pool import Pool", True),
        ("from .journal.postgres.links import Link", True),
        ("from . import postgres", True),
        ("from .journal.contract import Journal  # of postgres, say", False),
    ],
)
def test_who_knows_of_the_database_is_found(source: str, *, knows: bool) -> None:
    """The negative control."""
    assert knows_the_database(source) == knows


def test_d_1_the_driver_comes_with_the_extra_alone() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    assert extras["postgres"] == ["asyncpg>=0.30"]
    assert "asyncpg-stubs>=0.30" in extras["dev"]
    assert not [it for it in project["dependencies"] if "asyncpg" in it]


async def asked(folder: Path, statement: str) -> Any:
    """What the database itself says; {} stands for the schema, {name} for its bare name."""
    place = place_of(journal_url(folder))
    connection = await asyncpg.connect(place.dsn)
    try:
        return await connection.fetchval(
            statement.format(place.tables.quoted, name=place.tables.schema)
        )
    finally:
        await connection.close()


@contextmanager
def plain_role(folder: Path) -> Generator[str]:
    """The URL of the folder's journal for a role that may make a schema, and nothing else."""
    url = journal_url(folder)
    role = f"r_{place_of(url).tables.schema}"
    database = "(SELECT quote_ident(current_database()))"

    async def make() -> None:
        connection = await asyncpg.connect(place_of(url).dsn)
        try:
            named = await connection.fetchval(f"SELECT {database}")
            await connection.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'p'")
            await connection.execute(f"GRANT CREATE ON DATABASE {named} TO {role}")
        finally:
            await connection.close()

    asyncio.run(make())
    try:
        dsn = place_of(url).dsn
        server = f"postgresql://{role}:p@{dsn.rpartition('@')[2]}"
        yield with_options(server, schema=place_of(url).tables.schema, unsafe="on")
    finally:
        asyncio.run(asked(folder, f"DROP OWNED BY {role} CASCADE"))
        asyncio.run(asked(folder, f"DROP ROLE {role}"))


CODE = (
    "SELECT (SELECT count(*) FROM pg_proc WHERE pronamespace = '{0}'::regnamespace)"
    " + (SELECT count(*) FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid"
    "    WHERE c.relnamespace = '{0}'::regnamespace AND NOT t.tgisinternal)"
    " + (SELECT count(*) FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class"
    "    WHERE c.relnamespace = '{0}'::regnamespace)"
)
"""Functions, triggers and rules."""
EXTENSIONS = "SELECT count(*) FROM pg_extension"


def test_d_4_a_plain_role_makes_it_and_performs_on_it(tmp_path: Path) -> None:
    """No superuser, no extension, and nothing in the server that runs: tables alone."""

    async def story(url: str) -> None:
        before = await asked(tmp_path, EXTENSIONS)
        async with await PostgresJournal.open(place_of(url)) as journal:
            fence = await owned(journal)
            await kept(journal, facts(3), fence)
            await journal.note(RUN.run_id, fence=fence, notes=[note()])
            await journal.append_entry("log", "first", {}, at=NOW)
            assert await journal.renew(owner="ada", now=NOW, lease=LEASE) == {RUN.run_id}
            await journal.release_all(owner="ada")
            assert await everything(journal) == facts(3)
            assert await journal.check() == ()
        superuser = await asked(
            tmp_path,
            "SELECT bool_or(u.usesuper) FROM pg_tables t JOIN pg_user u ON u.usename = t.tableowner"
            " WHERE t.schemaname = '{name}'",
        )
        assert superuser is False
        assert await asked(tmp_path, CODE) == 0
        assert await asked(tmp_path, EXTENSIONS) == before

    with plain_role(tmp_path) as url:
        asyncio.run(story(url))


def test_d_4_code_in_the_server_would_be_seen(tmp_path: Path) -> None:
    """The negative control."""

    async def story() -> None:
        async with await PostgresJournal.open(place_of(journal_url(tmp_path))):
            await asked(tmp_path, "CREATE FUNCTION {}.f() RETURNS int LANGUAGE sql AS 'SELECT 1'")
            assert await asked(tmp_path, CODE) == 1

    asyncio.run(story())


@pytest.mark.parametrize(("version", "taken"), [("130014", False), ("140000", True)])
def test_d_4_a_server_that_is_too_old_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, *, taken: bool
) -> None:
    """PostgreSQL 14 or later, by the number that the server gives."""
    told = links._ASKED.replace(  # pyright: ignore[reportPrivateUsage]
        "current_setting('server_version_num')", f"'{version}'"
    )
    assert told != links._ASKED  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(links, "_ASKED", told)

    async def story() -> None:
        async with await PostgresJournal.open(place_of(journal_url(tmp_path))) as journal:
            assert await journal.runs() == ()

    if taken:
        asyncio.run(story())
    else:
        with pytest.raises(JournalError, match="the server is of version 13; 14 or later"):
            asyncio.run(story())


FOREIGN_KEYS = (
    "SELECT count(*) FROM pg_constraint WHERE contype = 'f' AND connamespace = '{}'::regnamespace"
)


def test_d_21_there_are_no_foreign_keys(tmp_path: Path) -> None:
    """And one would be found."""

    async def story() -> None:
        async with await PostgresJournal.open(place_of(journal_url(tmp_path))):
            assert await asked(tmp_path, FOREIGN_KEYS) == 0
            await asked(
                tmp_path, "ALTER TABLE {0}.posts ADD FOREIGN KEY (run) REFERENCES {0}.runs (number)"
            )
            assert await asked(tmp_path, FOREIGN_KEYS) == 1

    asyncio.run(story())


def test_d_21_the_row_of_a_run_is_never_deleted(tmp_path: Path) -> None:
    """All else of a run that is removed is gone: its row stays, and keeps its number."""
    counted = "SELECT count(*) FROM {}."

    async def story() -> None:
        async with await PostgresJournal.open(place_of(journal_url(tmp_path))) as journal:
            fence = await owned(journal)
            await kept(journal, facts(3), fence, busy=False)
            await journal.release(RUN.run_id, fence=fence)
            before = await asked(tmp_path, "SELECT number FROM {}.runs")
            await journal.forget(RUN.run_id, fence=fence, after=3, at=NOW)
            assert await asked(tmp_path, counted + "appends") == 0
            assert await asked(tmp_path, "SELECT number FROM {}.runs") == before

    asyncio.run(story())


RENEWALS = 20


@pytest.mark.parametrize("indexed", [False, True])
def test_d_21_a_renewal_stays_inside_its_page(tmp_path: Path, *, indexed: bool) -> None:
    """No index holds what a lease changes: the server itself counts it. With one none does."""

    async def hot() -> bool:
        found = await asked(
            tmp_path,
            "SELECT n_tup_upd || ' ' || n_tup_hot_upd FROM pg_stat_user_tables"
            " WHERE relid = '{}.owners'::regclass",
        )
        updated, inside = map(int, found.split())
        if updated < RENEWALS:
            return False
        assert inside == (0 if indexed else updated)
        return True

    async def story() -> None:
        async with await PostgresJournal.open(place_of(journal_url(tmp_path))) as journal:
            if indexed:
                await asked(tmp_path, "CREATE INDEX ON {}.owners (renewed_until)")
            for number in range(3):
                await owned(journal, Run(run_id=f"run-{number}"))
            for number in range(1, RENEWALS + 1):
                assert len(await journal.renew(owner="ada", now=NOW + number, lease=LEASE)) == 3
        await sooner_or_later(hot)  # the server counts when a session has ended

    asyncio.run(story())

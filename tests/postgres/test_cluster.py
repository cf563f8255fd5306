"""The servers of tests: what is told to them happens, and none outlives the tests."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import asyncpg
import pytest

from .cluster import SAFE, Cluster, cluster, ground
from .installed import of_wheel
from .servers import drop_schemas, journal_url, url, with_options
from .warden import alive

ROOT = Path(__file__).parents[2]
MAKES = "CREATE TABLE t (n int)"


def test_a_folder_is_a_schema_which_is_dropped_after_the_test(tmp_path: Path) -> None:
    there = journal_url(tmp_path)
    assert there == journal_url(tmp_path)
    assert there != journal_url(tmp_path / "other")
    schema = there.split("schema=")[1].split("&")[0]

    async def schemas(statement: str = "SELECT 1") -> set[str]:
        connection = await asyncpg.connect(url())
        await connection.execute(statement)
        rows = await connection.fetch("SELECT nspname FROM pg_namespace")
        await connection.close()
        return {row["nspname"] for row in rows}

    assert schema in asyncio.run(schemas(f"CREATE SCHEMA {schema} CREATE TABLE t (n int)"))
    drop_schemas()
    assert schema not in asyncio.run(schemas())


def test_options_are_added_to_those_of_the_url() -> None:
    assert with_options("postgresql://u@h:1/d?a=1", b="2") == "postgresql://u@h:1/d?a=1&b=2"


def test_what_was_committed_is_there_after_a_kill() -> None:
    with cluster(**SAFE) as server:
        server.sql(MAKES, "INSERT INTO t VALUES (7)")
        assert server.sql("SHOW fsync") == "on"
        server.kill()
        with pytest.raises(ConnectionRefusedError):
            server.sql("SELECT 1")
        server.start()
        assert server.sql("SELECT n FROM t") == 7
        assert "was not properly shut down" in server.log


def test_a_server_that_is_frozen_answers_nobody_until_it_goes_on() -> None:
    async def asked(server: Cluster) -> int:
        async with server.session() as connection:
            server.freeze()
            answer: asyncio.Task[int] = asyncio.create_task(connection.fetchval("SELECT 3"))
            await asyncio.sleep(0.1)
            assert not answer.done()
            server.thaw()
            return await answer

    with cluster() as server:
        assert asyncio.run(asked(server)) == 3


def test_settings_count_when_they_are_read_again() -> None:
    with cluster(max_connections="20") as server:
        assert server.sql("SHOW max_connections") == "20"
        server.configure(statement_timeout="7s")
        server.reload()
        assert server.sql("SELECT pg_sleep(0.2)", "SHOW statement_timeout") == "7s"
        server.configure(port="no port")
        with pytest.raises(OSError, match="no port"):
            server.restart()


def test_a_standby_has_what_was_committed_and_is_promoted() -> None:
    with cluster() as primary:
        second = ground().standby(primary, name="second")
        second.start()
        primary.configure(synchronous_standby_names="second", synchronous_commit="remote_apply")
        primary.reload()
        primary.sql(MAKES, "SELECT pg_sleep(0.2)", "INSERT INTO t VALUES (1)")
        with pytest.raises(asyncpg.ReadOnlySQLTransactionError):
            second.sql("INSERT INTO t VALUES (2)")
        primary.kill()
        second.promote()
        assert second.sql("INSERT INTO t VALUES (2)", "SELECT count(*) FROM t") == 2
        assert second.sql("SELECT timeline_id FROM pg_control_checkpoint()") >= 1
        second.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="a file system of a test's own needs root")
def test_a_disk_of_a_size_is_full_at_that_size() -> None:
    with cluster(size="64m", max_wal_size="2MB") as server:
        with pytest.raises(asyncpg.DiskFullError):
            server.sql(
                "CREATE UNLOGGED TABLE t AS SELECT repeat(md5(n::text), 30)"
                " FROM generate_series(1, 100000) AS n"
            )
        assert server.sql("SELECT 1") == 1


def test_the_wheels_server_runs_too() -> None:
    server = ground(of_wheel()).cluster()
    server.start()
    assert int(server.sql("SHOW server_version_num")) >= 180_000
    server.close()
    assert not server.data.exists()


BEGINS = """
import os, sys
from tests.postgres.cluster import ground
server = ground().cluster()
server.start()
if sys.argv[1] == "freeze":
    server.freeze()
print(server.process, server.data, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("how", ["end", "freeze"])
def test_no_server_outlives_the_tests(how: str) -> None:
    """Not where they end, nor where they are killed while it hangs: then the warden stops it."""
    ground()  # is skipped where there is no server
    with subprocess.Popen(
        [sys.executable, "-c", BEGINS, how],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as tests:
        assert tests.stdin is not None
        assert tests.stdout is not None
        process, data = tests.stdout.readline().split()
        assert alive(int(process))
        if how != "end":
            tests.send_signal(signal.SIGKILL)
        tests.stdin.close()
        tests.wait()
    until = time.monotonic() + 60
    while alive(int(process)) or Path(data).parents[1].exists():
        assert time.monotonic() < until
        time.sleep(0.02)

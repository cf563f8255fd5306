"""DBOS as a waker (D-70 … D-74): the examples do what docs/engines.md says.

That any waker is safe is held by tests/runtime/test_waking.py, and that facts and wake-up are one
transaction by tests/runtime/journal/postgres/test_on_busy.py; here is the real DBOS.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import asyncpg
import pytest

from turnlock import Call, Kernel, OpenTurn, Run
from turnlock.runtime import PostgresJournal, Toolbox, submit
from turnlock.runtime.errors import JournalError
from turnlock.runtime.journal.contract import Appended

from ..guards.test_pages import blocks, stands_in
from ..postgres.servers import url, with_options

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "dbos"
PAGE = ROOT / "docs" / "engines.md"
HOSTILE = ("a\0b", "ⓐ'\"\\", "x" * 5_000)


def played(name: str, *given: object) -> list[str]:
    """What an example prints, which ends well."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *map(str, given)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def database() -> Generator[str]:
    """A database of its own: DBOS has one schema, whose name its function is called by."""
    name = f"turnlock_{uuid4().hex}"
    there = urlunsplit(urlsplit(url())._replace(path=f"/{name}"))

    async def done(statement: str) -> None:
        connection = await asyncpg.connect(url())
        await connection.execute(statement)
        await connection.close()

    asyncio.run(done(f"CREATE DATABASE {name}"))
    yield there
    asyncio.run(done(f"DROP DATABASE {name} WITH (FORCE)"))


def schema_in(database: str) -> str:
    """The URL of a journal in it."""
    return with_options(database, schema=f"t_{uuid4().hex[:8]}", unsafe="on")


def test_d_73_a_step_is_done_twice_in_silence_and_a_claim_is_in_doubt(tmp_path: Path) -> None:
    """The step is the control: killed between effect and record, it is recovered and pays again."""
    step, claim = played("steps.py", tmp_path / "steps")
    assert step == "as a step: paid 2 times; the workflow says 'paid 5', SUCCESS"
    assert claim.startswith("as a claim: paid 1 times; attempt 1 of pay is in doubt")


def test_d_74_dbos_recovers_nothing_of_another_executor_and_the_sweep_all(
    database: str, tmp_path: Path
) -> None:
    """`kill -9` of an executor in its turns: the claims are in doubt, and here safe to repeat."""
    printed = played("recovery.py", schema_in(database), tmp_path / "recovery", 4, 2)
    assert printed[:3] == [
        "killed with 4 turns in their tools",
        "another executor, in 2 s: 0 of 4",
        "workflows that DBOS has for pending: 4",
    ]
    assert re.fullmatch(r"with a sweep, in [0-9.]+ s: 4 of 4", printed[3])
    assert printed[4:] == [
        "begun again, where that is safe: at most 1 times",
        "turns ended: 4, at most 1 times each",
        "workflows that DBOS has for pending: 0",
    ]


def test_d_70_dbos_wakes_once_often_late_and_never(database: str, tmp_path: Path) -> None:
    """Each tool has run once, and each turn ended once."""
    printed = played("wakers.py", schema_in(database), tmp_path / "wakers")
    assert printed == [
        "of four workflows at once: 1 performed it",
        "of one, and another afterwards: 1 performed it, the first: True",
        "of none: busy after a second: True; two looks of a sweep found ((), ('never',))",
        "tools ran: {'once': 1, 'often': 1, 'never': 1}",
        "turns ended: {'once': 1, 'often': 1, 'never': 1}",
    ]


@pytest.fixture(scope="module")
def waker() -> ModuleType:
    """The example's module, in this process; DBOS is not launched in it."""
    spec = importlib.util.spec_from_file_location("waker", EXAMPLES / "waker.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


WORKFLOWS = """
SELECT workflow_uuid AS id, name, queue_name, status, i.inputs
FROM dbos.workflow_status s JOIN dbos.workflow_input i USING (workflow_uuid) ORDER BY 1
"""


async def workflows(database: str) -> list[dict[str, Any]]:
    connection = await asyncpg.connect(database)
    rows = await connection.fetch(WORKFLOWS)
    await connection.execute("DELETE FROM dbos.workflow_status")
    await connection.close()
    return [dict(row) for row in rows]


def opens(turn_id: str = "t1") -> OpenTurn:
    call = Call(invocation_id="a", tool_name="act", arguments={}, requires_approval=True)
    return OpenTurn(turn_id=turn_id, calls=(call,))


async def opened(journal: PostgresJournal, run_id: str) -> None:
    await journal.declare(Run(run_id=run_id))
    await submit(journal, run_id, opens(), within=5, tools=Toolbox())


def test_d_72_a_turn_is_one_workflow_of_dbos(database: str, waker: ModuleType) -> None:
    """By its id, in its queue, with the run's id for its argument, whatever that is.

    The same id again is the same workflow. The control is a journal without the statement.
    """

    async def play() -> None:
        there = schema_in(database)
        async with await waker.open_waking(there) as journal:
            await workflows(database)  # forgets those of other tests
            for run_id in HOSTILE:
                await opened(journal, run_id)
            found = await workflows(database)
            assert {it["id"] for it in found} == {f"{waker.workflows_of(it)}1" for it in HOSTILE}
            assert {(it["name"], it["queue_name"], it["status"]) for it in found} == {
                (waker.WORKFLOW, waker.QUEUE, "ENQUEUED")
            }
            arguments = [json.loads(it["inputs"])["positionalArgs"] for it in found]
            assert sorted(arguments) == sorted([it] for it in HOSTILE)
        async with await PostgresJournal.open(there) as silent:
            await opened(silent, "silent")
            assert await workflows(database) == []

    asyncio.run(play())


def test_d_72_the_same_id_twice_is_one_workflow(database: str, waker: ModuleType) -> None:
    """Two who open the same turn at once: one of them is refused, and one workflow is there."""

    async def play() -> None:
        there = schema_in(database)
        async with (
            await waker.open_waking(there) as one,
            await waker.open_waking(there) as other,
        ):
            await one.declare(Run(run_id="r"))
            facts = Kernel(Run(run_id="r")).receive(opens(), 1.0).facts
            answers = await asyncio.gather(
                *(
                    it.append("r", fence=None, after=0, facts=facts, busy=True)
                    for it in (one, other)
                )
            )
            assert sorted(answers) == [Appended.CONFLICT, Appended.OK]
            connection = await asyncpg.connect(database)
            columns = "SELECT $1::text, $2::text, $3::bigint"
            again = f"WITH busy(run_id, run_key, turn_epoch) AS ({columns}) {waker.ON_BUSY}"
            await connection.execute("UPDATE dbos.workflow_status SET status = 'SUCCESS'")
            key = waker.workflows_of("r").split(":")[1]
            await connection.fetch(again, '"r"', key, 1)
            await connection.close()
            (found,) = await workflows(database)
            assert found["status"] == "SUCCESS"

    asyncio.run(play())


FAILS = """
CREATE FUNCTION "{0}".fails() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'at COMMIT'; END $$;
CREATE CONSTRAINT TRIGGER fails AFTER INSERT ON "{0}".appends DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION "{0}".fails();
"""


def test_d_72_rolled_back_there_is_no_workflow(database: str, waker: ModuleType) -> None:
    """COMMIT fails after the workflow was put into the queue: neither it nor a fact is there.

    The control is whoever enqueues in a transaction of its own: its workflow is for nothing.
    """

    async def play() -> None:
        there = schema_in(database)
        async with await waker.open_waking(there) as journal:
            connection = await asyncpg.connect(database)
            await connection.execute(FAILS.format(there.split("schema=")[1].split("&")[0]))
            with pytest.raises(JournalError, match="nothing was written: at COMMIT"):
                await opened(journal, "r")
            assert await journal.read("r") == ()
            assert await workflows(database) == []
            enqueue = "SELECT dbos.enqueue_workflow(workflow_name => 'w', queue_name => 'q')"
            await connection.execute(enqueue)
            with pytest.raises(JournalError):
                await opened(journal, "r")
            assert len(await workflows(database)) == 1
            await connection.close()

    asyncio.run(play())


def test_the_page_quotes_the_examples_and_what_they_print() -> None:
    """Its Python stands in them, line for line; a command's figures are those of one run of it."""
    sources = [it.read_text(encoding="utf-8") for it in sorted(EXAMPLES.glob("*.py"))]
    quoted = blocks(PAGE, "python")
    assert len(quoted) >= 4
    assert [it for it in quoted if not any(stands_in(it, source) for source in sources)] == []
    assert not any(stands_in("a line of its own", source) for source in sources)  # the control
    told = PAGE.read_text(encoding="utf-8")
    assert "another executor, in 10 s: 0 of 200" in told
    assert "as a step: paid 2 times; the workflow says 'paid 5', SUCCESS" in told

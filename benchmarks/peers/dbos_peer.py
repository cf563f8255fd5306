"""DBOS: each turn a workflow, each call a step, the approval a message that the workflow receives.

In a SQLite file, as DBOS makes it unless told otherwise: a rollback journal, `synchronous=FULL`,
and a look for messages each second. A tuned one has the file in WAL, and looks each 10 ms.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import attrs
from dbos import DBOS, DBOSConfig, SetWorkflowID

from peers.turn import CALLS, LOOKS, PAY, Standing, Tools, key_of

APPROVED = "approved"
PATIENCE = 3_600.0
"""Seconds that a workflow waits for its approval."""

_tools: list[Tools] = []
"""Those of this process: DBOS has one executor in each, and functions it knows by name."""


@DBOS.step()
async def perform(key: str) -> str:
    """Perform a call."""
    return await _tools[-1].perform_in_loop(key)


@DBOS.step()
async def tell(results: list[str]) -> None:
    """Hand the results back to a model, of which there is none."""
    if len(results) != len(CALLS):
        raise AssertionError(results)


@DBOS.workflow()
async def turn_of(run: str, turn: int) -> None:
    """Perform the calls that need nobody at once, and the payment when it is approved."""
    results = await asyncio.gather(*(perform(key_of(run, turn, name)) for name in LOOKS))
    approved = await DBOS.recv_async(APPROVED, timeout_seconds=PATIENCE)
    key = key_of(run, turn, PAY)
    paid = await perform(key) if approved else f"denied {key}"
    await tell([*results, paid])


@attrs.frozen
class Dbos:
    """As DBOS makes it, or in WAL and with an eye on its messages."""

    tuned: bool = False

    @asynccontextmanager
    async def open(self, folder: Path, tools: Tools) -> AsyncGenerator[_Session]:
        """Launch the executor: it goes on with every workflow that a dead one has left."""
        path = folder / "dbos.db"
        config: DBOSConfig = {
            "name": "peers",
            "system_database_url": f"sqlite:///{path}",
            "application_version": "1",
            "executor_id": "one",
            "log_level": "ERROR",
        }
        if self.tuned:
            with closing(sqlite3.connect(path)) as connection:
                connection.execute("PRAGMA journal_mode = WAL")
            config["notification_listener_polling_interval_sec"] = 0.01
        _tools.append(tools)
        DBOS(config=config)
        try:
            await asyncio.to_thread(DBOS.launch)
            yield _Session()
        finally:
            await asyncio.to_thread(DBOS.destroy)
            _tools.clear()


class _Session:
    def __init__(self) -> None:
        self._turns: dict[str, Any] = {}

    async def begin(self, run: str, turn: int) -> None:
        with SetWorkflowID(f"{run}/{turn}"):
            self._turns[run] = await DBOS.start_workflow_async(turn_of, run, turn)

    async def approve(self, run: str, turn: int) -> None:
        workflow = f"{run}/{turn}"
        await DBOS.send_async(workflow, True, APPROVED)  # noqa: FBT003 - the message
        mine = self._turns.pop(run, None)
        if mine is None:
            mine = await DBOS.retrieve_workflow_async(workflow)
        await mine.get_result(polling_interval_sec=0.01)

    async def resume(self, run: str, turn: int) -> Standing:
        workflow: Any = await DBOS.retrieve_workflow_async(f"{run}/{turn}")
        await workflow.get_result(polling_interval_sec=0.01)
        return "told"

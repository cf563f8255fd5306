"""turnlock: a `Runtime` on its journal in SQLite, as docs/runtime.md shows it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import attrs

from peers.turn import CALLS, LOOKS, PAY, Standing, Tools, key_of
from turnlock import Call, Run
from turnlock.runtime import Continuation, Runtime, SqliteJournal, Toolbox, tool


@attrs.frozen
class Turnlock:
    """In WAL, `synchronous=FULL`."""

    @asynccontextmanager
    async def open(self, folder: Path, tools: Tools) -> AsyncGenerator[_Session]:
        """Open the journal, and take over what a dead process has left."""

        @tool
        async def look(key: str) -> str:
            return await tools.perform_in_loop(key)

        @tool(approval=True)
        async def pay(key: str) -> str:
            return await tools.perform_in_loop(key)

        async with (
            await SqliteJournal.open(folder / "journal.db") as journal,
            Runtime(journal=journal, tools=Toolbox.of(look, pay), on_continue=_tell) as runtime,
        ):
            yield _Session(runtime)


async def _tell(told: Continuation) -> None:
    """Hand the results back to a model, of which there is none."""
    if len(told.results) != len(CALLS):
        raise AssertionError(told)


class _Session:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._rest: dict[str, asyncio.Event] = {}
        runtime.when_kept(self._kept)

    async def begin(self, run: str, turn: int) -> None:
        if not self._runtime.owns(run):
            await self._runtime.open_run(Run(run_id=run))
        await self._runtime.open_turn(run, _calls(run, turn), turn_id=f"t{turn}", epoch=turn + 1)

    async def approve(self, run: str, turn: int) -> None:
        verdict = await self._runtime.approve(run, turn_id=f"t{turn}", invocation_id=PAY)
        if not verdict.accepted:
            raise AssertionError(verdict)
        await self._at_rest(run)

    async def resume(self, run: str, turn: int) -> Standing:  # noqa: ARG002 - a run has one
        await self._at_rest(run)
        return "in doubt" if self._runtime.doubts(run) else "told"

    async def _at_rest(self, run: str) -> None:
        """Wait until a run owes nothing any more, and that is kept, or asks a person."""
        if self._works(run):
            await self._rest.setdefault(run, asyncio.Event()).wait()

    def _works(self, run: str) -> bool:
        return self._runtime.busy(run) and not self._runtime.doubts(run)

    def _kept(self, run: str) -> None:
        if run in self._rest and not self._works(run):
            self._rest.pop(run).set()


def _calls(run: str, turn: int) -> list[Call]:
    return [
        Call(
            invocation_id=name,
            tool_name="look" if name in LOOKS else PAY,
            arguments={"key": key_of(run, turn, name)},
            requires_approval=False,
        )
        for name in CALLS
    ]

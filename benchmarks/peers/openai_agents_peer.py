"""The OpenAI Agents SDK: a tool with `needs_approval`, a `SQLiteSession`, the `RunState` stored.

The session keeps what was said; who waits for an approval, and that it was given, the application
has to store, as the guide to a human in the loop shows. Here that is a table beside the session's
file, as durable as that: WAL, `synchronous=FULL`.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from threading import Lock
from typing import Any

import attrs
from agents import (
    Agent,
    Model,
    ModelResponse,
    RunConfig,
    Runner,
    RunState,
    SQLiteSession,
    Usage,
    function_tool,
)
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from peers.turn import CALLS, LOOKS, PAY, Standing, Tools, key_of

CONFIG = RunConfig(tracing_disabled=True)


class _Script(Model):
    """Asks for the three calls of the turn that the user has named, and then is content."""

    async def get_response(
        self,
        system_instructions: str | None,  # noqa: ARG002 - the signature is the SDK's
        input: str | list[Any],  # noqa: A002 - as above
        *_: object,
        **__: object,
    ) -> ModelResponse:
        last: dict[str, Any] = {"content": input} if isinstance(input, str) else input[-1]
        if last.get("type") == "function_call_output":
            text = ResponseOutputText(text="Good.", type="output_text", annotations=[])
            answer: list[Any] = [
                ResponseOutputMessage(
                    id="m", content=[text], role="assistant", status="completed", type="message"
                )
            ]
        else:
            run, turn = last["content"].split("/")
            answer = [
                ResponseFunctionToolCall(
                    call_id=f"{turn}-{name}",
                    name="look" if name in LOOKS else PAY,
                    arguments=json.dumps({"key": key_of(run, int(turn), name)}),
                    type="function_call",
                )
                for name in CALLS
            ]
        return ModelResponse(output=answer, usage=Usage(), response_id=None)

    def stream_response(self, *_: object, **__: object) -> AsyncIterator[Any]:
        raise NotImplementedError


@attrs.frozen
class OpenAIAgents:
    """WAL; `synchronous` as the SQLite at hand has it, which is FULL."""

    @asynccontextmanager
    async def open(self, folder: Path, tools: Tools) -> AsyncGenerator[_Session]:
        """Open the table of states."""

        @function_tool
        async def look(key: str) -> str:
            """Look."""
            return await tools.perform_in_loop(key)

        @function_tool(needs_approval=True)
        async def pay(key: str) -> str:
            """Pay."""
            return await tools.perform_in_loop(key)

        agent = Agent(name="payer", model=_Script(), tools=[look, pay])
        with closing(sqlite3.connect(folder / "states.db", check_same_thread=False)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("CREATE TABLE IF NOT EXISTS states (run PRIMARY KEY, state)")
            yield _Session(agent, folder / "session.db", _States(connection))


class _States:
    """What the application stores of runs that wait, or were approved."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._lock = Lock()

    def put(self, run: str, state: str) -> None:
        with self._lock, self._connection:
            self._connection.execute("REPLACE INTO states VALUES (?, ?)", (run, state))

    def get(self, run: str) -> str:
        found = self._connection.execute("SELECT state FROM states WHERE run = ?", (run,))
        state: str = found.fetchone()[0]
        return state

    def remove(self, run: str) -> None:
        with self._lock, self._connection:
            self._connection.execute("DELETE FROM states WHERE run = ?", (run,))


class _Session:
    def __init__(self, agent: Agent[Any], path: Path, states: _States) -> None:
        self._agent = agent
        self._path = path
        self._states = states
        self._waiting: dict[str, Any] = {}

    async def begin(self, run: str, turn: int) -> None:
        result = await self._go(run, f"{run}/{turn}")
        state = self._waiting[run] = result.to_state()
        await asyncio.to_thread(self._states.put, run, state.to_string())

    async def approve(self, run: str, turn: int) -> None:  # noqa: ARG002 - a session has one
        state = self._waiting.pop(run, None) or await self._stored(run)
        for asked in state.get_interruptions():
            state.approve(asked)
        await asyncio.to_thread(self._states.put, run, state.to_string())
        await self._end(run, state)

    async def resume(self, run: str, turn: int) -> Standing:  # noqa: ARG002
        await self._end(run, await self._stored(run))
        return "told"

    async def _stored(self, run: str) -> Any:  # noqa: ANN401 - the SDK's state has many variables
        return await RunState.from_string(self._agent, self._states.get(run))

    async def _end(self, run: str, state: Any) -> None:  # noqa: ANN401 - as above
        result = await self._go(run, state)
        if result.final_output != "Good.":
            raise AssertionError(result)
        await asyncio.to_thread(self._states.remove, run)

    async def _go(self, run: str, given: Any) -> Any:  # noqa: ANN401 - as above
        session = SQLiteSession(run, self._path)
        try:
            return await Runner.run(self._agent, given, session=session, run_config=CONFIG)
        finally:
            session.close()

"""How tests call tools of servers: as the runtime does, with a context of their own."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Coroutine, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import attrs

from turnlock.models.errors import InvalidValue
from turnlock.models.values import Json
from turnlock.runtime.journal.ledger import Cursor, Domain, Note, Noted
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.tools.calling import ToolContext
from turnlock.runtime.tools.performing import perform, prepare
from turnlock.runtime.tools.results import Failed, Outcome, Succeeded, Unknown
from turnlock.runtime.tools.tool import Tool
from turnlock.toolkits.mcp import McpServer

HERE: Final = Path(__file__).parent

ANY: Final[Mapping[str, Any]] = {"type": "object"}


@attrs.frozen
class Shop:
    """The shop, as it runs over HTTP."""

    process: subprocess.Popen[str]
    url: str
    ledger: Path

    def server(self, *, old: bool = False, **more: Any) -> McpServer:
        """Return it as a server, as one that speaks MCP of 2025-11-25 perhaps."""
        return McpServer(url=self.url, headers={"x-old-mcp": "yes"} if old else {}, **more)


@contextmanager
def shop_over_http(ledger: Path) -> Generator[Shop]:
    """Start the shop on a port of loopback, and end it."""
    command = [sys.executable, str(HERE / "shop_server.py"), str(ledger), "http"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            yield Shop(process, f"http://127.0.0.1:{port}/mcp", ledger)
        finally:
            process.kill()


def shop_as_program(ledger: Path, *how: str, **more: Any) -> McpServer:
    """The shop as a program of ours."""
    command = [sys.executable, str(HERE / "shop_server.py"), str(ledger), *how]
    return McpServer(command=command, **more)


class Notes:
    """The notes of one run, r unless told otherwise: none changes."""

    def __init__(self, *kept: str, runs: tuple[str, ...] = ("r",)) -> None:
        """Begin with these, whatever they say."""
        self.kept: dict[str, dict[str, Json]] = {name: {} for name in kept}
        """The bodies by their ids, which they hold besides."""
        self.runs = runs
        self._known = {"r", *runs}

    def now(self) -> float:
        """Return some time."""
        return 1.0

    async def note(self, run_id: str, *notes: Note) -> None:
        """Keep one."""
        assert run_id in self._known
        (note,) = notes
        assert note.domain is Domain.APPROVAL
        assert note.kind == str(note.id).partition("/")[0]
        if self.kept.setdefault(str(note.id), told(note)) != told(note):
            raise InvalidValue(place=str(note.id), cause="another note has it", fix="another")

    async def notes(self, run_id: str, *, domain: Domain | None = None) -> list[Noted]:
        """Return all."""
        assert run_id in self._known
        assert domain is Domain.APPROVAL
        kept = ((it, it.partition("/")[0], body) for it, body in self.kept.items())
        return [
            Noted(
                cursor=Cursor(0, place),
                note=Note(domain=domain, kind=kind, body={"id": name, **body}, at=1.0, id=name),
            )
            for place, (name, kind, body) in enumerate(kept, start=1)
        ]


def told(note: Note) -> dict[str, Json]:
    """What a note says, but for its id."""
    body = dict(note.body)
    assert body.pop("id") == note.id
    return body


async def noted(runtime: Runtime, run_id: str = "r") -> dict[str, dict[str, Json]]:
    """What the notes of a run say, by their ids."""
    return {str(it.note.id): told(it.note) for it in await runtime.notes(run_id)}


def odd(*tools: Mapping[str, Any], how: str = "", **more: Any) -> McpServer:
    """The odd server, with these tools, or one that says whatever it is told to."""
    listed = list(tools) or [{"name": "act", "inputSchema": ANY}]
    command = [sys.executable, str(HERE / "odd_server.py"), json.dumps(listed), how]
    return McpServer(command=command, **more)


def play(work: Coroutine[Any, Any, None]) -> None:
    """Run it in real time, bounded."""

    async def bounded() -> None:
        async with asyncio.timeout(30):
            await work

    asyncio.run(bounded())


async def until(holds: Callable[[], bool]) -> None:
    """Wait for something that other processes do, at most for some seconds."""
    async with asyncio.timeout(10):
        while not holds():  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.01)


def done(ledger: Path) -> list[dict[str, Any]]:
    """What the tools of the shop really did."""
    text = ledger.read_text() if ledger.exists() else ""
    return [json.loads(line) for line in text.splitlines()]


def context(
    tool_name: str = "shop__look",
    logs: list[str] | None = None,
    *,
    run_id: str = "r",
    turn_id: str = "t1",
    invocation_id: str = "a",
) -> ToolContext:
    """The context of one execution."""
    kept: list[str] = [] if logs is None else logs
    return ToolContext(
        idempotency_key="key-1",
        run_id=run_id,
        turn_id=turn_id,
        invocation_id=invocation_id,
        attempt=1,
        tool_name=tool_name,
        on_log=kept.append,
    )


async def outcome(tool: Tool, given: ToolContext | None = None, **arguments: Any) -> Outcome:
    """What an execution comes to."""
    given = given or context(tool.name)
    with ThreadPoolExecutor(1) as threads:
        ready = await prepare(tool, given, arguments, threads=threads)
        return await perform(tool, given, ready, threads=threads)


async def result(tool: Tool, given: ToolContext | None = None, **arguments: Any) -> Any:
    """The result of an execution that succeeds."""
    got = await outcome(tool, given, **arguments)
    assert isinstance(got, Succeeded), got
    return got.result


async def failure(tool: Tool, given: ToolContext | None = None, **arguments: Any) -> str:
    """The error of an execution that fails."""
    got = await outcome(tool, given, **arguments)
    assert isinstance(got, Failed), got
    return got.error


async def doubt(tool: Tool, given: ToolContext | None = None, **arguments: Any) -> str:
    """Why nobody knows what an execution did."""
    got = await outcome(tool, given, **arguments)
    assert isinstance(got, Unknown), got
    return got.why

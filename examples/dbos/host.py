"""One host of turns: an executor of DBOS with a runtime that performs what it is woken for.

    python examples/dbos/host.py postgresql://USER@HOST/DATABASE NAME LEDGER [--sweep SECONDS]

Journal and DBOS are in one database. Start as many as you like, each under a NAME of its own; stop
one with SIGTERM, or kill it. The only tool, `work`, writes a line into the file LEDGER, and takes
WORK_SECONDS (an environment variable).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
from pathlib import Path

from waker import executor, open_waking

from turnlock.runtime import (
    Continuation,
    Journal,
    Runtime,
    Settings,
    Tool,
    Toolbox,
    ToolContext,
    tool,
)

LEASE = 3.0
"""Seconds after which the runs of a host that died are free; others than those of this example
wait ten times as long."""


def tool_of(name: str, ledger: Path) -> Tool:
    """Return a tool that says in the ledger who worked for which run."""

    @tool(safe_to_repeat=True)
    async def work(context: ToolContext) -> str:
        """Work for a while. It may be done again."""
        with ledger.open("a", encoding="utf-8") as lines:
            lines.write(f"{context.run_id} {name} {context.attempt}\n")
        await asyncio.sleep(float(os.environ.get("WORK_SECONDS", "0")))
        return f"done by {name}"

    return work


def runtime_of(journal: Journal, name: str, ledger: Path) -> Runtime:
    """Return a runtime that performs what it is woken for, and nothing else."""

    async def tell(continuation: Continuation) -> None:
        with ledger.open("a", encoding="utf-8") as lines:
            lines.write(f"{continuation.run_id} told {continuation.turn_id}\n")

    return Runtime(
        journal=journal,
        tools=Toolbox([tool_of(name, ledger)]),
        on_continue=tell,
        settings=Settings(takes_over=False, ownership=LEASE, executions=1_000),
    )


def serve(url: str, name: str, ledger: Path, sweep: float | None = None) -> None:
    """Be a host, until this process is told to stop."""
    asyncio.run(_serve(url, name, ledger, sweep))


async def _serve(url: str, name: str, ledger: Path, sweep: float | None) -> None:
    stopped = asyncio.Event()
    for asked in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(asked, stopped.set)
    journal = await open_waking(url)
    runtime = runtime_of(journal, name, ledger)
    async with journal, runtime, executor(runtime, url, name=name, every=sweep):
        await stopped.wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="One host of turns.")
    parser.add_argument("url")
    parser.add_argument("name")
    parser.add_argument("ledger", type=Path)
    parser.add_argument("--sweep", type=float, metavar="SECONDS")
    asked = parser.parse_args()
    serve(asked.url, asked.name, asked.ledger, asked.sweep)

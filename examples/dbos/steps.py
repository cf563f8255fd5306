"""A payment in a workflow of DBOS whose process is killed between the effect and its record.

    python examples/dbos/steps.py FOLDER

First the payment is a step, as DBOS knows it; then it is a tool, whose claim the journal has kept
before it began (D-73). Each time the process pays, is killed, and is started again under the same
name, so that DBOS recovers the workflow. No server is needed: all is in SQLite files, in FOLDER.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from multiprocessing import Process
from pathlib import Path

from dbos import DBOS, DBOSConfig, SetWorkflowID
from waker import executor, wake

from turnlock import Call, ContinuationTaken, ExecutionInDoubt, OpenTurn, Run
from turnlock.runtime import Continuation, Runtime, Settings, Toolbox, open_journal, submit, tool

FOLDER = Path(sys.argv[-1])
ORDER = "order-17"
EXECUTOR = "one"


def paid() -> list[str]:
    """Return what the bank has booked."""
    bank = FOLDER / "bank.txt"
    return bank.read_text(encoding="utf-8").splitlines() if bank.exists() else []


def book() -> str:
    """Book a payment; the first time the power goes off before anybody hears of it."""
    with (FOLDER / "bank.txt").open("a", encoding="utf-8") as bank:
        bank.write("paid 5\n")
    if len(paid()) == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return "paid 5"


@DBOS.step()
async def pay_in_a_step() -> str:
    """Pay: DBOS records it when it has returned."""
    return book()


@DBOS.workflow()
async def order() -> str:
    """Have it paid."""
    return await pay_in_a_step()


@tool
async def pay() -> str:
    """Pay: the journal has kept the claim before this begins."""
    return book()


async def as_step(url: str) -> str:
    """Start the workflow, or find it recovered; return how it ended."""
    config: DBOSConfig = {
        "name": "turnlock-steps",
        "system_database_url": url,
        "executor_id": EXECUTOR,
        "application_version": "1",
        "log_level": "ERROR",
    }
    DBOS(config=config)
    DBOS.launch()
    with SetWorkflowID(ORDER):
        handle = await DBOS.start_workflow_async(order)
    said = await handle.get_result(polling_interval_sec=0.1)
    status = (await handle.get_status()).status
    await asyncio.to_thread(DBOS.destroy)
    return f"the workflow says {said!r}, {status}"


async def as_claim(url: str) -> str:
    """Open the turn, or find its workflow recovered; return how it stands."""

    async def tell(_: Continuation) -> None:
        """Tell the model."""

    journal = await open_journal(FOLDER / "journal.db")
    tools = Toolbox([pay])
    settings = Settings(takes_over=False)
    async with (
        journal,
        Runtime(journal=journal, tools=tools, on_continue=tell, settings=settings) as runtime,
        executor(runtime, url, name=EXECUTOR),
    ):
        if not await journal.runs():
            await journal.declare(Run(run_id=ORDER))
            call = Call(invocation_id="c1", tool_name="pay", arguments={}, requires_approval=False)
            opening = OpenTurn(turn_id="t1", calls=(call,))
            await submit(journal, ORDER, opening, within=5, tools=tools)
            await wake(await journal.entry(ORDER))
        async for fact in runtime.subscribe(ORDER):
            if isinstance(fact, ContinuationTaken):
                return "the turn has ended"
            if isinstance(fact, ExecutionInDoubt):
                break
        (doubt,) = runtime.doubts(ORDER)
        return f"attempt {doubt.attempt} of {doubt.tool_name} is in doubt, and waits for a person"


def play(name: str, story: Callable[[str], Awaitable[str]]) -> None:
    """Be one process of a story, and say how it ended."""

    async def played() -> str:
        return await story(f"sqlite:///{FOLDER / name}.db")

    ended = asyncio.run(played())
    print(f"as a {name}: paid {len(paid())} times; {ended}", flush=True)


def main() -> None:
    """Play both stories, each with two processes: the first is killed, the second tells."""
    FOLDER.mkdir(parents=True)
    for name, story in (("step", as_step), ("claim", as_claim)):
        for ends in (-signal.SIGKILL, 0):
            process = Process(target=play, args=(name, story))
            process.start()
            process.join()
            if process.exitcode != ends:
                raise SystemExit(f"as a {name}: it ended with {process.exitcode}, not {ends}")
        (FOLDER / "bank.txt").unlink()


if __name__ == "__main__":
    main()

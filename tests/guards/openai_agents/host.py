"""One host of an agent, as a process: `host.py DB PAID bare|guarded resume|hang STATE`.

Both go on with the approved state in STATE: `resume` says `ready` and waits for a line first,
`hang` says `paying` and never ends. What is paid is a line in PAID.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from agents import Agent, Runner, RunState, function_tool, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message

from turnlock.guards import GuardRefused
from turnlock.guards.guard import Guard
from turnlock.guards.openai_agents import GuardHooks, guarded_tool


def note(paid: str, amount: int) -> None:
    with Path(paid).open("a", encoding="utf-8") as file:
        file.write(f"{amount}\n")


async def main(db: str, paid: str, how: str, what: str, state: str) -> None:
    set_tracing_disabled(disabled=True)

    async def pay(amount: int) -> str:
        note(paid, amount)
        if what == "hang":
            print("paying", flush=True)
            await asyncio.Event().wait()
        return f"paid {amount}"

    guard = Guard.open(db, wait=20.0) if how == "guarded" else None
    tool = (
        function_tool(pay, needs_approval=True)
        if guard is None
        else guarded_tool(guard, pay, needs_approval=True)
    )
    hooks = None if guard is None else GuardHooks(guard)
    model = ScriptedModel([[assistant_message("done")]])
    agent: Agent[Any] = Agent(name="till", model=model, tools=[tool])
    if what == "resume":
        print("ready", flush=True)
        sys.stdin.readline()
    try:
        restored = await RunState.from_string(agent, state)
        print((await Runner.run(agent, restored, hooks=hooks)).final_output)
    except GuardRefused as error:
        print(f"{type(error).__name__} {error.at.run} {error.at.turn} {error.at.call}")


if __name__ == "__main__":
    db, paid, how, what, state = sys.argv[1:]
    asyncio.run(main(db, paid, how, what, Path(state).read_text(encoding="utf-8")))

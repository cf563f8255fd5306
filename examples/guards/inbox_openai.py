"""An agent of the OpenAI Agents SDK that waits for a person, wherever that person sits.

    python examples/guards/inbox_openai.py agent.db

It asks to book, and goes on once somebody has decided: in the browser (`turnlock serve --db
agent.db`), in `turnlock tui --db agent.db`, or by `turnlock approve`. Others may run beside it, on
the same file. Killed in the middle of the booking and started again it says that
nobody knows whether it happened, and goes on once somebody has said so. The model is a script, and
there is no key.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agents import Agent, Runner, RunState, ToolApprovalItem, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call

from turnlock.guards import At, InDoubt, Status
from turnlock.guards.guard import Guard
from turnlock.guards.openai_agents import GuardHooks, guarded_tool

RUN = "trip-4"
PATIENCE = 600.0
"""Seconds that the agent waits for a person."""


async def book(seat: str) -> str:
    """Book a seat."""
    if "POWER_CUT" in os.environ:
        os.kill(os.getpid(), signal.SIGKILL)
    return f"booked {seat}"


def trip(guard: Guard, *, begun: bool) -> Agent[Any]:
    """Return the agent, whose model says what it was told to."""
    asks = [function_call("book", {"seat": "4A"}, call_id="c1")]
    done = [assistant_message("Have a good trip.")]
    model = ScriptedModel([done] if begun else [asks, done])
    tool = guarded_tool(guard, book, needs_approval=True)
    return Agent(name="trip", model=model, tools=[tool])


async def decided(guard: Guard, state: RunState[Any], asked: ToolApprovalItem) -> None:
    """Wait until a person has decided about a call, and tell the SDK what."""
    look = await guard.await_decided(At(RUN, None, asked.call_id or ""), within=PATIENCE)
    if look.outcome is not None and look.outcome.status is Status.DENIED:
        state.reject(asked, rejection_message=look.outcome.reason)
    else:
        state.approve(asked)


async def resolved(guard: Guard, doubt: InDoubt) -> None:
    """Wait until a person has said what became of a call."""
    while True:
        look = await guard.alook(doubt.at)
        if look.phase != "IN_DOUBT":
            return
        await asyncio.sleep(0.2)


async def converse(db: str, saved: str | None, save: Callable[[str], object]) -> None:
    """Ask the agent, or go on from what was saved; wait for whoever decides."""
    async with Guard.open(db) as guard:
        agent, hooks = trip(guard, begun=saved is not None), GuardHooks(guard)
        if saved is None:
            asked = await Runner.run(agent, "book 4A", hooks=hooks, context={"turnlock_run": RUN})
            saved = asked.to_state().to_string()
            save(saved)
        while True:
            state = await RunState.from_string(agent, saved)
            for it in state.get_interruptions():
                print(f"{RUN} waits for a person", flush=True)
                await decided(guard, state, it)
            try:
                result = await Runner.run(agent, state, hooks=hooks)
            except InDoubt as doubt:
                print(f"{RUN} is in doubt: {doubt.at.call}", flush=True)
                await resolved(guard, doubt)
                continue
            print(result.final_output, flush=True)
            return


def main(db: str) -> None:
    """Go on from the state beside the journal, which is the framework's own store."""
    set_tracing_disabled(disabled=True)
    store = Path(f"{db}.trip.json")
    saved = store.read_text(encoding="utf-8") if store.exists() else None
    asyncio.run(converse(db, saved, store.write_text))


if __name__ == "__main__":
    if not sys.argv[1:]:
        print("usage: python examples/guards/inbox_openai.py agent.db", file=sys.stderr)
        sys.exit(2)
    main(*sys.argv[1:])

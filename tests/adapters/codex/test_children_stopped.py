"""What is commanded of a sub-agent's run goes to its thread, in its parent's process (S-56)."""

from __future__ import annotations

from typing import Any

from ...runtime.virtual import run
from .codex_runs import World, codex_world

CHILD = "r/kid"


def says(it: World, method: str, **params: Any) -> None:
    """Say something of the thread of a sub-agent."""
    it.codex.wire.says({"method": method, "params": {"threadId": "kid", **params}})


async def asked(it: World, item: str = "k1") -> None:
    """Have the sub-agent ask for a command, until that waits."""
    says(it, "thread/status/changed", status={"type": "idle"})
    says(it, "turn/started", turn={"id": "kid-turn", "items": [], "status": "inProgress"})
    told: dict[str, Any] = {
        "type": "commandExecution",
        "id": item,
        "command": f"run {item}",
        "cwd": "/workspace",
        "processId": None,
        "status": "inProgress",
        "commandActions": [],
    }
    it.codex.items[item] = told
    says(it, "item/started", turnId="kid-turn", item=told)
    number, it.codex.asked = it.codex.asked, it.codex.asked + 1
    it.codex.waiting[number] = item
    params = {
        "threadId": "kid",
        "turnId": "kid-turn",
        "itemId": item,
        "command": f"run {item}",
        "cwd": "/workspace",
    }
    method = "item/commandExecution/requestApproval"
    it.codex.wire.says({"method": method, "id": number, "params": params})
    await it.served.until(lambda: bool(it.served.pending(CHILD)))


def test_s_56_the_turn_of_a_sub_agent_is_stopped_in_its_own_thread() -> None:
    """Not that of its parent, which goes on."""

    async def play() -> None:
        async with codex_world() as it:
            await it.begun()
            await asked(it)
            (call,) = it.served.pending(CHILD)
            await it.runtime.interrupt(CHILD, turn_id=call.turn_id, grace=5.0)
            await it.served.until(lambda: bool(it.codex.told("turn/interrupt")))
            assert it.codex.told("turn/interrupt") == [{"threadId": "kid", "turnId": "kid-turn"}]
            assert it.codex.answers == []

    run(play())

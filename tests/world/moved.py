"""Exports for tests: written, taken apart line by line, and put together again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from turnlock.agent.messages import Answer, Prompt, ToolCall, as_note
from turnlock.models.deliveries import Decide, OpenTurn, Scope
from turnlock.models.record import changed
from turnlock.runtime.journal.contract import Journal
from turnlock.world import AgentSpec
from turnlock.world.export_lines import LineWriter
from turnlock.world.moving import export_world

from .scenes import Scene

Line = dict[str, Any]


def lines_of(path: Path) -> list[Line]:
    """What the lines of an export say, without their sums."""
    return [json.loads(line)["line"] for line in path.read_bytes().splitlines()]


def write_lines(path: Path, lines: Iterable[Line]) -> Path:
    """An export of these lines, each with its right sum: nothing but what they say is wrong."""
    with path.open("wb") as file:
        writer = LineWriter(file.write)
        for line in lines:
            writer.add(json.dumps(line, separators=(",", ":")).encode())
    return path


def forged(path: Path, change: Callable[[list[Line]], object]) -> Path:
    """A file like this one, with other lines."""
    lines = lines_of(path)
    change(lines)
    lines[-1] = {"end": {"lines": len(lines) - 1}}
    return write_lines(path.with_name("forged.world"), lines)


async def kept_by(journal: Journal) -> dict[str, Any]:
    """All that a journal keeps, to compare."""
    found: dict[str, Any] = {}
    for log in await journal.logs():
        if not log.name.startswith(".import/"):
            found[log.name] = await journal.entries(log.name)
    async for entry in journal.run_entries(forgotten=True):
        run_id = entry.run.run_id
        facts = [fact async for fact in journal.facts(run_id)]
        notes = [(it.cursor, it.note) for it in await journal.notes(run_id)]
        found[f"run {run_id}"] = (entry.run, facts, notes)
    return found


PROMPT = Prompt(
    text="human: @alice pay",
    heard={"number": 1, "entry": "say/human/1", "from": "human", "role": "person"},
)
ASKS = Answer(calls=(ToolCall(call_id=None, tool_name="pay", arguments={"to": "eve"}),))


async def scene_that_pays(*, turn: bool = True, approved: bool = True) -> Scene:
    """A chat whose member was told something, and asks to pay; nobody has done it yet.

    The turn of its answer is open, unless told otherwise, and its call is approved for the session.
    """
    scene = await Scene.begin()
    await scene.world.put_agent("alice", AgentSpec(model="test:alice", tools=("pay",)))
    await scene.say("@alice pay")
    run = await scene.run_of("alice")
    run_id = run.kernel.run.run_id
    notes = [as_note(PROMPT, name="said/1", at=1.0), as_note(ASKS, name="said/2", at=1.0)]
    await scene.journal.note(run_id, fence=None, notes=notes)
    if turn:
        calls = tuple(changed(it, requires_approval=True) for it in ASKS.identified())
        await run.submit(OpenTurn(turn_id="t1", calls=calls, epoch=1))
    if turn and approved:
        decision = Decide(
            turn_id="t1",
            invocation_id=ASKS.identified()[0].invocation_id,
            approved=True,
            scope=Scope.SESSION,
            decided_by="somebody there",
        )
        await run.submit(decision)
    return scene


async def exported(scene: Scene, folder: Path) -> Path:
    """The scene's world in a file."""
    path = folder / "demo.world"
    await export_world(scene.journal, "demo", path)
    return path

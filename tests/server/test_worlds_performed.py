"""Worlds that a server performs by its options: opened, left in time, and nobody's by mistake."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from turnlock.models.errors import InvalidValue, UnknownRun
from turnlock.runtime.journal.contract import Journal, open_journal
from turnlock.server.face import ServerSettings
from turnlock.server.opening import Options, opened
from turnlock.world import AgentSpec, World

from .worlded import PEOPLE

FILES = {
    "models.py": """
import asyncio
from turnlock.agent import Answer, Ended, Stop, Text, ToolCall

class Slow:
    async def speak(self, question):
        if type(question.messages[-1]).__name__ == "Results":
            yield Ended(Answer(text="Done.", stop=Stop.DONE))
        else:
            yield Text("Well")
            calls = (ToolCall(call_id="c1", tool_name="linger", arguments={}),)
            yield Ended(Answer(text="Well.", calls=calls, stop=Stop.CALLS))

    async def close(self):
        pass

slow = Slow()
""",
    "tools.py": """
import asyncio
from turnlock.runtime import tool

@tool
async def linger() -> str:
    \"\"\"Take long.\"\"\"
    await asyncio.sleep(3600)
    return "at last"
""",
    "host.toml": '[models]\nfiles = ["models.py"]\n\n[tools]\nfiles = ["tools.py"]\n',
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def options(folder: Path, *worlds: str, **more: Any) -> Options:
    given: dict[str, Any] = {
        "db": str(folder / "a.db"),
        "agents": {},
        "settings": ServerSettings(drain=0.2),
        "listen": ("127.0.0.1",),
        "worlds": worlds,
        "host_file": str(folder / "host.toml"),
    }
    return Options(**{**given, **more})


async def made(folder: Path, *names: str) -> None:
    async with await open_journal(str(folder / "a.db")) as journal:
        for name in names:
            world = World(journal, name)
            await world.make()
            await world.put_agent("alice", AgentSpec(model="file:slow", tools=("linger",)))
            await world.open_chat("plan")


def test_s_97_hosts_end_together_and_in_time(folder: Path) -> None:
    """What runs in either world is cut off after `drain`; the next server goes on in both."""

    async def play() -> None:
        await made(folder, "one", "two")
        async with opened(options(folder, "one", "two")) as it:
            journal = it.face.journal
            for name in ("one", "two"):
                await World(journal, name).chat("plan").say("ada", "go", message_id="m1")
            for name in it.face.hosts:
                await _until(journal, name, "executing")
        async with opened(options(folder, "one", "two")) as it:
            for host in it.face.hosts.values():
                await host.idle("plan")
                said = await it.face.journal.entries(f"{host.world}/plan")
                assert [each.entry_id for each in said] == [
                    "say/ada/m1", f"{host.world}/plan/alice/said/3",
                ]  # fmt: skip

    asyncio.run(asyncio.wait_for(play(), 60))


async def _until(journal: Journal, world: str, status: str) -> None:
    """Wait until the member of a world has this status."""
    while await _status(journal, f"{world}/plan/alice") != status:  # noqa: ASYNC110 - its host acts
        await asyncio.sleep(0.01)


async def _status(journal: Journal, run_id: str) -> str | None:
    try:
        return (await journal.entry(run_id)).status
    except UnknownRun:
        return None


@pytest.mark.parametrize(
    ("worlds", "more", "told"),
    [
        (("none",), {}, "there is no world"),
        (("NONE",), {}, "is no id"),
        ((), {}, "name a world"),
        (("one",), {"host_file": "/none/host.toml"}, "/none/host.toml"),
        (("one",), {"kind": "codex", "adapters": (), "host_file": None, "agents": {}}, ""),
    ],
)
def test_what_cannot_be_performed_is_refused_before_anybody_is_served(
    folder: Path, worlds: tuple[str, ...], more: dict[str, Any], told: str
) -> None:
    """And nothing is left open; a server of worlds alone performs no runs of any kind."""

    async def play() -> None:
        await made(folder, "one")
        if not told:
            async with opened(options(folder, *worlds, **more)) as it:
                assert it.face.sessions is not None
                assert it.face.sessions.adapters == {}
            return
        with pytest.raises(InvalidValue) as refused:
            async with opened(options(folder, *worlds, **more)):
                raise AssertionError
        assert told in str(refused.value)

    asyncio.run(asyncio.wait_for(play(), 60))


def test_w_10_tokens_for_tests_name_who_may_not_speak() -> None:
    """A guard of the fixtures: without these names the tests of W-10 would try nothing."""
    assert {"alice", "ALICE", "runtime", "grant", "world", "system"} <= PEOPLE.keys()

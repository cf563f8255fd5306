"""The binary at our end of the pipe: transport, gateway and router speak with what they are for."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import attrs
import pytest

from turnlock.adapters.codex.gateway import Gateway, RequestRefused
from turnlock.adapters.codex.heard import Reply
from turnlock.adapters.codex.messages import Answered, Asked, Notified
from turnlock.adapters.codex.process import is_dead, read_name
from turnlock.adapters.codex.router import Router
from turnlock.adapters.codex.transport import Transport
from turnlock.runtime.processes import has_ended

from .conftest import Room, Rooms, append
from .endpoint import command, say, step
from .homes import environment

pytestmark = pytest.mark.codex


@attrs.define
class Line:
    """A process of it, and all that it has said."""

    transport: Transport
    gateway: Gateway
    router: Router
    said: asyncio.Queue[Notified | Asked | None]

    async def until(self, method: str) -> Notified | Asked:
        """Return the next message of a method."""
        while (message := await self.said.get()) is not None:
            if message.method == method:
                return message
        raise AssertionError(f"it said no {method}")


@asynccontextmanager
async def connected(room: Room) -> AsyncGenerator[Line]:
    """Start a process in a room, and read it; end it afterwards."""
    transport = await Transport.start(
        (room.codex.binary, "app-server"),
        cwd=str(room.workspace),
        env=environment(room.home),
    )
    line = Line(transport, Gateway(transport), Router(transport), asyncio.Queue())

    async def read() -> None:
        while (message := await transport.read()) is not None:
            if isinstance(message, Answered):
                line.gateway.take(message)
                continue
            if isinstance(message, Asked):
                line.router.opened(message)
            line.said.put_nowait(message)
        line.gateway.close()
        line.said.put_nowait(None)

    reading = asyncio.create_task(read())
    try:
        async with asyncio.timeout(60):
            yield line
    finally:
        await transport.end(grace=10)
        await reading


ASKS = "item/commandExecution/requestApproval"


def test_uc_009_a_turn_passes_and_is_resumed_by_another_process(rooms: Rooms) -> None:
    """S-30 … S-34: started, asked, answered once; ended, and gone on with in a second one."""
    room = rooms([step(command("c1", append("one"))), step(say("done"))])

    async def story() -> None:
        async with connected(room) as line:
            version = await line.gateway.initialize()
            assert tuple(map(int, version.split("."))) == room.codex.version
            thread = await line.gateway.start_thread(
                cwd=str(room.workspace), approval_policy="on-request", sandbox="workspace-write"
            )
            assert thread.settlement == ("response" if room.codex.ends_responses else "turn")
            assert thread.sandbox == "workspace-write"
            turn = await line.gateway.start_turn(thread.thread_id, "go", message_id="m-1")
            asked = await line.until(ASKS)
            assert isinstance(asked, Asked)
            assert asked.params["turnId"] == turn
            assert room.ledger == []
            accept = Reply(request=asked.id, result={"decision": "accept"})
            assert await line.router.answer(accept)
            assert not await line.router.answer(accept)
            await line.until("turn/completed")
            assert room.ledger == ["one"]
            first = line.transport.name
            assert not is_dead(first)
            assert (await line.transport.end(grace=10)).status == 0
            assert is_dead(first)

        async with connected(room) as line:
            await line.gateway.initialize()
            again = await line.gateway.resume_thread(thread.thread_id, sandbox="read-only")
            assert (again.thread_id, again.settlement) == (thread.thread_id, "turn")
            assert again.sandbox == "read-only"
            with pytest.raises(RequestRefused, match="no rollout found"):
                await line.gateway.resume_thread("00000000-0000-7000-8000-000000000000")
            try:
                items = [it["item"] async for it in line.gateway.items(thread.thread_id)]
            except RequestRefused:
                assert not room.codex.announces_first
            else:
                assert [it.get("clientId") for it in items if it["type"] == "userMessage"] == [
                    "m-1"
                ]
                assert [it["id"] for it in items if it["type"] == "commandExecution"] == ["c1"]
            assert await line.gateway.models()

    asyncio.run(story())


def test_s_49_killed_at_once_nothing_of_it_goes_on(rooms: Rooms) -> None:
    """Nor the command that it runs, in a session of its own as it is."""
    script = "echo $$ > pid; sleep 60"
    room = rooms([step(command("c1", script)), step(say("done"))])
    noted = room.workspace / "pid"

    async def story() -> int:
        async with connected(room) as line:
            await line.gateway.initialize()
            thread = await line.gateway.start_thread(cwd=str(room.workspace))
            await line.gateway.start_turn(thread.thread_id, "go", message_id="m")
            asked = await line.until(ASKS)
            assert isinstance(asked, Asked)
            await line.router.answer(Reply(request=asked.id, result={"decision": "accept"}))
            while not (noted.exists() and noted.read_text().strip()):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            line.transport.kill()
            exited = await line.transport.end(grace=0)
            assert (exited.status, exited.left) == (-signal.SIGKILL, 0)
        return int(noted.read_text())

    assert has_ended(asyncio.run(story()))


SERVER = """
import asyncio, os, sys
from turnlock.adapters.codex.transport import Transport
async def main():
    transport = await Transport.start(sys.argv[1:], cwd=None, env=None)
    print(transport.name, flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


def test_s_48_it_dies_with_a_server_that_is_killed(rooms: Rooms) -> None:
    """And is proved dead by its name (S-49)."""
    room = rooms()
    with subprocess.Popen(
        (sys.executable, "-W", "ignore", "-c", SERVER, room.codex.binary, "app-server"),
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment(room.home)},
    ) as server:
        assert server.stdout is not None
        name = read_name(server.stdout.readline().strip())
        assert name is not None
        assert not is_dead(name)
        server.kill()

    async def died() -> None:
        async with asyncio.timeout(20):
            while not is_dead(name):  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(0.01)

    asyncio.run(died())

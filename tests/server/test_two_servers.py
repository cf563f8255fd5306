"""Two servers on one journal in PostgreSQL, behind one address, and one of them is killed.

They have one file of tokens and one of keys, and nothing else in common: each has a home and a
folder of its own, and may be on a machine of its own. A client knows the address alone.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, Final

import attrs
import httpx
import pytest

from turnlock.runtime.journal.contract import open_journal
from turnlock.runtime.journal.ledger import Cursor
from turnlock.server.routing import Role
from turnlock.server.tokens import Token

from ..postgres.servers import journal_url

AGENTS: Final = Path(__file__).with_name("agents_of_two.py")
PATIENCE: Final = 120.0
APART: Final = [False, True] if os.environ.get("TURNLOCK_CRASHES") == "deep" else [False]
"""A lease more is too long for the gate."""
LOST: Final = (httpx.TransportError, httpx.StreamError)
RUN: Final = "r/1"
PLACE: Final = "/v1/runs/r%2F1"


@attrs.define(eq=False)
class Balancer:
    """One address for some servers: each connection goes to the next that takes it."""

    ports: list[int]
    port: int = 0
    _turns: count[int] = attrs.Factory(count)

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[None]:
        """Take connections as long as this lasts."""
        server = await asyncio.start_server(self._take, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            server.close()

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = next(self._turns)
        for number in range(len(self.ports)):
            port = self.ports[(first + number) % len(self.ports)]
            try:
                back, forth = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                continue
            await asyncio.gather(_copy(reader, forth), _copy(back, writer))
            return
        writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()


@attrs.define(eq=False)
class Pair:
    """Two servers, the address of both, and what they share."""

    folder: Path
    url: str
    ports: list[int]
    processes: list[asyncio.subprocess.Process]
    balancer: Balancer

    def client(self, which: int | None = None) -> httpx.AsyncClient:
        """A client of one of them, or of both: then each request goes to the next."""
        port = self.balancer.port if which is None else self.ports[which]
        return httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{port}",
            headers={"Authorization": "Bearer secret-of-ada"},
            limits=httpx.Limits(max_keepalive_connections=0),
            timeout=PATIENCE,
        )

    def done(self) -> Counter[str]:
        """How often tools did each thing."""
        ledger = self.folder / "ledger"
        return Counter(ledger.read_text(encoding="utf-8").splitlines() if ledger.exists() else [])


async def begun(folder: Path, url: str, port: int, *, apart: bool) -> asyncio.subprocess.Process:
    """Begin a server with a home of its own; `apart`: on a machine of its own, as others see it."""
    home = folder / f"home of {port}"
    home.mkdir(exist_ok=True)
    own = {"HOME": str(home), "XDG_STATE_HOME": str(home / "state")}
    own["TURNLOCK_TEST_LEDGER"] = str(folder / "ledger")
    machine = {"TURNLOCK_TEST_MACHINE": f"machine {port}"} if apart else {}
    with (folder / f"log {port}").open("ab") as log:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "turnlock", "serve", "--db", url, "--agent", str(AGENTS)),
            *("--port", str(port), "--tokens", str(folder / "tokens")),
            *("--keys", str(folder / "keys")),
            env={**os.environ, **own, **machine},
            cwd=home,
            stdout=log,
            stderr=log,
        )


@asynccontextmanager
async def pair(folder: Path, *, apart: bool) -> AsyncGenerator[Pair]:
    """Two servers that answer; killed at the end."""
    url = journal_url(folder)
    token = Token.of("ada", frozenset({Role.RUN, Role.DECIDE}), "secret-of-ada")
    (folder / "tokens").write_text(token.line(), encoding="utf-8")
    ports = [free_port(), free_port()]
    processes = [await begun(folder, url, ports[0], apart=apart)]
    it = Pair(folder, url, ports, processes, Balancer(ports))
    try:
        await sooner_or_later(lambda: answers(it, 0), it)  # it makes the tables and the keys
        processes.append(await begun(folder, url, ports[1], apart=apart))
        await sooner_or_later(lambda: answers(it, 1), it)
        async with it.balancer.serving():
            yield it
    finally:
        for process in processes:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


async def answers(it: Pair, which: int) -> bool:
    async with it.client(which) as client:
        return (await client.get("/v1/runs")).status_code == 200


async def sooner_or_later(reached: Callable[[], Awaitable[bool]], it: Pair) -> None:
    """Wait until it is so; who is not there yet, or any more, says nothing."""
    try:
        async with asyncio.timeout(PATIENCE):
            while True:
                with suppress(*LOST):
                    if await reached():
                        return
                await asyncio.sleep(0.05)
    except TimeoutError:
        logs = [file.read_text(encoding="utf-8")[-4_000:] for file in it.folder.glob("log *")]
        raise AssertionError("\n".join(logs)) from None


async def follow(it: Pair, seen: list[dict[str, Any]]) -> None:
    """Follow the run by the one address, from connection to connection."""
    while True:
        last = seen[-1]["cursor"] if seen else ""
        headers = {"Accept": "text/event-stream", "Last-Event-ID": last}
        with suppress(*LOST):
            async with (
                it.client() as client,
                client.stream("GET", f"{PLACE}/events", headers=headers) as stream,
            ):
                is_entry = False
                async for line in stream.aiter_lines():
                    if line.startswith("id: "):
                        is_entry = True
                    elif line.startswith("data: ") and is_entry:
                        seen.append(json.loads(line.removeprefix("data: ")))
                    elif not line:
                        is_entry = False
        await asyncio.sleep(0.05)


async def say(it: Pair, text: str, which: int | None = None) -> None:
    """Say something until it is taken; the same answer comes from either."""
    body = {"text": text, "message_id": f"id of {text}"}

    async def taken() -> bool:
        async with it.client(which) as client:
            answer = await client.post(f"{PLACE}/prompts", json=body)
        assert answer.status_code in {202, 409, 503}, answer.text
        return answer.status_code == 202 and answer.json().get("message_id") == body["message_id"]

    await sooner_or_later(taken, it)


async def is_answered(it: Pair, text: str) -> bool:
    """Whether the model has said that this is done."""
    async with it.client() as client:
        page = await client.get(f"{PLACE}/events", headers={"Accept": "application/json"})
    return f"done: {text}" in page.text


async def waiting(it: Pair) -> list[dict[str, Any]]:
    """The calls that wait for a decision."""
    async with it.client() as client:
        run = (await client.get(PLACE)).json()
    turn: dict[str, list[dict[str, Any]]] = run.get("turn") or {"calls": []}
    return [call for call in turn["calls"] if "approve" in call["allowed"]]


async def approve(it: Pair, which: int | None) -> None:
    """Approve what waits, once it does, by one of them or by the address."""

    async def waits() -> bool:
        return bool(await waiting(it))

    await sooner_or_later(waits, it)
    (call,) = await waiting(it)
    body = {
        "turn_id": call["turn_id"],
        "invocation_id": call["invocation_id"],
        "arguments_digest": call["arguments_digest"],
        "approved": True,
    }

    async def decided() -> bool:
        async with it.client(which) as client:
            answer = await client.post(f"{PLACE}/decisions", json=body)
        assert answer.status_code in {200, 202, 503}, answer.text
        return answer.status_code in {200, 202}

    await sooner_or_later(decided, it)


async def signed_in(it: Pair, which: int) -> dict[str, str]:
    """The cookies that a server gives."""
    place = f"http://127.0.0.1:{it.ports[which]}"
    async with httpx.AsyncClient(base_url=place, timeout=PATIENCE) as client:
        answer = await client.post("/v1/session", json={"token": "secret-of-ada"})
    assert answer.is_success, answer.text
    return dict(answer.cookies)


async def looked(it: Pair, which: int, cookies: dict[str, str]) -> httpx.Response:
    """What a server answers to whom has signed in, perhaps at the other: the keys are one."""
    place = f"http://127.0.0.1:{it.ports[which]}"
    async with httpx.AsyncClient(base_url=place, cookies=cookies, timeout=PATIENCE) as client:
        return await client.get("/v1/runs")


@pytest.mark.parametrize("apart", APART)
def test_f_26_s_77_two_servers_are_one_behind_an_address_and_one_may_die(
    tmp_path: Path, *, apart: bool
) -> None:
    """F-26, S-77, D-48, D-49: prompts reach who has the run, approvals come from either, and a
    stream goes on at the other when one is killed; nothing is done twice, said twice or missed.

    On another machine nobody has proof of that death: the lease is waited for (D-46).
    """
    texts: list[str] = []
    seen: list[dict[str, Any]] = []

    async def answered(it: Pair, text: str) -> None:
        texts.append(text)
        await sooner_or_later(lambda: is_answered(it, text), it)

    async def play() -> None:
        async with pair(tmp_path, apart=apart) as it:
            async with it.client(0) as client:
                created = await client.post("/v1/runs", json={"run_id": RUN})
                assert created.status_code == 201, created.text
            following = asyncio.create_task(follow(it, seen))
            for which in (0, 1, None, None):
                text = f"work {len(texts)}"
                await say(it, text, which)
                await answered(it, text)
            for which in (0, 1):
                await say(it, f"pay {which}", 1 - which)
                await approve(it, which)
                await answered(it, f"pay {which}")
            await say(it, "pay the last", 1)
            cookies = await signed_in(it, 0)
            it.processes[0].send_signal(signal.SIGKILL)
            assert (await looked(it, 1, cookies)).status_code == 200
            await approve(it, None)
            await answered(it, "pay the last")
            await say(it, "work at last")
            await answered(it, "work at last")
            await all_was_seen(it)
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            assert it.done() == Counter(texts)

    async def all_was_seen(it: Pair) -> None:
        async with await open_journal(it.url) as journal:
            end = (await journal.ends([RUN]))[RUN]

            async def reached() -> bool:
                return bool(seen) and Cursor.read(seen[-1]["cursor"]) >= end

            await sooner_or_later(reached, it)
            page = await journal.ledger(RUN, limit=10_000)
            cursors = [Cursor.read(entry["cursor"]) for entry in seen]
            assert cursors == sorted(set(cursors))
            assert {entry.cursor for entry in page.entries} == set(cursors)

    asyncio.run(play())

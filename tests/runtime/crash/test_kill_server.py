"""For real: `turnlock serve` is killed at random instants while people say things to its runs.

Each prompt is answered once, no tool is run twice, and whoever follows the stream sees each entry
once, in order, and none that is not in the journal afterwards. The long form is `make crash`.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import socket
import sys
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import attrs
import httpx
import pytest

from turnlock.runtime.journal.contract import open_journal
from turnlock.runtime.journal.ledger import Cursor, Domain

from .depth import DEEP

KILLS: Final = 40 if DEEP else 4
SEEDS: Final = range(4) if DEEP else range(1)
RUNS: Final = ("a", "b/c")
PATIENCE: Final = 60.0
LOST: Final = (httpx.TransportError, httpx.StreamError)


@attrs.define
class Server:
    """One server at a time on one journal and one port."""

    folder: Path
    port: int
    process: asyncio.subprocess.Process | None = None
    done: bool = False

    @property
    def token(self) -> str:
        """The token that the server made."""
        return (self.folder / "runs.db.token").read_text().strip()

    async def start(self) -> None:
        """Begin to serve; it says so when it can be asked."""
        with (self.folder / "stdout").open("a") as out, (self.folder / "stderr").open("a") as err:
            self.process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "turnlock", "serve", "--db", str(self.folder / "runs.db")),
                *("--agent", str(Path(__file__).with_name("served_agents.py"))),
                *("--port", str(self.port)),
                env={**os.environ, "TURNLOCK_TEST_LEDGER": str(self.folder / "ledger")},
                stdout=out,
                stderr=err,
            )

    async def end(self, number: int) -> int:
        """Send it a signal, and wait for its end."""
        assert self.process is not None
        with suppress(ProcessLookupError):
            self.process.send_signal(number)
        async with asyncio.timeout(PATIENCE):
            return await self.process.wait()

    def client(self) -> httpx.AsyncClient:
        """A client of whichever server lives; it waits for the first to make its token."""
        return httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{self.port}",
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=PATIENCE,
        )


@asynccontextmanager
async def serving(folder: Path) -> AsyncGenerator[Server]:
    """A server, killed at the end if it lives."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    server = Server(folder=folder, port=port)
    await server.start()
    try:
        async with asyncio.timeout(PATIENCE):
            while not (folder / "runs.db.token").exists():  # noqa: ASYNC110 - of another process
                await asyncio.sleep(0.02)
        yield server
    finally:
        await server.end(signal.SIGKILL)


async def asked(client: httpx.AsyncClient, place: str, body: dict[str, Any]) -> httpx.Response:
    """Ask until there is an answer that says what holds; as a client does that hears nothing."""
    while True:
        with suppress(*LOST):
            answer = await client.post(place, json=body)
            if answer.status_code not in {409, 429, 503} or _is_final(answer):
                return answer
        await asyncio.sleep(0.02)


def _is_final(answer: httpx.Response) -> bool:
    """A run that the dead server owns still is nobody's soon."""
    return answer.status_code == 409 and answer.json()["title"] != "owned_elsewhere"


async def talk(server: Server, run_id: str, texts: list[str]) -> None:
    """Say things to a run, one after the other, each until it is taken."""
    place = f"/v1/runs/{run_id.replace('/', '%2F')}/prompts"
    async with server.client() as client:
        created = await asked(client, "/v1/runs", {"run_id": run_id})
        assert created.status_code in {200, 201}, created.text
        for text in texts:
            first = await asked(client, place, {"text": text, "message_id": f"id of {text}"})
            assert first.status_code == 202, first.text
            again = await asked(client, place, {"text": text, "message_id": f"id of {text}"})
            assert again.json() == first.json()
            await asyncio.sleep(0.02)


async def follow(server: Server, run_id: str, seen: list[dict[str, Any]]) -> None:
    """Follow the stream of a run, from connection to connection, until it is cancelled."""
    place = f"/v1/runs/{run_id.replace('/', '%2F')}/events"
    async with server.client() as client:
        while True:
            last = seen[-1]["cursor"] if seen else ""
            headers = {"Accept": "text/event-stream", "Last-Event-ID": last}
            with suppress(*LOST):
                async with client.stream("GET", place, headers=headers) as stream:
                    await _take(stream, seen)
            await asyncio.sleep(0.02)


async def _take(stream: httpx.Response, seen: list[dict[str, Any]]) -> None:
    if stream.status_code != 200:
        return
    is_entry = False
    async for line in stream.aiter_lines():
        if line.startswith("id: "):
            is_entry = True
        elif line.startswith("data: ") and is_entry:
            seen.append(json.loads(line.removeprefix("data: ")))
        elif not line:
            is_entry = False


async def kill(server: Server, draw: random.Random, talking: list[asyncio.Task[None]]) -> int:
    """Kill it now and then, as long as anybody talks; return how often."""
    for count in range(KILLS):
        await asyncio.sleep(draw.uniform(0.0, 0.4) + 0.7 * (count % 2))
        await server.end(signal.SIGKILL)
        await server.start()
    await asyncio.gather(*talking)
    return KILLS


async def until_answered(server: Server, run_id: str, count: int) -> None:
    """Wait until all that was said is answered."""
    async with asyncio.timeout(PATIENCE), await open_journal(server.folder / "runs.db") as journal:
        while True:
            notes = await journal.notes(run_id, domain=Domain.MESSAGE)
            answers = [it for it in notes if str(it.note.body.get("text")).startswith("done: ")]
            if len(answers) >= count:
                return
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("seed", SEEDS)
def test_s_81_a_server_that_is_killed_answers_each_prompt_once(tmp_path: Path, seed: int) -> None:
    """S-66, S-81, F-23, section 14: nothing lost, doubled, or shown before it was durable."""
    texts = [f"{seed}.{number}" for number in range(6 * KILLS)]
    seen: dict[str, list[dict[str, Any]]] = {run_id: [] for run_id in RUNS}

    async def play() -> int:
        async with serving(tmp_path) as server:
            talking = [asyncio.create_task(talk(server, run_id, texts)) for run_id in RUNS]
            following = [
                asyncio.create_task(follow(server, run_id, seen[run_id])) for run_id in RUNS
            ]
            await kill(server, random.Random(seed), talking)
            for run_id in RUNS:
                await until_answered(server, run_id, len(texts))
            async with asyncio.timeout(PATIENCE), await open_journal(tmp_path / "runs.db") as it:
                ends = await it.ends(RUNS)
                for run_id in RUNS:
                    entries = seen[run_id]
                    while not entries or Cursor.read(entries[-1]["cursor"]) < ends[run_id]:  # noqa: ASYNC110 - as above
                        await asyncio.sleep(0.05)
            for task in following:
                task.cancel()
            await asyncio.gather(*following, return_exceptions=True)
            return await server.end(signal.SIGTERM)

    assert asyncio.run(play()) == 0, (tmp_path / "stderr").read_text()
    errors = (tmp_path / "stderr").read_text()
    assert "Traceback" not in errors, errors
    ran = Counter(json.loads(line)[0] for line in (tmp_path / "ledger").read_text().splitlines())
    assert set(ran.values()) == {1}
    asyncio.run(_checked(tmp_path, texts, seen))


async def _checked(folder: Path, texts: list[str], seen: dict[str, list[dict[str, Any]]]) -> None:
    async with await open_journal(folder / "runs.db") as journal:
        for run_id in RUNS:
            notes = await journal.notes(run_id, domain=Domain.MESSAGE)
            said = [it.note.body["text"] for it in notes if it.note.kind == "user"]
            answers = [str(it.note.body["text"]) for it in notes if it.note.kind == "assistant"]
            assert said == texts
            assert [it for it in answers if it.startswith("done")] == [f"done: {t}" for t in texts]
            kept: list[tuple[str, Any]] = []
            after = Cursor()
            while True:
                page = await journal.ledger(run_id, after=after)
                kept += [(str(it.cursor), json.loads(it.content)) for it in page.entries]
                if not page.entries:
                    break
                after = page.entries[-1].cursor
            told = [
                (it["cursor"], it["fact"] if "fact" in it else it["note"]) for it in seen[run_id]
            ]
            assert told == kept[: len(told)]
            assert len(told) >= len(texts)
            befores = ["", *(it["cursor"] for it in seen[run_id])]
            assert [it["after"] for it in seen[run_id]] == befores[:-1]

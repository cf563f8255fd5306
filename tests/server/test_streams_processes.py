"""Streams of a run that another process performs, from a file that both have open (S-77)."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from turnlock.models.errors import UnknownRun
from turnlock.models.run import Run
from turnlock.runtime.journal.ledger import Cursor
from turnlock.runtime.journal.sqlite import SqliteJournal
from turnlock.server.hub import Hub

from .test_hub import Client

TURNS = 40
OWNER = """
import asyncio, sys
from turnlock import Acknowledge, Call, Claim, Kernel, OpenTurn, Report, Run
from turnlock.runtime.journal.ledger import Domain, Note
from turnlock.runtime.journal.sqlite import SqliteJournal

async def main(path, turns):
    async with await SqliteJournal.open(path) as journal:
        await journal.declare(Run(run_id="r/1"))
        fence = await journal.own("r/1", owner="o", now=0.0, lease=1e9)
        kernel = Kernel(Run(run_id="r/1"))
        call = Call(invocation_id="a", tool_name="ls", arguments={}, requires_approval=False)
        for number in range(turns):
            turn_id = f"t{number}"
            for delivery in (
                OpenTurn(turn_id=turn_id, calls=(call,)),
                Claim(turn_id=turn_id, invocation_id="a", attempt=1),
                Report(turn_id=turn_id, invocation_id="a", result="é" * 40),
                Acknowledge(turn_id=turn_id),
            ):
                facts = kernel.receive(delivery, 1.0 + number).facts
                after = facts[0].sequence - 1
                domain = (Domain.ITEM, Domain.SESSION, Domain.MESSAGE)[number % 3]
                said = Note(domain=domain, kind="k", body={"n": number}, at=float(number))
                await journal.append("r/1", fence=fence, after=after, facts=facts, busy=False,
                                     notes=[said])
            if number % 10 == 9:
                await journal.prune("r/1", fence=fence, now=float(number) + 31 * 86_400.0)
        print(kernel.sequence, flush=True)
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


@contextmanager
def performed(path: Path) -> Generator[subprocess.Popen[bytes]]:
    """Another process that performs the run, and ends with its standard input."""
    source = str(Path(__file__).parents[2] / "src")
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(path), str(TURNS)],
        env={**os.environ, "PYTHONPATH": source},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        try:
            yield process
        finally:
            if process.stdin is not None:
                process.stdin.close()


def test_uc_012_s_77_followed_from_another_process_through_drops_and_pruning(
    tmp_path: Path,
) -> None:
    """UC-012, S-77, S-66: the union of what is told is the ledger; each once, in order."""

    async def play() -> None:
        path = tmp_path / "a.db"
        async with await SqliteJournal.open(path) as journal:
            await journal.declare(Run(run_id="r/1"))
        with performed(path) as process:
            assert process.stdout is not None
            async with (
                await SqliteJournal.open(path) as journal,
                Hub(journal=journal) as hub,
            ):
                ended = asyncio.create_task(asyncio.to_thread(process.stdout.readline))
                got, gaps = await follow(hub, ended)
                last = int((await ended).decode())
                page = await journal.ledger("r/1", limit=10_000)
                there = [str(it.cursor) for it in page.entries]
        cursors = [Cursor.read(it) for it in got]
        assert cursors == sorted(set(cursors))
        assert set(there) <= set(got), "what is there still was told"
        assert [str(n) for n in range(1, last + 1)] == [it for it in got if "." not in it]
        for gap in page.gaps:
            for part in range(gap.first.part, gap.last.part + 1):
                place = Cursor(gap.first.sequence, part)
                told = str(place) in got
                assert told or any(low <= place <= high for low, high in gaps)

    async def follow(
        hub: Hub, ended: asyncio.Task[bytes]
    ) -> tuple[list[str], list[tuple[Cursor, Cursor]]]:
        """Follow, dropping the stream after some batches; the last until all is told."""
        got: list[str] = []
        gaps: list[tuple[Cursor, Cursor]] = []
        last, drops = "", 0
        while True:
            client = Client(last)
            subscription = hub.subscribe("r/1", after=Cursor.read(last))
            batches = 0
            async with asyncio.timeout(60):
                async for batch in subscription:
                    client.take(batch, "r/1")
                    batches += 1
                    if (drops < 12 and batches > drops % 3 + 1) or await done(hub, ended, client):
                        break
            subscription.close()
            drops += 1
            got += client.cursors
            gaps += [(Cursor.read(low), Cursor.read(high)) for low, high in client.gaps]
            last = client.last
            if await done(hub, ended, client):
                return got, gaps

    async def done(hub: Hub, ended: asyncio.Task[bytes], client: Client) -> bool:
        ends = await hub.journal.ends(["r/1"])
        return ended.done() and client.last == str(ends["r/1"])

    asyncio.run(play())


def test_a_run_that_was_removed_is_no_run_and_one_that_is_ends_its_streams(
    tmp_path: Path,
) -> None:
    """Unknown and forgotten runs are 404; a stream of one that is removed ends, and says so."""

    async def play() -> None:
        async with (
            await SqliteJournal.open(tmp_path / "a.db") as journal,
            Hub(journal=journal) as hub,
        ):
            await journal.declare(Run(run_id="r/1"))
            subscription = hub.subscribe("r/1")
            client = Client()
            while "live" not in client.names:
                client.take(await anext(subscription))
            entry = await journal.entry("r/1")
            await journal.forget("r/1", fence=entry.fence, after=0, at=1.0)
            async with asyncio.timeout(30):
                async for batch in subscription:
                    client.take(batch)
            assert client.told[-1][1]["problem"]["title"] == "unknown_run"
            for run_id in ("r/1", "other"):
                again = hub.subscribe(run_id)
                with pytest.raises((UnknownRun, Exception)) as caught:
                    await again.open()
                assert type(caught.value).__name__ in {"RunForgotten", "UnknownRun"}
                again.close()

    asyncio.run(play())

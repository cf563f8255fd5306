"""What is done to a journal while the power may fail: many hands, a runtime, a migration."""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from turnlock import (
    Acknowledge,
    Call,
    Claim,
    Decide,
    Delivery,
    Kernel,
    Limits,
    OpenTurn,
    Report,
    Run,
    Tick,
)
from turnlock.models.codec import fact_from_json, to_json
from turnlock.runtime import Continuation, Runtime, SqliteJournal, Toolbox, ToolContext, tool
from turnlock.runtime.journal.contract import Appended

from ..kept_notes import thread_note
from .ledger import Ledger, NotedJournal

WRITTEN_BEFORE: Final = Path(__file__).parents[2] / "data/journals/0.1"
"""A journal of version 0.1; its README says what it holds."""

NAME: Final = "journal.db"
NOW: Final = 1_000.0
LEASE: Final = 1e6


@asynccontextmanager
async def opened(folder: Path, ledger: Ledger) -> AsyncGenerator[NotedJournal]:
    """Open the journal, and note that it is there."""
    async with await SqliteJournal.open(folder / NAME) as journal:
        yield NotedJournal(journal, ledger)


class Hand:
    """One who owns a run, and does all that can be done with it, in an order that is drawn."""

    def __init__(self, run: Run, seed: int) -> None:
        self.kernel = Kernel(run)
        self._draw = random.Random(f"{run.run_id} {seed}")
        self._script = self._deliveries()
        self._fence = 0

    async def own(self, journal: NotedJournal) -> None:
        run = self.kernel.run
        await journal.declare(run)
        self._fence = await journal.own(run.run_id, owner="me", now=NOW, lease=LEASE)

    async def act(self, journal: NotedJournal) -> None:
        """Do one thing."""
        run_id = self.kernel.run.run_id
        what = self._draw.random()
        if what < 0.7:
            await self._append(journal)
        elif what < 0.8:
            await journal.keep_snapshot(self.kernel.snapshot(), fence=self._fence)
        elif what < 0.9:
            name = f"said/{self.kernel.sequence}"
            await journal.note(run_id, fence=self._fence, notes=[thread_note(name, of=run_id)])
        elif what < 0.95:
            number = await journal.post(run_id, Tick())
            if self._draw.random() < 0.5:
                await journal.answer(run_id, number, {"accepted": True})
        else:
            await journal.renew(owner="me", now=NOW, lease=LEASE)

    async def _append(self, journal: NotedJournal) -> None:
        after = self.kernel.sequence
        facts = self.kernel.receive(next(self._script), NOW).facts
        busy = bool(self._draw.getrandbits(1))
        run_id = self.kernel.run.run_id
        notes = [thread_note(f"with/{after}", of=run_id)] if busy else []
        said = await journal.append(
            run_id, fence=self._fence, after=after, facts=facts, busy=busy, notes=notes
        )
        assert said is Appended.OK

    def _deliveries(self) -> Iterator[Delivery]:
        number = 0
        while True:
            number += 1
            turn = f"t{number}"
            calls = tuple(
                Call(
                    invocation_id=name,
                    tool_name="pay",
                    arguments={"to": "x" * self._size()},
                    requires_approval=name == "a",
                )
                for name in "ab"
            )
            yield OpenTurn(turn_id=turn, calls=calls)
            yield Decide(turn_id=turn, invocation_id="a", approved=True)
            for name in "ab":
                yield Claim(turn_id=turn, invocation_id=name, attempt=1)
                yield Report(turn_id=turn, invocation_id=name, result="y" * self._size())
            yield Acknowledge(turn_id=turn)

    def _size(self) -> int:
        return self._draw.choice((1, 100, 3_000, 9_000))


async def many_hands(folder: Path, ledger: Ledger, *, seed: int = 1) -> None:
    """Five runs, written together and alone, snapshots, notes, posts; opened three times."""
    hands = [Hand(Run(run_id=f"r{number}"), seed) for number in range(5)]
    draw = random.Random(seed)
    for _ in range(3):
        async with opened(folder, ledger) as journal:
            for hand in hands:
                await hand.own(journal)
            for _ in range(25):
                chosen = draw.sample(hands, draw.randint(1, len(hands)))
                await asyncio.gather(*(hand.act(journal) for hand in chosen))


async def runtime(folder: Path, ledger: Ledger) -> None:
    """A host with a tool that cannot be undone: what it does is noted when it begins."""
    taken = asyncio.Event()

    @tool
    async def pay(context: ToolContext) -> str:
        ledger.begins(context)
        await asyncio.sleep(0)
        return "paid"

    async def told(_: Continuation) -> None:
        taken.set()

    calls = [
        Call(invocation_id=name, tool_name="pay", arguments={}, requires_approval=False)
        for name in "ab"
    ]
    for life in range(3):
        async with opened(folder, ledger) as journal:
            host = Runtime(journal=journal, tools=Toolbox.of(pay), on_continue=told)
            async with host:
                await host.open_run(Run(run_id="r"))
                for number in range(8):
                    taken.clear()
                    await host.open_turn("r", calls, turn_id=f"t{life}/{number}")
                    await asyncio.wait_for(taken.wait(), 60)


async def migration(folder: Path, ledger: Ledger) -> None:
    """A file of version 0.1, of which nothing may be lost; it is brought up to date and goes on."""
    shutil.copy(WRITTEN_BEFORE / NAME, folder)
    ledger.disk.holds(NAME, (folder / NAME).read_bytes())
    ledger.start = ledger.disk.now
    written = [
        fact_from_json(line)
        for line in WRITTEN_BEFORE.joinpath("facts.jsonl").read_bytes().splitlines()
    ]
    ledger.asked["story"] += written
    waiting = Decide(turn_id="t4", invocation_id="waits", approved=True)
    ledger.tell("story", "sequence", len(written))
    ledger.tell("story", "fence", 2)
    ledger.tell("story", "snapshot", 40)
    ledger.tell("story", "notes", {"prompt": "go on", "id": "said/1"}, "said/1")
    ledger.tell("story", "posts", to_json(waiting), 1)
    ledger.tell("story", "answers", {"accepted": True, "facts": []}, 2)
    run = Run(run_id="story", agent_id="a1", agent_name="Ada", limits=Limits(remembered=64))
    kernel = Kernel.recover(run, written)
    async with opened(folder, ledger) as journal:
        fence = await journal.own("story", owner="me", now=NOW, lease=LEASE)
        after = kernel.sequence
        facts = kernel.receive(waiting, NOW).facts
        said = await journal.append("story", fence=fence, after=after, facts=facts, busy=True)
        assert said is Appended.OK
        await journal.answer("story", 1, {"accepted": True})

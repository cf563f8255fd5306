"""What the journal's contract is played on: a journal made anew for each test, and plain facts."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, TypeAlias

from turnlock import (
    Acknowledge,
    Call,
    Claim,
    Decide,
    Delivery,
    Kernel,
    OpenTurn,
    Report,
    Run,
)
from turnlock.models.fact import Fact
from turnlock.models.facts import TurnSealed
from turnlock.models.values import Json
from turnlock.runtime.journal.contract import Appended, Journal
from turnlock.runtime.journal.ledger import Domain, Note

Story: TypeAlias = Callable[[Journal], Awaitable[None]]

RUN = Run(run_id="run-1", agent_id="agent-1", agent_name="Ada")
OTHER = Run(run_id="run-2")
NOW = 1_000.0
LEASE = 30.0


class JournalStage(ABC):
    """Plays a story on a journal; whoever has a journal says how it is opened."""

    durable = False
    """Whether what was kept is still there when the place is opened again."""

    @abstractmethod
    async def open_journal(self, place: Path) -> Journal:
        """Open the journal that is kept in this folder; a new one where there is none."""

    def play(self, place: Path, story: Story) -> None:
        """Tell the story on the journal of this folder, and close it."""

        async def run() -> None:
            async with await self.open_journal(place) as journal:
                await story(journal)

        asyncio.run(run())


async def owned(journal: Journal, run: Run = RUN, *, owner: str = "ada") -> int:
    """Declare a run and take it."""
    await journal.declare(run)
    return await journal.own(run.run_id, owner=owner, now=NOW, lease=LEASE)


def facts(count: int, *, after: int = 0, commit: int = 1, run_id: str = RUN.run_id) -> list[Fact]:
    """So many facts that follow `after`, in commits of `commit` facts; a journal asks no more."""
    last = after + count
    return [
        TurnSealed(
            run_id=run_id,
            sequence=sequence,
            commit=min(last, sequence + (after - sequence) % commit),
            at=float(sequence),
            turn_id=f"turn-{sequence}",
        )
        for sequence in range(after + 1, last + 1)
    ]


async def kept(
    journal: Journal, told: Iterable[Fact], fence: int | None, *, busy: bool = True
) -> None:
    """Append facts that fit, as one append."""
    batch = tuple(told)
    answer = await journal.append(
        batch[0].run_id, fence=fence, after=batch[0].sequence - 1, facts=batch, busy=busy
    )
    assert answer is Appended.OK


def note(text: Json = "x", domain: Domain = Domain.ITEM, *, at: float = NOW, **more: Any) -> Note:
    """A note that says this."""
    return Note(domain=domain, kind="said", body={"text": text}, at=at, **more)


def said(text: Json, **more: Any) -> Note:
    """A message."""
    return note(text, Domain.MESSAGE, **more)


async def everything(journal: Journal, run_id: str = RUN.run_id) -> list[Fact]:
    """All facts of a run."""
    return [fact async for fact in journal.facts(run_id)]


def told_run() -> tuple[list[Fact], Kernel]:
    """The facts of a turn of two calls, one of them gated, and the kernel that they made."""
    kernel = Kernel(RUN)
    calls = tuple(
        Call(invocation_id=name, tool_name="pay", arguments={"to": [name]}, requires_approval=gated)
        for name, gated in (("a", True), ("b", False))
    )
    deliveries: list[Delivery] = [
        OpenTurn(turn_id="turn-1", calls=calls),
        Decide(turn_id="turn-1", invocation_id="a", approved=True),
        *(Claim(turn_id="turn-1", invocation_id=name, attempt=1, lease=9.0) for name in "ab"),
        *(Report(turn_id="turn-1", invocation_id=name, result={"n": [1.5]}) for name in "ab"),
        Acknowledge(turn_id="turn-1"),
    ]
    told = [fact for delivery in deliveries for fact in kernel.receive(delivery, NOW).facts]
    return told, kernel

"""Consoles under a pilot, on real journals, and what stands on their screens."""

from __future__ import annotations

import asyncio
import io
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from rich.console import Console as Rich
from textual.pilot import Pilot

from turnlock import Call, Delivery, Fact, OpenTurn, Run
from turnlock.models.run import OWN
from turnlock.runtime import SharedRun, SqliteJournal
from turnlock.server.client import Judgeable
from turnlock.tui.app import Console
from turnlock.tui.cards import ApprovalCard, Card
from turnlock.tui.heard import Answered, Heard
from turnlock.tui.run_screen import RunScreen
from turnlock.tui.sources import JournalSource, Source

RUN: Final = "refund"
AT: Final = 1_795_000_000.0
"""When the first fact happens."""


class Seconds:
    """A clock on which each look takes a second."""

    def __init__(self) -> None:
        self.at = AT

    def now(self) -> float:
        self.at += 1.0
        return self.at

    async def wait_until(self, at: float) -> None:
        raise AssertionError(at)


def call(invocation_id: str, tool_name: str = "pay", gated: bool = True, **arguments: Any) -> Call:
    return Call(
        invocation_id=invocation_id,
        tool_name=tool_name,
        arguments=arguments,
        requires_approval=gated,
    )


def opened(*calls: Call, turn_id: str = "t1") -> OpenTurn:
    return OpenTurn(turn_id=turn_id, calls=calls)


async def deliver(
    db: Path, *deliveries: Delivery, run_id: str = RUN, clock: Any = None, kind: str = OWN
) -> None:
    """Have them judged in a run that nobody owns, by another process as it were."""
    async with await SqliteJournal.open(db) as journal:
        await journal.declare(Run(run_id=run_id, kind=kind))
        shared = await SharedRun.open(journal, run_id, policies={}, clock=clock or Seconds())
        for verdict in await shared.submit(*deliveries):
            assert verdict.reason is None


async def facts(db: Path, run_id: str = RUN) -> list[Fact]:
    async with await SqliteJournal.open(db) as journal:
        return [fact async for fact in journal.facts(run_id)]


class Watching(JournalSource):
    """A journal whose source counts what is delivered, and can be held up."""

    def __init__(self, db: Path) -> None:
        super().__init__(str(db), who="anna", poll=0.02)
        self.delivered: list[Judgeable] = []
        self.answer: Answered | None = None
        """Given instead of what would come of a delivery, which then is lost."""
        self.answering = asyncio.Event()
        self.answering.set()
        self.hearing = asyncio.Event()
        self.hearing.set()
        self.heard: Heard | None = None
        """Heard once, in place of what comes next."""

    async def deliver(self, run_id: str, delivery: Judgeable) -> Answered:
        self.delivered.append(delivery)
        await self.answering.wait()
        return self.answer or await super().deliver(run_id, delivery)

    async def follow(self, run_id: str) -> AsyncGenerator[Heard]:
        stream: AsyncIterator[Heard] = super().follow(run_id)
        async for heard in stream:
            await self.hearing.wait()
            yield heard


class Held:
    """A key repeats no sooner than a test presses it again."""

    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        self.at += 10.0
        return self.at


@asynccontextmanager
async def watching(
    source: Source,
    run_id: str | None = RUN,
    *,
    size: tuple[int, int] = (130, 44),
    tick: Callable[[], float] | None = None,
) -> AsyncGenerator[tuple[Console, Pilot[None]]]:
    """A console on a source, which has come to be live where a run is named."""
    console = Console(source, run_id=run_id, now=lambda: AT + 100.0, tick=tick or Held())
    console.animation_level = "none"
    async with console.run_test(size=size) as pilot:
        if run_id is not None:
            await until(pilot, lambda: screen(console).watched.badge == "live")
            await settled(pilot)
            await until(pilot, lambda: all(it.open_to_decision for it in cards(console)))
        yield console, pilot


async def until(pilot: Pilot[None], holds: Callable[[], bool], *, within: float = 15.0) -> None:
    """Wait for what must come to be."""
    give_up = time.monotonic() + within
    while not holds():
        assert time.monotonic() < give_up, text_of(pilot.app)
        await pilot.pause(0.01)


async def settled(pilot: Pilot[None]) -> None:
    """Wait until what was heard is drawn."""
    await until(pilot, lambda: not screen(pilot.app).inbox)
    await pilot.pause()
    await pilot.pause()


def screen(app: Any) -> RunScreen:
    found = [it for it in app.screen_stack if isinstance(it, RunScreen)]
    return found[-1]


def cards(app: Any) -> list[Card]:
    return list(screen(app).cards.values())


def card(app: Any, invocation_id: str) -> Card:
    (found,) = [it for it in screen(app).cards.values() if it.call.invocation_id == invocation_id]
    return found


def approval(app: Any, invocation_id: str) -> ApprovalCard:
    found = card(app, invocation_id)
    assert isinstance(found, ApprovalCard)
    return found


def text_of(app: Any) -> str:
    """Return what stands on the screen, without colours."""
    width, height = app.size
    rich = Rich(
        width=width,
        height=height,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
        record=True,
        legacy_windows=False,
    )
    rich.print(app.screen._compositor.render_update(full=True))
    return rich.export_text(styles=False)


@pytest.fixture
def utc(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Have times told as in Greenwich."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def compared(name: str, text: str) -> None:
    """Compare a screen with the one on disk; TURNLOCK_SNAPSHOTS=write writes it anew."""
    file = Path(__file__).parent / "snapshots" / f"{name}.txt"
    told = "".join(f"{line.rstrip()}\n" for line in text.splitlines())
    if os.environ.get("TURNLOCK_SNAPSHOTS") == "write":
        file.parent.mkdir(exist_ok=True)
        file.write_text(told, encoding="utf-8")
    assert told == file.read_text(encoding="utf-8")


def types(found: Sequence[Fact]) -> list[str]:
    return [str(it.type) for it in found]

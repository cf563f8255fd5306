"""How the terminal console looks: four screens on disk, and what is hostile, huge or many."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from tests.calls_made import calls_made
from textual.pilot import Pilot
from textual.widgets import TextArea

from turnlock import Acknowledge, Call, Claim, Decide, Lose, OpenTurn, Report
from turnlock.tui.app import Console
from turnlock.tui.lines import WholeText
from turnlock.tui.run_screen import RunScreen

from .consoles import (
    Watching,
    approval,
    call,
    card,
    compared,
    deliver,
    opened,
    screen,
    settled,
    text_of,
    until,
    utc,
    watching,
)

__all__ = ["utc"]

DEEP = [1_430] if os.environ.get("TURNLOCK_CRASHES") == "deep" else []
"""Turns of seven facts: ten thousand, in the deep run."""
HOSTILE = "[red]x[/] <b>\u202e\x1b[31m\x07\u200b\u3164 \U0001f600 日本"


async def story(db: Path) -> None:
    ran = (
        Claim(turn_id="t1", invocation_id="c1", attempt=1),
        Report(turn_id="t1", invocation_id="c1", attempt=1, result="sunny in Bern"),
    )
    pays = call("c2", account="<b>DE02</b>", amount=1), call("c3", account="x", amount=9)
    await deliver(db, opened(call("c1", "weather", gated=False, city="Bern"), *pays), *ran)
    denied = Decide(
        turn_id="t1", invocation_id="c3", approved=False, decided_by="bert", reason="not that one"
    )
    await deliver(db, denied)
    lost = (
        Claim(turn_id="t1", invocation_id="c1", attempt=1),
        Lose(turn_id="t1", invocation_id="c1", attempt=1),
    )
    sent = opened(call("c1", "transfer", gated=False, to="x", amount=12))
    await deliver(db, sent, *lost, run_id="transfer-9")


def test_f_113_four_screens_are_as_they_were(tmp_path: Path, utc: Any) -> None:
    """TURNLOCK_SNAPSHOTS=write writes them anew: look at what has changed."""

    async def run() -> None:
        db = tmp_path / "a.db"
        await story(db)
        source = Watching(db)
        source.place = "agent.db"  # type: ignore[misc]
        journal = Watching(db)
        source._opened = journal._opened  # type: ignore[method-assign]
        async with watching(source, size=(120, 40)) as (console, pilot):
            await until(pilot, lambda: console.waiting == 1)
            await pilot.press("j")
            await settled(pilot)
            compared("run", text_of(console))
            await pilot.press("e")
            approval(console, "c2").query_one(
                TextArea
            ).text = '{\n  "account": "safe",\n  "amount": 7\n}'
            await until(pilot, lambda: "Approve edited" in text_of(console))
            await settled(pilot)
            compared("edit", text_of(console))
            await pilot.press("escape", "left", "left", "left")
            await settled(pilot)
            compared("replay", text_of(console))
            await pilot.press("escape", "escape")
            await until(pilot, lambda: not isinstance(console.screen, RunScreen))
            await pilot.pause()
            compared("runs", text_of(console))
        await journal.close()

    asyncio.run(run())


def test_f_91_recorded_text_is_never_markup_and_moves_no_cursor(tmp_path: Path) -> None:
    async def run() -> None:
        db = tmp_path / "a.db"
        named = Call(
            invocation_id=HOSTILE,
            tool_name=HOSTILE,
            arguments={HOSTILE: HOSTILE},
            requires_approval=True,
        )
        await deliver(
            db,
            OpenTurn(turn_id=HOSTILE, calls=(named,)),
            Decide(turn_id=HOSTILE, invocation_id=HOSTILE, approved=False, reason=HOSTILE,
                   decided_by=HOSTILE),
            Acknowledge(turn_id=HOSTILE),
            OpenTurn(turn_id="t2", calls=(named,)),
            run_id=HOSTILE,
        )  # fmt: skip
        async with watching(Watching(db), run_id=None) as (console, pilot):
            await until(pilot, lambda: len(console.listing.entries) == 1)
            await pilot.pause()
            check(console)
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(console.screen, RunScreen))
            await until(pilot, lambda: screen(console).watched.badge == "live")
            await settled(pilot)
            check(console)
            await pilot.press("j", "e")
            await settled(pilot)
            check(console)
            await pilot.press("escape", "left", "left")
            await settled(pilot)
            check(console)
            await pilot.press("escape", "i")
            check(console)

    def check(console: Console) -> None:
        text = text_of(console)
        for raw in "\u202e\x1b\x07\u200b\u3164":
            assert raw not in text
        assert "[red]x[/]" in text
        assert "\\u202e" in text

    asyncio.run(run())


def test_f_91_a_mebibyte_of_arguments_is_shown_whole_and_scrolls(tmp_path: Path) -> None:
    async def run() -> None:
        db = tmp_path / "a.db"
        body = "x" * 500_000 + "日" * 100_000 + "the end"
        await deliver(db, opened(call("c1", "write", body=body)))
        async with watching(Watching(db)) as (console, pilot):
            with calls_made() as calls:
                shown = card(console, "c1").query_one(".arguments", WholeText)
                assert shown.size.height <= 12
                shown.focus()
                shown.scroll_end(animate=False)
                await settled(pilot)
                assert "the end" in text_of(console)
            assert calls.made < 2_000_000
            await pilot.press("j", "d")
            await until(pilot, lambda: card(console, "c1").ended)

    asyncio.run(run())


@pytest.mark.parametrize("turns", [143, *DEEP])
def test_f_98_ten_thousand_facts_are_looked_through(tmp_path: Path, turns: int) -> None:
    """Only what can be seen is drawn, and going back costs no fold from the beginning."""

    async def run() -> None:
        db = tmp_path / "a.db"
        deliveries: list[Any] = []
        for it in range(turns):
            turn = f"t{it}"
            deliveries += [
                OpenTurn(turn_id=turn, calls=(call("a", "look", gated=False), call("b"))),
                Claim(turn_id=turn, invocation_id="a", attempt=1),
                Report(turn_id=turn, invocation_id="a", attempt=1, result=it),
                Decide(turn_id=turn, invocation_id="b", approved=False),
                Acknowledge(turn_id=turn),
            ]
        await deliver(db, *deliveries, opened(call("last"), turn_id="last"))
        async with watching(Watching(db)) as (console, pilot):
            watched = screen(console).watched
            assert len(watched.facts) > 7 * turns
            with calls_made() as calls:
                await pilot.press(
                    "home", "right", "right", "end", "left", "slash", *"t7 ", "escape"
                )
                await pilot.press("pageup", "pagedown")
            assert calls.made < 4_000_000
            await story_end(console, pilot)

    async def story_end(console: Console, pilot: Pilot[None]) -> None:
        await pilot.press("end", "j", "d")
        await until(pilot, lambda: card(console, "last").ended)

    asyncio.run(run())


def test_control_the_screens_would_show_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TURNLOCK_SNAPSHOTS", raising=False)
    with pytest.raises(AssertionError):
        compared("runs", "something else")

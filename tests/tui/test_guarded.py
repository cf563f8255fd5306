"""Guarded runs in the terminal console: shown and decided on there, by a journal or a server."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from turnlock import Claim, FactType, Lose
from turnlock.guards.values import KIND
from turnlock.server.client import Client
from turnlock.server.credentials import read_token
from turnlock.server.routing import Role
from turnlock.tui.app import Console
from turnlock.tui.runs_screen import RunsScreen
from turnlock.tui.sources import ServerSource, Source

from ..server.threads import served
from .consoles import (
    RUN,
    Watching,
    approval,
    call,
    card,
    deliver,
    facts,
    opened,
    settled,
    text_of,
    types,
    until,
    watching,
)

PAY, BOOK = call("c1", account="DE02", amount=1), call("c2", "book", gated=False, seat="4A")
LOST = (
    Claim(turn_id="t1", invocation_id="c2", attempt=1),
    Lose(turn_id="t1", invocation_id="c2", attempt=1),
)


async def _decide(console: Console, pilot: Pilot[None]) -> None:
    """Settle the doubt and approve, as a person does."""
    told = text_of(console)
    assert f"{RUN}  {KIND}" in told
    assert "DE02" in told
    assert "nobody knows whether it happened" in told
    assert approval(console, "c1").query_one(".edit").display
    doubt = card(console, "c2")
    doubt.query_one(Input).value = '{"seat": "4A"}'
    await pilot.click(next(it for it in doubt.query("Button") if "happened" in str(it.render())))
    await until(pilot, lambda: doubt.ended)
    approval(console, "c1").focus()
    await pilot.press("a")
    await until(pilot, lambda: card(console, "c1").ended)
    await settled(pilot)


@pytest.mark.parametrize("served_over", ["journal", "server"])
def test_k_61_a_guarded_run_is_decided_about_in_the_terminal_console(
    tmp_path: Path, served_over: str
) -> None:
    """Kind, arguments, doubts and cards as of our own runs; nothing of it is ever performed."""
    db = tmp_path / "a.db"
    asyncio.run(deliver(db, opened(PAY, BOOK), *LOST, kind=KIND))

    async def story(source: Source) -> None:
        async with watching(source) as (console, pilot):
            await until(pilot, lambda: KIND in text_of(console))
            await _decide(console, pilot)

    if served_over == "journal":
        asyncio.run(story(Watching(db)))
    else:
        with served(str(db), tmp_path) as server:
            token = read_token(server.token_file(Role.DECIDE))
            asyncio.run(story(ServerSource(Client(server.url, token=token, retry=0.05))))
    assert types(asyncio.run(facts(db)))[-2:] == [
        FactType.TOOL_EXECUTION_SUCCEEDED,
        FactType.TOOL_APPROVED,
    ]


def test_k_61_the_list_says_the_kind_and_that_it_goes_on_by_itself(tmp_path: Path) -> None:
    """The control stands beside it: a run of ours that nobody performs."""
    db = tmp_path / "a.db"
    asyncio.run(deliver(db, opened(PAY), kind=KIND))
    asyncio.run(deliver(db, opened(PAY), run_id="ours"))

    async def story() -> None:
        async with watching(Watching(db), None) as (console, pilot):
            await until(pilot, lambda: console.is_known)
            assert isinstance(console.screen, RunsScreen)
            await until(pilot, lambda: "ours" in text_of(console))
            lines = text_of(console).splitlines()
            guarded = next(it for it in lines if RUN in it)
            ours = next(it for it in lines if "ours" in it)
            assert f"{RUN}  pay  {KIND}" in guarded
            assert "by itself" in guarded
            assert "by nobody" in ours

    asyncio.run(story())

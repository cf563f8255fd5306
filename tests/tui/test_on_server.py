"""The terminal console on a real server: the same stories, told over HTTP (F-99, F-113)."""

from __future__ import annotations

import asyncio
from pathlib import Path

from textual.widgets import Input

from turnlock import Claim, Decide, Report
from turnlock.models.facts import ToolApproved
from turnlock.server.client import Client
from turnlock.server.credentials import read_token
from turnlock.server.routing import Role
from turnlock.tui.sources import ServerSource

from ..server.threads import Served, served
from .consoles import (
    approval,
    call,
    card,
    cards,
    deliver,
    facts,
    opened,
    screen,
    settled,
    text_of,
    until,
    watching,
)

PAY, PAID = call("c2", account="DE02", amount=1), call("c3", account="x", amount=9)
CALLS = opened(call("c1", "weather", gated=False, city="Bern"), PAY, PAID)


def source(server: Served, role: Role = Role.DECIDE) -> ServerSource:
    return ServerSource(Client(server.url, token=read_token(server.token_file(role)), retry=0.05))


def test_f_99_a_call_is_approved_over_http_by_who_the_token_says(tmp_path: Path) -> None:
    db = tmp_path / "a.db"
    asyncio.run(deliver(db, CALLS))

    async def run(server: Served) -> None:
        async with watching(source(server)) as (console, pilot):
            await until(pilot, lambda: console.waiting == 1)
            await pilot.press("j", "a")
            await until(pilot, lambda: card(console, "c2").ended)
            decided = Decide(turn_id="t1", invocation_id="c3", approved=False, decided_by="bert")
            await deliver(db, decided)  # by somebody else, on the journal
            await until(pilot, lambda: card(console, "c3").ended)
            await settled(pilot)
            assert "approved by decide" in text_of(console)
            assert "denied by bert" in text_of(console)
        (fact,) = [it for it in await facts(db) if isinstance(it, ToolApproved)]
        assert (fact.invocation_id, fact.decided_by) == ("c2", "decide")

    with served(str(db), tmp_path) as server:
        asyncio.run(run(server))


def test_f_94_a_server_that_is_killed_and_comes_back(tmp_path: Path) -> None:
    """Off while it is gone, nothing decides; then live, with what was typed and where."""
    db = tmp_path / "a.db"
    asyncio.run(deliver(db, CALLS))

    async def run() -> None:
        first = served(str(db), tmp_path)
        server = await asyncio.to_thread(first.__enter__)
        port = int(server.url.rpartition(":")[2])
        async with watching(source(server)) as (console, pilot):
            reason = approval(console, "c2").query_one(Input)
            reason.focus()
            await pilot.press(*"bec")
            await asyncio.to_thread(first.__exit__, None, None, None)
            await until(pilot, lambda: screen(console).watched.badge == "off")
            await settled(pilot)
            assert not any(it.open_to_decision for it in cards(console))
            approval(console, "c2").approve()
            ran = (
                Claim(turn_id="t1", invocation_id="c1", attempt=1),
                Report(turn_id="t1", invocation_id="c1", attempt=1, result="sunny"),
            )
            await deliver(db, *ran)
            second = served(str(db), tmp_path, port=port)
            await asyncio.to_thread(second.__enter__)
            try:
                await until(pilot, lambda: screen(console).watched.badge == "live")
                await pilot.press(*"ause")
                assert (console.focused, reason.value) == (reason, "because")
                assert [it.sequence for it in screen(console).watched.facts] == [1, 2, 3, 4, 5]
                await pilot.press("escape")
                await until(pilot, lambda: console.focused is card(console, "c2"))
                await pilot.press("d")
                await until(pilot, lambda: card(console, "c2").ended)
            finally:
                await asyncio.to_thread(second.__exit__, None, None, None)

    asyncio.run(run())


def test_f_11_a_token_that_may_only_look_is_told_so(tmp_path: Path) -> None:
    db = tmp_path / "a.db"
    asyncio.run(deliver(db, CALLS))

    async def run(server: Served) -> None:
        async with watching(source(server, Role.LOOK)) as (console, pilot):
            await pilot.press("j", "a")
            await until(pilot, lambda: "refused" in card(console, "c2").refused)
            assert "the role decide" in card(console, "c2").refused
        async with watching(source(server), run_id=None) as (console, pilot):
            await until(pilot, lambda: bool(console.listing.entries))
            console.open("nope")
            await until(pilot, lambda: screen(console).watched.badge == "off")

    with served(str(db), tmp_path) as server:
        asyncio.run(run(server))
        asyncio.run(wrong(server))


async def wrong(server: Served) -> None:
    """With a wrong token nothing is shown, and it is said why."""
    client = Client(server.url, token="x" * 20)
    async with watching(ServerSource(client), run_id=None) as (console, pilot):
        await until(pilot, lambda: "--token-file" in console.why)
        await until(pilot, lambda: "--token-file" in text_of(console))
        assert "Authorization" not in text_of(console)
        assert "there is no run" not in text_of(console)
        assert "○ off" in text_of(console)

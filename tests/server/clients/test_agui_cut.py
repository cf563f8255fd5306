"""AG-UI: connections that are lost and servers that die, at any event of either request.

The page asks again with what it has; its messages are then those of a page that lost nothing, and
each tool has run once (section 10).
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from turnlock.agent.loop import Agent

from ...agent.speakers import Speaker, by_answers, speech
from ..fronts import Ledger, serving
from .agui_page import Event, Page
from .agui_played import LOOK, PAY

DEEP = os.environ.get("TURNLOCK_CRASHES") == "deep"
EVENTS = 40
"""More than either stream has."""
STRIDE = 1 if DEEP else 3
"""Of cuts: tests/clients cuts after each event, with the real client."""


def speaker(ledger: Ledger) -> Agent:
    """An agent that asks to pay and to look, and says what it does."""
    speeches = [speech("I pay now.", PAY, LOOK), speech("All is done.")]
    return Agent(model=Speaker(speeches, which=by_answers), tools=ledger.tools())


async def uncut(folder: Path) -> Page:
    """A page that lost nothing."""
    page = Page()
    async with serving(folder, speaker(Ledger())) as it:
        page.say("pay", "m1")
        await page.run(it.client())
        await page.run(it.client(), page.answers(approved=True))
    return page


def check(page: Page, whole: Page, ledger: Ledger) -> None:
    """Hold a page against one that lost nothing."""
    assert page.over == "success"
    assert page.messages == whole.messages
    assert set(ledger.done.values()) == {1}
    assert ledger.paid == [12]


def test_f_61_a_connection_that_is_lost_after_any_event(tmp_path: Path) -> None:
    """Both requests, each cut after every single event, on one server: a run for each."""

    async def play() -> None:
        (tmp_path / "whole").mkdir()
        whole = await uncut(tmp_path / "whole")
        ledger = Ledger()
        async with serving(tmp_path, speaker(ledger)) as it:
            cuts = 0
            for cut in range(0, EVENTS, STRIDE):
                page = Page(f"first/{cut}", messages=[_user()])
                await page.run(it.client(), cut=cut)
                if page.over is not None:
                    break
                cuts += 1
                await page.run(it.client())
                await page.run(it.client(), page.answers(approved=True))
                check_one(page, whole)
            for cut in range(0, EVENTS, STRIDE):
                page = Page(f"second/{cut}", messages=[_user()])
                await page.run(it.client())
                resume = page.answers(approved=True)
                await page.run(it.client(), resume, cut=cut)
                if page.over not in {None, "interrupt"}:
                    break
                cuts += 1
                await page.run(it.client(), resume)
                check_one(page, whole)
                assert page.named("DELIVERY_REFUSED") == []
            assert cuts > 20 / STRIDE
        assert set(ledger.done.values()) == {1}

    asyncio.run(play())


def _user() -> Event:
    return {"id": "m1", "role": "user", "content": "pay"}


def check_one(page: Page, whole: Page) -> None:
    """Hold a page of many against one that lost nothing."""
    assert page.over == "success"
    assert page.messages == whole.messages


@pytest.mark.parametrize("request_number", [1, 2])
def test_f_61_a_server_that_ends_after_any_event(tmp_path: Path, request_number: int) -> None:
    """The next one goes on with the journal, and the page with what it has.

    A server that ends stops what runs then (S-97): the turn is interrupted, and said to be.
    """

    async def play() -> None:
        (tmp_path / "whole").mkdir()
        whole = await uncut(tmp_path / "whole")
        went_on = 0
        for cut in range(0, EVENTS, 2 * STRIDE if STRIDE > 1 else 1):
            folder = tmp_path / str(cut)
            folder.mkdir()
            page, ledger = Page(messages=[_user()]), Ledger()
            resume: list[Event] | None = None
            async with serving(folder, speaker(ledger)) as it:
                if request_number > 1:
                    await page.run(it.client())
                    resume = page.answers(approved=True)
                await page.run(it.client(), resume, cut=cut)
                is_cut = len(page.events) == cut and (cut == 0 or page.over is None)
            if not is_cut:
                break
            async with serving(folder, speaker(ledger)) as it:
                await page.run(it.client(), resume)
                if page.over == "interrupt":
                    await page.run(it.client(), page.answers(approved=True))
                fresh = Page()
                await fresh.run(it.client())
            assert page.messages == fresh.messages
            assert set(ledger.done.values()) <= {1}
            if page.over != "cancelled":
                check(page, whole, ledger)
                went_on += 1
        assert went_on

    asyncio.run(play())

"""The example page with useChat: real hook, real browser, nothing built; started by its command."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from ..server.console.conftest import WITHIN, chromium
from . import pages
from .conftest import clients
from .pages import EXAMPLES, PICTURES, WRITTEN, Started


@pytest.fixture(scope="module")
def started() -> Generator[Started]:
    """The example, as its command starts it."""
    with pages.started("chat", clients(EXAMPLES / "chat") / "node_modules") as it:
        yield it


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    """Debian's Chromium."""
    path = chromium()
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu"]
        )


@pytest.fixture
def page(browser: Browser, started: Started) -> Generator[Page]:
    """The page, with the token; errors of it fail the test."""
    wrong: list[str] = []
    context = browser.new_context(viewport={"width": 760, "height": 620})
    context.set_default_timeout(WITHIN)
    page = context.new_page()
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(f"{started.url}#paying")
    page.get_by_label("Token").fill(started.token)
    page.get_by_label("Token").press("Enter")
    yield page
    context.close()
    assert wrong == []


def test_f_73_a_person_decides_on_a_page_with_use_chat(
    page: Page, started: Started, tmp_path: Path
) -> None:
    """One card approved, one denied; what is decided at a console comes by itself."""
    page.get_by_label("Message").fill("pay Ada 12, Ben 30")
    page.get_by_label("Message").press("Enter")
    cards = page.locator("article")
    expect(cards.get_by_role("button", name="Approve")).to_have_count(2)
    cards.first.get_by_role("button", name="Approve").click()
    cards.last.get_by_role("button", name="Deny").click()
    expect(cards.first).to_contain_text("paid 12 to Ada")
    expect(cards.last).to_contain_text("denied")

    page.get_by_label("Message").fill("pay Eve 7")
    page.get_by_label("Message").press("Enter")
    expect(cards.last.get_by_role("button", name="Approve")).to_be_visible()
    picture = (PICTURES if WRITTEN else tmp_path) / "clients-chat.png"
    page.screenshot(path=picture, animations="disabled", full_page=True)
    assert picture.stat().st_size > 10_000
    page.reload()
    expect(cards).to_have_count(3)
    headers = {"Authorization": f"Bearer {started.token}"}
    run = f"{started.server}/v1/runs/paying"
    (call,) = httpx.get(run, headers=headers).json()["turn"]["calls"]
    named = {name: call[name] for name in ("turn_id", "invocation_id", "arguments_digest")}
    body = {**named, "approved": False, "reason": "ask Eve first"}
    assert httpx.post(f"{run}/decisions", json=body, headers=headers).status_code == 200
    expect(cards.last).to_contain_text("denied: ask Eve first")
    expect(page.get_by_role("alert")).to_be_empty()

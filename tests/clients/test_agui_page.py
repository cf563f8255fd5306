"""The example page with AG-UI's HttpAgent: real client, real browser; started by its command."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from ..server.console.conftest import WITHIN, chromium
from .pages import PICTURES, WRITTEN, started


@pytest.fixture(scope="module")
def page(node_modules: Path) -> Generator[Page]:
    """The page in Debian's Chromium; an error of it fails the test."""
    path = chromium()
    wrong: list[str] = []
    with started("agui", node_modules / "node_modules") as it, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu"]
        )
        context = browser.new_context(viewport={"width": 760, "height": 760})
        context.set_default_timeout(WITHIN)
        context.add_init_script(f"sessionStorage.token = {it.token!r}")
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(it.url)
        yield page
        browser.close()
    assert wrong == []


def test_f_112_the_page_asks_and_shows_what_came_of_it(page: Page) -> None:
    """A question, an edited answer, a second question that is denied, and a reload."""
    page.get_by_label("Message").fill("pay Ada 5")
    page.get_by_role("button", name="Send").click()
    card = page.locator("article")
    expect(card).to_contain_text("asks")
    if WRITTEN:
        page.screenshot(path=PICTURES / "clients-agui.png")
    page.get_by_label("Arguments").fill('{"to": "Ada", "amount": 4}')
    page.get_by_role("button", name="Approve").click()
    expect(card).to_contain_text("paid 4 to Ada")

    page.get_by_label("Message").fill("pay Bob 7")
    page.get_by_role("button", name="Send").click()
    page.get_by_role("button", name="Deny").click()
    expect(page.locator("article.denied")).to_have_count(1)
    expect(page.locator("#state")).to_have_text("ready")

    shown = page.locator("#messages").inner_text()
    page.reload()
    expect(page.locator("#state")).to_have_text("ready")
    assert page.locator("#messages").inner_text() == shown

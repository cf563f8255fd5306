"""The page with AG-UI's HttpAgent in examples/clients: it starts with one command, in a browser.

With TURNLOCK_SCREENSHOTS set the picture of docs/clients.md is made anew.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from ..server.console.conftest import WITHIN, chromium

ROOT = Path(__file__).resolve().parents[2]
START = ROOT / "examples" / "clients" / "agui" / "start.py"
PICTURE = ROOT / "docs" / "pictures" / "clients-agui.png"


@contextmanager
def started(packages: Path) -> Generator[tuple[str, str]]:
    """Run its one command; return the page's address and the token that it prints."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, str(START), "--port", str(port), "--packages", str(packages)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True
    ) as running:
        assert running.stdout is not None
        try:
            told = "".join(line for _, line in zip(range(20), _until_token(running), strict=False))
            page, token = (re.findall(rf"{it} +(\S+)", told)[-1] for it in ("page", "token"))
            yield page, token
        finally:
            os.killpg(running.pid, signal.SIGINT)
            running.stdout.read()


def _until_token(running: subprocess.Popen[str]) -> Generator[str]:
    assert running.stdout is not None
    for line in running.stdout:
        yield line
        if line.startswith("  token"):
            return


@pytest.fixture(scope="module")
def page(node_modules: Path) -> Generator[Page]:
    """The page in Debian's Chromium; an error of it fails the test."""
    path = chromium()
    wrong: list[str] = []
    with started(node_modules / "node_modules") as (url, token), sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu"]
        )
        context = browser.new_context(viewport={"width": 760, "height": 760})
        context.set_default_timeout(WITHIN)
        context.add_init_script(f"sessionStorage.token = {token!r}")
        it = context.new_page()
        it.on("pageerror", lambda error: wrong.append(str(error)))
        it.goto(url)
        yield it
        browser.close()
    assert wrong == []


def test_f_112_the_page_asks_and_shows_what_came_of_it(page: Page) -> None:
    """A question, an edited answer, a second question that is denied, and a reload."""
    page.get_by_label("Message").fill("pay Ada 5")
    page.get_by_role("button", name="Send").click()
    card = page.locator("article")
    expect(card).to_contain_text("asks")
    if os.environ.get("TURNLOCK_SCREENSHOTS"):
        page.screenshot(path=PICTURE)
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

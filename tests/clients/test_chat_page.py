"""The example page with useChat: real hook, real browser, nothing built; started by its command."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Final

import attrs
import httpx
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from ..server.console.conftest import WITHIN, chromium
from .conftest import clients

ROOT: Final = Path(__file__).resolve().parents[2]
EXAMPLE: Final = ROOT / "examples" / "clients" / "chat"
WRITTEN: Final = os.environ.get("TURNLOCK_PICTURES") == "write"
"""Whether the picture of docs/clients.md is made anew."""


@attrs.frozen
class Started:
    """What the command has printed."""

    url: str
    server: str
    token: str


def free_ports() -> int:
    """A port that is free now, and so is the next."""
    while True:
        with socket.socket() as one, socket.socket() as other:
            one.bind(("127.0.0.1", 0))
            port: int = one.getsockname()[1]
            try:
                other.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            return port


@pytest.fixture(scope="module")
def started() -> Generator[Started]:
    """The example, as its command starts it."""
    packages = clients(EXAMPLE) / "node_modules"
    port = free_ports()
    command = [sys.executable, str(EXAMPLE / "start.py"), "--port", str(port)]
    process = subprocess.Popen(
        [*command, "--packages", str(packages)],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    told: dict[str, str] = {}
    while not {"page", "token"} <= told.keys():
        line = process.stdout.readline()
        assert line, "it has ended"
        name, _, value = line.strip().partition(" ")
        told[name] = value.strip()
    yield Started(told["page"], f"http://127.0.0.1:{port}", told["token"])
    os.killpg(process.pid, signal.SIGINT)
    try:
        process.wait(30)
    finally:
        process.stdout.close()


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
    picture = (ROOT / "docs" / "pictures" if WRITTEN else tmp_path) / "clients-chat.png"
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

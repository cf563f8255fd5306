"""One browser and one server for each file of tests; a page for each test."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from .served import Served

NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
WITHIN: Final = 60_000
"""Milliseconds that a page has for what is waited for: others may be at work, too."""

expect.set_options(timeout=WITHIN)

Visit = Callable[..., Page]


def chromium() -> str:
    """Where a browser is that can be driven. In CI it is not missing; elsewhere the tests skip."""
    named = os.environ.get("TURNLOCK_CHROMIUM")
    path = shutil.which(named) if named else next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        missing = "there is no Chromium: run make chromium, or name one in TURNLOCK_CHROMIUM"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    return path


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    """Debian's Chromium."""
    path = chromium()
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu"]
        )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    """A real server (F-113)."""
    served = Served(Path(tmp_path_factory.mktemp("console")))
    yield served
    served.close()


@pytest.fixture
def visit(browser: Browser, server: Served) -> Generator[Visit]:
    """Open the console as somebody who has signed in; errors of a page fail the test."""
    contexts: list[BrowserContext] = []
    wrong: list[str] = []

    def visited(run_id: str | None = None, who: str = "anna", **options: object) -> Page:
        given = {"viewport": {"width": 1400, "height": 900}, "reduced_motion": "reduce", **options}
        context = browser.new_context(base_url=server.url, **given)  # type: ignore[arg-type]
        contexts.append(context)
        context.set_default_timeout(WITHIN)
        answer = context.request.post("/v1/session", data={"token": who * 2})
        assert answer.ok, answer.text()
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto("/console/" if run_id is None else f"/console/#run={run_id}")
        return page

    yield visited
    for context in contexts:
        context.close()
    assert wrong == []

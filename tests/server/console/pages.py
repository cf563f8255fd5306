"""What tests look at in a page of the console."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from playwright.sync_api import Locator, Page, expect

from turnlock.models.codec import write

from .served import Served

_AXE: Final[Any] = import_module("axe_playwright_python.sync_playwright").Axe()
"""It has no types."""


def faults(page: Page) -> list[str]:
    """What axe finds to be against WCAG in a page."""
    answer: dict[str, Any] = _AXE.run(page).response
    return [
        f"{it['id']}: {node['html'][:120]} {node.get('failureSummary', '')[:200]}"
        for it in answer["violations"]
        for node in it["nodes"]
    ]


def card(page: Page, name: str = "call_1") -> Locator:
    """The card of a call."""
    return page.locator("article.card").filter(has=page.locator("header code", has_text=name))


def button(page: Page, words: str, name: str = "call_1") -> Locator:
    """A button of a card."""
    return card(page, name).get_by_role("button", name=words, exact=True)


def badge(page: Page, words: str) -> Page:
    """Wait until the badge says so."""
    expect(page.locator("#badge")).to_contain_text(words)
    return page


def live(page: Page) -> Page:
    """Wait until all is shown."""
    return badge(page, "live")


_SEEN_LOST: Final = """it => {
    const badge = document.querySelector("#badge");
    const isLost = () => it.isConnected && badge.textContent.includes("off")
        && it.getAttribute("aria-disabled") === "true";
    window.seenLost = new Promise((seen, missed) => {
        const watch = new MutationObserver(() => isLost() && seen());
        const all = {subtree: true, childList: true, characterData: true, attributes: true};
        watch.observe(document, all);
        setTimeout(() => missed(new Error("never both")), 20000);
    });
}"""


def cut(server: Served, page: Page, which: Locator) -> None:
    """Cut every connection; at one moment the badge says so and the button cannot be pressed.

    The page watches itself: it may be live again before anybody outside has looked twice.
    """
    which.evaluate(_SEEN_LOST)
    server.cut()
    page.evaluate("() => window.seenLost")
    live(page)


def off(which: Locator) -> None:
    """Expect that a button cannot be pressed."""
    expect(which).to_have_attribute("aria-disabled", "true")


def on(which: Locator) -> None:
    """Wait until a button can be pressed."""
    expect(which).to_have_attribute("aria-disabled", "false")


def facts(server: Served, run_id: str, kind: str = "") -> list[dict[str, Any]]:
    """The facts of a run that the journal has, of one type."""

    async def read() -> list[dict[str, Any]]:
        return [write(fact) async for fact in server.face.journal.facts(run_id)]

    return [it for it in server.call(read()) if not kind or it["type"] == kind]

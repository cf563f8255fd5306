"""Looking on in a real browser, on a real server: streams, replay, lists, access (F-90 … F-98)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, WebSocketRoute, expect

from turnlock import Acknowledge, Delivery, OpenTurn
from turnlock.server.routing import Role
from turnlock.server.tokens import Token

from .conftest import Visit
from .pages import badge, button, card, cut, facts, faults, live, on
from .served import PAID, Served, began, decides, did, free, gated, lost


def story(server: Served, run_id: str) -> None:
    """A run in which each kind of thing has happened."""
    calls = [gated("call_2"), gated("call_3", account="x", amount=9), gated("call_4", "mail")]
    ship = free("call_5", "ship", parcel=81)
    server.asks(run_id, free("call_1", "weather", city="Bern"), *calls, ship)
    server.happens(run_id, began("call_1"), did("call_1", "sunny in Bern"))
    server.happens(run_id, decides(calls[2], approved=True, by="bob"), began("call_4"))
    server.happens(run_id, did("call_4"), began("call_5"), lost("call_5"))


def test_f_98_a_replay_folds_the_same_facts_and_has_no_buttons(
    server: Served, visit: Visit
) -> None:
    """What was typed is there again afterwards; the machine shows the path as far as it was."""
    story(server, "replay")
    page = live(visit("replay"))
    count = len(facts(server, "replay"))
    card(page, "call_2").get_by_label("Reason").fill("typed before")
    expect(card(page, "call_5")).to_contain_text("nobody knows whether it happened")
    expect(page.locator("#at")).to_have_text(f"{count} of {count}")

    page.locator("#facts").get_by_text("call_4").last.click()
    expect(page.locator("#path")).to_have_text(
        "mail call_4: REQUESTED → APPROVED → STARTED → SUCCEEDED"
    )
    expect(page.locator("#machine .now")).to_have_text("✓ SUCCEEDED")
    page.locator("#facts").focus()
    for _ in range(4):
        page.keyboard.press("ArrowLeft")
    badge(page, "replay")
    expect(page.locator("#at")).to_have_text(f"{count - 4} of {count}")
    expect(page.locator("#path")).to_have_text("mail call_4: REQUESTED → APPROVED")
    expect(page.locator("#machine path.on")).to_have_count(1)

    page.locator("#place").fill("6")
    expect(card(page, "call_4")).to_contain_text("nothing can be decided in a replay")
    for words in ("Approve", "Deny", "Edit", "Interrupt", "It succeeded", "Retry"):
        assert not any(it.is_visible() for it in page.get_by_role("button", name=words).all())
    page.keyboard.press("j")
    page.keyboard.press("a")
    expect(card(page, "call_5")).to_be_hidden()

    page.get_by_role("button", name="Live").click()
    live(page)
    expect(card(page, "call_2").get_by_label("Reason")).to_have_value("typed before")
    expect(card(page, "call_4").locator(".fate")).to_contain_text("approved by bob")
    assert len(facts(server, "replay")) == count


def test_f_92_facts_are_filtered_and_shown_whole(server: Served, visit: Visit) -> None:
    story(server, "filter")
    page = live(visit("filter"))
    rows = page.locator("#facts [role=option]")

    page.keyboard.press("/")
    page.keyboard.type("BERN")
    expect(rows).to_have_count(3)
    rows.first.click()
    expect(page.locator("#fact")).to_contain_text('"result": "sunny in Bern"')
    page.locator("#facts").press("ArrowDown")
    expect(page.locator("#fact")).to_contain_text('"TOOL_EXECUTION_STARTED"')
    expect(rows.nth(1)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Escape")
    expect(page.locator("#fact")).to_be_hidden()
    page.locator("#filter").fill("there is no such thing")
    expect(rows).to_have_count(0)
    page.locator("#filter").fill("")
    server.happens("filter", decides(gated("call_2"), approved=True, by="bob"))
    expect(rows.first).to_contain_text("tool approved")
    _stand_in_order(page)


def _stand_in_order(page: Page) -> None:
    """F-97: who reads the page by its elements finds the rows as they are seen."""
    rows = page.locator("#facts [role=option]")
    places: list[str] = rows.evaluate_all("them => them.map((it) => it.ariaPosInSet)")
    assert len(places) > 1
    first = int(places[0])
    assert places == [str(it) for it in range(first, first + len(places))]


def test_f_52_a_hole_in_the_stream_is_seen_and_filled(server: Served, visit: Visit) -> None:
    """An event that is lost on the way: the page says gap, asks after its last one, is whole."""
    server.asks("holes", gated("call_1"), gated("call_2"))
    lost_one: list[str] = []
    held: list[Callable[[], None]] = []

    def losing(route: WebSocketRoute) -> None:
        there = route.connect_to_server()

        def pass_on(message: Any) -> None:
            if "TOOL_APPROVED" in message and not lost_one:
                lost_one.append(message)
            elif lost_one and not held and '"subscribed"' in message:
                held.append(lambda: route.send(message))
            else:
                route.send(message)

        there.on_message(pass_on)

    page = visit("about:none")
    page.route_web_socket("**/v1/stream", losing)
    page.goto(f"{server.url}/console/#run=holes")
    page.reload()
    live(page)
    page.evaluate(
        """() => {
            const badge = document.querySelector("#badge")
            window.seen = []
            const saw = new MutationObserver(() => seen.push(badge.dataset.look))
            saw.observe(badge, { attributes: true })
        }"""
    )

    server.happens("holes", decides(gated("call_1"), approved=True, by="bob"))
    server.happens("holes", decides(gated("call_2"), approved=False, by="bob", reason="no"))

    expect(page.locator("#at")).to_have_text("5 of 5")
    live(page)
    assert lost_one
    assert "gap" in page.evaluate("seen")
    expect(card(page).locator(".fate")).to_contain_text("approved by bob")


def test_f_93_a_cut_takes_nothing_from_who_types(server: Served, visit: Visit) -> None:
    """Text, focus, what is selected and how far was scrolled, through ten cuts."""
    server.asks("cut", gated("call_1", lines=list(range(200))), gated("call_2"))
    page = live(visit("cut"))
    button(page, "Edit").click()
    editor = card(page).get_by_label("Edited arguments, JSON")
    editor.fill('{"text": "half')
    args = card(page).get_by_role("region", name="Arguments")
    args.evaluate("it => { it.scrollTop = 120 }")

    for number in range(4):
        cut(server, page, button(page, "Deny", "call_2"))
        page.keyboard.type(str(number))

    expect(editor).to_be_focused()
    expect(editor).to_have_value('{"text": "half0123')
    assert args.evaluate("it => it.scrollTop") == 120
    on(button(page, "Deny", "call_2"))


def test_f_94_a_tab_that_slept_for_an_hour_decides_nothing_before_it_is_live(
    server: Served, visit: Visit
) -> None:
    server.asks("asleep", gated("call_1"))
    page = visit("about:none")
    page.clock.install()
    page.goto(f"{server.url}/console/#run=asleep")
    page.reload()
    live(page)
    page.clock.run_for(1_000)
    page.keyboard.press("j")

    page.evaluate("() => { const now = Date.now() + 3_600_000; Date.now = () => now }")
    page.keyboard.press("a")
    page.evaluate("() => document.dispatchEvent(new Event('visibilitychange'))")
    page.clock.run_for(100)

    live(page)
    assert len(facts(server, "asleep")) == 2


def test_f_92_runs_that_wait_stand_first_and_are_counted(server: Served, browser: Browser) -> None:
    """In the title, in the head, in the list; the one that waits longest is opened."""
    folder = server.folder / "apart"
    folder.mkdir()
    own = Served(folder)
    try:
        own.asks("idle", free("call_1"))
        own.happens("idle", began("call_1"), did("call_1"))
        own.asks("first", gated("call_1"))
        own.asks("second", gated("call_1"))
        with browser.new_context(base_url=own.url) as context:
            context.request.post("/v1/session", data={"token": "annaanna"})
            page = context.new_page()
            page.goto("/console/")
            live(page)
            expect(page.locator("#run")).to_have_text("first")
            expect(page).to_have_title("(2) turnlock")
            expect(page.locator("#waiting")).to_have_text("? 2 runs wait for you")
            expect(page.locator("#runs b")).to_have_text(["first", "second", "idle"])
            expect(page.locator("#runs small").first).to_contain_text("pay · ")

            on(button(page, "Approve"))
            button(page, "Approve").click()
            expect(page).to_have_title("(1) turnlock")
            expect(page.locator("#runs b").first).to_have_text("second")
            page.get_by_role("link", name="second").click()
            expect(page.locator("#run")).to_have_text("second")
            own.asks("third", gated("call_1"))
            expect(page).to_have_title("(2) turnlock")
            expect(page.locator("#run")).to_have_text("second")
    finally:
        own.close()


def test_f_92_why_a_session_has_failed_is_shown(server: Served, visit: Visit) -> None:
    """In the list, and beside the status of the run, which alone would look healthy."""
    server.asks("failed", gated("call_1"))
    sessions = server.face.sessions
    assert sessions is not None
    sessions.life.failures.keep("failed", "the model is not there")
    page = live(visit("failed"))
    expect(page.locator("#status")).to_contain_text("awaiting approval: the model is not there")
    expect(page.locator("#runs")).to_contain_text("the model is not there")


def test_f_92_a_conversation_is_read_and_gone_on_with(server: Served, visit: Visit) -> None:
    """A prompt from the console, the model's words, its call, a decision, what was refused."""
    page = visit()
    made = page.request.post("/v1/runs", data={"run_id": "talk"}, headers={"Turnlock-Console": "1"})
    assert made.status == 201, made.text()
    page.goto("/console/#run=talk")
    live(page)
    page.get_by_label("Prompt").press_sequentially("Pay what I owe, please.")
    page.get_by_label("Prompt").press("Control+Enter")

    talk = page.get_by_role("log", name="Conversation")
    expect(talk).to_contain_text("Pay what I owe, please.")
    expect(talk).to_contain_text("I pay what you owe.")
    expect(page.get_by_label("Prompt")).to_have_value("")
    # The words stream before the turn is opened, and a refusal names what stands when it is given.
    expect(page.locator("article.card").get_by_role("button", name="Approve")).to_be_visible()
    wrong = {"turn_id": "t1", "invocation_id": "nobody's", "approved": False}
    page.request.post("/v1/runs/talk/decisions", data=wrong, headers={"Turnlock-Console": "1"})
    expect(page.locator("#refused")).to_contain_text("unknown_invocation decide nobody's")
    expect(page.locator("#refused-count")).to_have_text("1")

    before = len(PAID)
    page.locator("article.card").get_by_role("button", name="Approve").click()
    expect(talk).to_contain_text("It is paid.")
    expect(page.locator("#status")).to_contain_text("idle")
    assert PAID[before:] == [12]


def test_f_13_the_printed_address_lets_in_once(server: Served, browser: Browser) -> None:
    """The code leaves the address at once; a token lets in, too; who leaves is out."""
    anna = Token.of("anna", (Role.LOOK, Role.DECIDE, Role.RUN), "annaanna")

    async def make() -> str:
        return server.face.guard.codes.make(anna)

    code = server.call(make())
    server.asks("door", gated("call_1"))
    with browser.new_context(base_url=server.url) as context:
        page = context.new_page()
        page.goto(f"/console/#code={code}")
        live(page)
        expect(page.locator("#me")).to_have_text("anna")
        assert "code" not in page.url

        page.locator("#me").click()
        expect(page.get_by_role("heading", name="Who are you?")).to_be_visible()
        page.goto(f"/console/?again#code={code}")
        expect(page.locator("#alert")).to_contain_text("works once")
        page.get_by_label("Token").press_sequentially("wrong")
        expect(page.get_by_label("Token")).to_have_value("wrong")
        page.get_by_label("Token").press("Enter")
        expect(page.locator("#alert")).to_contain_text("unauthenticated")
        page.get_by_label("Token").fill("eveeve")
        page.get_by_role("button", name="Enter").click()
        live(page)
        expect(page.locator("#me")).to_have_text("eve")


def test_s_71_a_journal_that_was_put_back_is_read_anew(server: Served, browser: Browser) -> None:
    """Its end is before what the page has: it says so, and shows what there is."""
    folder = server.folder / "restored"
    folder.mkdir()
    own = Served(folder)
    try:
        own.asks("again", gated("call_1"))
        own.stop()
        backup = {path: path.read_bytes() for path in folder.glob("agent.db*")}
        own.start()
        own.happens("again", decides(gated("call_1"), approved=True, by="bob"), began("call_1"))
        with browser.new_context(base_url=own.url) as context:
            context.request.post("/v1/session", data={"token": "annaanna"})
            page = context.new_page()
            page.goto("/console/#run=again")
            expect(page.locator("#at")).to_have_text("4 of 4")

            own.stop()
            for path, content in backup.items():
                path.write_bytes(content)
            own.start()

            expect(page.locator("#alert")).to_contain_text("cursor ahead")
            expect(page.locator("#at")).to_have_text("2 of 2")
            live(page)
            on(button(page, "Approve"))
    finally:
        own.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_f_97_axe_finds_nothing(server: Served, visit: Visit, scheme: str) -> None:
    """On the runs, on a run with each kind of card, in a dialog, in a replay, at the door."""
    run_id = f"axe-{scheme}"
    story(server, run_id)
    page = live(visit(run_id, color_scheme=scheme))
    button(page, "Edit", "call_2").click()
    card(page, "call_2").get_by_label("Edited arguments, JSON").fill('{"account": "y"}')
    expect(button(page, "Approve edited", "call_2")).to_be_visible()
    page.locator("#facts [role=option]").first.click()
    found = [("run", faults(page))]
    page.keyboard.press("?")
    found.append(("keys", faults(page)))
    page.keyboard.press("Escape")
    page.keyboard.press("i")
    found.append(("ask", faults(page)))
    page.keyboard.press("Escape")
    page.locator("#place").fill("4")
    badge(page, "replay")
    found.append(("replay", faults(page)))
    page.get_by_role("button", name="Live").click()
    live(page)
    page.evaluate("location.hash = ''")
    expect(page.locator("#nothing")).to_be_visible()
    found.append(("runs", faults(page)))
    page.locator("#me").click()
    expect(page.get_by_label("Token")).to_be_visible()
    found.append(("door", faults(page)))

    assert [it for it in found if it[1]] == []


@pytest.mark.parametrize(("width", "letters"), [(320, 16), (640, 32), (1100, 16)])
def test_f_97_it_is_usable_at_320_pixels_and_at_200_percent(
    server: Served, visit: Visit, width: int, letters: int
) -> None:
    """Nothing is beside the page, every button of a card is within, and the list is a page away."""
    run_id = f"narrow-{width}"
    story(server, run_id)
    page = visit(run_id, viewport={"width": width, "height": 600})
    page.evaluate(f"document.documentElement.style.fontSize = '{letters}px'")
    live(page)
    on(button(page, "Approve", "call_2"))

    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for words in ("Approve", "Edit", "Deny"):
        box = button(page, words, "call_2").bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
    page.locator("#facts [role=option]").first.scroll_into_view_if_needed()
    if width < 700:
        page.get_by_role("link", name="Runs").click()
        page.get_by_role("link", name=re.compile(run_id)).click()
    button(page, "Approve", "call_2").click()
    expect(card(page, "call_2").locator(".fate")).to_contain_text("approved by anna")


def test_f_92_ten_thousand_facts_scroll(server: Served, visit: Visit) -> None:
    """Only what is seen is in the page; a fact that comes meanwhile moves nothing of it."""
    _many(server, "many", 2_000)
    page = live(visit("many"))
    page.locator("#facts").scroll_into_view_if_needed()
    expect(page.locator("#at")).to_have_text("10000 of 10000")
    rows = page.locator("#facts [role=option]")
    bare: list[int] = page.evaluate(
        """async () => {
            const list = document.querySelector("#facts"), bare = []
            for (let at = 0; at < 60; at += 1) {
                list.scrollTop = at * 5000
                await new Promise(requestAnimationFrame)
                const { left, top, bottom } = list.getBoundingClientRect()
                for (const y of [top + 3, (top + bottom) / 2, bottom - 3]) {
                    const there = document.elementFromPoint(left + 30, y)
                    if (!there.closest("[role=option]")) bare.push(at)
                }
            }
            return bare
        }"""
    )
    assert bare == []
    assert rows.count() < 60

    shown = page.locator("#facts")
    shown.evaluate("it => { it.scrollTop = it.scrollHeight }")
    expect(rows.last).to_contain_text("turn opened")
    here = """async () => {
        await new Promise(requestAnimationFrame)
        const { left, top, bottom } = document.querySelector("#facts").getBoundingClientRect()
        return document.elementFromPoint(left + 30, (top + bottom) / 2).closest("[role=option]").id
    }"""
    shown.evaluate("it => { it.scrollTop = 3000 }")
    before = page.evaluate(here)
    server.asks("many", gated("call_1"), turn_id="last")
    expect(page.locator("#at")).to_have_text("10002 of 10002")
    assert page.evaluate(here) == before
    shown.evaluate("it => { it.scrollTop -= 120 }")
    page.evaluate(here)
    _stand_in_order(page)


def _many(server: Served, run_id: str, turns: int) -> None:
    """Five facts for each turn."""
    for first in range(0, turns, 500):
        told: list[Delivery] = []
        for number in range(first, min(turns, first + 500)):
            turn_id = f"t{number}"
            told.append(OpenTurn(turn_id=turn_id, calls=(free("call_1", number=number),)))
            told += [began("call_1", turn_id), did("call_1", number, turn_id)]
            told.append(Acknowledge(turn_id=turn_id))
        server.happens(run_id, *told)

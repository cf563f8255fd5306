"""Deciding in a real browser, on a real server (F-93 … F-96, F-113)."""

from __future__ import annotations

import json
import re

from playwright.sync_api import Page, WebSocketRoute, expect

from turnlock import Interrupt, OpenTurn
from turnlock.models.record import changed

from .conftest import Visit
from .pages import badge, button, card, facts, live, off, on
from .served import Served, began, decides, free, gated, lost


def test_f_93_a_decided_card_says_who_and_folds(server: Served, visit: Visit) -> None:
    server.asks("approved", gated("call_1"), gated("call_2"))
    page = live(visit("approved"))

    button(page, "Approve").click()
    expect(card(page).locator(".fate")).to_contain_text("approved by anna at")
    expect(card(page).locator("pre").first).to_be_hidden()

    card(page, "call_2").get_by_label("Reason").fill("too much")
    button(page, "Deny", "call_2").click()
    expect(card(page, "call_2").locator(".fate")).to_contain_text("denied by anna")
    expect(page.locator("#cards-title")).to_have_text("Nothing waits for you")

    (denied,) = facts(server, "approved", "TOOL_DENIED")
    assert (denied["decided_by"], denied["reason"]) == ("anna", "too much")


def test_f_93_editing_shows_the_difference_and_approves_what_was_edited(
    server: Served, visit: Visit
) -> None:
    """What is no JSON object is not sent; a number keeps its digits; a scope goes along."""
    asked = gated("call_1", account="\u202eDE02", amount=1.0)
    server.asks("edited", asked)
    page = live(visit("edited"))
    editor = card(page).get_by_label("Edited arguments, JSON")

    button(page, "Edit").click()
    expect(editor).to_have_value('{\n  "account": "\\u202eDE02",\n  "amount": 1.0\n}')
    on(button(page, "Approve"))

    editor.fill('{"account": "DE02"')
    expect(card(page).locator(".wrong")).to_contain_text("not JSON")
    button(page, "Approve edited").click()
    expect(page.locator("#alert")).to_contain_text("Not sent")
    assert facts(server, "edited", "TOOL_APPROVED") == []

    editor.fill('{"account": "DE07", "amount": 1.0}')
    lines = card(page).locator(".diff div")
    expect(lines).to_have_text(
        [" {", '-  "account": "\\u{202e}DE02",', '+  "account": "DE07",', '   "amount": 1.0', " }"],
        use_inner_text=False,
    )
    card(page).get_by_label("How far").select_option("session tool")
    button(page, "Approve edited").click()

    expect(card(page).locator(".fate")).to_contain_text("approved as edited by anna")
    (approved,) = facts(server, "edited", "TOOL_APPROVED")
    assert approved["arguments"] == {"account": "DE07", "amount": 1.0}
    assert isinstance(approved["arguments"]["amount"], float)
    (grant,) = facts(server, "edited", "GRANT_ISSUED")
    assert (grant["scope"], grant["match"]) == ("session", "tool")


def test_s_42a_a_call_of_another_runtime_has_no_edit_and_no_second_try(
    server: Served, visit: Visit
) -> None:
    """It is approved as it was asked for; a doubt of it is said, and never run again by us."""
    asked = changed(gated("call_1", "command", command="ls"), observed=True)
    ran = changed(free("call_2", "command", command="make"), observed=True)
    asks = OpenTurn(turn_id="t1", calls=(asked, ran))
    server.happens("other", asks, began("call_2"), lost("call_2"), kind="codex")
    page = live(visit("other"))

    on(button(page, "Approve"))
    expect(card(page).get_by_role("button", name="Edit")).to_be_hidden()
    card(page).focus()
    page.keyboard.press("e")
    expect(card(page).get_by_label("Edited arguments, JSON")).to_be_hidden()
    on(button(page, "It succeeded", "call_2"))
    expect(card(page, "call_2").get_by_role("button", name="Retry")).to_be_hidden()

    button(page, "Approve").click()
    expect(card(page).locator(".fate")).to_contain_text("approved by anna")
    (approved,) = facts(server, "other", "TOOL_APPROVED")
    assert approved.get("arguments") is None


def test_k_61_a_guarded_run_is_decided_about_like_our_own(server: Served, visit: Visit) -> None:
    """Its kind, arguments and doubts are shown; its own process speaks to its model."""
    asks = OpenTurn(turn_id="t1", calls=(gated("call_1", amount=5), free("call_2")))
    server.happens("guarded", asks, began("call_2"), lost("call_2"), kind="guard")
    page = live(visit("guarded"))
    expect(page.locator("#kind")).to_have_text("guard")
    expect(page.locator("nav li", has_text="guarded")).to_contain_text("guard · pay")
    expect(page.locator("#prompt")).to_be_hidden()
    expect(page.locator("#stop")).to_be_visible()
    expect(card(page)).to_contain_text('"amount": 5')
    expect(button(page, "Edit")).to_be_visible()

    button(page, "Retry", "call_2").click()
    button(page, "Approve").click()
    expect(card(page).locator(".fate")).to_contain_text("approved by anna")
    (approved,) = facts(server, "guarded", "TOOL_APPROVED")
    assert approved["decided_by"] == "anna"
    assert len(facts(server, "guarded", "RETRY_AUTHORISED")) == 1
    assert facts(server, "guarded", "EXECUTION_RETRIED") == []

    server.happens("of-ours", OpenTurn(turn_id="t1", calls=(gated("call_1"),)))
    page = live(visit("of-ours"))
    expect(page.locator("#kind")).to_have_text("")
    expect(page.locator("#prompt")).to_be_visible()


def test_f_96_a_double_press_decides_once_and_of_one_card(server: Served, visit: Visit) -> None:
    """The card folds under the pointer, and the next one comes up: it is not meant."""
    server.asks("double", gated("call_1"), gated("call_2"), gated("call_3"))
    page = live(visit("double"))
    on(button(page, "Approve"))
    where = button(page, "Approve").bounding_box()
    assert where is not None

    for _ in range(6):
        page.mouse.click(where["x"] + 5, where["y"] + 5)
    expect(card(page).locator(".fate")).to_contain_text("approved by anna")

    assert [it["invocation_id"] for it in facts(server, "double", "TOOL_APPROVED")] == ["call_1"]
    on(button(page, "Approve", "call_2"))


def test_f_96_the_second_of_two_tabs_is_told_who_was_first(server: Served, visit: Visit) -> None:
    """The second tab has not heard of it yet: its server refuses, and says who decided."""
    server.asks("tabs", gated("call_1"))
    first = live(visit("tabs"))
    held: list[str] = []
    second = visit("about:none", who="bob")
    second.route_web_socket("**/v1/stream", lambda route: _holding(route, held, "TOOL_APPROVED"))
    second.goto(f"{server.url}/console/#run=tabs")
    second.reload()
    live(second)
    on(button(second, "Deny"))

    button(first, "Approve").click()
    expect(card(first).locator(".fate")).to_contain_text("approved by anna")
    expect(button(second, "Deny")).to_be_visible()
    button(second, "Deny").click()

    told = expect(second.locator("#alert"))
    told.to_contain_text("already decided: approved by anna")
    assert facts(server, "tabs", "TOOL_DENIED") == []


def _holding(route: WebSocketRoute, held: list[str], word: str) -> None:
    """Let everything through to a page but what has a word in it."""
    there = route.connect_to_server()

    def pass_on(message: str | bytes) -> None:
        text = message if isinstance(message, str) else message.decode()
        if word in text and '"type":"event"' in text:
            held.append(text)
        else:
            route.send(text)

    there.on_message(pass_on)


def test_f_96_a_stale_card_is_refused_as_late(server: Served, visit: Visit) -> None:
    """Its turn is over, and the page was not told."""
    server.asks("stale", gated("call_1"))
    held: list[str] = []
    page = visit("about:none")
    page.route_web_socket("**/v1/stream", lambda route: _holding(route, held, '"sequence":'))
    page.goto(f"{server.url}/console/#run=stale")
    page.reload()
    live(page)
    on(button(page, "Approve"))

    server.happens("stale", Interrupt(turn_id="t1", reason="enough"))
    button(page, "Approve").click()

    expect(page.locator("#alert")).to_contain_text("late: denied by the interrupt")
    assert facts(server, "stale", "TOOL_APPROVED") == []


def test_f_96_what_was_not_answered_is_unknown_until_the_stream_tells(
    server: Served, visit: Visit
) -> None:
    """The answer is lost with the socket; nothing can be pressed; then the stream says who."""
    server.asks("unknown", gated("call_1"))
    answers, reached = [False], [True]

    def silent(route: WebSocketRoute) -> None:
        if not reached[0]:
            route.close(code=4000)
            return
        there = route.connect_to_server()
        said = re.compile('"answer"|TOOL_APPROVED')
        there.on_message(
            lambda it: route.send(it) if answers[0] or not said.search(str(it)) else None
        )

    page = visit("about:none")
    page.route_web_socket("**/v1/stream", silent)
    page.route(
        "**/v1/runs/unknown", lambda it: it.continue_() if reached[0] else it.abort("failed")
    )
    page.goto(f"{server.url}/console/#run=unknown")
    page.reload()
    live(page)
    on(button(page, "Approve"))

    reached[0] = False
    button(page, "Approve").click()
    expect(card(page).locator(".note")).to_have_text("Sent…")
    off(button(page, "Approve"))
    page.keyboard.press("a")
    server.cut()
    expect(card(page).locator(".note")).to_contain_text("unknown until the stream tells")
    off(button(page, "Approve"))
    answers[0] = reached[0] = True

    expect(card(page).locator(".fate")).to_contain_text("approved by anna")
    assert len(facts(server, "unknown", "TOOL_APPROVED")) == 1


def test_f_93_decided_elsewhere_takes_nothing_from_who_types(server: Served, visit: Visit) -> None:
    """Text and focus stay; once he leaves, the card folds and says who."""
    asked = gated("call_1")
    server.asks("elsewhere", asked, gated("call_2"))
    page = live(visit("elsewhere"))
    reason = card(page).get_by_label("Reason")
    reason.click()
    page.keyboard.type("because I")

    server.happens("elsewhere", decides(asked, approved=False, by="carl", reason="no"))
    expect(card(page).locator(".fate")).to_contain_text("denied by carl")
    page.keyboard.type(" think")

    expect(reason).to_be_focused()
    expect(reason).to_have_value("because I think")
    off(button(page, "Approve"))
    card(page, "call_2").get_by_label("Reason").focus()
    expect(reason).to_be_hidden()


def test_f_95_escape_closes_and_decides_nothing(server: Served, visit: Visit) -> None:
    """In the editor, in a dialog, on the page."""
    server.asks("escape", gated("call_1"))
    page = live(visit("escape"))
    page.keyboard.press("j")
    page.keyboard.press("e")
    editor = card(page).get_by_label("Edited arguments, JSON")
    expect(editor).to_be_focused()
    editor.fill('{"amount": 3}')

    page.keyboard.press("Escape")
    expect(editor).to_be_hidden()
    expect(button(page, "Approve")).to_be_visible()
    page.keyboard.press("i")
    expect(page.locator("#ask")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#ask")).to_be_hidden()
    page.keyboard.press("?")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.keyboard.press("e")

    expect(editor).to_have_value('{"amount": 3}')
    assert len(facts(server, "escape")) == 2


def test_f_95_everything_by_keyboard(server: Served, visit: Visit) -> None:
    """j and k choose, a and d decide, i asks once; no key acts on a card that nobody chose."""
    server.asks("keys", gated("call_1"), gated("call_2"), gated("call_3"))
    page = live(visit("keys"))
    on(button(page, "Approve"))
    page.keyboard.press("a")
    page.keyboard.press("j")
    expect(card(page)).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("a")
    expect(card(page).locator(".fate")).to_contain_text("approved by anna")
    page.keyboard.press("a")
    page.keyboard.press("d")
    page.keyboard.press("j")
    page.keyboard.press("d")
    expect(card(page, "call_2").locator(".fate")).to_contain_text("denied by anna")
    assert len(facts(server, "keys", "TOOL_APPROVED")) == 1

    page.keyboard.press("i")
    expect(page.locator("#ask")).to_contain_text("Interrupt turn t1?")
    assert facts(server, "keys", "TURN_INTERRUPTING") == []
    page.get_by_role("button", name="Interrupt").last.press("Enter")
    expect(card(page, "call_3").locator(".fate")).to_contain_text("denied by the interrupt")


def test_f_95_no_key_acts_in_a_field_with_a_modifier_or_held_down(
    server: Served, visit: Visit
) -> None:
    server.asks("quiet-keys", gated("call_1"))
    page = live(visit("quiet-keys"))
    page.keyboard.press("j")
    on(button(page, "Approve"))
    for pressed in ("Control+a", "Alt+a", "Meta+d", "Shift+A", "Shift+D", "Control+d"):
        page.keyboard.press(pressed)
    page.evaluate(
        """() => { for (const key of "ad") document.activeElement.dispatchEvent(
            new KeyboardEvent("keydown", { key, repeat: true, bubbles: true })) }"""
    )
    card(page).get_by_label("Reason").focus()
    page.keyboard.type("adei?/jk")
    page.locator("#filter").focus()
    page.keyboard.type("adi")
    page.keyboard.press("ArrowLeft")

    expect(card(page).get_by_label("Reason")).to_have_value("adei?/jk")
    expect(page.locator("#ask")).to_be_hidden()
    expect(page.locator("#badge")).to_contain_text("live")
    assert len(facts(server, "quiet-keys")) == 2


def test_f_11_who_may_only_look_has_no_buttons(server: Served, visit: Visit) -> None:
    server.asks("look", gated("call_1"))
    page = live(visit("look", who="eve"))

    expect(card(page)).to_contain_text("You may look")
    expect(button(page, "Approve")).to_be_hidden()
    expect(page.get_by_role("button", name="Interrupt")).to_be_hidden()
    expect(page.get_by_label("Prompt")).to_be_hidden()
    page.keyboard.press("j")
    page.keyboard.press("a")
    assert len(facts(server, "look")) == 2


def test_f_92_doubts_are_settled_by_what_a_person_knows(server: Served, visit: Visit) -> None:
    """As a result, as an error, or by one more attempt; keys of approvals mean nothing here."""
    calls = [gated(name) for name in ("call_1", "call_2", "call_3")]
    server.asks("doubts", *calls)
    server.happens(
        "doubts",
        *(it for call in calls for it in (decides(call, approved=True, by="bob"),)),
        *(it for call in calls for it in (began(call.invocation_id), lost(call.invocation_id))),
    )
    page = live(visit("doubts"))
    told = page.get_by_label("What became of it")

    page.keyboard.press("j")
    page.keyboard.press("a")
    told.nth(0).fill('{"paid": 1.50}')
    button(page, "It succeeded", "call_1").click()
    expect(card(page, "call_1").locator(".fate")).to_contain_text("succeeded")
    told.nth(1).fill("the bank says no")
    button(page, "It failed", "call_2").click()
    expect(card(page, "call_2").locator(".fate")).to_contain_text("the bank says no")
    button(page, "Retry", "call_3").click()
    expect(page.locator("#facts")).to_contain_text("retry authorised")

    (succeeded,) = facts(server, "doubts", "TOOL_EXECUTION_SUCCEEDED")
    assert succeeded["result"] == {"paid": 1.5}


def test_f_11_what_a_page_is_served_is_as_f_90_says(server: Served, visit: Visit) -> None:
    """The policy holds: markup cannot be set, a script cannot be added, nothing else is fetched."""
    page = live(visit("approved"))
    answer = page.request.get("/console/")
    policy = answer.headers["content-security-policy"]

    assert "default-src 'none'" in policy
    assert "require-trusted-types-for 'script'; trusted-types 'none'" in policy
    for attack in (
        "document.body.innerHTML = '<b>x</b>'",
        "document.body.insertAdjacentHTML('beforeend', '<b>x</b>')",
        "trustedTypes.createPolicy('x', {})",
        "document.createElement('script').text = '1'",
    ):
        assert re.search("TrustedHTML|TrustedScript|Policy", _thrown(page, attack)), attack
    assert "Failed to fetch" in _thrown(page, "await fetch('http://127.0.0.1:9/')")


def _thrown(page: Page, code: str) -> str:
    tried = f"try {{ {code}; return 'nothing' }} catch (error) {{ return `${{error}}` }}"
    told: str = page.evaluate(f"async () => {{ {tried} }}")
    return told


def test_f_91_markup_ansi_bidi_and_a_mebibyte_are_text(server: Served, visit: Visit) -> None:
    """All of it is there, scrolls, and does nothing; what is unseen is spelt."""
    hostile = "<img src=x onerror=alert(1)><script>alert(2)</script>\x1b[2J\u202e\u200b&amp;"
    long = "<b>" + "x" * 1_048_576 + "END"
    server.asks(f"hostile {hostile}", gated(hostile, "pay<i>", text=hostile))
    server.asks("long", gated("call_1", text=long))
    page = live(visit("long"))
    shown = card(page).get_by_role("region", name="Arguments")
    assert len(shown.text_content() or "") > len(long)
    assert (shown.text_content() or "").rstrip().endswith('END"\n}')
    size = shown.bounding_box()
    assert size is not None
    assert size["height"] < 500

    page.get_by_role("link", name="hostile").click()
    live(page)
    other = page.locator("article.card").first
    expect(other).to_contain_text("<img src=x onerror=alert(1)>")
    expect(other).to_contain_text(r"\u{202e}\u{200b}&amp;")
    assert page.locator("main img, main script, main i, nav img, nav script").count() == 0
    raw = page.evaluate("document.body.innerText")
    assert not re.search("[\u202e\u200b\x1b]", raw)
    assert json.dumps(hostile) not in raw


def test_f_94_nothing_can_be_decided_while_off_and_nothing_is_lost(
    server: Served, visit: Visit
) -> None:
    """The server goes and comes back: what was typed, the focus and the place stay."""
    asked = [gated(f"call_{number}") for number in range(1, 9)]
    server.asks("killed", *asked)
    page = live(visit("killed"))
    reason = card(page, "call_7").get_by_label("Reason")
    reason.click()
    page.keyboard.type("half a ")
    place = page.evaluate("scrollY")

    server.stop()
    badge(page, "off")
    off(button(page, "Approve", "call_7"))
    button(page, "Approve", "call_7").click(force=True)
    reason.focus()
    server.start()
    server.happens("killed", decides(asked[0], approved=True, by="bob"))
    live(page)
    page.keyboard.type("thought")

    expect(reason).to_have_value("half a thought")
    expect(reason).to_be_focused()
    expect(card(page, "call_1").locator(".fate")).to_contain_text("approved by bob")
    assert abs(page.evaluate("scrollY") - place) < 400
    expect(page.locator("#at")).to_have_text("10 of 10")
    assert [it["invocation_id"] for it in facts(server, "killed", "TOOL_APPROVED")] == ["call_1"]
    button(page, "Approve", "call_7").click()
    expect(card(page, "call_7").locator(".fate")).to_contain_text("approved by anna")

"""Chats in a real browser, on a real server, with a host beside it (world.md 11, F-90)."""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from typing import Any, Final

import pytest
from playwright.sync_api import Route, expect

from ...runtime.crash.depth import DEEP
from .chats import PAID, Worlds, press, says, talk, there
from .conftest import Visit
from .pages import cut, faults, on
from .served import Served

HOSTILE: Final = "<img src=x onerror=alert(1)><script>alert(2)</script>\u202egnp.exe\u200b\x1b[31m"

FORM: Final[Mapping[str, Any]] = {
    "type": "object",
    "required": ["who", "beds", "kind"],
    "properties": {
        "who": {"type": "string", "title": "Who comes?", "description": "first name"},
        "price": {"type": "number", "maximum": 300},
        "beds": {"type": "integer", "default": 2},
        "quiet": {"type": "boolean", "title": "A quiet one", "default": True},
        "kind": {
            "type": "string",
            "oneOf": [{"const": "s", "title": "small"}, {"const": "l", "title": "large"}],
        },
        "with": {"type": "array", "items": {"type": "string", "enum": ["bath", "view"]}},
        "names": {"type": "array", "items": {"type": "string"}},
        "left": {"type": "string"},
    },
}


@pytest.fixture(scope="module")
def worlds(server: Served) -> Generator[Worlds]:
    made = Worlds(server)
    yield made
    made.close()


def texts(worlds: Worlds, chat: str, world: str = "demo") -> list[str]:
    return [it["text"] for it in worlds.log(chat, world) if it["kind"] == "message"]


def test_w_41_an_approval_sends_the_digest_that_was_shown(worlds: Worlds, visit: Visit) -> None:
    """All that is asked is shown; decision, result and answer follow in the chat."""
    worlds.chat("pays")
    page = there(visit(), "pays")
    sent: list[str] = []
    page.on("websocket", lambda it: it.on("framesent", lambda said: sent.append(str(said))))
    page.reload()
    there(page, "pays")
    before = len(PAID)
    says(page, "please pay 12")

    card = page.locator("article.card")
    expect(card.get_by_role("heading", name="pay")).to_be_visible()
    expect(card).to_contain_text('"amount": 12')
    expect(card).to_contain_text("waits for ever")
    expect(page).to_have_title("(1) turnlock chats")
    digest = card.locator("code").last.inner_text()
    assert len(digest) == 64
    press(page, "Approve once")
    expect(talk(page)).to_contain_text("anna approves pay of alice")
    expect(talk(page)).to_contain_text("paid 12")
    expect(talk(page)).to_contain_text("It is paid.")
    assert PAID[before:] == [12]
    decisions = [it for it in sent if '"decide"' in it]
    assert len(decisions) == 1
    assert f'"arguments_digest":"{digest}"' in decisions[0]
    assert '"arguments":' not in decisions[0]
    page.locator("#talk").focus()
    expect(card).to_have_count(0)
    expect(page).to_have_title("turnlock chats")


def test_w_41_a_denial_tells_why_and_a_session_covers_the_next_call(
    worlds: Worlds, visit: Visit
) -> None:
    worlds.chat("more")
    page = there(visit(), "more")
    before = len(PAID)
    says(page, "please pay 3")
    on(page.get_by_role("button", name="Deny"))
    page.get_by_label("reason, told to the model").fill("too much")
    page.keyboard.press("Escape")
    press(page, "Deny")
    expect(talk(page)).to_contain_text("anna denies pay of alice")
    expect(talk(page)).to_contain_text("too much")
    expect(talk(page)).to_contain_text("It is paid.")
    assert PAID[before:] == []

    says(page, "please pay 4")
    press(page, "Approve for this session")
    expect(talk(page)).to_contain_text("for this session")
    expect(talk(page).get_by_text("It is paid.")).to_have_count(2)
    says(page, "again pay 4")
    expect(talk(page)).to_contain_text("a grant approves pay of alice")
    expect(talk(page).get_by_text("It is paid.")).to_have_count(3)
    assert PAID[before:] == [4, 4]


def test_w_52_text_streams_until_its_entry_comes_and_a_new_try_voids_it(
    worlds: Worlds, visit: Visit
) -> None:
    worlds.chat("slow")
    page = there(visit(), "slow")
    says(page, "say it slowly")
    live = page.locator(".said[data-kind=live]")
    expect(live).to_contain_text("Let me think of it.")
    expect(live).to_contain_text("Half of")
    expect(live).to_contain_text('> look {"at": 1}')
    expect(page.locator("#members")).to_contain_text("speaking")
    worlds.step()
    expect(live).to_contain_text("try 2")
    expect(live).to_contain_text("All of")
    expect(live).not_to_contain_text("Half of")
    worlds.step()
    expect(talk(page)).to_contain_text("All of the answer.")
    expect(live).to_have_count(0)
    expect(page.locator("#told")).to_have_text("alice: All of the answer.")


def test_w_67_a_question_is_answered_by_a_form_of_its_schema(worlds: Worlds, visit: Visit) -> None:
    """Each kind of field; what is left empty is left out; what is missing is said before."""
    worlds.chat("rooms", world="quiet")
    worlds.asks("rooms", FORM)
    page = there(visit(), "rooms", "quiet")
    card = page.locator("article.card")
    expect(card).to_contain_text("Which room?")
    expect(card).to_contain_text("first name")
    expect(card.get_by_label("beds *")).to_have_value("2")
    expect(card.get_by_label("A quiet one")).to_be_checked()
    card.get_by_label("Who comes? *").fill("Ada")
    press(page, "Answer")
    expect(page.locator("#alert")).to_contain_text("kind is missing")
    card.get_by_label("kind *").select_option("large")
    card.get_by_label("price").fill("cheap")
    press(page, "Answer")
    expect(page.locator("#alert")).to_contain_text("price is no number")
    card.get_by_label("price").fill("120.50")
    card.get_by_label("view").check()
    card.get_by_label("names").fill("Ada\nBen\n")
    press(page, "Answer")
    expect(talk(page)).to_contain_text("anna: accept")
    reply = worlds.log("rooms", "quiet")[-1]
    assert (reply["kind"], reply["action"], reply["by"]) == ("reply", "accept", "anna")
    assert reply["content"] == {
        "who": "Ada",
        "price": 120.5,
        "beds": 2,
        "quiet": True,
        "kind": "l",
        "with": ["view"],
        "names": ["Ada", "Ben"],
    }


@pytest.mark.parametrize(("words", "action"), [("Decline", "decline"), ("Cancel", "cancel")])
def test_w_67_a_question_is_put_away(worlds: Worlds, visit: Visit, words: str, action: str) -> None:
    """One without a form has nothing to be filled in."""
    worlds.chat(f"away-{action}", world="quiet")
    worlds.asks(f"away-{action}", None)
    page = there(visit(), f"away-{action}", "quiet")
    expect(page.get_by_role("button", name="Answer")).to_have_count(0)
    press(page, words)
    expect(talk(page)).to_contain_text(f"anna: {action}")


def test_w_46_a_doubt_is_resolved(worlds: Worlds, visit: Visit) -> None:
    worlds.chat("ships", world="quiet")
    worlds.doubts("ships")
    page = there(visit(), "ships", "quiet")
    expect(talk(page)).to_contain_text("nobody knows whether ship happened, attempt 1")
    for words in ("It succeeded", "It failed", "Retry"):
        on(page.get_by_role("button", name=words))
    page.get_by_label("result, as JSON or text; or the error").fill('{"at": "the door"}')
    press(page, "It succeeded")
    expect(talk(page)).to_contain_text("ship of alice: succeeded")
    page.locator("details").last.click()
    expect(talk(page)).to_contain_text('"at": "the door"')


def test_w_46_a_doubt_that_is_tried_again_waits_no_more(worlds: Worlds, visit: Visit) -> None:
    """No projection tells of it: how the chat stands is asked after each answer."""
    worlds.chat("retried", world="quiet")
    worlds.doubts("retried")
    page = there(visit(), "retried", "quiet")
    press(page, "Retry")
    expect(page.locator("article.card")).to_contain_text("Answered")
    page.locator("#talk").focus()
    expect(page.locator("article.card")).to_have_count(0)


def test_f_12_another_person_says_nothing_of_what_waits_in_a_tab(
    worlds: Worlds, visit: Visit
) -> None:
    """Whoever comes after a token has ended: what the former has typed is not sent as his."""
    worlds.chat("others", world="quiet")
    page = there(visit(), "others", "quiet")
    page.route("**/messages", lambda route: route.abort())
    says(page, "of anna")
    expect(page.locator("#pending")).to_contain_text("of anna")
    page.context.clear_cookies()
    page.request.post("/v1/session", data={"token": "bobbob"})
    page.unroute("**/messages")
    page.reload()
    there(page, "others", "quiet")
    expect(page.locator("#me")).to_have_text("bob")
    expect(page.locator("#pending li")).to_have_count(0)
    assert texts(worlds, "others", "quiet") == []


def test_f_23_what_is_said_is_kept_until_it_is_acknowledged_and_said_once(
    worlds: Worlds, visit: Visit
) -> None:
    """The answer is lost, then the page is left: it is sent again under its id."""
    worlds.chat("lost")
    page = there(visit(), "lost")

    def losing(route: Route) -> None:
        route.fetch()
        route.abort()

    page.route("**/messages", losing)
    says(page, "only once")
    expect(talk(page)).to_contain_text("You said: anna: only once")
    page.unroute("**/messages")

    page.route("**/messages", lambda route: route.abort())
    says(page, "not yet heard")
    expect(page.locator("#pending")).to_contain_text("not yet heard")
    page.reload()
    expect(page.locator("#pending")).to_contain_text("not yet heard")
    page.unroute("**/messages")
    page.reload()
    expect(page.locator("#pending li")).to_have_count(0)
    expect(talk(page)).to_contain_text("You said: anna: not yet heard")
    said = [it for it in texts(worlds, "lost") if not it.startswith("You")]
    assert said == ["only once", "not yet heard"]


def test_f_23_what_is_refused_can_be_taken_back(worlds: Worlds, visit: Visit) -> None:
    worlds.chat("long")
    page = there(visit(), "long")
    text = "x" * 300_000
    page.get_by_label("Message").fill(text)
    page.get_by_role("button", name="Send").click()
    expect(page.locator("#pending")).to_contain_text("Refused")
    page.get_by_role("button", name="Take back").click()
    expect(page.get_by_label("Message")).to_have_value(text)
    expect(page.locator("#pending li")).to_have_count(0)


def test_f_94_a_lost_connection_is_seen_and_takes_nothing(
    server: Served, worlds: Worlds, visit: Visit
) -> None:
    """What was typed stays; nothing is decided until it is live; nothing stands twice."""
    worlds.chat("cut")
    page = there(visit(), "cut")
    says(page, "please pay 7")
    on(page.get_by_role("button", name="Approve once"))
    page.get_by_label("reason, told to the model").fill("half a rea")
    for _ in range(3 if DEEP else 1):
        cut(server, page, page.get_by_role("button", name="Approve once"))
    expect(page.get_by_label("reason, told to the model")).to_have_value("half a rea")
    expect(page.get_by_label("reason, told to the model")).to_be_focused()
    expect(talk(page).get_by_text("please pay 7")).to_have_count(1)
    expect(page.locator("article.card")).to_have_count(1)
    press(page, "Approve once")
    expect(talk(page)).to_contain_text("It is paid.")


def test_f_91_hostile_texts_are_words(worlds: Worlds, visit: Visit) -> None:
    """Whoever says them, as whatever: nothing of it becomes an element, or is obeyed."""
    worlds.chat("hostile", world="quiet")
    worlds.say("hostile", "alice", HOSTILE, world="quiet")
    odd: list[Any] = [
        {"kind": HOSTILE, "text": HOSTILE},
        {"kind": "message", "text": {"no": "text"}, "sender": 7, "role": []},
        {"kind": "reply", "to": 3, "by": HOSTILE, "action": HOSTILE, "content": {HOSTILE: HOSTILE}},
        {"kind": "question", "run": 5, "schema": 9, "text": HOSTILE},
        {"kind": "stop", "run": HOSTILE},
        {"kind": "notice", "text": HOSTILE},
        {"kind": "handoff", "role": "agent", "sender": HOSTILE, "text": HOSTILE},
        {},
    ]
    for number, body in enumerate(odd):
        worlds.entered("hostile", f"odd/%zz/{number}", body, world="quiet")
    worlds.entered("hostile", "question/%2", {"kind": "question", "text": "?"}, world="quiet")
    worlds.say("hostile", "alice", "the last one", world="quiet")
    page = there(visit(), "hostile", "quiet")
    expect(talk(page)).to_contain_text("the last one")
    expect(talk(page)).to_contain_text(r"onerror=alert(1)><script>alert(2)</script>\u{202e}gnp")
    assert page.locator("img, #talk script").count() == 0
    for details in page.locator("details").all():
        details.click()
    assert "\u202e" not in page.locator("body").inner_text()
    expect(page.locator("article.card")).to_have_count(0)


def test_f_92_thousands_of_entries_scroll(worlds: Worlds, visit: Visit) -> None:
    """Only the newest stand in the page; older ones come when they are asked for."""
    worlds.chat("many", world="quiet")
    worlds.say("many", "alice", *[f"word {it}" for it in range(3_000)], world="quiet")
    page = there(visit(), "many", "quiet")
    lines = page.locator(".said")
    expect(lines.last).to_contain_text("word 2999")
    expect(lines).to_have_count(200)
    for _ in range(3):
        page.get_by_role("button", name="Earlier").click()
    expect(lines).to_have_count(200)
    expect(lines.first).to_contain_text("word 2500")
    worlds.say("many", "bob", "meanwhile", world="quiet")
    expect(page.locator("#told")).to_have_text("bob: meanwhile")
    expect(lines.first).to_contain_text("word 2500")
    page.get_by_role("button", name="Newest").click()
    expect(lines.last).to_contain_text("meanwhile")
    expect(lines).to_have_count(200)


def test_f_12_who_may_only_look_sees_no_buttons(worlds: Worlds, visit: Visit) -> None:
    worlds.chat("looks", world="quiet")
    worlds.doubts("looks")
    page = there(visit(who="eve"), "looks", "quiet")
    expect(page.locator("article.card")).to_contain_text("You may look")
    expect(page.get_by_label("Message")).to_be_hidden()
    expect(page.locator("article.card button:visible, #members button:visible")).to_have_count(0)


def test_w_70_a_member_is_interrupted_after_one_question(worlds: Worlds, visit: Visit) -> None:
    worlds.chat("stops")
    page = there(visit(), "stops")
    says(page, "please pay 9")
    page.get_by_role("button", name="Interrupt alice").click()
    expect(page.get_by_role("dialog")).to_contain_text("Interrupt alice?")
    page.get_by_role("dialog").get_by_role("button", name="Interrupt").click()
    expect(talk(page)).to_contain_text("pay of alice: denied")
    expect(page.locator("article.card")).to_have_count(0)


def test_f_95_keys_choose_and_decide(worlds: Worlds, visit: Visit) -> None:
    """None acts in a field; Escape never decides."""
    worlds.chat("keys")
    page = there(visit(), "keys")
    before = len(PAID)
    says(page, "please pay 5")
    on(page.get_by_role("button", name="Approve once"))
    page.get_by_label("Message").press("a")
    expect(page.get_by_label("Message")).to_have_value("a")
    page.locator("#talk").focus()
    page.keyboard.press("j")
    expect(page.locator("article.card")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("article.card")).to_have_count(1)
    page.keyboard.press("a")
    expect(talk(page)).to_contain_text("It is paid.")
    assert PAID[before:] == [5]


def test_f_90_the_consoles_header_leads_to_chats_and_back(
    server: Served, worlds: Worlds, visit: Visit
) -> None:
    """Titles stand in the list, and change while one looks."""
    worlds.chat("named", world="quiet")
    page = visit()
    page.get_by_role("link", name="Chats").click()
    expect(page).to_have_url(re.compile(r"/console/worlds(#|$)"))
    page.get_by_role("link", name="named").click()
    expect(page.locator("#run")).to_have_text("named")
    from turnlock.world import World  # noqa: PLC0415 - for this alone

    server.call(World(server.face.journal, "quiet").title("named", "The plan", by="bob"))
    page.reload()
    expect(page.locator("#run")).to_have_text("The plan")
    page.get_by_role("link", name="Runs").click()
    expect(page).to_have_url(re.compile(r"/console/(#|$)"))


def test_who_has_left_a_chat_is_not_led_into_another(worlds: Worlds, visit: Visit) -> None:
    """The first chat is opened for whoever came for none; not again, whatever is heard."""
    worlds.chat("left", world="quiet")
    page = there(visit(), "left", "quiet")
    page.evaluate("location.hash = ''")
    expect(page.locator("#nothing")).to_be_visible()
    worlds.chat("newer", world="quiet")
    expect(page.get_by_role("link", name="newer")).to_be_visible()
    expect(page.locator("#nothing")).to_be_visible()


def _full(worlds: Worlds, chat: str) -> None:
    worlds.chat(chat, world="quiet")
    worlds.say(chat, "alice", "Shall I ship it?", "x" * 30_000, world="quiet")
    worlds.asks(chat, FORM)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_f_97_axe_finds_nothing_in_a_chat(worlds: Worlds, visit: Visit, scheme: str) -> None:
    _full(worlds, f"axe-{scheme}")
    page = there(visit(color_scheme=scheme), f"axe-{scheme}", "quiet")
    expect(page.locator("article.card")).to_be_visible()
    found = [("chat", faults(page))]
    page.keyboard.press("?")
    found.append(("keys", faults(page)))
    page.keyboard.press("Escape")
    page.evaluate("location.hash = ''")
    expect(page.locator("#nothing")).to_be_visible()
    found.append(("list", faults(page)))
    assert [it for it in found if it[1]] == []


@pytest.mark.parametrize(("width", "letters"), [(320, 16), (640, 32), (1100, 16)])
def test_f_97_a_chat_is_usable_at_320_pixels_and_at_200_percent(
    worlds: Worlds, visit: Visit, width: int, letters: int
) -> None:
    """Nothing is beside the page, and every button of a card is within."""
    _full(worlds, f"narrow-{width}")
    page = visit(viewport={"width": width, "height": 600})
    there(page, f"narrow-{width}", "quiet")
    page.evaluate(f"document.documentElement.style.fontSize = '{letters}px'")
    for words in ("Answer", "Decline", "Cancel", "Send"):
        box = page.get_by_role("button", name=words, exact=True).bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
    assert page.evaluate("document.documentElement.scrollWidth") <= width

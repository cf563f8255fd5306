"""The AI SDK's own client, unmodified, on both of its transports (F-112, F-70 … F-75).

Each scenario has a run and an amount of its own, so that it can be seen that its tool has run once.
"""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Callable
from typing import Any, Final

import attrs
import pytest

from .conftest import Drive
from .drivers import Driver
from .served import APP, RUNNER, Clients, secret_of

TRANSPORTS: Final = ("http", "ws")
CARD: Final = "1.c1"
_numbers: Final = itertools.count(1)


@attrs.define
class Tab:
    """One client of one chat."""

    driver: Driver
    name: str
    last: dict[str, Any] = attrs.field(factory=dict[str, Any])

    def play(self, what: str, **given: Any) -> dict[str, Any]:
        """Have it do something; return what it has then."""
        told = self.driver.play(what, chat=self.name, **given).value
        self.last = told or self.last
        return self.last

    def begin(self, what: str, **given: Any) -> None:
        self.driver.play(what, chat=self.name, **given)

    @property
    def messages(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.last["messages"]
        return found

    def card(self, call: str = CARD) -> dict[str, Any]:
        """What it shows of a call."""
        (found,) = [
            part for it in self.messages for part in it["parts"] if part.get("toolCallId") == call
        ]
        return dict(found)

    def data(self, kind: str) -> list[Any]:
        """What came beside its messages, of one type, at the latest step."""
        return [it["data"] for it in self.last["data"] if it["type"] == kind]

    def texts(self) -> list[str]:
        return [part["text"] for it in self.messages for part in it["parts"] if "text" in part]


@attrs.define
class Chat:
    """A run of its own, and the clients that show it."""

    server: Clients
    driver: Driver
    transport: str
    number: int = attrs.field(factory=lambda: next(_numbers))
    tabs: int = 0

    @property
    def run(self) -> str:
        return f"run-{self.number:06}"

    @property
    def amount(self) -> int:
        """What is paid here and nowhere else."""
        return 100_000 + self.number

    @property
    def paid(self) -> int:
        """How often it was."""
        return self.server.did[f"pay {self.amount}"]

    def tab(self, who: str = APP, *, auto: bool = True, messages: Any = None) -> Tab:
        """Open the chat, as a page that has these messages."""
        self.tabs += 1
        tab = Tab(self.driver, f"{self.run}/{self.tabs}")
        given = {"url": self.server.url, "token": secret_of(who), "run": self.run, "auto": auto}
        tab.begin("open", transport=self.transport, **given)
        if messages is not None:
            tab.begin("put", messages=messages)
        return tab

    def asked(self) -> Tab:
        """Open the chat, and have it ask to pay."""
        tab = self.tab()
        tab.play("send", text=f"pay {self.amount}", id="m1")
        return tab

    def plain(self, tab: Tab) -> Any:
        """What a client shows, without what is of this scenario alone."""
        text = json.dumps(tab.messages).replace(self.run, "RUN").replace(str(self.amount), "0")
        digests = {
            part["approval"]["id"]
            for it in tab.messages
            for part in it["parts"]
            if "approval" in part
        }
        for it in digests:
            digest = json.loads(it)[3]
            text = text.replace(digest, "DIGEST")
        return json.loads(text)

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something is so."""
        until = time.monotonic() + 30.0
        while not condition():
            assert time.monotonic() < until
            time.sleep(0.005)


@pytest.fixture(params=TRANSPORTS)
def chat(request: pytest.FixtureRequest, server: Clients, drive: Drive) -> Chat:
    return Chat(server, drive("chat.mjs"), request.param)


def same(chat: Chat) -> Chat:
    """Another run of the same kind."""
    return Chat(chat.server, chat.driver, chat.transport)


def approved(chat: Chat) -> Any:
    """What an uncut turn shows that was approved."""
    other = same(chat)
    tab = other.asked()
    tab.play("answer", call=CARD, approved=True)
    assert other.paid == 1
    return other.plain(tab)


def test_f_112_approve(chat: Chat) -> None:
    tab = chat.asked()

    assert tab.last["status"] == "ready"
    assert tab.card()["state"] == "approval-requested"
    assert chat.paid == 0
    tab.play("answer", call=CARD, approved=True)

    assert (tab.last["status"], tab.last["error"]) == ("ready", None)
    assert [it["id"] for it in tab.messages] == ["m1", "reply/1"]
    assert tab.card()["state"] == "output-available"
    assert tab.card()["output"] == f"paid {chat.amount}"
    assert tab.texts() == [f"pay {chat.amount}", "I will see.", "So pay succeeded."]
    assert chat.paid == 1
    assert tab.last["requests"] == 2
    assert chat.server.facts(chat.run, "TOOL_APPROVED")[0]["decided_by"] == APP


def test_f_112_deny(chat: Chat) -> None:
    tab = chat.asked()
    tab.play("answer", call=CARD, approved=False, reason="too much")

    assert tab.card()["state"] == "output-denied"
    assert tab.card()["approval"]["reason"] == "too much"
    assert tab.texts()[-1] == "So pay denied."
    assert chat.paid == 0
    assert chat.server.facts(chat.run, "TOOL_DENIED")[0]["reason"] == "too much"


def test_f_112_two_questions_are_answered_together(chat: Chat) -> None:
    """The client sends nothing before both are answered; one tool runs, once."""
    tab = chat.tab()
    other = chat.amount + 500_000
    tab.play("send", text=f"pay {chat.amount} pay {other}", id="m1")
    assert [tab.card(it)["state"] for it in ("1.c1", "1.c2")] == ["approval-requested"] * 2
    tab.play("answer", call="1.c1", approved=True)
    assert (tab.last["requests"], chat.paid) == (1, 0)
    tab.play("answer", call="1.c2", approved=False)

    assert tab.card("1.c1")["state"] == "output-available"
    assert tab.card("1.c2")["state"] == "output-denied"
    assert tab.texts()[-1] == "So pay succeeded, pay denied."
    assert (chat.paid, chat.server.did[f"pay {other}"]) == (1, 0)
    assert tab.last["requests"] == 2


def test_f_73_an_answer_is_sent_by_hand_while_another_question_waits(chat: Chat) -> None:
    """The other card stays as it is, and the stream ends at it again."""
    tab = chat.tab()
    other = chat.amount + 500_000
    tab.play("send", text=f"pay {chat.amount} pay {other}", id="m1")
    tab.play("answer", call="1.c2", approved=True)
    tab.play("submit")

    assert tab.last["status"] == "ready"
    assert tab.card("1.c1")["state"] == "approval-requested"
    assert tab.card("1.c2")["state"] == "output-available"
    tab.play("answer", call="1.c1", approved=True)
    assert tab.card("1.c1")["state"] == "output-available"
    assert (chat.paid, chat.server.did[f"pay {other}"]) == (1, 1)


def test_f_112_a_duplicate_holds_and_is_no_refusal(chat: Chat) -> None:
    """A second tab has the cards as they were, and answers as the first one has."""
    tab = chat.tab()
    tab.play("send", text=f"pay {chat.amount} pay 7", id="m1")
    other = chat.tab(messages=tab.messages)
    for it in (tab, other):
        it.play("answer", call=CARD, approved=True)
        it.play("submit")

    assert other.data("data-turnlock-refused") == []
    assert other.messages == tab.messages
    assert (tab.card("1.c1")["state"], tab.card("1.c2")["state"]) == (
        "output-available",
        "approval-requested",
    )
    assert chat.paid == 1


def test_f_112_a_late_duplicate_is_told_what_became_of_it(chat: Chat) -> None:
    """Its turn is closed; what it says was decided, and so it is no refusal."""
    tab = chat.asked()
    late = chat.tab(messages=tab.messages)
    tab.play("answer", call=CARD, approved=True)
    late.play("answer", call=CARD, approved=True)

    assert chat.plain(late) == chat.plain(tab)
    assert late.data("data-turnlock-refused") == []
    assert chat.paid == 1


def test_f_112_a_flipped_duplicate_is_refused_and_shown_what_is_true(chat: Chat) -> None:
    tab = chat.asked()
    late = chat.tab(messages=tab.messages)
    tab.play("answer", call=CARD, approved=True)
    late.play("answer", call=CARD, approved=False, reason="no, do not")

    (refused,) = late.data("data-turnlock-refused")
    assert refused["reason"] == "late"
    assert refused["approvalId"] == tab.card()["approval"]["id"]
    assert refused["call"]["decision"]["approved"] is True
    assert chat.plain(late) == chat.plain(tab)
    assert chat.paid == 1


def test_f_112_what_was_decided_elsewhere_is_shown(chat: Chat) -> None:
    """By a person at a console, whose reason stands on the card once the client looks again."""
    tab = chat.asked()
    (call,) = chat.server.calls(chat.run)
    assert chat.server.decide(chat.run, call, approved=False, reason="not now").is_success
    assert tab.card()["state"] == "approval-requested"
    tab.play("resume")

    assert tab.card()["state"] == "output-denied"
    assert tab.card()["approval"]["approved"] is False
    assert tab.card()["approval"]["reason"] == "not now"
    assert tab.texts()[-1] == "So pay denied."
    assert chat.paid == 0


def test_f_112_an_answer_after_it_was_decided_elsewhere_is_refused(chat: Chat) -> None:
    """The card does not stay approved."""
    tab = chat.asked()
    (call,) = chat.server.calls(chat.run)
    assert chat.server.decide(chat.run, call, approved=False, reason="not now").is_success
    tab.play("answer", call=CARD, approved=True)

    (refused,) = tab.data("data-turnlock-refused")
    assert refused["call"]["decision"]["by"] == "anna"
    assert tab.card()["state"] == "output-denied"
    assert tab.card()["approval"]["approved"] is False
    assert chat.paid == 0


def test_f_112_an_abandoned_question_waits_and_holds_up_what_is_said_after_it(chat: Chat) -> None:
    """F-25: the next prompt waits. Its stream ends, since a person has the word."""
    tab = chat.asked()
    tab.play("send", text="hello", id="m2")

    assert tab.last["status"] == "ready"
    assert [it["id"] for it in tab.messages] == ["m1", "reply/1", "m2"]
    assert tab.card()["state"] == "approval-requested"
    tab.play("answer", call=CARD, approved=True)
    tab.play("submit")
    assert tab.card()["state"] == "output-available"
    tab.play("resume")

    assert [it["id"] for it in tab.messages] == ["m1", "reply/1", "m2", "reply/2"]
    assert tab.texts()[-2:] == ["hello", "You said: hello"]
    assert chat.paid == 1


def test_f_112_a_second_turn_with_the_same_provider_ids_is_another(chat: Chat) -> None:
    tab = chat.asked()
    tab.play("answer", call=CARD, approved=True)
    tab.play("send", text=f"pay {chat.amount + 500_000}", id="m2")
    tab.play("answer", call="2.c1", approved=True)

    assert [it["id"] for it in tab.messages] == ["m1", "reply/1", "m2", "reply/2"]
    assert tab.card("1.c1")["output"] == f"paid {chat.amount}"
    assert tab.card("2.c1")["output"] == f"paid {chat.amount + 500_000}"
    assert (chat.paid, chat.server.did[f"pay {chat.amount + 500_000}"]) == (1, 1)


HOW: Final = ("network error", "terminated")
"""What browsers and Node say when a connection breaks: the client takes them differently."""


DEEP: Final = os.environ.get("TURNLOCK_CRASHES") == "deep"
STEP: Final = {"resume": 1, "submit": 1 if DEEP else 4}
"""How far apart cuts are: the way that the client has for it is tried at each event always."""
WAYS: Final = [("http", "resume"), ("ws", "resume"), ("http", "submit")]
"""By hand it is the same request on either transport."""


def cut_once(chat: Chat, events: int, after: str, *, at: int) -> tuple[Chat, Tab, bool]:
    """Cut a stream after so many events, at the prompt (0) or the decision (1), and ask again."""
    cut = same(chat)
    tab = cut.tab()

    def ask(number: int, what: str, **given: Any) -> bool:
        tab.begin("cuts", after=events if number == at else None, how=HOW[events % 2])
        tab.play(what, **given)
        if tab.last["status"] == "ready":
            return False
        assert tab.last["events"] == events
        tab.begin("cuts", after=None)
        tab.play(after)
        assert (tab.last["status"], tab.last["error"]) == ("ready", None)
        return True

    was_cut = ask(0, "send", text=f"pay {cut.amount}", id="m1")
    assert tab.card()["state"] == "approval-requested"
    return cut, tab, ask(1, "answer", call=CARD, approved=True) or was_cut


@pytest.mark.parametrize(("chat", "after"), WAYS, indirect=["chat"])
@pytest.mark.parametrize("at", [0, 1])
def test_f_112_each_request_is_cut_after_every_event(chat: Chat, at: int, after: str) -> None:
    """The client comes again with what it has, by either of its ways (F-74).

    The second request has the decision: it has counted, whatever was heard of it.
    """
    whole, events = approved(chat), 0
    for events in itertools.count(0, STEP[after]):
        cut, tab, was_cut = cut_once(chat, events, after, at=at)
        assert cut.plain(tab) == whole, events
        assert cut.paid == 1
        if not was_cut:
            break
    assert events >= 8


def test_f_112_negative_control_a_client_that_was_cut_and_does_not_ask_again(chat: Chat) -> None:
    """What the two tests above find."""
    tab = chat.tab()
    tab.begin("cuts", after=4)
    tab.play("send", text=f"pay {chat.amount}", id="m1")

    assert tab.last["events"] == 4
    assert chat.plain(tab) != approved(chat)


def test_f_71_a_second_tab_has_the_same_messages(chat: Chat) -> None:
    tab = chat.asked()
    tab.play("answer", call=CARD, approved=True)
    other = chat.tab()
    other.play("resume")

    assert other.messages == tab.messages[1:]


def test_f_74_there_is_nothing_to_resume_where_nothing_was_said(chat: Chat) -> None:
    tab = chat.tab()
    tab.play("resume")

    assert (tab.last["status"], tab.messages, tab.last["error"]) == ("ready", [], None)


def test_f_71_to_ask_anew_runs_nothing_anew(chat: Chat) -> None:
    """The same prompt is answered with the same reply."""
    tab = chat.asked()
    tab.play("answer", call=CARD, approved=True)
    before = tab.messages
    tab.play("regenerate")

    assert tab.messages == before
    assert chat.paid == 1


def test_f_11_an_answer_of_one_who_may_not_decide_does_not_count(chat: Chat) -> None:
    """An agent's own client cannot approve what it asked for; its card goes back."""
    tab = chat.tab(RUNNER)
    tab.play("send", text=f"pay {chat.amount}", id="m1")
    tab.play("answer", call=CARD, approved=True)

    (refused,) = tab.data("data-turnlock-refused")
    assert refused["reason"] == "forbidden"
    assert tab.card()["state"] == "approval-requested"
    assert (tab.last["status"], tab.last["requests"], chat.paid) == ("ready", 2, 0)


def test_a_tool_that_fails_is_shown_with_its_error(chat: Chat) -> None:
    tab = chat.tab()
    tab.play("send", text="fail", id="m1")

    assert tab.card()["state"] == "output-error"
    assert "it broke" in tab.card()["errorText"]
    assert tab.texts()[-1] == "So fail failed."

"""AG-UI: calls of which nobody knows what became, and what is said of them (F-64, K-35)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from turnlock import Claim, Decide
from turnlock.adapters.contract import CommandRefused
from turnlock.models.deliveries import Delivery, Lose
from turnlock.models.values import arguments_digest

from ..fronts import Ledger, Served
from ..runs import approval, free, gated, opened_turn, shared
from .agui_page import Event, Page
from .agui_played import answering, played
from .test_agui_answers import refusals

TO: dict[str, Any] = {"turn_id": "t", "invocation_id": "a"}
LOST = opened_turn(free("a")), Claim(**TO, attempt=1, worker="w"), Lose(**TO)
DOUBT = '["r","t","a",null,1]'


async def in_doubt(it: Served, *more: Delivery) -> Page:
    """Return a page of a run whose call is in doubt: another program began it, and died."""
    await shared(it.journal, *(more or LOST))
    page = Page("r")
    await page.run(it.client())
    assert page.over == "interrupt"
    return page


def said(name: str = DOUBT, **payload: Any) -> list[Event]:
    """An answer to one question."""
    return [{"interruptId": name, "status": "resolved", "payload": payload}]


def test_f_64_a_doubt_is_asked_with_its_attempt(tmp_path: Path) -> None:
    """F-66: its id says which attempt, so what is said of one never settles the next."""

    async def play(it: Served, _: Ledger, __: Page) -> None:
        page = await in_doubt(it)
        (asked,) = page.interrupts
        assert (asked["id"], asked["reason"]) == (DOUBT, "in_doubt")
        assert asked["toolCallId"] == "1.a"
        assert asked["responseSchema"]["required"] == ["resolution"]
        assert asked["metadata"]["turnlock"]["type"] == "EXECUTION_IN_DOUBT"
        assert "expiresAt" not in asked

    played(tmp_path, play, answering("A"))


@pytest.mark.parametrize(
    ("payload", "end"),
    [
        ({"resolution": "result", "result": {"sent": 1}}, {"sent": 1}),
        ({"resolution": "result", "result": None}, None),
        ({"resolution": "error", "error": "never arrived"}, {"error": "never arrived"}),
    ],
)
def test_f_65_what_became_of_a_call_is_what_is_said(
    tmp_path: Path, payload: Event, end: Any
) -> None:
    """The call has ended by it, and the stream says so; said again it changes nothing."""

    async def play(it: Served, _: Ledger, __: Page) -> None:
        page = await in_doubt(it)
        await page.run(it.client(), said(**payload))
        assert (page.over, refusals(page)) == ("success", [])
        (shown,) = [m["content"] for m in page.messages if m["role"] == "tool"]
        assert json.loads(shown) == end
        before = page.messages
        await page.run(it.client(), said(**payload))
        assert page.messages == before

    played(tmp_path, play, answering("A"))


def test_f_65_what_is_said_of_one_attempt_settles_no_other(tmp_path: Path) -> None:
    """It runs again, and is lost again: the answer to the first question is refused."""

    async def play(it: Served, _: Ledger, __: Page) -> None:
        page = await in_doubt(it)
        await page.run(it.client(), said(resolution="retry"), cut=1)
        again = Claim(**TO, attempt=2, worker="w"), Lose(**TO)
        await shared(it.journal, *again)
        await page.run(it.client(), said(resolution="result", result="sent"))
        assert (page.over, refusals(page)) == ("interrupt", [(DOUBT, "stale_attempt")])
        assert [i["id"] for i in page.interrupts] == [DOUBT.replace(",1]", ",2]")]
        assert [m for m in page.messages if m["role"] == "tool"] == []

    played(tmp_path, play, answering("A"))


@pytest.mark.parametrize("payload", [{"approved": True}, {"resolution": "result", "result": 1}])
def test_f_65_an_answer_to_the_other_kind_of_question_decides_nothing(
    tmp_path: Path, payload: Event
) -> None:
    """Nobody approves what is in doubt, or says what became of what has not run."""

    async def play(it: Served, _: Ledger, __: Page) -> None:
        digest = arguments_digest({"amount": 12})
        asked = f'["r","t","b","{digest}"]'
        turn = opened_turn(free("a"), gated("b")), *LOST[1:]
        page = await in_doubt(it, *turn)
        assert {i["id"] for i in page.interrupts} == {asked, DOUBT}
        name = DOUBT if "approved" in payload else asked
        await page.run(it.client(), said(name, **payload))
        assert (page.over, refusals(page)) == ("interrupt", [(name, "invalid_value")])

    played(tmp_path, play, answering("A"))


def test_f_64_a_call_that_was_asked_about_and_is_in_doubt_keeps_its_digest(tmp_path: Path) -> None:
    """Its id differs from that of its approval: a page that knows both tells them apart."""

    async def play(it: Served, _: Ledger, __: Page) -> None:
        approve = Decide(**approval(gated("a")))
        page = await in_doubt(it, opened_turn(gated("a")), approve, *LOST[1:])
        digest = arguments_digest({"amount": 12})
        assert [i["id"] for i in page.interrupts] == [f'["r","t","a","{digest}",1]']

    played(tmp_path, play, answering("A"))


@pytest.mark.parametrize("code", ["in_doubt", "limit_reached"])
def test_f_65_a_prompt_before_a_doubt_is_not_taken_and_the_doubt_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    """It is said why, and the page may say it again once somebody knows (S-83).

    The negative control is another refusal: of that the request is told.
    """

    async def refuses(*_: Any, **__: Any) -> None:
        raise CommandRefused(code, "one call is in doubt")

    monkeypatch.setattr("turnlock.server.clients.agui.say", refuses)

    async def play(it: Served, _: Ledger, page: Page) -> None:
        page.thread_id = "r"
        await shared(it.journal, *LOST)
        page.say("go on", "m1")
        if code != "in_doubt":
            answer = await it.client().post("/v1/agui", json=page.asks())
            assert (answer.status_code, answer.json()["title"]) == (429, code)
            return
        await page.run(it.client())
        assert (page.over, [i["id"] for i in page.interrupts]) == ("interrupt", [DOUBT])
        (told,) = [e["value"] for e in page.named("PROMPT_REFUSED")]
        assert (told["messageId"], told["reason"]) == ("m1", "in_doubt")

    played(tmp_path, play, answering("A"))

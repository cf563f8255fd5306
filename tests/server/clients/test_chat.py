"""`useChat` over HTTP: what its client is sent, and what its answers bring (F-70 … F-75)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from turnlock.agent.loop import Agent
from turnlock.server.clients.approval_ids import ApprovalId

from ...agent.speakers import asked, speech
from ..fronts import Ledger, Served, paying, serving, speaking
from .chat_page import ChatPage

PAY = asked("pay", call_id="c1", amount=12)
LOOK = asked("look", call_id="c2")

Play = Callable[[Served, Ledger], Awaitable[None]]


def played(folder: Path, play: Play, agent: Callable[[Ledger], Agent] | None = None) -> None:
    """Play against a server of one agent, which pays unless another is given."""

    async def playing() -> None:
        ledger = Ledger()
        made = paying(ledger, PAY) if agent is None else agent(ledger)
        async with serving(folder, made) as it:
            await play(it, ledger)

    asyncio.run(playing())


async def asked_to_pay(it: Served, chat: str = "c", who: str = "all") -> ChatPage:
    """A page whose card asks."""
    page = ChatPage(chat)
    page.say("pay", "m1")
    await page.post(it.client(who))
    assert page.card()["state"] == "approval-requested"
    return page


def test_f_72_f_73_the_chunks_of_a_question_and_of_its_answer(tmp_path: Path) -> None:
    """The whole of both streams; the answer of this client is not told to it."""

    async def play(it: Served, ledger: Ledger) -> None:
        page = await asked_to_pay(it)
        said = [kind for kind in page.kinds() if kind != "text-delta"]
        assert said == [
            *("start", "start-step", "text-start", "text-end"),
            *("tool-input-available", "tool-approval-request", "finish-step", "finish"),
        ]
        assert page.chunks[0] == {"type": "start", "messageId": "reply/1"}
        assert page.chunks[-1] == {"type": "finish", "finishReason": "tool-calls"}
        (card,) = [it for it in page.chunks if it["type"] == "tool-input-available"]
        assert card == {
            "type": "tool-input-available",
            "toolCallId": "1.c1",
            "toolName": "pay",
            "input": {"amount": 12},
            "dynamic": True,
        }
        asked_for = ApprovalId.read(page.card()["approval"]["id"])
        assert asked_for is not None
        assert (asked_for.run_id, asked_for.turn_id, asked_for.invocation_id) == ("c", "t1", "c1")
        assert ledger.paid == []

        page.answer("1.c1", approved=True)
        await page.post(it.client())
        said = [kind for kind in page.kinds() if kind != "text-delta"]
        assert said == [
            *("start", "tool-output-available", "start-step", "text-start", "text-end"),
            *("finish-step", "finish"),
        ]
        assert page.chunks[-1] == {"type": "finish", "finishReason": "stop"}
        assert page.card()["output"] == "paid 12"
        assert [part.get("text") for part in page.messages[1]["parts"]] == [
            *(None, "I pay now.", None, None, "All is done.")
        ]
        assert ledger.paid == [12]

    played(tmp_path, play)


def test_f_72_a_decision_of_somebody_else_is_told(tmp_path: Path) -> None:
    async def play(it: Served, ledger: Ledger) -> None:
        page = await asked_to_pay(it)
        await deny(it, "bob", reason="no")
        await page.post(it.client())  # it goes on with its card as it was

        assert page.kinds()[:3] == ["start", "tool-approval-response", "tool-output-denied"]
        assert page.card()["approval"]["reason"] == "no"
        assert ledger.paid == []

    played(tmp_path, play)


def test_f_72_a_decision_of_this_client_is_not_told_to_it(tmp_path: Path) -> None:
    """Nor is a reason that it has not given."""

    async def play(it: Served, ledger: Ledger) -> None:
        page = await asked_to_pay(it)
        page.answer("1.c1", approved=False)
        await page.post(it.client())
        other = ChatPage()
        await other.resume(it.client())

        assert page.kinds()[:2] == ["start", "tool-output-denied"]
        assert "reason" not in page.card()["approval"]
        assert other.messages == page.messages[1:]

    played(tmp_path, play)


async def deny(it: Served, who: str, *, reason: str | None = None, chat: str = "c") -> None:
    body = {"turn_id": "t1", "invocation_id": "c1", "approved": False, "reason": reason}
    answer = await it.client(who).post(f"/v1/runs/{chat}/decisions", json=body)
    assert answer.status_code == 200, answer.text


def test_f_70_facts_are_sent_as_they_are_and_do_not_stay(tmp_path: Path) -> None:
    """The envelopes of the journal, transient; of those before a prompt none."""

    async def play(it: Served, ledger: Ledger) -> None:
        page = await asked_to_pay(it)
        told = page.data("data-turnlock")
        listed = await it.client().get("/v1/runs/c/events?limit=100")
        facts = [event for event in listed.json()["events"] if "fact" in event]

        assert told == facts
        assert all(it.get("transient") for it in page.chunks if it["type"].startswith("data"))
        page.answer("1.c1", approved=False)
        await page.post(it.client())
        told = [it["fact"]["type"] for it in page.data("data-turnlock")]
        assert told[:2] == ["TOOL_DENIED", "TURN_SETTLED"]

    played(tmp_path, play)


def test_f_71_the_reply_to_the_nth_prompt_is_reply_n_for_ever(tmp_path: Path) -> None:
    async def play(it: Served, ledger: Ledger) -> None:
        page = ChatPage()
        for number in (1, 2):
            page.say(f"say {number}", f"m{number}")
            await page.post(it.client())
        names = [it["id"] for it in page.messages]
        assert names == ["m1", "reply/1", "m2", "reply/2"]
        other = ChatPage()
        await other.resume(it.client())
        assert other.messages == [page.messages[-1]]
        again = ChatPage(messages=page.messages[:3])
        await again.post(it.client())
        assert again.messages == page.messages
        notes = [it.note for it in await it.journal.notes("c")]
        said = [note.body["message_id"] for note in notes if note.kind == "user"]
        assert said == ["m1", "m2"]

    played(tmp_path, play, lambda ledger: speaking(ledger, speech("Yes.")))


def test_f_71_a_prompt_said_again_with_another_text_is_refused(tmp_path: Path) -> None:
    """F-23: 409, and nothing is said."""

    async def play(it: Served, ledger: Ledger) -> None:
        page = await asked_to_pay(it)
        page.messages = []
        page.say("pay me", "m1")
        answer = await it.client().post("/v1/chat", json=page.body())

        assert (answer.status_code, answer.json()["title"]) == (409, "conflicting_duplicate")
        assert answer.headers["content-type"] == "application/problem+json"

    played(tmp_path, play)


def test_f_71_an_unknown_chat_is_made_by_who_may_with_the_agent_that_is_named(
    tmp_path: Path,
) -> None:
    async def play() -> None:
        ledger = Ledger()
        other = speaking(ledger, speech("I am the other."))
        async with serving(tmp_path, paying(ledger, PAY), others={"other": other}) as it:
            page = ChatPage("new")
            page.say("hello", "m1")
            for who in ("looker", "bob"):
                answer = await it.client(who).post("/v1/chat", json=page.body())
                assert (answer.status_code, answer.json()["title"]) == (403, "forbidden")
            assert (await it.client().get("/v1/runs/new")).status_code == 404
            await page.post(it.client("asker"), path="?agent=other")
            assert page.messages[1]["parts"][1]["text"] == "I am the other."

    asyncio.run(play())


def test_f_71_what_is_no_chat_is_not_found_and_what_is_no_message_is_named(tmp_path: Path) -> None:
    async def play(it: Served, ledger: Ledger) -> None:
        client = it.client()
        reply: dict[str, Any] = {"id": "reply/1", "role": "assistant", "parts": []}
        image = {"type": "file", "mediaType": "image/png", "url": "data:,"}
        cases: list[tuple[Any, int, str, str | None]] = [
            ([reply], 404, "unknown_run", None),
            ([], 404, "unknown_run", None),
            ([user({"type": "text", "text": "x"}, id=7)], 422, "invalid_value", "messages[0].id"),
            ([user(image)], 422, "invalid_value", "messages[0].parts"),
            ([user()], 422, "invalid_value", "messages[0].parts"),
            ("no list", 422, "invalid_value", "messages"),
        ]
        for messages, status, code, at in cases:
            answer = await client.post("/v1/chat", json={"id": "c", "messages": messages})
            told = answer.json()
            assert (answer.status_code, told["title"], told.get("at")) == (status, code, at)
        assert (await client.get("/v1/runs/c")).status_code == 404

    played(tmp_path, play)


def user(*parts: Any, **more: Any) -> dict[str, Any]:
    return {"id": "m1", "role": "user", "parts": list(parts), **more}


def test_f_73_the_stream_waits_for_the_calls_beside_a_question(tmp_path: Path) -> None:
    """The client sends no answer while one of its cards runs: it is not left with one."""

    async def play(it: Served, ledger: Ledger) -> None:
        page = await asked_to_pay(it)

        assert page.card("1.c2")["state"] == "output-available"
        assert page.card("1.c2")["output"] == {"balance": 100}
        assert page.kinds()[-1] == "finish"

    played(tmp_path, play, lambda ledger: paying(ledger, PAY, LOOK))


@pytest.mark.parametrize(
    ("shown", "reason"),
    [
        ('["c","t1","c1","' + "0" * 64 + '"]', "arguments_mismatch"),
        ('["other","t1","c1","' + "0" * 64 + '"]', "run_mismatch"),
        ('["c","t9","c1","' + "0" * 64 + '"]', "turn_mismatch"),
        ("no id", "invalid_value"),
        ("[]", "invalid_value"),
    ],
)
def test_f_73_an_answer_to_what_was_not_shown_is_refused_and_the_card_put_right(
    tmp_path: Path, shown: str, reason: str
) -> None:
    async def play(it: Served, ledger: Ledger) -> None:
        page = await asked_to_pay(it)
        true = page.card()["approval"]["id"]
        page.answer("1.c1", approved=True)
        page.card()["approval"]["id"] = shown
        await page.post(it.client())

        (refused,) = page.data("data-turnlock-refused")
        assert (refused["approvalId"], refused["reason"]) == (shown, reason)
        assert page.card()["state"] == "approval-requested"
        assert page.card()["approval"] == {"id": true}
        assert page.chunks[-1]["finishReason"] == "tool-calls"
        assert ledger.paid == []

    played(tmp_path, play)


def test_f_73_a_card_never_stays_in_a_state_that_is_not_so(tmp_path: Path) -> None:
    """Whatever a page claims of it: it is told anew, or put right by its id."""

    async def play(it: Served, ledger: Ledger) -> None:
        page = await asked_to_pay(it)
        true = json.loads(json.dumps(page.messages))
        for claim in (
            {"state": "output-available", "output": "paid 12"},
            {"state": "output-denied", "approval": {"id": "x", "approved": False}},
            {"state": "input-available", "input": {"amount": 1}},
            {"toolCallId": "9.c9"},
            {"toolName": "look", "state": "input-streaming"},
            {"approval": None},
        ):
            page.messages = json.loads(json.dumps(true))
            page.messages[1]["parts"][2].update(claim)
            await page.post(it.client())
            assert page.messages == true, claim
        page.messages = [true[0], {**true[1], "parts": true[1]["parts"][1:]}]
        await page.post(it.client())
        assert page.messages == true
        assert ledger.paid == []

    played(tmp_path, play)


def test_f_75_edited_arguments_and_scopes_cannot_be_said(tmp_path: Path) -> None:
    """What a page adds to a card is let be; it counts for nothing."""

    async def play(it: Served, ledger: Ledger) -> None:
        page = await asked_to_pay(it)
        page.answer("1.c1", approved=True)
        page.card()["input"] = {"amount": 1}
        page.card()["approval"].update(arguments={"amount": 1}, scope="session")
        await page.post(it.client())

        assert ledger.paid == [12]
        (fact,) = [it for it in await it.facts("c") if it.type == "TOOL_APPROVED"]
        assert (fact.scope, fact.arguments) == ("once", None)
        assert page.card()["input"] == {"amount": 12}

    played(tmp_path, play)


def test_f_75_what_was_edited_elsewhere_is_what_the_card_shows(tmp_path: Path) -> None:
    async def play(it: Served, ledger: Ledger) -> None:
        page = await asked_to_pay(it)
        asked_for = ApprovalId.read(page.card()["approval"]["id"])
        assert asked_for is not None
        body: dict[str, Any] = {
            "turn_id": "t1",
            "invocation_id": "c1",
            "approved": True,
            "arguments": {"amount": 9},
        }
        body["arguments_digest"] = asked_for.arguments_digest
        answer = await it.client("bob").post("/v1/runs/c/decisions", json=body)
        assert answer.status_code == 200, answer.text
        await page.post(it.client())
        again = ChatPage()
        await again.resume(it.client())

        assert page.card()["input"] == {"amount": 9}
        assert again.messages == page.messages[1:]
        assert ledger.paid == [9]

    played(tmp_path, play)


def test_f_74_the_latest_reply_is_replayed_from_its_start_wherever_it_is(tmp_path: Path) -> None:
    async def play(it: Served, ledger: Ledger) -> None:
        empty = ChatPage()
        assert await empty.resume(it.client("looker")) is None
        page = await asked_to_pay(it)
        for _ in range(2):
            other = ChatPage()
            await other.resume(it.client("looker"))
            assert other.messages == page.messages[1:]
        page.answer("1.c1", approved=True)
        await page.post(it.client())
        other = ChatPage()
        await other.resume(it.client("looker"))
        assert other.messages == page.messages[1:]
        told = [event["fact"]["sequence"] for event in other.data("data-turnlock")]
        assert told == [*range(1, len(told) + 1)]
        assert len(told) >= 6  # what is kept after the last word may be told, or not

    played(tmp_path, play)


def test_f_74_a_run_that_is_made_and_was_told_nothing_has_no_reply(tmp_path: Path) -> None:
    async def play(it: Served, ledger: Ledger) -> None:
        await it.client().post("/v1/runs", json={"run_id": "c"})

        assert await ChatPage().resume(it.client()) is None

    played(tmp_path, play)


def test_what_is_interrupted_ends_so_and_nothing_is_sent_by_itself(tmp_path: Path) -> None:
    """The client sends no answers of a message that was interrupted."""

    async def play(it: Served, ledger: Ledger) -> None:
        page = await asked_to_pay(it)
        assert (await it.client().post("/v1/runs/c/interrupt", json={})).status_code == 200
        await page.post(it.client())

        assert page.card()["state"] == "output-denied"
        assert page.card()["approval"]["approved"] is False
        assert page.chunks[-1] == {"type": "finish", "finishReason": "interrupted"}
        assert ledger.paid == []

    played(tmp_path, play)


def test_a_stopping_server_begins_nothing_new(tmp_path: Path) -> None:
    async def play(it: Served, ledger: Ledger) -> None:
        page = await asked_to_pay(it)
        page.answer("1.c1", approved=True)
        it.face.standing.is_stopping = True
        answer = await it.client().post("/v1/chat", json=page.body())

        assert (answer.status_code, answer.json()["title"]) == (503, "shutting_down")
        assert ledger.paid == []

    played(tmp_path, play)

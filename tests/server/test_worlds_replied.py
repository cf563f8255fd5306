"""Replies to what tools ask in a chat: the first stands, whoever gave it, and however (W-67)."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from turnlock.models.deliveries import Claim, Decide
from turnlock.models.values import arguments_digest
from turnlock.runtime.submitting import SharedRun
from turnlock.world.entries import Question, body_of
from turnlock.world.names import question_id

from .worlded import CHAT, Served, pays, served
from .worlds_ways import WAYS, Way, commanding

BY = pytest.mark.parametrize("way", WAYS)
FORM: dict[str, Any] = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}, "why": {"type": "string"}},
    "required": ["ok"],
}


async def asks(it: Served, *, chat: str = "plan", form: Any = FORM, number: int = 1) -> str:
    """Have a tool of alice, which runs, ask something; returns the question's id."""
    run_id = f"demo/{chat}/alice"
    at: Any = {"run": run_id, "turn": "t1", "invocation": "c1", "attempt": 1}
    question = Question(**at, server="mail", text="May I?", schema=form)
    name = question_id(run_id, "t1", "c1", 1, number)
    await it.journal.append_entry(f"demo/{chat}", name, body_of(question), at=it.world.now())
    return name


async def running(it: Served) -> None:
    """Have the call of alice run."""
    run_id = await it.waits(pays())
    named: Any = {"run_id": run_id, "turn_id": "t1", "invocation_id": "c1"}
    digest = arguments_digest({"amount": 12})
    writer = await SharedRun.open(it.journal, run_id, policies={})
    await writer.submit(
        Decide(**named, approved=True, decided_by="ada", arguments_digest=digest),
        Claim(**named, attempt=1),
    )


@BY
def test_w_67_the_first_reply_stands(way: Way) -> None:
    """The same again is 200; another is told whose stands; and it is shown as open until then."""

    async def play() -> None:
        async with served() as it:
            await it.made("alice")
            await running(it)
            name = await asks(it)
            (open_one,) = (await it.as_("eve").get(CHAT)).json()["questions"]
            assert open_one.items() >= {
                "id": name, "server": "mail", "text": "May I?", "schema": FORM,
                "run_id": "demo/plan/alice",
            }.items()  # fmt: skip
            accept = {"question_id": name, "action": "accept", "content": {"ok": True}}
            async with commanding(it, way) as ada, commanding(it, way, "ben") as ben:
                status, told = await ada.command("reply", accept)
                assert (status, told["new"], told["late"]) == (201, True, False)
                assert told["reply"] == {"action": "accept", "content": {"ok": True}, "by": "ada"}
                again, same = await ada.command("reply", accept)
                assert (again, same) == (200, {**told, "new": False})
                for who, body in (
                    (ben, accept),
                    (ada, {**accept, "content": {"ok": False}}),
                    (ada, {"question_id": name, "action": "decline"}),
                    (ben, {"question_id": name, "action": "cancel"}),
                ):
                    status, other = await who.command("reply", body)
                    assert (status, other["title"]) == (409, "already_decided")
                    assert other["reply"] == told["reply"]
            assert (await it.ada.get(CHAT)).json()["questions"] == []

    asyncio.run(play())


@BY
def test_w_67_of_many_replies_at_once_one_stands(way: Way) -> None:
    async def play() -> None:
        async with served() as it:
            await it.made("alice")
            await running(it)
            name = await asks(it)
            async with commanding(it, way) as ada, commanding(it, way, "ben") as ben:
                answers = await asyncio.gather(
                    *(
                        who.command("reply", {"question_id": name, "action": action})
                        for who in (ada, ben)
                        for action in ("decline", "cancel") * 3
                    )
                )
            statuses = Counter(status for status, _ in answers)
            assert statuses == {201: 1, 200: 2, 409: 9}
            stands = {(told["reply"]["by"], told["reply"]["action"]) for _, told in answers}
            assert len(stands) == 1

    asyncio.run(play())


@BY
@pytest.mark.parametrize(
    ("body", "at"),
    [
        ({"action": "accept", "content": {"ok": "yes"}}, "ok"),
        ({"action": "accept", "content": {"no": True}}, "no"),
        ({"action": "accept"}, "arguments"),
        ({"action": "decline", "content": {"ok": True}}, "content"),
        ({"action": "approve"}, "action"),
        ({"action": "accept", "content": {"ok": True}, "by": "ben"}, "by"),
        ({"action": "accept", "content": [True]}, "content"),
    ],
)
def test_w_67_what_the_form_does_not_take_is_refused(way: Way, body: Any, at: str) -> None:
    async def play() -> None:
        async with served() as it:
            await it.made("alice")
            await running(it)
            name = await asks(it)
            async with commanding(it, way) as ada:
                status, told = await ada.command("reply", {"question_id": name, **body})
                assert status == 422, told
                assert at in told["at"]
                assert len(await it.journal.entries("demo/plan")) == 1
                right = {"question_id": name, "action": "accept", "content": {"ok": True}}
                assert (await ada.command("reply", right))[0] == 201, "the negative control"

    asyncio.run(play())


@BY
def test_a_question_of_elsewhere_or_of_nobody_is_not_replied_to(way: Way) -> None:
    """Of another chat, never asked, no question's id; and a secret is given to no form."""

    async def play() -> None:
        async with served() as it:
            world = await it.made("alice")
            await world.open_chat("other")
            await running(it)
            elsewhere = await asks(it, chat="other")
            none = question_id("demo/plan/alice", "t1", "c1", 1, 9)
            secret = {"type": "object", "properties": {"password": {"type": "string"}}}
            hidden = await asks(it, form=secret, number=2)
            async with commanding(it, way) as ada:
                for name in (elsewhere, none):
                    body = {"question_id": name, "action": "decline"}
                    status, told = await ada.command("reply", body)
                    assert (status, told["title"]) == (404, "unknown_invocation")
                for text in ("", "mail", none.replace("question", "reply"), "question/a/b"):
                    body = {"question_id": text, "action": "decline"}
                    assert (await ada.command("reply", body))[0] == 422, text
                told_all = {"question_id": hidden, "action": "accept", "content": {"password": "x"}}
                status, told = await ada.command("reply", told_all)
                assert status == 422
                assert "x" not in str(told.get("detail", "")).split()
            logs = [*await it.journal.entries("demo/plan"), *await it.journal.entries("demo/other")]
            assert len(logs) == 2, "the questions alone"

    asyncio.run(play())


@BY
def test_w_67_a_reply_whose_call_is_gone_is_told_to_be_late(way: Way) -> None:
    """Section 12: it is kept, nobody heeds it, and who gave it is told."""

    async def play() -> None:
        async with served() as it:
            await it.made("alice")
            name = await asks(it)  # of a call that nobody knows
            async with commanding(it, way) as ada:
                body = {"question_id": name, "action": "decline"}
                status, told = await ada.command("reply", body)
            assert (status, told["late"]) == (201, True)

    asyncio.run(play())

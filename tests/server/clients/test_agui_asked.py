"""AG-UI: who may ask, and what is said to the run (F-60)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from turnlock.models.errors import UnknownRun

from ..fronts import Ledger, Served
from .agui_page import Page
from .agui_played import answering, played

# F-60: who asks, and what.


def test_f_60_the_last_unknown_message_of_a_person_is_the_prompt(tmp_path: Path) -> None:
    """It is said once, however often it is sent; `runId` is echoed and means nothing else."""

    async def play(it: Served, _: Ledger, page: Page) -> None:
        page.say("one", "m1")
        for _again in range(2):
            await page.run(it.client())
            assert page.over == "success"
        page.say("two", "m2")
        await page.run(it.client())
        told = [(m["id"], m["content"]) for m in page.messages]
        assert told == [("m1", "one"), ("said/2", "A"), ("m2", "two"), ("said/4", "B")]
        await page.run(it.client("looker"))  # nothing new: whoever may look follows
        assert page.named("TEXT_MESSAGE_START") == []
        notes = [n.note.id for n in await it.journal.notes("t")]
        assert [n for n in notes if n and n.startswith("waiting/")] == ["waiting/m1", "waiting/m2"]

    played(tmp_path, play, answering("A", "B"))


def test_f_60_without_a_prompt_it_follows_what_goes_on(tmp_path: Path) -> None:
    """Two tabs: the second sees what the first has begun, to its end."""

    async def play(it: Served, _: Ledger, page: Page) -> None:
        page.say("pay", "m1")
        await page.run(it.client())
        other = Page()
        following = asyncio.create_task(other.run(it.client("looker"), []))
        await following
        assert other.over == "interrupt"
        assert other.messages == page.messages
        await asyncio.gather(
            page.run(it.client(), page.answers(approved=True)), _until_over(other, it)
        )
        assert other.messages == page.messages

    played(tmp_path, play)


async def _until_over(page: Page, it: Served) -> None:
    while page.over == "interrupt":
        await page.run(it.client("looker"))


@pytest.mark.parametrize(("name", "status"), [("asker", 200), ("bob", 403), ("looker", 403)])
def test_f_60_a_thread_that_is_not_known_is_made_by_who_may(
    tmp_path: Path, name: str, status: int
) -> None:
    """It needs `run`, with a prompt or without; a prompt needs it, too (F-11)."""

    async def play(it: Served, _: Ledger, page: Page) -> None:
        for new in (Page("new"), Page("newer", messages=[_user("hi", "m1")])):
            answer = await it.client(name).post("/v1/agui", json=new.asks())
            assert answer.status_code == status
            if status != 200:
                assert answer.json()["title"] == "forbidden"
                with pytest.raises(UnknownRun):
                    await it.journal.entry(new.thread_id)
        page.thread_id = "known"
        page.say("one", "m1")
        await page.run(it.client("asker"))
        page.say("two", "m2")
        answer = await it.client(name).post("/v1/agui", json=page.asks())
        assert answer.status_code == status

    played(tmp_path, play, answering("A", "B"))


def _user(content: Any, message_id: str) -> dict[str, Any]:
    return {"id": message_id, "role": "user", "content": content}


def test_f_60_its_agent_is_the_default_or_the_one_that_is_named(tmp_path: Path) -> None:
    """Of a run that is known it stays what it is."""

    async def play(it: Served, _: Ledger, __: Page) -> None:
        client = it.client()
        for thread, query, said in (
            ("a", "", "default"),
            ("b", "?agent=other", "other"),
            ("b", "?agent=payer", "other"),
            ("c", "?agent=nobody", None),
        ):
            page = Page(thread, messages=[_user("hi", f"m{query}")])
            answer = await client.post(f"/v1/agui{query}", json=page.asks())
            if said is None:
                assert (answer.status_code, answer.json()["at"]) == (422, "agent")
            else:
                assert f'"delta":"{said}"' in answer.text.replace(" again", "")

    others = {"other": answering("other", "other again")}
    played(tmp_path, play, answering("default"), others=others)


def test_f_60_what_an_answer_follows_is_said_no_more(tmp_path: Path) -> None:
    """A page that comes with the past of another server repeats none of it: tools would run."""

    async def play(it: Served, ledger: Ledger, page: Page) -> None:
        page.say("pay", "m1")
        page.messages.append({"id": "x", "role": "assistant", "content": "Paid."})
        await page.run(it.client())
        assert page.over == "success"
        assert ledger.paid == []
        assert await it.facts("t") == []
        page.say("pay", "m2")  # the negative control
        await page.run(it.client())
        assert page.over == "interrupt"

    played(tmp_path, play)


CONTENTS: list[tuple[Any, str | None]] = [
    ("plain", "plain"),
    ([{"type": "text", "text": "in "}, {"type": "text", "text": "parts"}], "in parts"),
    ([{"type": "text", "text": "a"}, {"type": "image", "source": {}}], None),
    ([{"type": "text"}], None),
    (["text"], None),
    ({"type": "text", "text": "x"}, None),
    (None, None),
    (7, None),
]


@pytest.mark.parametrize(("content", "told"), CONTENTS)
def test_f_60_agents_are_told_text(tmp_path: Path, content: Any, told: str | None) -> None:
    """What cannot be told is refused, and never left out in silence."""

    async def play(it: Served, _: Ledger, page: Page) -> None:
        page.messages.append(_user(content, "m1"))
        answer = await it.client().post("/v1/agui", json=page.asks())
        if told is None:
            assert answer.status_code == 422
            assert answer.json()["at"].startswith("messages[0].content")
        notes = {n.note.id: n.note.body.get("text") for n in await it.journal.notes("t")}
        assert notes.get("said/1") == told

    played(tmp_path, play, answering("A"))


@pytest.mark.parametrize(
    ("message", "at"),
    [
        ({"role": "user", "content": "x"}, "messages[0].id"),
        ({"id": 7, "role": "user", "content": "x"}, "messages[0].id"),
        ({"id": "m", "content": "x"}, "messages[0].role"),
        ({"id": "said/2", "role": "user", "content": "x"}, "messages[0].id"),
        ({"id": "result/1.c", "role": "user", "content": "x"}, "messages[0].id"),
        ({"id": "", "role": "user", "content": "x"}, "message_id"),
        ({"id": "m" * 129, "role": "user", "content": "x"}, "message_id"),
        ("x", "messages[0]"),
    ],
)
def test_f_60_a_message_that_is_none_is_refused(tmp_path: Path, message: Any, at: str) -> None:
    """With its place; an answer's id in a prompt would have two messages be one."""

    async def play(it: Served, _: Ledger, page: Page) -> None:
        page.messages.append(message)
        answer = await it.client().post("/v1/agui", json=page.asks())
        assert (answer.status_code, answer.json()["at"]) == (422, at)

    played(tmp_path, play, answering("A"))


def test_f_60_the_same_id_with_another_text_is_a_conflict(tmp_path: Path) -> None:
    """F-23: what was edited on the page is not what was said."""

    async def play(it: Served, _: Ledger, page: Page) -> None:
        page.say("pay", "m1")
        await page.run(it.client())
        page.messages = [_user("pay nothing", "m1")]
        answer = await it.client().post("/v1/agui", json=page.asks())
        assert (answer.status_code, answer.json()["title"]) == (409, "conflicting_duplicate")

    played(tmp_path, play)


BODIES: list[tuple[Any, str]] = [
    ({"runId": "x", "messages": []}, "threadId"),
    ({"threadId": "", "runId": "x", "messages": []}, "threadId"),
    ({"threadId": "t", "messages": []}, "runId"),
    ({"threadId": "t", "runId": "x"}, "messages"),
    ({"threadId": "t", "runId": "x", "messages": [], "resume": [{}]}, "resume[0].interruptId"),
    (
        {
            "threadId": "t",
            "runId": "x",
            "messages": [],
            "resume": [{"interruptId": "i", "status": "maybe"}],
        },
        "resume[0].status",
    ),
]


@pytest.mark.parametrize(("body", "at"), BODIES)
def test_f_60_a_body_that_is_none_is_refused(tmp_path: Path, body: Any, at: str) -> None:
    """Unknown fields are let be (F-3); known ones are as strict as elsewhere."""

    async def play(it: Served, _: Ledger, __: Page) -> None:
        answer = await it.client().post("/v1/agui", json={**body, "unknown": {"x": 1}})
        assert (answer.status_code, answer.json()["at"]) == (422, at)

    played(tmp_path, play, answering("A"))


def test_f_60_a_body_may_have_16_mib(tmp_path: Path) -> None:
    """F-3: a page sends all its messages; more than that is 413."""

    async def play(it: Served, _: Ledger, page: Page) -> None:
        page.messages.append({"id": "s", "role": "system", "content": "x" * (2 * 1024 * 1024)})
        page.say("hi", "m1")
        await page.run(it.client())
        assert page.over == "success"
        page.messages[0]["content"] = "x" * (16 * 1024 * 1024)
        answer = await it.client().post("/v1/agui", json=page.asks())
        assert answer.status_code == 413

    played(tmp_path, play, answering("A"))

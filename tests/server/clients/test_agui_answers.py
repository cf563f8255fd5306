"""AG-UI: what a client's answers bring, and what is true where they bring nothing (F-65, F-11)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from turnlock.models.values import arguments_digest

from ...agent.speakers import asked
from ..fronts import Ledger, Served, paying
from .agui_page import Event, Page
from .agui_played import played

DIGEST = arguments_digest({"amount": 12})
PAY = asked("pay", call_id="c", amount=12)
ASKED = f'["t","t1","c","{DIGEST}"]'


def payer() -> tuple[Ledger, Any]:
    """An agent that asks to pay once for each prompt."""
    ledger = Ledger()
    return ledger, paying(ledger, PAY)


async def at_question(it: Served, page: Page) -> None:
    """Have the page stand before the question."""
    page.say("pay", "m1")
    await page.run(it.client())
    assert [i["id"] for i in page.interrupts] == [ASKED]


def resolved(name: str = ASKED, **payload: Any) -> list[Event]:
    """An answer to one question."""
    return [{"interruptId": name, "status": "resolved", "payload": payload}]


def cancelled(name: str = ASKED) -> list[Event]:
    """An answer that says nothing."""
    return [{"interruptId": name, "status": "cancelled"}]


def refusals(page: Page) -> list[tuple[str, str]]:
    """What was refused, and why."""
    told = [e["value"] for e in page.named("DELIVERY_REFUSED")]
    return [(it["interruptId"], it["reason"]) for it in told]


def decisions(facts: list[Any]) -> list[str]:
    """What was decided."""
    return [it.type.value for it in facts if it.type.value in {"TOOL_APPROVED", "TOOL_DENIED"}]


@pytest.mark.parametrize(
    ("payload", "paid", "told"),
    [
        ({"approved": True}, [12], "paid 12"),
        ({"approved": True, "arguments": {"amount": 7}}, [7], "paid 7"),
        ({"approved": True, "scope": "turn", "reason": "fine"}, [12], "paid 12"),
        ({"approved": True, "arguments": None, "scope": None, "more": 1}, [12], "paid 12"),
        ({"approved": False}, [], None),
        ({"approved": False, "reason": "too dear"}, [], "too dear"),
    ],
)
def test_f_65_an_answer_is_a_decision(
    tmp_path: Path, payload: Event, paid: list[int], told: str | None
) -> None:
    """By the name of the token (F-12), with the digest of what was shown (F-20)."""
    ledger, agent = payer()

    async def play(it: Served, _: Ledger, page: Page) -> None:
        await at_question(it, page)
        await page.run(it.client(), resolved(**payload))
        assert (page.over, refusals(page)) == ("success", [])
        decided = [
            f for f in await it.facts("t") if f.type.value in ("TOOL_APPROVED", "TOOL_DENIED")
        ]
        assert [f.decided_by for f in decided] == ["all"]
        (end,) = [m["content"] for m in page.messages if m["role"] == "tool"]
        assert told is None or told in end

    played(tmp_path, play, agent, ledger)
    assert ledger.paid == paid


@pytest.mark.parametrize(("scope", "over"), [("session", "success"), ("once", "interrupt")])
def test_f_65_a_scope_reaches_as_far_as_it_says(tmp_path: Path, scope: str, over: str) -> None:
    """For the session: the second prompt asks nobody; once, the negative control, asks again."""
    ledger, agent = payer()

    async def play(it: Served, _: Ledger, page: Page) -> None:
        await at_question(it, page)
        await page.run(it.client(), resolved(approved=True, scope=scope))
        page.say("again", "m2")
        await page.run(it.client())
        assert page.over == over

    played(tmp_path, play, agent, ledger)


@pytest.mark.parametrize(
    "resume",
    [
        [],
        cancelled(),
        resolved(),
        resolved(approved="true"),
        resolved(approved=1),
        resolved(approved=None),
        resolved(approved=True, reason=7),
        resolved(approved=True, arguments=[1]),
        resolved(approved=True, arguments="{}"),
        resolved(approved=True, scope="for ever"),
        resolved(approved=True, scope=["turn"]),
        resolved(approved=False, arguments={"amount": 1}),
        [{"interruptId": ASKED, "status": "resolved", "payload": "yes"}],
        [{"interruptId": ASKED, "status": "resolved", "payload": None}],
        [{"interruptId": ASKED, "status": "resolved", "payload": [True]}],
        [{"interruptId": ASKED, "status": "cancelled", "payload": {"approved": True}}],
        resolved(resolution="yes"),
        resolved(resolution=["retry"]),
        resolved(resolution="result"),
        resolved(resolution="error"),
        resolved(resolution="error", error=7),
    ],
)
def test_f_65_what_does_not_fit_decides_nothing(tmp_path: Path, resume: list[Event]) -> None:
    """The stream ends with the same question; it needs no role to say nothing."""
    ledger, agent = payer()

    async def play(it: Served, _: Ledger, page: Page) -> None:
        await at_question(it, page)
        before = page.interrupts
        await page.run(it.client("looker"), resume)
        assert (page.over, page.interrupts, refusals(page)) == ("interrupt", before, [])
        assert decisions(await it.facts("t")) == []

    played(tmp_path, play, agent, ledger)
    assert ledger.paid == []


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "invalid_value"),
        ("c", "invalid_value"),
        ('["t","t1","c"]', "invalid_value"),
        (f'["t", "t1", "c", "{DIGEST}"]', "invalid_value"),
        (f'["t","t1","c","{DIGEST}",1]', "invalid_value"),
        (f'["other","t1","c","{DIGEST}"]', "run_mismatch"),
        (f'["T","t1","c","{DIGEST}"]', "run_mismatch"),
        (f'["t","t2","c","{DIGEST}"]', "turn_mismatch"),
        (f'["t","t1","d","{DIGEST}"]', "unknown_invocation"),
        ('["t","t1","c","' + "0" * 64 + '"]', "arguments_mismatch"),
    ],
)
def test_f_65_a_foreign_or_malformed_answer_decides_nothing(
    tmp_path: Path, name: str, reason: str
) -> None:
    """It is told why, and then what is true: the question stands as it did."""
    ledger, agent = payer()

    async def play(it: Served, _: Ledger, page: Page) -> None:
        other = Page("other", messages=[{"id": "m1", "role": "user", "content": "pay"}])
        await other.run(it.client())
        await at_question(it, page)
        await page.run(it.client(), resolved(name, approved=True))
        assert (page.over, refusals(page)) == ("interrupt", [(name, reason)])
        assert [i["id"] for i in page.interrupts] == [ASKED]
        assert decisions([*await it.facts("t"), *await it.facts("other")]) == []

    played(tmp_path, play, agent, ledger)
    assert ledger.paid == []


def test_f_65_an_answer_about_other_arguments_says_what_would_run(tmp_path: Path) -> None:
    """F-22: `call` has the arguments and their digest."""
    ledger, agent = payer()

    async def play(it: Served, _: Ledger, page: Page) -> None:
        await at_question(it, page)
        await page.run(it.client(), resolved(ASKED.replace(DIGEST, "0" * 64), approved=True))
        (told,) = [e["value"]["call"] for e in page.named("DELIVERY_REFUSED")]
        assert (told["arguments"], told["arguments_digest"]) == ({"amount": 12}, DIGEST)

    played(tmp_path, play, agent, ledger)


@pytest.mark.parametrize("approved", [True, False])
def test_f_65_an_answer_twice_is_one(tmp_path: Path, *, approved: bool) -> None:
    """In one request and in two at once: what was asked for holds, so nothing is refused."""
    ledger, agent = payer()

    async def play(it: Served, _: Ledger, page: Page) -> None:
        await at_question(it, page)
        await page.run(it.client(), resolved(approved=approved) * 2)
        assert (page.over, refusals(page)) == ("success", [])
        assert decisions(await it.facts("t")) == ["TOOL_APPROVED" if approved else "TOOL_DENIED"]

    played(tmp_path, play, agent, ledger)
    assert ledger.paid == [12] * approved


@pytest.mark.parametrize("approved", [True, False])
def test_f_65_a_flipped_answer_changes_nothing(tmp_path: Path, *, approved: bool) -> None:
    """The first holds; the second is told who decided what."""
    ledger, agent = payer()

    async def play(it: Served, _: Ledger, page: Page) -> None:
        await at_question(it, page)
        await page.run(it.client(), resolved(approved=approved) + resolved(approved=not approved))
        assert page.over == "success"
        ((name, reason),) = refusals(page)
        assert name == ASKED
        assert reason in {"already_decided", "already_started", "already_settled", "late"}
        (told,) = [e["value"]["call"] for e in page.named("DELIVERY_REFUSED")]
        assert (told["decision"]["approved"], told["decision"]["by"]) == (approved, "all")
        assert decisions(await it.facts("t")) == ["TOOL_APPROVED" if approved else "TOOL_DENIED"]

    played(tmp_path, play, agent, ledger)
    assert ledger.paid == [12] * approved


@pytest.mark.parametrize("approved", [True, False])
def test_f_65_a_late_answer_is_told_who_was_first(tmp_path: Path, *, approved: bool) -> None:
    """Somebody has decided elsewhere, and the turn is over: the page sees what came of it."""
    ledger, agent = payer()

    async def play(it: Served, _: Ledger, page: Page) -> None:
        await at_question(it, page)
        body: Event = {"turn_id": "t1", "invocation_id": "c", "approved": approved}
        if approved:
            body["arguments_digest"] = DIGEST
        elsewhere = await it.client("bob").post("/v1/runs/t/decisions", json=body)
        assert elsewhere.status_code == httpx.codes.OK
        other = Page()
        await other.run(it.client("looker"))
        await page.run(it.client(), resolved(approved=not approved))
        assert page.over == "success"
        assert [reason for _, reason in refusals(page)] in (["late"], ["already_settled"])
        (told,) = [e["value"]["call"] for e in page.named("DELIVERY_REFUSED")]
        assert told["decision"]["by"] == "bob"
        assert page.messages == other.messages

    played(tmp_path, play, agent, ledger)
    assert ledger.paid == [12] * approved


@pytest.mark.parametrize("name", ["asker", "looker"])
def test_f_11_a_client_without_the_role_decides_nothing(tmp_path: Path, name: str) -> None:
    """The agent's own above all; nor is the prompt said that came with the answer."""
    ledger, agent = payer()

    async def play(it: Served, _: Ledger, page: Page) -> None:
        await at_question(it, page)
        page.say("more", "m2")
        body = page.asks(resolved(approved=True))
        answer = await it.client(name).post("/v1/agui", json=body)
        assert (answer.status_code, answer.json()["title"]) == (403, "forbidden")
        assert decisions(await it.facts("t")) == []
        assert "waiting/m2" not in {n.note.id for n in await it.journal.notes("t")}

    played(tmp_path, play, agent, ledger)
    assert ledger.paid == []


def test_f_11_a_client_without_run_decides_and_says_nothing_new(tmp_path: Path) -> None:
    """The other way around: a prompt in the same request has the whole of it refused."""
    ledger, agent = payer()

    async def play(it: Served, _: Ledger, page: Page) -> None:
        await at_question(it, page)
        said = page.messages
        page.messages = [*said, {"id": "m2", "role": "user", "content": "more"}]
        body = page.asks(resolved(approved=True))
        answer = await it.client("bob").post("/v1/agui", json=body)
        assert answer.status_code == httpx.codes.FORBIDDEN
        assert decisions(await it.facts("t")) == []
        page.messages = said
        await page.run(it.client("bob"), resolved(approved=True))
        assert page.over == "success"

    played(tmp_path, play, agent, ledger)
    assert ledger.paid == [12]


def test_f_65_a_prompt_may_come_with_an_answer(tmp_path: Path) -> None:
    """It waits until the turn is over (F-25), and is answered in the same stream."""
    ledger, agent = payer()

    async def play(it: Served, _: Ledger, page: Page) -> None:
        await at_question(it, page)
        page.say("again", "m2")
        await page.run(it.client(), resolved(approved=True))
        assert (page.over, ledger.paid) == ("interrupt", [12])
        assert [i["toolCallId"] for i in page.interrupts] == ["2.c"]

    played(tmp_path, play, agent, ledger)


def test_f_65_one_of_two_answers_leaves_the_other_question(tmp_path: Path) -> None:
    """What was cancelled is asked again, alone."""
    ledger = Ledger()
    agent = paying(ledger, asked("pay", call_id="a", amount=1), asked("pay", call_id="b", amount=2))

    async def play(it: Served, _: Ledger, page: Page) -> None:
        page.say("pay", "m1")
        await page.run(it.client())
        first, second = page.interrupts
        await page.run(it.client(), resolved(first["id"], approved=True) + cancelled(second["id"]))
        assert page.over == "interrupt"
        assert [i["id"] for i in page.interrupts] == [second["id"]]
        await page.run(it.client(), resolved(second["id"], approved=False))
        assert page.over == "success"
        ends = {m["toolCallId"]: m["content"] for m in page.messages if m["role"] == "tool"}
        assert ends["1.a"] == "paid 1"
        assert "denied" in json.loads(ends["1.b"])

    played(tmp_path, play, agent, ledger)
    assert ledger.paid == [1]

"""AG-UI: what is told, what is asked, and how a stream ends (F-61 … F-64)."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from turnlock.agent.errors import ModelError
from turnlock.agent.loop import Agent
from turnlock.models.values import arguments_digest
from turnlock.runtime.tools.calling import ToolContext
from turnlock.runtime.tools.tool import tool

from ...agent.speakers import Pause, Piece, Speaker, asked, by_answers, speech
from ..fronts import Ledger, Served, paying
from .agui_page import Page
from .agui_played import LOOK, PAY, answering, played

# F-61: what it is told of messages and calls; test_agui_translator.py has the rest.


def test_f_61_a_prompt_a_question_and_its_answer(tmp_path: Path) -> None:
    """From the first word to the last, as the client's reducer keeps it."""

    async def play(it: Served, ledger: Ledger, page: Page) -> None:
        page.say("pay", "m1")
        await page.run(it.client())
        assert (page.over, ledger.paid) == ("interrupt", [])
        await page.run(it.client(), page.answers(approved=True))
        assert page.over == "success"
        assert page.messages == [
            {"id": "m1", "role": "user", "content": "pay"},
            {
                "id": "said/2",
                "role": "assistant",
                "content": "I pay now.",
                "toolCalls": [
                    _call("1.c%2E1", "pay", '{"amount":12}'),
                    _call("1.c2", "look", "{}"),
                ],
            },
            _result("1.c2", '{"balance":100}'),
            _result("1.c%2E1", "paid 12"),
            {"id": "said/3", "role": "assistant", "content": "All is done."},
        ]

    assert played(tmp_path, play).paid == [12]


def _call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function}


def _result(call_id: str, content: str) -> dict[str, Any]:
    return {"id": f"result/{call_id}", "toolCallId": call_id, "role": "tool", "content": content}


def test_f_61_text_is_told_while_it_is_spoken(tmp_path: Path) -> None:
    """The first word is there before the last one is said."""

    async def play(it: Served, _: Ledger, page: Page) -> None:
        page.say("hi", "m1")
        await page.run(it.client())
        deltas = [e["delta"] for e in page.named("TEXT_MESSAGE_CONTENT")]
        assert "".join(deltas) == "one two three four"
        assert len(deltas) > 1
        assert page.messages[-1]["content"] == "one two three four"

    model = Speaker([_slowly("one two three four")])
    played(tmp_path, play, Agent(model=model))


def _slowly(text: str) -> list[Piece]:
    return [it for piece in speech(text) for it in (Pause(0.05), piece)]


# F-62: the facts.


def test_f_62_each_fact_is_told_once_and_the_cursor_is_left(tmp_path: Path) -> None:
    """As it was kept, with its id and cursor; the second stream goes on behind the first."""

    async def play(it: Served, _: Ledger, page: Page) -> None:
        page.state = {"mine": 1}
        page.say("pay", "m1")
        first = await page.run(it.client())
        assert page.state["turnlock"] == {"cursor": "4"}
        second = await page.run(it.client(), page.answers(approved=True))
        assert page.state["mine"] == 1
        while (await it.journal.entry("t")).sequence < 9:  # noqa: ASYNC110 - the model's answer is taken last
            await asyncio.sleep(0.01)
        third = await page.run(it.client())
        told = [e for e in (*first, *second, *third) if e["type"] == "CUSTOM"]
        answer = await it.client().get("/v1/runs/t/events?limit=100")
        kept = [e for e in answer.json()["events"] if "fact" in e]
        assert [e["value"] for e in told] == [e["fact"] for e in kept]
        assert [e["name"] for e in told] == [e["fact"]["type"] for e in kept]
        about = ("event_id", "cursor", "correlation")
        assert [e["metadata"]["turnlock"] for e in told] == [
            {name: e[name] for name in about} for e in kept
        ]
        again = await page.run(it.client())
        assert [e for e in again if e["type"] == "CUSTOM"] == []

    played(tmp_path, play)


@pytest.mark.parametrize(
    "state",
    [
        None,
        {},
        {"turnlock": None},
        {"turnlock": {"cursor": 4}},
        {"turnlock": {"cursor": "-1"}},
        {"turnlock": {"cursor": "999"}},
        {"turnlock": "4"},
    ],
)
def test_f_62_a_cursor_that_is_none_is_before_the_first(tmp_path: Path, state: Any) -> None:
    """So is one that is ahead of the run: nothing is left out because of it."""

    async def play(it: Served, _: Ledger, page: Page) -> None:
        page.say("pay", "m1")
        await page.run(it.client())
        page.state = state
        body = page.asks()
        answer = await it.client().post("/v1/agui", json=body)
        assert answer.text.count('"type":"CUSTOM"') == 4
        assert '"path":"/turnlock","value":{"cursor":"4"}' in answer.text

    played(tmp_path, play)


@pytest.mark.parametrize("state", [[], "text", 7, True])
def test_f_62_a_state_that_is_no_object_is_let_be(tmp_path: Path, state: Any) -> None:
    """A patch would fail there, and a snapshot would overwrite what is the page's."""

    async def play(it: Served, _: Ledger, page: Page) -> None:
        page.state = state
        page.say("hi", "m1")
        await page.run(it.client())
        assert page.over == "success"
        assert page.named("STATE_DELTA") == []

    played(tmp_path, play, answering("A"))


# F-63: how it ends.


def test_f_63_it_is_interrupted_once_every_other_call_has_ended(tmp_path: Path) -> None:
    """And says it at once then: all others are told before."""

    async def play(it: Served, _: Ledger, page: Page) -> None:
        page.say("pay", "m1")
        began = asyncio.get_running_loop().time()
        await page.run(it.client())
        kinds = [e["type"] for e in page.events]
        assert kinds[-3:] == ["TOOL_CALL_RESULT", "STATE_DELTA", "RUN_FINISHED"]
        assert page.over == "interrupt"
        assert asyncio.get_running_loop().time() - began < 1.9

    played(tmp_path, play)


def test_f_63_or_two_seconds_after_the_first_question(tmp_path: Path) -> None:
    """A call that runs for long holds nobody up; its end comes with the next stream."""
    gate = asyncio.Event()
    ledger = Ledger()

    @tool
    async def wait() -> str:
        """Wait."""
        await gate.wait()
        return "waited"

    async def play(it: Served, _: Ledger, page: Page) -> None:
        page.say("pay", "m1")
        await page.run(it.client())
        assert page.over == "interrupt"
        assert page.named("TOOL_CALL_RESULT") == []
        (asked,) = page.interrupts
        assert asked["toolCallId"] == "1.c.1".replace("c.1", "c%2E1")
        gate.set()
        await page.run(it.client(), page.answers(approved=False))
        results = {e["toolCallId"]: e["content"] for e in page.named("TOOL_CALL_RESULT")}
        assert results["1.w"] == "waited"
        assert json.loads(results["1.c%2E1"])["denied"]

    both = speech("I do.", PAY, asked("wait", call_id="w"))
    model = Speaker([both, speech("Done.")], which=by_answers)
    played(tmp_path, play, Agent(model=model, tools=[*ledger.tools(), wait]))


def test_f_63_a_turn_that_was_interrupted_is_cancelled(tmp_path: Path) -> None:
    """In the stream that follows it, and in every one that asks afterwards."""

    async def play(it: Served, ledger: Ledger, page: Page) -> None:
        page.say("pay", "m1")
        await page.run(it.client())
        stopped = await it.client().post("/v1/runs/t/interrupt", json={"reason": "enough"})
        assert stopped.status_code == 200
        await page.run(it.client(), page.answers(approved=True))
        assert page.over == "cancelled"
        assert page.named("DELIVERY_REFUSED")
        await page.run(it.client())
        assert page.over == "cancelled"
        assert ledger.paid == []

    played(tmp_path, play)


def test_f_63_a_limit_ends_it_with_its_code(tmp_path: Path) -> None:
    """What does not go on by itself is said, and not waited for."""

    async def play(it: Served, _: Ledger, page: Page) -> None:
        page.say("pay", "m1")
        await page.run(it.client())
        assert page.over == "limit_reached"
        assert len([e for e in page.events if e["type"].startswith("RUN_")]) == 2
        await page.run(it.client())
        assert page.over == "limit_reached"

    model = Speaker([speech("Look.", asked("look", call_id="c"))])
    agent = Agent(model=model, tools=Ledger().tools(), answer_limit=2)
    played(tmp_path, play, agent)


def test_f_63_a_model_that_fails_for_good_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it is tried again the stream waits; when nothing more comes it says so."""
    monkeypatch.setattr("turnlock.server.clients.following.RESTARTS", 0.5)

    async def play(it: Served, _: Ledger, page: Page) -> None:
        page.say("hi", "m1")
        await page.run(it.client())
        assert page.over == "runtime_unavailable"

    played(tmp_path, play, Agent(model=Speaker([[ModelError("it is not there")]])))


def test_f_63_a_model_that_is_asked_again_goes_on(tmp_path: Path) -> None:
    """The negative control: one that fails once has not ended anything."""

    async def play(it: Served, _: Ledger, page: Page) -> None:
        page.say("hi", "m1")
        await page.run(it.client())
        assert page.over == "success"
        assert page.messages[-1]["content"] == "There."

    model = Speaker([[ModelError("not yet")], speech("There.")])
    played(tmp_path, play, Agent(model=model))


def test_f_63_a_server_that_stops_ends_it(tmp_path: Path) -> None:
    """With one end, as always: the client asks the next one."""
    began, gate = asyncio.Event(), asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        began.set()
        await gate.wait()
        return "waited"

    async def play(it: Served, _: Ledger, page: Page) -> None:
        page.say("wait", "m1")
        running = asyncio.create_task(page.run(it.client()))
        await began.wait()
        await asyncio.sleep(0.1)
        it.face.hub.close()
        await running
        assert page.over == "shutting_down"
        gate.set()

    model = Speaker([speech("I wait.", asked("wait", call_id="w")), speech("Done.")])
    played(tmp_path, play, Agent(model=model, tools=[wait]))


# F-64: what is asked.


def test_f_64_an_interrupt_says_what_was_shown(tmp_path: Path) -> None:
    """Id, call, words, schema, and the fact itself."""

    async def play(it: Served, _: Ledger, page: Page) -> None:
        page.say("pay", "m1")
        await page.run(it.client())
        (asked,) = page.interrupts
        digest = arguments_digest({"amount": 12})
        assert asked["id"] == f'["t","t1","c.1","{digest}"]'
        assert asked["reason"] == "tool_approval"
        assert asked["toolCallId"] == "1.c%2E1"
        assert "pay" in asked["message"]
        assert "expiresAt" not in asked
        assert asked["responseSchema"]["required"] == ["approved"]
        assert set(asked["responseSchema"]["properties"]) == {
            "approved", "reason", "arguments", "scope"
        }  # fmt: skip
        fact = asked["metadata"]["turnlock"]
        assert (fact["type"], fact["arguments_digest"]) == ("TOOL_APPROVAL_REQUESTED", digest)

    played(tmp_path, play)


def test_f_64_its_deadline_is_a_moment_in_utc(tmp_path: Path) -> None:
    """Once it is over the call is denied, and the stream says so."""

    @tool(approval=True, approval_timeout=600.0)
    async def slow(context: ToolContext) -> str:
        """Ask for ten minutes."""
        return context.run_id

    async def play(it: Served, _: Ledger, page: Page) -> None:
        page.say("slow", "m1")
        await page.run(it.client())
        (asked,) = page.interrupts
        deadline = asked["metadata"]["turnlock"]["deadline"]
        told = datetime.fromisoformat(asked["expiresAt"])
        assert abs(told.timestamp() - deadline) < 0.002

    model = Speaker([speech("I ask.", asked("slow", call_id="s")), speech("Done.")])
    played(tmp_path, play, Agent(model=model, tools=[slow]))


def test_f_64_two_questions_are_asked_together(tmp_path: Path) -> None:
    """In the order of the calls; answered together, each runs once."""

    async def play(it: Served, ledger: Ledger, page: Page) -> None:
        page.say("pay", "m1")
        await page.run(it.client())
        assert [i["toolCallId"] for i in page.interrupts] == ["1.a", "1.b"]
        await page.run(it.client(), page.answers(approved=True))
        assert page.over == "success"
        assert sorted(ledger.paid) == [1, 2]

    ledger = Ledger()
    twice = asked("pay", call_id="a", amount=1), asked("pay", call_id="b", amount=2)
    played(tmp_path, play, paying(ledger, *twice), ledger)


def test_f_61_the_same_provider_ids_again_are_other_calls(tmp_path: Path) -> None:
    """F-32: the second turn's call has an id of its own, and its own end."""

    async def play(it: Served, ledger: Ledger, page: Page) -> None:
        for number in (1, 2):
            page.say("pay", f"m{number}")
            await page.run(it.client())
            await page.run(it.client(), page.answers(approved=True))
            assert page.over == "success"
        ids = [c["id"] for m in page.messages for c in m.get("toolCalls", ())]
        assert ids == ["1.c%2E1", "1.c2", "2.c%2E1", "2.c2"]
        ended = [m["toolCallId"] for m in page.messages if m["role"] == "tool"]
        assert sorted(ended) == ids
        assert ledger.paid == [12, 12]

    played(tmp_path, play)


def test_f_61_calls_that_begin_while_the_model_speaks_are_its_messages(tmp_path: Path) -> None:
    """W-58: they come before their answer is whole, and belong to it all the same."""

    async def play(it: Served, ledger: Ledger, page: Page) -> None:
        page.say("look", "m1")
        await page.run(it.client())
        assert page.over == "success"
        (answer,) = [m for m in page.messages if m.get("toolCalls")]
        assert answer["id"] == "said/2"
        assert answer["content"] == "I look."
        assert ledger.done.total() == 1

    ledger = Ledger()
    model = Speaker([speech("I look.", LOOK), speech("Done.")], which=by_answers)
    agent = Agent(model=model, tools=ledger.tools(), start="early")
    played(tmp_path, play, agent, ledger)


def test_f_61_what_a_call_came_to_is_text_or_json(tmp_path: Path) -> None:
    """A text as it is, null too; an error and a denial say which they are."""

    @tool
    async def nothing() -> None:
        """Return nothing."""

    @tool
    async def broken() -> str:
        """Raise."""
        raise RuntimeError("it broke")

    async def play(it: Served, _: Ledger, page: Page) -> None:
        page.say("go", "m1")
        await page.run(it.client())
        await page.run(it.client(), page.answers(approved=False, reason="too dear"))
        ends = {m["toolCallId"]: m["content"] for m in page.messages if m["role"] == "tool"}
        assert ends["1.n"] == "null"
        assert "it broke" in json.loads(ends["1.b"])["error"]
        assert json.loads(ends["1.p"]) == {"denied": "too dear"}

    calls = asked("nothing", call_id="n"), asked("broken", call_id="b"), asked(
        "pay", call_id="p", amount=1
    )  # fmt: skip
    model = Speaker([speech("Go.", *calls), speech("Done.")], which=by_answers)
    played(tmp_path, play, Agent(model=model, tools=[nothing, broken, Ledger().tools()[0]]))


def test_f_61_an_answer_that_begins_anew_is_put_right(tmp_path: Path) -> None:
    """What was heard of the first attempt is void: the message says what was kept."""

    async def play(it: Served, _: Ledger, page: Page) -> None:
        page.say("hi", "m1")
        await page.run(it.client())
        assert page.over == "success"
        assert page.messages[-1]["content"] == "Another answer."
        assert page.messages[0] == {"id": "m1", "role": "user", "content": "hi"}

    broken = [*_slowly("The first")[:4], Pause(0.1), ModelError("cut")]
    model = Speaker([broken, speech("Another answer.")])
    played(tmp_path, play, Agent(model=model))

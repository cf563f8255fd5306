"""F-82: an A2A task is a run of one prompt; the official client, with streams and without."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from a2a.client.errors import A2AClientError
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import (
    InvalidParamsError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)

from ..served import RUNNER, Clients
from .talking import decision, facts_of, heard, plain, play, reasons, talking

STREAMS = pytest.mark.parametrize("streams", [True, False], ids=["stream", "wait"])


def run_of(task_id: str) -> str:
    """A task's run, as a segment of a path."""
    return task_id.replace("%", "%25").replace("/", "%2F")


def ran(server: Clients, what: str) -> int:
    """How often a tool has run; each test has amounts of its own."""
    return server.did[what]


@STREAMS
def test_f_82_a_task_is_a_run_of_one_prompt(streams: bool, server: Clients) -> None:
    """From the card on: submitted or working, and completed with the agent's words."""

    async def work() -> None:
        async with talking(server, streams=streams) as it:
            (interface,) = it.card.supported_interfaces
            assert interface.protocol_version == "1.0"
            assert [skill.id for skill in it.card.skills] == ["assistant"]
            told = await it.say("hello there")
            assert told.state == "COMPLETED"
            assert told.words == "You said: hello there"
            assert set(told.states[:-1]) <= {"SUBMITTED", "WORKING"}
            assert told.artifacts == facts_of(server, told.id) == []
            kept = await it.get(told.id)
            assert [one["role"] for one in kept["history"]] == ["ROLE_USER", "ROLE_AGENT"]
            assert kept["status"] == told.status
            assert server.view(run_of(told.id))["kind"] == "own"

    play(work())


@STREAMS
def test_f_82_a_question_is_answered_by_a_data_part(streams: bool, server: Clients) -> None:
    """Each fact is sent once for a task, over both requests; the tool runs once."""
    amount = 101 if streams else 102

    async def work() -> None:
        async with talking(server, streams=streams) as it:
            asked = await it.say(f"pay {amount}")
            assert asked.state == "INPUT_REQUIRED"
            (ask,) = asked.asks
            assert ask["type"] == "TOOL_APPROVAL_REQUESTED"
            assert ask["arguments"] == {"amount": amount}
            assert ran(server, f"pay {amount}") == 0
            done = await it.answer(asked, decision(ask, approved=True))
            assert (done.state, done.words) == ("COMPLETED", "So pay succeeded.")
            sent = [*asked.artifacts, *done.artifacts] if streams else done.artifacts
            assert sent == facts_of(server, asked.id)
            assert ran(server, f"pay {amount}") == 1
            (approved,) = server.facts(run_of(asked.id), "TOOL_APPROVED")
            assert approved["decided_by"] == "app"

    play(work())


def test_f_82_a_denial_and_an_edit(server: Clients) -> None:
    async def work() -> None:
        async with talking(server) as it:
            asked = await it.say("pay 111")
            done = await it.answer(asked, decision(asked.asks[0], approved=False, reason="no"))
            assert (done.state, done.words) == ("COMPLETED", "So pay denied.")
            asked = await it.say("pay 112")
            edited = decision(asked.asks[0], approved=True, arguments={"amount": 113})
            done = await it.answer(asked, edited)
            assert done.words == "So pay succeeded."
            assert [ran(server, f"pay {it}") for it in (111, 112, 113)] == [0, 0, 1]

    play(work())


def test_f_82_text_is_never_read_as_consent(server: Clients) -> None:
    """However plain it is; nor is an answer that fits no question, or one without its digest."""

    async def work() -> None:
        async with talking(server) as it:
            asked = await it.say("pay 121")
            (ask,) = asked.asks
            for text in ("yes", "approved", '{"approved": true}', "pay 121"):
                with pytest.raises(InvalidParamsError, match="text is never read as consent"):
                    await it.text(asked, text)
            whole = decision(ask, approved=True)
            for wrong in (
                {**whole, "approved": "true"},
                {**whole, "approved": 1},
                {**whole, "consent": True},
                {name: whole[name] for name in whole if name != "arguments_digest"},
                {"approved": True},
                {**whole, "arguments_digest": "0" * 64},
                {**whole, "invocation_id": "c9"},
                {**whole, "turn_id": "t9"},
            ):
                with pytest.raises(InvalidParamsError):
                    await it.answer(asked, wrong)
            assert (await it.get(asked.id))["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
            assert ran(server, "pay 121") == 0
            done = await it.answer(asked, whole)  # the control
            assert (done.state, ran(server, "pay 121")) == ("COMPLETED", 1)

    play(work())


def test_f_82_two_questions_are_answered_together_or_one_by_one(server: Clients) -> None:
    async def work() -> None:
        async with talking(server) as it:
            asked = await it.say("pay 131 pay 132")
            first, second = asked.asks
            answers = [decision(first, approved=True), decision(second, approved=False)]
            done = await it.answer(asked, *answers)
            assert done.words == "So pay succeeded, pay denied."
            asked = await it.say("pay 133 pay 134")
            first, second = asked.asks
            left = await it.answer(asked, decision(first, approved=True))
            assert left.state == "INPUT_REQUIRED"
            assert [one["invocation_id"] for one in left.asks] == [second["invocation_id"]]
            done = await it.answer(asked, decision(second, approved=True))
            assert done.words == "So pay succeeded, pay succeeded."
            told = [*asked.artifacts, *left.artifacts, *done.artifacts]
            assert told == facts_of(server, asked.id)
            counts = [ran(server, f"pay {amount}") for amount in range(131, 135)]
            assert counts == [1, 0, 1, 1]

    play(work())


def test_f_22_a_late_answer_holds_and_a_flipped_one_is_told_who_was_first(server: Clients) -> None:
    async def work() -> None:
        async with talking(server) as it:
            asked = await it.say("pay 141")
            yes = decision(asked.asks[0], approved=True)
            done = await it.answer(asked, yes)
            again = await it.answer(asked, yes)
            assert again.status == done.status
            with pytest.raises(UnsupportedOperationError) as refused:
                await it.answer(asked, decision(asked.asks[0], approved=False))
            told = reasons(refused.value)
            assert (told["by"], told["approved"]) == ("app", "true")
            with pytest.raises(UnsupportedOperationError):
                await it.text(asked, "and now?")
            assert ran(server, "pay 141") == 1

    play(work())


def test_f_82_whoever_decides_elsewhere_has_decided(server: Clients) -> None:
    """A client that follows is told; one that answers afterwards is told who was first."""

    async def work() -> None:
        async with talking(server) as it:
            asked = await it.say("pay 151")
            following = asyncio.create_task(it.subscribe(asked.id))
            (call,) = server.calls(run_of(asked.id))
            await asyncio.sleep(0.1)
            decided = await asyncio.to_thread(server.decide, run_of(asked.id), call, approved=False)
            assert decided.status_code == 200
            told = await following
            assert (told.states[0], told.state) == ("INPUT_REQUIRED", "COMPLETED")
            assert len(told.states) <= 4  # a state is told once, however many facts come
            assert told.artifacts == facts_of(server, asked.id)
            with pytest.raises(UnsupportedOperationError) as refused:
                await it.answer(asked, decision(asked.asks[0], approved=True))
            assert reasons(refused.value)["by"] == "anna"
            assert ran(server, "pay 151") == 0

    play(work())


def test_f_82_abandoned_it_waits_and_goes_on_in_the_consoles(server: Clients) -> None:
    async def work() -> None:
        async with talking(server) as it:
            asked = await it.say("pay 161")
        (call,) = server.calls(run_of(asked.id))
        assert call["waits"] == "approval"
        server.decide(run_of(asked.id), call, approved=True)
        async with talking(server) as it, asyncio.timeout(20):
            assert (await it.get(asked.id))["status"]["state"] != "TASK_STATE_INPUT_REQUIRED"
            with suppress(UnsupportedOperationError):  # it has ended by now
                assert (await it.subscribe(asked.id)).state == "COMPLETED"
        assert ran(server, "pay 161") == 1

    play(work())


def test_f_82_a_message_that_comes_again_is_the_same_task(server: Clients) -> None:
    """By its id, of the same client; another text with that id is refused."""

    async def work() -> None:
        async with talking(server) as it, talking(server, who=RUNNER) as other:
            first = await it.say("pay 171", message_id="m171")
            again = await it.say("pay 171", message_id="m171")
            assert (again.id, again.asks) == (first.id, first.asks)
            with pytest.raises(InvalidParamsError):
                await it.say("pay 172", message_id="m171")
            assert (await other.say("hi", message_id="m171")).id != first.id
            second = await it.say("pay 173", message_id="n", context_id=first.task["contextId"])
            assert second.task["contextId"] == first.task["contextId"]
            assert second.id != first.id
            assert second.asks[0]["invocation_id"] == first.asks[0]["invocation_id"]
            await it.answer(second, decision(second.asks[0], approved=True))
            assert [ran(server, f"pay {amount}") for amount in (171, 172, 173)] == [0, 0, 1]

    play(work())


def test_f_82_canceled_and_failed(server: Clients) -> None:
    async def work() -> None:
        async with talking(server) as it:
            asked = await it.say("pay 181")
            stopped = await it.cancel(asked.id)
            assert stopped["status"]["state"] == "TASK_STATE_CANCELED"
            with pytest.raises(TaskNotCancelableError):
                await it.cancel(asked.id)
            with pytest.raises(UnsupportedOperationError):
                await it.subscribe(asked.id)
            broken = await it.say("fail")
            assert (broken.state, broken.words) == ("COMPLETED", "So fail failed.")
            assert ran(server, "pay 181") == 0

    play(work())


def test_f_11_each_part_needs_its_own_role(server: Clients) -> None:
    """An agent's own client begins tasks, and neither approves nor cancels."""

    async def work() -> None:
        async with talking(server, who=RUNNER) as it:
            asked = await it.say("pay 191")
            for refused in (
                it.answer(asked, decision(asked.asks[0], approved=True)),
                it.cancel(asked.id),
            ):
                with pytest.raises(A2AClientError, match="403"):
                    await refused
            assert ran(server, "pay 191") == 0
        async with talking(server, who="anna") as it:
            with pytest.raises(A2AClientError, match="403"):
                await it.say("pay 192")
            done = await it.answer(asked, decision(asked.asks[0], approved=True))
            assert done.state == "COMPLETED"

    play(work())


def test_f_82_tasks_are_listed_and_found_in_the_journal(server: Clients) -> None:
    async def work() -> None:
        async with talking(server) as it:
            made = [await it.say(f"pay {201 + n}", context_id="shop/1 %") for n in range(3)]
            done = await it.answer(made[0], decision(made[0].asks[0], approved=True))

            async def page(**wanted: Any) -> dict[str, Any]:
                request = pb.ListTasksRequest(context_id="shop/1 %", **wanted)
                return plain(await it.client.list_tasks(request))

            first = await page(page_size=2)
            assert [one["id"] for one in first["tasks"]] == [done.id, made[2].id]
            assert (first["totalSize"], "artifacts" in first["tasks"][0]) == (3, False)
            rest = await page(page_size=2, page_token=first["nextPageToken"])
            assert [one["id"] for one in rest["tasks"]] == [made[1].id]
            assert not rest.get("nextPageToken")
            waiting = await page(status=pb.TaskState.TASK_STATE_INPUT_REQUIRED, page_size=1)
            assert [one["id"] for one in waiting["tasks"]] == [made[2].id]
            assert waiting["totalSize"] == 2
            for wrong in ("nothing", "a2a/x/y", "a2a/c/" + "0" * 32, "r1"):
                with pytest.raises(TaskNotFoundError):
                    await it.get(wrong)

    play(work())


def test_f_82_at_once_the_task_is_told_as_it_stands(server: Clients) -> None:
    async def work() -> None:
        async with talking(server, streams=False) as it:
            told = await it.say("pay 211", at_once=True)
            assert told.state in {"SUBMITTED", "WORKING", "INPUT_REQUIRED"}
            followed = it.client.subscribe(pb.SubscribeToTaskRequest(id=told.id))
            with pytest.raises(NotImplementedError):
                await heard(followed)

    play(work())

"""What was approved in the upstream design and must not be, by HTTP and by WebSocket (section 6).

Here nobody performs the members: the kernel judges at once. What becomes of what was approved where
a host runs is in test_worlds_hosted.py.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from turnlock.models.calls import Call
from turnlock.models.deliveries import Claim, Report
from turnlock.models.fact import FactType
from turnlock.models.values import arguments_digest
from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.submitting import SharedRun
from turnlock.world.names import call_at, decision_id, question_id, request_id, result_id
from turnlock.world.publishing import World

from .worlded import SPEC, Served, approval, pays, served
from .worlds_ways import WAYS, Commanding, Way, commanding

BY = pytest.mark.parametrize("way", WAYS)


def denial(run_id: str, **more: Any) -> dict[str, Any]:
    return {"request_id": request_id(run_id, "t1", "c1"), "approved": False, **more}


async def facts(it: Served, run_id: str) -> list[FactType]:
    return [fact.type async for fact in it.journal.facts(run_id)]


async def settle(journal: Journal, run_id: str) -> None:
    """Have the approved call run, by nobody's hands, and its turn be over."""
    writer = await SharedRun.open(journal, run_id, policies={})
    named: Any = {"run_id": run_id, "turn_id": "t1", "invocation_id": "c1"}
    await writer.submit(Claim(**named, attempt=1), Report(**named, attempt=1, result="paid"))


@BY
def test_twenty_decisions_at_once_are_one(way: Way) -> None:
    """Two people, ten times each: one fact; the others are told that it holds, and by whom."""

    async def play() -> None:
        async with served() as it:
            await it.made("alice")
            run_id = await it.waits()
            async with commanding(it, way) as ada, commanding(it, way, "ben") as ben:
                body = approval(run_id)
                answers = await asyncio.gather(
                    *(who.command("decide", body) for who in (ada, ben) * 10)
                )
            told = Counter((status, body.get("reason")) for status, body in answers)
            assert told == {(200, None): 1, (200, "duplicate"): 19}
            (first,) = {body["call"]["decision"]["by"] for _, body in answers}
            assert first in {"ada", "ben"}
            assert (await facts(it, run_id)).count(FactType.TOOL_APPROVED) == 1

    asyncio.run(play())


@BY
def test_after_it_settled_nothing_is_decided_any_more(way: Way) -> None:
    async def play() -> None:
        async with served() as it:
            await it.made("alice")
            run_id = await it.waits()
            async with commanding(it, way) as ada:
                assert (await ada.command("decide", approval(run_id)))[0] == 200
                await settle(it.journal, run_id)
                before = await facts(it, run_id)
                for body in (approval(run_id), denial(run_id)):
                    status, told = await ada.command("decide", body)
                    assert (status, told["reason"]) == (409, "late")
                    assert told["call"]["decision"]["by"] == "ada"
            assert await facts(it, run_id) == before

    asyncio.run(play())


@BY
@pytest.mark.parametrize("settled", [False, True])
def test_deny_then_approve_runs_nothing(way: Way, settled: bool) -> None:
    """Before the turn has settled and after it; with two calls the turn waits for the other."""

    async def play() -> None:
        async with served() as it:
            await it.made("alice")
            calls = (pays(),) if settled else (pays(), pays("c2"))
            run_id = await it.waits(*calls)
            async with commanding(it, way) as ada, commanding(it, way, "ben") as ben:
                assert (await ada.command("decide", denial(run_id)))[1]["accepted"]
                status, told = await ben.command("decide", approval(run_id))
            reasons = {"late"} if settled else {"already_decided", "already_settled"}
            assert (status, told["accepted"]) == (409, False)
            assert told["reason"] in reasons
            assert FactType.TOOL_APPROVED not in await facts(it, run_id)

    asyncio.run(play())


@BY
def test_a_digest_of_other_arguments_approves_nothing(way: Way) -> None:
    """Nor do other arguments, or another tool, that are sent along: what waits is shown."""

    async def play() -> None:
        async with served() as it:
            await it.made("alice")
            run_id = await it.waits()
            right, other = approval(run_id), arguments_digest({"amount": 13})
            wrong: list[dict[str, Any]] = [
                {**right, "arguments_digest": other},
                {**right, "arguments_digest": "x"},
                {**right, "arguments": {"amount": 13}},
                {**right, "arguments": {}},
                {**right, "tool_name": "look"},
                {**right, "arguments": {"amount": 13}, "arguments_digest": other},
            ]
            async with commanding(it, way) as ada:
                for body in wrong:
                    status, told = await ada.command("decide", body)
                    assert (status, told["reason"]) == (412, "arguments_mismatch"), body
                    assert told["call"]["arguments"] == {"amount": 12}
                for body in ({**right, "arguments_digest": None}, {"approved": True}):
                    assert (await ada.command("decide", body))[0] == 422
                assert await facts(it, run_id) == [
                    FactType.TURN_OPENED, FactType.TOOL_APPROVAL_REQUESTED,
                ]  # fmt: skip
                shown = {"arguments": {"amount": 12}, "tool_name": "pay"}
                status, told = await ada.command("decide", {**right, **shown})
            assert (status, told["accepted"]) == (200, True)

    asyncio.run(play())


@BY
def test_what_runs_is_what_was_recorded_or_edited_and_nothing_sent_along(way: Way) -> None:
    """W-41: `arguments` are compared; only `edit` runs, and stands in the fact."""

    async def play() -> None:
        async with served() as it:
            await it.made("alice")
            run_id = await it.waits(pays("c1"), pays("c2"))
            async with commanding(it, way) as ada:
                plain = approval(run_id, arguments={"amount": 12})
                _, told = await ada.command("decide", plain)
                assert "arguments" not in told["facts"][0]
                edited = approval(run_id, pays("c2"), edit={"amount": 7})
                _, told = await ada.command("decide", edited)
                assert told["facts"][0]["arguments"] == {"amount": 7}
                status, told = await ada.command("decide", denial(run_id, edit={"amount": 7}))
            assert (status, told["at"]) == (422, "edit")

    asyncio.run(play())


@BY
def test_one_name_leads_to_a_call_and_no_other(way: Way) -> None:
    """The provider's own id of the call, another turn's, another kind of id: each is refused."""

    async def play() -> None:
        async with served() as it:
            await it.made("alice", "bob")
            digest = approval("x")["arguments_digest"]
            run_id = "demo/plan/alice"
            early = {"request_id": request_id(run_id, "t1", "c1"), "arguments_digest": digest}
            async with commanding(it, way) as ada:

                async def tried(**fields: Any) -> tuple[int, str]:
                    status, told = await ada.command(
                        "decide", {"approved": True, "arguments_digest": digest, **fields}
                    )
                    return status, told.get("reason") or told["at"]

                assert await tried(**early) == (409, "no_active_turn")
                provider = Call(
                    invocation_id="c1",
                    tool_name="pay",
                    arguments={"amount": 12},
                    requires_approval=True,
                    provider_call_id="toolu_1",
                )
                await it.waits(provider)
                own = question_id(run_id, "t1", "c1", 1, 1)
                for text in ("toolu_1", "c1", "", "1.c1", own, f"request/{run_id}/t1/c1"):
                    assert await tried(request_id=text) == (422, "request_id"), text
                for other in (decision_id(run_id, "t1", "c1"), result_id(run_id, "t1", "c1")):
                    assert await tried(request_id=other) == (422, "request_id")
                assert await tried(request_id=request_id(run_id, "t0", "c1")) == (
                    409, "turn_mismatch",
                )  # fmt: skip
                for text in ("toolu_1", "c2", "C1", "c1 "):
                    asked = request_id(run_id, "t1", text)
                    assert await tried(request_id=asked) == (404, "unknown_invocation"), text
                of_bob = request_id("demo/plan/bob", "t1", "c1")
                assert await tried(request_id=of_bob) == (409, "no_active_turn")
            assert FactType.TOOL_APPROVED not in await facts(it, run_id)

    asyncio.run(play())


@BY
def test_a_request_of_elsewhere_is_not_decided_here(way: Way) -> None:
    """Of another chat, another world, no world at all, or a member that never was one."""

    async def play() -> None:
        async with served() as it:
            world = await it.made("alice")
            await world.open_chat("other")
            far = World(it.journal, "far")
            await far.make()
            await far.put_agent("alice", SPEC)
            await far.open_chat("plan")
            here = await it.waits()
            there = await it.waits(chat="other")
            asked = [
                (there, "demo", "plan"),
                (here, "demo", "other"),
                (here, "far", "plan"),
                ("far/plan/alice", "demo", "plan"),
                ("demo/plan/carol", "demo", "plan"),
                ("demo/plan/alice#2", "demo", "plan"),
                ("r1", "demo", "plan"),
                ("demo/plan", "demo", "plan"),
                ("demo/plan/alice/x", "demo", "plan"),
            ]
            async with commanding(it, way) as ada:
                for run_id, to, chat in asked:
                    for body in (approval(run_id), denial(run_id)):
                        status, told = await ada.command("decide", body, world=to, chat=chat)
                        assert (status, told["reason"]) == (409, "run_mismatch"), (run_id, to)
                        assert "call" not in told, "nothing is told of what is elsewhere"
                for run_id, chat in ((here, "plan"), (there, "other")):
                    assert FactType.TOOL_APPROVED not in await facts(it, run_id)
                    status, _ = await ada.command("decide", approval(run_id), chat=chat)
                    assert status == 200, "the negative control"

    asyncio.run(play())


@BY
def test_once_is_used_once(way: Way) -> None:
    """The same call again, in the same turn, waits; and a decision for once gives no grant."""

    async def play() -> None:
        async with served() as it:
            await it.made("alice")
            run_id = await it.waits(pays("c1"), pays("c2"))
            async with commanding(it, way) as ada:
                _, told = await ada.command("decide", approval(run_id))
                assert [each["type"] for each in told["facts"]] == ["TOOL_APPROVED"]
                view = (await it.ada.get("/v1/runs/demo%2Fplan%2Falice")).json()
                assert [each["phase"] for each in view["turn"]["calls"]] == [
                    "APPROVED", "REQUESTED",
                ]  # fmt: skip
                assert view["grants"] == []
                asked: tuple[dict[str, Any], ...] = ({"match": "tool"}, {"expires_in": 60.0})
                for more in asked:
                    status, told = await ada.command("decide", approval(run_id, pays("c2"), **more))
                    assert status == 422, "a grant is never given by the way"

    asyncio.run(play())


@BY
def test_a_session_s_approval_covers_what_is_alike_alone(way: Way) -> None:
    """K-40: the same arguments in any order; others wait, unless the tool was said."""

    async def play() -> None:
        async with served() as it:
            await it.made("alice")
            calls = (
                pays("c1", to="ada", amount=1),
                pays("c2", amount=1, to="ada"),
                pays("c3", to="ada", amount=2),
            )
            run_id = await it.waits(*calls)
            async with commanding(it, way) as ada:
                body = approval(run_id, calls[0], scope="session")
                assert (await ada.command("decide", body))[0] == 200
                view = (await it.ada.get("/v1/runs/demo%2Fplan%2Falice")).json()
                phases = [each["phase"] for each in view["turn"]["calls"]]
                assert phases == ["APPROVED", "APPROVED", "REQUESTED"]
                assert len(view["grants"]) == 1

    asyncio.run(play())


@BY
@pytest.mark.parametrize(
    "field", ["decided_by", "by", "role", "sender", "kind", "run_id", "turn_id"]
)
def test_f_12_nobody_decides_as_somebody_else(way: Way, field: str) -> None:
    """A body with other fields is refused by name, whatever they say."""

    async def play() -> None:
        async with served() as it:
            await it.made("alice")
            run_id = await it.waits()
            async with commanding(it, way) as ada:
                bodies: list[tuple[str, dict[str, Any]]] = [
                    ("decide", approval(run_id)),
                    ("reply", {"question_id": "x", "action": "accept"}),
                    ("interrupt", {"agent": "alice"}),
                    ("say", {"message_id": "m", "text": "x"}),
                ]
                for kind, body in bodies:
                    status, told = await ada.command(kind, {**body, field: "ben"})
                    assert (status, told["at"]) == (422, field), kind
            assert FactType.TOOL_APPROVED not in await facts(it, run_id)
            assert await it.journal.entries("demo/plan") == ()

    asyncio.run(play())


async def _forbidden(who: Commanding, kind: str, body: dict[str, Any]) -> bool:
    status, told = await who.command(kind, body)
    return (status, told["title"]) == (403, "forbidden")


@BY
def test_f_11_an_agent_s_own_client_cannot_approve_what_it_asked_for(way: Way) -> None:
    """A token with `run` speaks and decides nothing; one with `decide` decides and says nothing."""

    async def play() -> None:
        async with served() as it:
            await it.made("alice")
            run_id = await it.waits()
            message = {"message_id": "m", "text": "x"}
            commands = {
                "say": message,
                "decide": approval(run_id),
                "interrupt": {"agent": "alice"},
                "reply": {"question_id": question_id(run_id, "t1", "c1", 1, 1), "action": "accept"},
            }
            may = {"runner": {"say"}, "decider": {"decide", "interrupt", "reply"}}
            for name, kinds in {**may, "eve": set[str](), "keeper": set[str]()}.items():
                async with commanding(it, way, name) as who:
                    for kind in commands.keys() - kinds:
                        assert await _forbidden(who, kind, commands[kind]), (name, kind)
            async with commanding(it, way, "decider") as decider:
                assert (await decider.command("decide", commands["decide"]))[0] == 200
            assert call_at(commands["decide"]["request_id"]).run_id == run_id

    asyncio.run(play())

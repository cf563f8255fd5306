"""Interrupts, resolutions and grants over HTTP, and what a kind cannot do."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import quote

import attrs

from turnlock import Claim, Lose, Report
from turnlock.adapters.contract import Capabilities
from turnlock.models.deliveries import Scope
from turnlock.runtime.tools.tool import tool
from turnlock.runtime.tools.toolbox import Toolbox
from turnlock.server.deciding import command
from turnlock.server.routing import Role

from .deciders import ADA, Kind, facing, facts_of
from .runs import approval, denial, free, gated, opened_turn, shared, told

DECISIONS = "/v1/runs/r/decisions"
RESOLUTIONS = "/v1/runs/r/resolutions"


def test_f_24_an_interrupt_without_a_turn_means_the_open_one() -> None:
    """It is named in the receipt (S-45), so that a repetition can name it; none is open then."""

    async def play() -> None:
        async with facing(opened_turn(gated(), free("b"))) as it:
            await shared(it.journal, Claim(turn_id="t", invocation_id="b", attempt=1))
            client = it.client(Role.DECIDE)
            answer = await client.post("/v1/runs/r/interrupt", json={"reason": "stop"})
            assert told(answer) == (200, True)
            assert answer.json()["turn_id"] == "t"
            types = [fact["type"] for fact in answer.json()["facts"]]
            assert types == ["TURN_INTERRUPTING", "TOOL_DENIED"]

            again = await client.post("/v1/runs/r/interrupt", json={"turn_id": "t"})
            assert told(again) == (200, "duplicate")
            other = await client.post("/v1/runs/r/interrupt", json={"turn_id": "u"})
            assert told(other) == (409, "turn_mismatch")

            await shared(it.journal, Report(turn_id="t", invocation_id="b", result=1))
            late = await client.post("/v1/runs/r/interrupt", json={"turn_id": "t"})
            assert told(late) == (409, "late")
            none = await client.post("/v1/runs/r/interrupt", json={})
            assert told(none) == (409, "no_active_turn")
            assert none.json()["accepted"] is False

    asyncio.run(play())


def test_s_45_without_an_open_turn_a_model_that_is_asked_is_stopped() -> None:
    async def play() -> None:
        for stops, status in ((True, 200), (False, 409)):
            async with facing(sessions=Kind(model_stops=stops)) as it:
                answer = await it.client(Role.DECIDE).post(
                    "/v1/runs/r/interrupt", json={"reason": "stop", "grace": 3.0}
                )
                assert answer.status_code == status
                assert answer.json()["accepted"] is stops

    asyncio.run(play())


def resolution(resolution_: str, attempt: int = 1, **fields: Any) -> dict[str, Any]:
    to = {"turn_id": "t", "invocation_id": "a", "attempt": attempt}
    return {**to, "resolution": resolution_, **fields}


def doubtful() -> tuple[Any, ...]:
    to: dict[str, Any] = {"turn_id": "t", "invocation_id": "a"}
    return opened_turn(free("a"), gated("b")), Claim(**to, attempt=1, worker="w"), Lose(**to)


def test_a_doubt_is_resolved_once_and_each_other_answer_is_the_kernels() -> None:
    async def play() -> None:
        async with facing(*doubtful()) as it:
            client = it.client(Role.DECIDE)

            async def said(body: dict[str, Any]) -> tuple[int, Any]:
                answer = await client.post(RESOLUTIONS, json=body)
                if answer.status_code == 422:
                    return 422, answer.json()["at"]
                assert answer.json()["call"]["invocation_id"] == "a"
                return told(answer)

            assert await said(resolution("result", attempt=2, result=1)) == (409, "stale_attempt")
            assert await said(resolution("result")) == (422, "resolution")
            assert await said(resolution("error", result=1)) == (422, "resolution")
            assert await said(resolution("retry", attempt=0)) == (409, "stale_attempt")
            assert await said(resolution("result", result=None)) == (200, True)
            for again in (resolution("result", result=None), resolution("retry")):
                assert await said(again) == (409, "already_settled")
            assert await said(resolution("retry", attempt=2)) == (409, "stale_attempt")

    asyncio.run(play())


def test_an_answer_to_a_call_that_is_not_in_doubt_is_refused() -> None:
    async def play() -> None:
        async with facing(opened_turn()) as it:
            answer = await it.client(Role.DECIDE).post(RESOLUTIONS, json=resolution("retry"))
            assert told(answer) == (409, "not_in_doubt")

    asyncio.run(play())


def test_s_42a_what_a_kind_cannot_do_is_refused_before_anything_happens() -> None:
    """By name, for every command but an interrupt (S-12)."""

    async def play() -> None:
        nothing = Capabilities(
            approve=False,
            deny=False,
            resolve=False,
            retry=False,
            edit_arguments=False,
            scopes=(Scope.ONCE,),
        )
        some = attrs.evolve(nothing, approve=True, resolve=True)
        tried = [
            (nothing, "decide", approval()),
            (nothing, "decide", denial()),
            (nothing, "resolve", resolution("error", error="x")),
            (some, "decide", approval(arguments={"amount": 1})),
            (some, "decide", approval(scope="turn")),
            (some, "resolve", resolution("retry")),
        ]
        for can, kind, body in tried:
            async with facing(*doubtful(), sessions=Kind(can=can)) as it:
                before = await facts_of(it.journal)
                answer = await command(it.face, kind, "r", body, ADA)
                assert (answer.status, answer.body["title"]) == (409, "capability_unsupported")
                assert await facts_of(it.journal) == before
        async with facing(opened_turn(), sessions=Kind(can=nothing)) as it:
            stopped = await command(it.face, "interrupt", "r", {}, ADA)
            assert stopped.status == 200

    asyncio.run(play())


def test_edited_arguments_are_held_against_the_tool() -> None:
    """With its tools at hand what it does not take is 422, and the call waits still."""

    @tool(name="pay", approval=True)
    async def pay(amount: int) -> str:
        return f"paid {amount}"

    async def play() -> None:
        sessions = Kind(tools=Toolbox([pay]))
        async with facing(opened_turn(), sessions=sessions) as it:
            client = it.client(Role.DECIDE)
            for wrong, at in (({"amount": "much"}, "amount"), ({"sum": 1}, "sum")):
                body = approval(arguments=wrong)
                answer = await client.post(DECISIONS, json=body)
                assert answer.status_code == 422
                assert at in answer.json()["at"]
            answer = await client.post(DECISIONS, json=approval(arguments={"amount": 3}))
            assert told(answer) == (200, True)
            assert answer.json()["call"]["arguments"] == {"amount": 3}

    asyncio.run(play())


def test_f_27_grants_reach_as_far_as_is_said_and_are_revoked_by_their_ids() -> None:
    """Scope, match and expiry; the id is one segment of the path. A second revocation is 404."""

    async def play() -> None:
        calls = gated("a"), gated("b", arguments={"amount": 9}), gated("c", tool="other")
        async with facing(opened_turn(*calls)) as it:
            client = it.client(Role.DECIDE)
            body = approval(scope="session", match="tool", expires_in=60.0)
            answer = await client.post(DECISIONS, json=body)
            issued = [it for it in answer.json()["facts"] if it["type"] == "GRANT_ISSUED"]
            assert issued[0]["scope"] == "session"
            assert issued[0]["match"] == "tool"
            assert 0 < issued[0]["expires_at"] - issued[0]["at"] <= 60.0
            approved = [it for it in answer.json()["facts"] if it["type"] == "TOOL_APPROVED"]
            assert [it["invocation_id"] for it in approved] == ["a", "b"]

            again = await client.post(DECISIONS, json=approval(calls[1]))
            assert again.json()["call"]["decision"]["cause"] == "grant"
            assert again.json()["call"]["decision"]["grant_id"] == "grant/r/1"

            place = "/v1/runs/r/grants/" + quote("grant/r/1", safe="")
            assert told(await client.delete(place)) == (200, True)
            assert told(await client.delete(place)) == (404, "unknown_grant")
            assert told(await client.delete("/v1/runs/r/grants/1")) == (404, "unknown_grant")

    asyncio.run(play())

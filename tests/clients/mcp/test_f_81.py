"""F-81: from 2026-07-28 on a call is sent again with the answer, and the state is sealed."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from turnlock.guards.mcp.asking import KEY, QUESTION
from turnlock.runtime.tools.tool import tool
from turnlock.runtime.tools.toolbox import Toolbox

from ...runtime.secrets import TestCipher
from ..served import secret_of
from .offering import ANNA, APP, RUNNER, Offering, offering, play

ANN: Final = {"to": "ann", "amount": 3}
YES: Final = {"action": "accept", "content": {"approved": True}}
NO: Final = {"action": "accept", "content": {"approved": False}}
MODERN: Final = "2026-07-28"
CAPABILITIES: Final[Mapping[str, Any]] = {"elicitation": {"form": {}}}


async def post(
    it: Offering,
    params: Mapping[str, Any],
    *,
    who: str = APP,
    key: str | None = None,
    number: int = 1,
    **headers: str,
) -> Any:
    """Send one call as the protocol has it; return the answer's body."""
    meta: dict[str, Any] = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": CAPABILITIES,
    }
    if key is not None:
        meta[KEY] = key
    body: dict[str, Any] = {
        "jsonrpc": "2.0",
        "id": number,
        "method": "tools/call",
        "params": {"name": "pay", "arguments": ANN, "_meta": meta, **params},
    }
    found = await it.http.post(
        f"{it.url}/mcp",
        content=json.dumps(body).encode(),
        headers={
            "Authorization": f"Bearer {secret_of(who)}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "mcp-protocol-version": MODERN,
            "mcp-method": "tools/call",
            "mcp-name": "pay",
            **headers,
        },
    )
    return found.json()


def answering(asked: Any, said: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that answer a question."""
    assert asked["result"]["resultType"] == "input_required"
    return {
        "inputResponses": {QUESTION: said},
        "requestState": asked["result"]["requestState"],
    }


def is_rejected(answer: Any) -> bool:
    """Whether the state was refused, by the frozen words of the SDK."""
    error = answer.get("error", {})
    refused: bool = error.get("data") == {"reason": "invalid_request_state"}
    return refused and error["code"] == -32_602


def test_f_81_the_second_request_opens_no_second_turn(tmp_path: Path) -> None:
    """Under a new id, and in another process: the keys stand beside the journal."""

    async def work() -> None:
        async with offering(tmp_path) as it:
            asked = await post(it, {})
            (question,) = asked["result"]["inputRequests"].values()
            assert question["params"]["requestedSchema"]["required"] == ["approved"]
            assert '"amount": 3' in question["params"]["message"]
            assert "ann" not in asked["result"]["requestState"]
        async with offering(tmp_path) as it:
            paid = await post(it, answering(asked, YES), number=2)
            assert paid["result"]["structuredContent"] == {"to": "ann", "paid": 3}
            (run,) = await it.runs()
            assert len(await it.facts(run, "TURN_OPENED")) == 1
            assert it.ledger == ["pay ann 3"]

    play(work())


def test_f_81_a_late_and_a_flipped_answer_are_told_what_is_true(tmp_path: Path) -> None:
    async def work() -> None:
        async with offering(tmp_path) as it:
            asked = await post(it, {})
            first = await post(it, answering(asked, YES))
            for said in (YES, NO, {"action": "decline"}, {"action": "cancel"}):
                assert (await post(it, answering(asked, said)))["result"] == first["result"]
            assert it.ledger == ["pay ann 3"]

    play(work())


def test_f_81_an_answer_of_another_shape_is_asked_again(tmp_path: Path) -> None:
    """Nothing but true is consent."""

    async def work() -> None:
        async with offering(tmp_path) as it:
            asked = await post(it, {})
            for content in ({"approved": "yes"}, {"approved": 1}, {"approve": True}, {}):
                said = {"action": "accept", "content": content}
                again = await post(it, answering(asked, said))
                assert again["result"]["resultType"] == "input_required"
            assert it.ledger == []
            assert len(await it.runs()) == 1

    play(work())


def test_f_81_decided_elsewhere_it_is_answered_with_the_outcome(tmp_path: Path) -> None:
    async def work() -> None:
        async with offering(tmp_path) as it:
            asked = await post(it, {})
            (call,) = await it.waiting()
            assert (await it.decide(call, approved=False, reason="no")).status_code == 200
            told = await post(it, answering(asked, YES))
            assert told["result"]["isError"]
            assert it.ledger == []

    play(work())


def test_f_81_a_state_is_of_one_call_and_of_whoever_was_asked(tmp_path: Path) -> None:
    """Forged, of other arguments, or of another token: refused; the call waits still."""

    async def work() -> None:
        async with offering(tmp_path) as it:
            asked = await post(it, {}, key="k1")
            answer = answering(asked, YES)
            state = answer["requestState"]
            for forged in (state[:-2] + "AA", "v1.x", "turnlock:{}", "", '{"run":"r"}'):
                assert is_rejected(await post(it, {**answer, "requestState": forged}))
            other = {**answer, "arguments": {"to": "eve", "amount": 3}}
            assert is_rejected(await post(it, other))
            assert is_rejected(await post(it, answer, who=RUNNER))
            differs = await post(it, answer, key="k2")
            assert differs["error"]["code"] == -32_602
            assert it.ledger == []
            await post(it, answer, key="k1")
            assert it.ledger == ["pay ann 3"]  # the control

    play(work())


def test_f_81_a_state_lasts_for_24_hours_and_for_as_long_as_its_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        now = time.time()
        async with offering(tmp_path) as it:
            asked = await post(it, {})
            with monkeypatch.context() as later:
                later.setattr("mcp.server.request_state.time.time", lambda: now + 86_500)
                assert is_rejected(await post(it, answering(asked, YES)))
            with monkeypatch.context() as earlier:
                earlier.setattr("mcp.server.request_state.time.time", lambda: now + 86_300)
                again = await post(it, answering(asked, {"action": "accept"}))
                assert not is_rejected(again)
        (tmp_path / "agent.db.keys").unlink()
        async with offering(tmp_path) as it:
            assert is_rejected(await post(it, answering(asked, YES)))
            assert it.ledger == []

    play(work())


def test_f_81_an_approval_counts_only_with_decide(tmp_path: Path) -> None:
    """Who may not decide is not asked, and what it says unasked does not count."""

    async def work() -> None:
        async with offering(tmp_path, wait=0.1) as it:
            for params in ({}, {"inputResponses": {QUESTION: YES}}):
                told = await post(it, params, who=RUNNER)
                assert "waits for approval" in told["result"]["content"][0]["text"]
            for who in (APP, ANNA):
                found = await post(it, {"inputResponses": {QUESTION: YES}}, who=who)
                asked = found.get("result", {}).get("resultType")
                assert asked == ("input_required" if who == APP else None)
            assert it.ledger == []

    play(work())


def test_f_14_names_origins_and_tokens_are_held_before_anything_else(tmp_path: Path) -> None:
    async def work() -> None:
        async with offering(tmp_path) as it:
            body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
            token = {"Authorization": f"Bearer {secret_of(APP)}"}
            wanted: list[tuple[dict[str, str], int]] = [
                ({**token, "Host": "evil.example"}, 421),
                ({**token, "Origin": "https://evil.example"}, 403),
                ({}, 401),
                ({"Authorization": "Bearer wrong"}, 401),
                ({**token, "Content-Type": "text/plain"}, 415),
            ]
            for headers, status in wanted:
                found = await it.http.post(f"{it.url}/mcp", json=body, headers=headers)
                assert found.status_code == status, headers
                assert found.headers["content-type"] == "application/problem+json"
            twice = b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}'
            headers = {**token, "Content-Type": "application/json"}
            found = await it.http.post(f"{it.url}/mcp", content=twice, headers=headers)
            assert (found.status_code, found.json()["title"]) == (400, "invalid_json")

    play(work())


def test_f_14_a_page_of_an_origin_that_may_ask_may_speak_mcp(tmp_path: Path) -> None:
    """What its client sends and reads is let through; of a foreign page nothing is."""

    async def work() -> None:
        page = "https://desk.example"
        async with offering(tmp_path, origins=(page,)) as it:
            wanted = {"Origin": page, "Access-Control-Request-Method": "POST"}
            asked = await it.http.request("OPTIONS", f"{it.url}/mcp", headers=wanted)
            allowed = asked.headers["access-control-allow-headers"].lower()
            assert {"mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name"} <= {
                name.strip() for name in allowed.split(",")
            }
            assert asked.headers["access-control-allow-origin"] == page
            found = await it.http.request(
                "OPTIONS", f"{it.url}/mcp", headers={**wanted, "Origin": "https://evil.example"}
            )
            assert found.status_code == 403

    play(work())


@pytest.mark.parametrize("text", ["\ud800", "\x00", "a\u202eb", "x" * 100_000])
def test_f_5_hostile_text_is_no_mistake_of_ours(text: str, tmp_path: Path) -> None:
    """As a key, as an argument, as a tool: refused, or taken as it is."""

    async def work() -> None:
        async with offering(tmp_path, wait=0.1) as it:
            for params, key in (
                ({"arguments": {"to": text, "amount": 1}}, None),
                ({"arguments": {text: 1}}, None),
                ({}, text),
            ):
                told = await post(it, params, key=key)
                assert told.get("error", {}).get("code", 0) != -32_603, told
            assert it.ledger == []

    play(work())


def test_f_81_a_session_is_of_the_token_that_began_it(tmp_path: Path) -> None:
    """Before 2026-07-28: another token's answer in it is that to a session that is not there."""

    async def work() -> None:
        async with offering(tmp_path) as it:
            client = {"name": "c", "version": "1"}
            params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
            begin = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
            accept = {"Accept": "application/json, text/event-stream"}

            async def send(body: Any, who: str, **more: str) -> Any:
                token = {"Authorization": f"Bearer {secret_of(who)}"}
                headers = {**token, **accept, **more}
                return await it.http.post(f"{it.url}/mcp", json=body, headers=headers)

            begun = await send(begin, APP)
            session = {"mcp-session-id": begun.headers["mcp-session-id"]}
            ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
            statuses = [(await send(ping, who, **session)).status_code for who in (ANNA, APP)]
            assert statuses == [404, 200]

    play(work())


def test_f_1_a_server_without_tools_has_no_mcp(tmp_path: Path) -> None:
    async def work() -> None:
        async with offering(tmp_path) as it:
            assert "mcp" in (await it.ask("GET", "/v1")).json()["faces"]
            it.face.standing.is_stopping = True
            answer = await post(it, {})
            assert answer["title"] == "shutting_down"

    play(work())


def test_f_81_two_servers_of_one_journal_know_each_others_calls(tmp_path: Path) -> None:
    """Asked by one, answered at the other: the owner judges, and both tell the one outcome."""

    async def work() -> None:
        async with offering(tmp_path) as one, offering(tmp_path) as other:
            asked = await post(one, {}, key="k1")
            again = await post(other, {}, key="k1")
            state = again["result"]["resultType"]
            assert state == "input_required"
            paid = await post(other, answering(asked, YES), key="k1")
            assert paid["result"]["structuredContent"] == {"to": "ann", "paid": 3}
            assert (await post(one, answering(again, NO), key="k1"))["result"] == paid["result"]
            assert (one.ledger, other.ledger) == (["pay ann 3"], [])

    play(work())


def test_w_65_what_is_kept_sealed_is_shown_and_told_to_its_client_alone(tmp_path: Path) -> None:
    """Arguments and result are sealed in the journal; a key tells calls apart all the same."""

    async def work() -> None:
        tools = Toolbox.of(pay, cipher=TestCipher())
        async with offering(tmp_path, tools=tools) as it:
            asked = await post(it, {}, key="k1")
            (question,) = asked["result"]["inputRequests"].values()
            assert '"to": "ann"' in question["params"]["message"]
            told = await post(it, answering(asked, YES), key="k1")
            assert told["result"]["content"][0]["text"] == "secretly paid ann"
            assert (await post(it, {}, key="k1"))["result"] == told["result"]
            other = await post(it, {"arguments": {"to": "eve", "amount": 3}}, key="k1")
            assert other["error"]["code"] == -32_602
            (run,) = await it.runs()
            facts = str(await it.facts(run))
            assert "ann" not in facts
            assert "secretly" not in facts

    play(work())


@tool(approval=True, keep_arguments="sealed", keep_result="sealed")
async def pay(to: str, amount: int) -> str:
    """Pay, and keep it to yourself."""
    return f"secretly paid {to}"

"""`/v1/a2a` as it is on the wire: JSON-RPC read strictly, versions, errors, and who is let in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import httpx
import pytest

from ..served import APP, RUNNER, Clients, secret_of

VERSION: Final = {"A2A-Version": "1.0"}
MESSAGE: Final[Mapping[str, Any]] = {
    "messageId": "m1",
    "role": "ROLE_USER",
    "parts": [{"text": "hello"}],
}


def post(server: Clients, content: bytes, **headers: str) -> httpx.Response:
    """Send bytes."""
    sent = {
        "Authorization": f"Bearer {secret_of(APP)}",
        "Content-Type": "application/json",
        **VERSION,
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    return server.http.post(f"{server.url}/v1/a2a", content=content, headers=sent)


def ask(server: Clients, method: str, params: Mapping[str, Any], who: str = APP) -> Any:
    """Send a request; return its response."""
    body = {"jsonrpc": "2.0", "id": "q", "method": method, "params": params}
    headers = {"Authorization": f"Bearer {secret_of(who)}", **VERSION}
    return server.http.post(f"{server.url}/v1/a2a", json=body, headers=headers).json()


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"{", -32_700),
        (b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":NaN}', -32_700),
        (b'[{"jsonrpc":"2.0","id":1,"method":"GetTask"}]', -32_600),
        (b'{"jsonrpc":"2.0","id":1,"method":"GetTask","method":"CancelTask"}', -32_600),
        (b'{"jsonrpc":"1.0","id":1,"method":"GetTask"}', -32_600),
        (b'{"jsonrpc":"2.0","method":"GetTask"}', -32_600),
        (b'{"jsonrpc":"2.0","id":true,"method":"GetTask"}', -32_600),
        (b'{"jsonrpc":"2.0","id":1}', -32_600),
        (b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":[]}', -32_602),
        (b'{"jsonrpc":"2.0","id":1,"method":"message/send"}', -32_601),
        (b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":7}}', -32_602),
        (b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"x"}}', -32_001),
        (b'{"jsonrpc":"2.0","id":1,"method":"CreateTaskPushNotificationConfig"}', -32_003),
        (b'{"jsonrpc":"2.0","id":1,"method":"GetExtendedAgentCard"}', -32_007),
        (b'{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{"pageSize":0}}', -32_602),
        (b'{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{"status":"ok"}}', -32_602),
        (b'{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{"pageToken":"p"}}', -32_602),
    ],
)
def test_f_3_requests_are_read_strictly(content: bytes, code: int, server: Clients) -> None:
    answer = post(server, content)
    assert answer.status_code == 200
    error = answer.json()["error"]
    assert (error["code"], error["data"][0]["domain"]) == (code, "a2a-protocol.org")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"role": "ROLE_AGENT"}, -32_602),
        ({"role": "user"}, -32_602),
        ({"parts": []}, -32_602),
        ({"parts": ["hello"]}, -32_602),
        ({"messageId": ""}, -32_602),
        ({"messageId": "x" * 129}, -32_602),
        ({"contextId": "x" * 101}, -32_602),
        ({"parts": [{"raw": "aGk="}]}, -32_005),
        ({"parts": [{"url": "https://a.example/x"}]}, -32_005),
        ({"parts": [{"text": "hi"}, {"data": {"a": 1}}]}, -32_602),
        ({"taskId": "a2a/none/x"}, -32_001),
    ],
)
def test_f_82_a_message_that_is_none_begins_nothing(
    change: Mapping[str, Any], code: int, server: Clients
) -> None:
    before = len(server.ask("GET", "/v1/runs?limit=200").json()["runs"])
    answer = ask(server, "SendMessage", {"message": {**MESSAGE, **change}})
    assert answer["error"]["code"] == code
    assert len(server.ask("GET", "/v1/runs?limit=200").json()["runs"]) == before


def test_f_82_a_version_that_is_not_spoken_is_refused(server: Clients) -> None:
    """None is 0.3, as the protocol has it."""
    whole = b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"x"}}'
    for version in ("", "0.3", "2.0"):
        assert post(server, whole, A2A_Version=version).json()["error"]["code"] == -32_009


def test_f_82_what_is_not_offered_is_said(server: Clients) -> None:
    push = {"taskPushNotificationConfig": {"url": "https://a.example"}}
    answer = ask(server, "SendMessage", {"message": MESSAGE, "configuration": push})
    assert answer["error"]["code"] == -32_003


def test_f_14_names_origins_and_tokens_are_held_before_anything_else(server: Clients) -> None:
    whole = b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"x"}}'
    for headers, status in (
        ({"Host": "evil.example"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Content_Type": "text/plain"}, 415),
    ):
        answer = post(server, whole, **headers)
        assert answer.status_code == status
        assert answer.headers["content-type"] == "application/problem+json"
    card = server.http.get(f"{server.url}/v1/a2a/.well-known/agent-card.json")
    assert card.status_code == 401


def test_f_11_a_token_that_may_not_begin_a_task_is_refused_as_everywhere(server: Clients) -> None:
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "SendMessage",
        "params": {"message": {**MESSAGE, "messageId": "of anna"}},
    }
    answers = [
        server.http.post(
            f"{server.url}/v1/a2a",
            json=body,
            headers={"Authorization": f"Bearer {secret_of(who)}", **VERSION},
        )
        for who in ("anna", RUNNER)
    ]
    assert [it.status_code for it in answers] == [403, 200]
    task = answers[1].json()["result"]["task"]
    assert task["status"]["message"]["parts"][0]["text"] == "You said: hello"


def test_f_82_history_is_as_long_as_is_asked_for(server: Clients) -> None:
    message = {**MESSAGE, "messageId": "long"}
    for length, count in ((0, 0), (1, 1), (9, 2)):
        configuration = {"historyLength": length}
        params = {"message": message, "configuration": configuration}
        task = ask(server, "SendMessage", params)["result"]["task"]
        assert len(task.get("history", ())) == count
        kept = ask(server, "GetTask", {"id": task["id"], "historyLength": length})["result"]
        assert len(kept.get("history", ())) == count


@pytest.mark.parametrize(
    "change",
    [
        {"contextId": "\ud800"},
        {"messageId": "\ud800"},
        {"parts": [{"text": "\ud800"}]},
        {"contextId": "a\nb\u202e"},
        {"contextId": "\x00"},
        {"taskId": "\ud800"},
        {"taskId": "a2a/%/" + "0" * 32},
        {"taskId": "a2a/\ud800/" + "0" * 32},
    ],
)
def test_f_5_hostile_text_is_no_mistake_of_ours(change: Mapping[str, Any], server: Clients) -> None:
    """Half of a pair, control characters, other directions: refused, or taken as they are."""
    message = {**MESSAGE, "messageId": f"h{sorted(change)}", **change}
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    answer = post(server, json.dumps(body).encode())
    told = answer.json()
    assert answer.status_code == 200
    assert "error" not in told or told["error"]["code"] in {-32_602, -32_001}
    for task in (change.get("taskId"),):
        if task is not None:
            found = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": task}}
            kept = post(server, json.dumps(found).encode()).json()
            assert kept["error"]["code"] in {-32_602, -32_001}

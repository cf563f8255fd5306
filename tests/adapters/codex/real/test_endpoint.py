"""The model of ours, without Codex: what it streams, how it fails, what it keeps."""

from __future__ import annotations

import http.client
import json
import threading
from typing import Any
from urllib.parse import urlsplit

import pytest

from .endpoint import answering, call, command, custom, patch, say, step


def asked(url: str, *inputs: dict[str, Any]) -> tuple[int, list[dict[str, Any]]]:
    """Ask as Codex does; return the status and the events of the stream."""
    there = urlsplit(url)
    connection = http.client.HTTPConnection(there.netloc, timeout=20)
    try:
        body = json.dumps({"model": "m", "stream": True, "input": inputs})
        connection.request("POST", f"{there.path}/responses", body)
        answer = connection.getresponse()
        text = answer.read().decode()
    finally:
        connection.close()
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    return answer.status, [json.loads(line) for line in lines]


def kinds(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"].removeprefix("response.") for event in events]


def test_a_script_is_answered_step_by_step_and_then_done() -> None:
    """Each request takes the next step; a message streams as deltas; what comes after is `done`."""
    with answering([step(command("c1", "ls"), call("c2", "f", {"a": 1})), step(say("hi"))]) as ours:
        _, first = asked(ours.url)
        assert kinds(first) == ["created", "output_item.done", "output_item.done", "completed"]
        assert [event["item"]["call_id"] for event in first[1:3]] == ["c1", "c2"]
        assert (
            json.loads(first[1]["item"]["arguments"])["sandbox_permissions"] == "require_escalated"
        )

        _, second = asked(ours.url)
        told = [
            "created",
            "output_item.added",
            "output_text.delta",
            "output_item.done",
            "completed",
        ]
        assert kinds(second) == told

        _, third = asked(ours.url)
        assert third[2]["delta"] == "done"
        assert len(ours.asked) == 3


def test_what_was_asked_is_kept() -> None:
    """A test sees what each tool gave, and what the user said."""
    output = {"type": "function_call_output", "call_id": "c1", "output": "fine"}
    said = {"role": "user", "content": [{"type": "input_text", "text": "go"}]}
    with answering() as ours:
        asked(ours.url, said, output)
        [request] = ours.wait(1)
        assert request.outputs() == {"c1": "fine"}
        assert request.said() == ["go"]
        with pytest.raises(TimeoutError, match="1 times, not 2"):
            ours.wait(2, seconds=0.01)


def test_it_fails_as_it_is_told() -> None:
    """A cut stream has no end, a failure names its code, another status streams nothing."""
    with answering(
        [step(patch("p", "f", "x"), cut=True), step(failed="server_error"), step(status=500)]
    ) as ours:
        assert kinds(asked(ours.url)[1]) == ["created", "output_item.done"]
        assert asked(ours.url)[1][-1]["response"]["error"]["code"] == "server_error"
        assert asked(ours.url) == (500, [])


def test_a_script_may_be_a_function_and_a_step_may_wait() -> None:
    """What is answered may depend on what was asked, and on a moment that the test picks."""
    now = threading.Event()
    with answering(
        lambda request: step(custom("x", "t", str(len(request.said()))), until=now)
    ) as ours:
        told: list[Any] = []
        asking = threading.Thread(target=lambda: told.append(asked(ours.url)))
        asking.start()
        ours.wait(1)
        assert not told
        now.set()
        asking.join(20)
        assert told[0][1][1]["item"]["input"] == "0"
